"""Threads that stand for the processes of one launch."""

import threading
from collections.abc import Callable
from typing import Any

from negsample.processes import Processes


class Wire:
    """What the threads tell each other."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.values: list[list[Any]] = [[]] * size
        self.barrier = threading.Barrier(size, timeout=60)


class ThreadProcesses(Processes):
    """One thread among those on a wire."""

    def __init__(self, wire: Wire, rank: int) -> None:
        self.rank, self.size = rank, wire.size
        self._wire = wire

    def _gather(self, values: list[Any]) -> list[Any]:
        self._wire.values[self.rank] = values
        self._wire.barrier.wait()
        found = [value for told in self._wire.values for value in told]
        self._wire.barrier.wait()
        return found

    def _close(self) -> None:
        pass


def together(size: int, job: Callable[[Processes], Any]) -> list[Any]:
    """Run ``job`` in ``size`` threads; return what it returned or raised in each."""
    wire, ends = Wire(size), [None] * size

    def work(rank: int) -> None:
        try:
            with ThreadProcesses(wire, rank) as processes:
                ends[rank] = job(processes)
        except BaseException as error:
            ends[rank] = error

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return ends

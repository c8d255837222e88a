"""What several benchmarks need: the least time of some runs, and texts that are made up."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from negsample.seeds import generator

T = TypeVar("T")


def best_of(times: int, job: Callable[[], T]) -> tuple[float, T]:
    """Least seconds of ``times`` runs, and the last result."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        result = job()
        seconds.append(time.perf_counter() - began)
    return min(seconds), result


def made_text(words: int, vocabulary: Sequence[str], *seed: object) -> str:
    """A text of ``words`` words of the ``vocabulary`` in sentences of 20."""
    drawn = [vocabulary[int(i)] for i in generator("benchmark", *seed).integers(len(vocabulary), size=words)]
    return " ".join(" ".join(drawn[i : i + 20]).capitalize() + "." for i in range(0, words, 20))

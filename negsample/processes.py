"""The processes that ``accelerate launch`` has started together, speaking with one voice."""

import atexit
import os
import sys
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

from negsample.errors import InputError
from negsample.terminal import say

T = TypeVar("T")
# What Accelerate's launcher sets.
_SHARDING = {
    "FSDP": "ACCELERATE_USE_FSDP",
    "DeepSpeed": "ACCELERATE_USE_DEEPSPEED",
    "Megatron-LM": "ACCELERATE_USE_MEGATRON_LM",
}


def launched() -> bool:
    """Whether a launcher (Accelerate's, MPI's) has started this process as one of several."""
    return any(name in os.environ for name in ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"))


def warn_of_lone_process() -> None:
    """Say so where several CPU processes were asked for and Accelerate started one (huggingface/accelerate 2741).

    Its launcher sets a master address for several processes but leaves starting them on CPUs to MPI.
    """
    asked = os.environ.get("ACCELERATE_USE_CPU", "").lower() == "true" and "MASTER_ADDR" in os.environ
    if asked and not launched():
        say(
            "negsample: 'accelerate launch --cpu' starts one process; for several on CPUs run "
            "ACCELERATE_USE_CPU=true accelerate launch --multi_gpu --num_processes N -m negsample VERB …",
            error=True,
        )


def refuse_sharding() -> None:
    """Raises InputError where the launch would split the model over the processes: here each of them holds it whole."""
    for name, variable in _SHARDING.items():
        if os.environ.get(variable, "").lower() == "true":
            raise InputError(
                f"launched with {name}, which splits a model over the processes; each must hold it whole here: "
                "launch with --multi_gpu (distributed_type: MULTI_GPU)"
            )


def end(code: int) -> NoReturn:
    """End this process of a launch with exit ``code``, once all have done their work and all is written.

    What torch's threads for the exchange do while the interpreter and its libraries are taken down ends in SIGABRT now
    and then (pytorch/gloo 514 and 388 are of that kind); nothing is left to do there, so it is left out.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class Processes:
    """This process (``rank``, from 0) among ``size``; each has a GPU of its own where there are GPUs.

    A context manager, which all processes leave together. Where one of them fails within it, the others end quietly with
    code 2 at their next ``gather`` or at the end; where several have failed since the last one, the lowest rank alone
    raises its exception. Only the first process shows progress and warnings.
    """

    _in_step = True

    def __init__(self) -> None:
        from accelerate import PartialState

        # The others wait while one of them computes: hours, not the half hour that is the default.
        self._state = PartialState(
            cpu=os.environ.get("ACCELERATE_USE_CPU", "").lower() == "true", timeout=timedelta(hours=24)
        )
        self.rank: int = self._state.process_index
        self.size: int = self._state.num_processes
        self._stderr = sys.stderr
        if self.rank:
            sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - closed by _close()

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        try:
            if self._in_step:
                self._exchange(None, failed=error is not None)
        except RuntimeError:
            # The others may be gone already.
            if error is None:
                raise
        finally:
            self._close()

    def gather(self, value: T) -> list[T]:
        """Return the ``value`` of every process, by rank, once all have called this; it must be possible to pickle it."""
        return self._exchange(value, failed=False)

    def _exchange(self, value: Any, failed: bool) -> list[Any]:
        self._in_step = False  # after an exchange that broke off, or that told of a failure, nobody waits for another
        answers = self._gather([(failed, value)])
        wrong = [rank for rank, (bad, _) in enumerate(answers) if bad]
        if wrong and wrong[0] != self.rank:
            raise SystemExit(2)
        self._in_step = not wrong
        return [value for _, value in answers]

    def _gather(self, values: list[Any]) -> list[Any]:
        from accelerate.utils import gather_object

        return gather_object(values)

    def _close(self) -> None:
        if self.rank:
            sys.stderr.close()
            sys.stderr = self._stderr
        # Gloo's connections are left to the end of the process: the system then still delivers what another process has
        # yet to read. Taken down by hand they are reset, under a thread that may be reading.
        if self.size > 1 and self._state.backend != "gloo":
            self._state.destroy_process_group()

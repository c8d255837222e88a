"""The processes that ``accelerate launch`` has started together, speaking with one voice."""

import os
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TextIO, TypeVar

from negsample.errors import InputError

T = TypeVar("T")
# What Accelerate's launcher sets.
_SHARDING = {
    "FSDP": "ACCELERATE_USE_FSDP",
    "DeepSpeed": "ACCELERATE_USE_DEEPSPEED",
    "Megatron-LM": "ACCELERATE_USE_MEGATRON_LM",
}


def warn_of_lone_process(module: str) -> None:
    """Say so where several CPU processes were asked for and Accelerate started one (huggingface/accelerate 2741).

    Its launcher sets a master address for several processes but leaves starting them on CPUs to MPI. ``module`` is what
    was launched.
    """
    asked = os.environ.get("ACCELERATE_USE_CPU", "").lower() == "true" and "MASTER_ADDR" in os.environ
    started = any(name in os.environ for name in ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"))
    if asked and not started:
        print(
            "negsample: 'accelerate launch --cpu' starts one process; for several on CPUs run "
            f"ACCELERATE_USE_CPU=true accelerate launch --multi_gpu --num_processes N -m {module} …",
            file=sys.stderr,
        )


def refuse_sharding() -> None:
    """Raises InputError where the launch would split the model over the processes: here each of them holds it whole."""
    for name, variable in _SHARDING.items():
        if os.environ.get(variable, "").lower() == "true":
            raise InputError(
                f"launched with {name}, which splits a model over the processes; each must hold it whole here: "
                "launch with --multi_gpu (distributed_type: MULTI_GPU)"
            )


class Crew:
    """This process (``rank``, from 0) among ``size``; each has a GPU of its own where there are GPUs.

    Only the first one shows progress and complains about what is wrong for all of them; what goes wrong in one alone is
    told by that one (``together``). A context manager: the connections are closed at the end.
    """

    def __init__(self) -> None:
        from accelerate import PartialState

        # The others wait while one of them computes: hours, not the half hour that is the default.
        self._state = PartialState(
            cpu=os.environ.get("ACCELERATE_USE_CPU", "").lower() == "true", timeout=timedelta(hours=24)
        )
        self.rank: int = self._state.process_index
        self.size: int = self._state.num_processes
        self._stderr: TextIO = sys.stderr

    def __enter__(self) -> "Crew":
        if self.rank:
            sys.stderr = open(os.devnull, "w", encoding="utf-8")
        return self

    def __exit__(self, *_: Any) -> None:
        if self.rank and sys.stderr is not self._stderr:
            sys.stderr.close()
            sys.stderr = self._stderr
        if self.size > 1:
            self._state.destroy_process_group()

    def together(self, job: Callable[[], T], progress: Callable[[], int] = lambda: 0) -> T:
        """What ``job`` returns, once it has ended well in every process.

        Where it fails in some, the one that failed first raises its exception and all others end quietly with code 2.
        "First" goes by ``progress()``, how far a job was (from 0), then by rank, so that the same mistake is told
        whichever process was quicker.
        """
        failed: Exception | None = None
        result: T | None = None
        try:
            result = job()
        except Exception as error:  # told to the others first, then raised
            failed = error
        codes = self._gather(0 if failed is None else 1 + progress())
        if any(codes):
            first = min((code, rank) for rank, code in enumerate(codes) if code)[1]
            if failed is None or first != self.rank:
                raise SystemExit(2)
            sys.stderr = self._stderr
            raise failed
        return result  # type: ignore[return-value]

    def agree(self, value: int) -> int:
        """The first process' ``value``, 0 … 2**62, in all of them."""
        return self._gather(value)[0]

    def _gather(self, value: int) -> list[int]:
        import torch
        from accelerate.utils import gather

        return gather(torch.tensor([value], dtype=torch.int64, device=self._state.device)).tolist()

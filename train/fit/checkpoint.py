"""Checkpoints: written whole, the newest one found again after a kill at any moment."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from negsample.io.files import atomic_json

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass
class Position:
    """How far a run is: the next batch is ``batch`` of ``epoch``, and what was learned about the epochs before.

    ``step`` counts optimiser steps from 0; ``loss_sum`` and ``loss_count`` belong to the epoch under way; ``best_epoch``
    is -1 before the first validation; ``stale`` counts validations since the best one.
    """

    epoch: int = 0
    batch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    loss_count: int = 0
    best_loss: float = float("inf")
    best_epoch: int = -1
    stale: int = 0
    finished: bool = False


def best_path(work: Path, epoch: int) -> Path:
    """Where the weights that were best after ``epoch`` are kept."""
    return work / f"best-{epoch}.safetensors"


def save_best(network: nn.Module, work: Path, epoch: int) -> None:
    """Keep the weights of ``network`` as the best so far. Call on one process."""
    from safetensors.torch import save_model

    path = best_path(work, epoch)
    temporary = path.with_suffix(".tmp")
    save_model(network, str(temporary))
    temporary.replace(path)


def load_best(network: nn.Module, work: Path, epoch: int) -> None:
    """Put the weights that were best after ``epoch`` into ``network``."""
    from safetensors.torch import load_model

    load_model(network, str(best_path(work, epoch)))


def save_checkpoint(
    accelerator: "Accelerator", work: Path, position: Position, own: Mapping[str, Any] | None = None
) -> None:
    """Write a checkpoint at ``position`` and delete the older ones. Every process calls this.

    ``own``: plain values of this process, for ``load_own``.
    """
    # A step may be saved twice, after its batch and at the end of its epoch: the names differ.
    target = work / f"checkpoint-{position.epoch}-{position.batch}"
    draft = work / "checkpoint.tmp"
    if accelerator.is_main_process:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
    accelerator.wait_for_everyone()
    accelerator.save_state(str(draft))
    if own is not None:
        atomic_json(draft / f"own-{accelerator.process_index}.json", own)
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        values = {key: value for key, value in asdict(position).items() if value != float("inf")}
        atomic_json(draft / "position.json", values)
        draft.replace(target)
        for path in work.glob("checkpoint-*"):
            if path != target:
                shutil.rmtree(path, ignore_errors=True)
        for path in work.glob("best-*"):
            if path != best_path(work, position.best_epoch):
                path.unlink(missing_ok=True)
    accelerator.wait_for_everyone()


def load_own(accelerator: "Accelerator", checkpoint: Path) -> dict[str, Any]:
    """Return the plain values that this process has put into ``checkpoint``; the first one's where it was not there then."""
    own = checkpoint / f"own-{accelerator.process_index}.json"
    found: dict[str, Any] = json.loads((own if own.is_file() else checkpoint / "own-0.json").read_text("utf-8"))
    return found


def find_checkpoint(work: Path) -> tuple[Path, Position] | None:
    """Return the newest checkpoint in ``work`` and its position, or None."""
    about = [path / "position.json" for path in work.glob("checkpoint-*")]
    found = [(path.parent, Position(**json.loads(path.read_text("utf-8")))) for path in about if path.is_file()]
    return max(found, key=lambda item: (item[1].step, item[1].epoch), default=None)

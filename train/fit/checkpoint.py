"""What a run leaves while it trains: checkpoints, found again after a kill at any moment, the best weights, the log."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from negsample.io.files import atomic_json, replacing
from negsample.terminal import say

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass
class Position:
    """How far a run is: the next batch is ``batch`` of ``epoch``, and what was learned about the epochs before.

    ``step`` counts optimiser steps from 0; ``loss_sum`` and ``loss_count`` belong to the epoch under way; ``best_loss`` is
    the lowest validation loss so far, ``best_epoch`` -1 before the first; ``stale`` counts validations since the best one.
    """

    epoch: int = 0
    batch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    loss_count: int = 0
    best_loss: float = float("inf")
    best_epoch: int = -1
    stale: int = 0

    @property
    def train_loss(self) -> float:
        """Mean loss of the epoch under way."""
        return self.loss_sum / max(1, self.loss_count)


def save_weights(network: nn.Module, path: Path) -> None:
    """Write the weights of ``network`` to ``path``, whole or not at all."""
    from safetensors.torch import save_model

    with replacing(path) as stream:
        save_model(network, stream.name)


class Checkpoints:
    """The checkpoints of a run in ``work``, and the best weights of ``network``. Every process calls its methods.

    What ``accelerator`` has prepared is saved whole, and where there is a ``memory`` beside (a reward) its ``state()``, plain
    values, each process' own.
    """

    def __init__(self, accelerator: "Accelerator", work: Path, network: nn.Module, memory: Any = None) -> None:
        self._accelerator, self._work, self.network, self._memory = accelerator, work, network, memory

    def resume(self) -> Position:
        """Go on from the newest checkpoint; the beginning where there is none."""
        if (found := find_checkpoint(self._work)) is None:
            return Position()
        self._accelerator.load_state(str(found[0]))
        if self._memory is not None:
            own = found[0] / f"own-{self._accelerator.process_index}.json"
            # A process that was not there then takes what the first one had.
            self._memory.load_state(json.loads((own if own.is_file() else found[0] / "own-0.json").read_text("utf-8")))
        return found[1]

    def save(self, position: Position) -> None:
        """Write a checkpoint at ``position`` and delete the older ones."""
        # A step may be saved twice, after its batch and at the end of its epoch: the names differ.
        target = self._work / f"checkpoint-{position.epoch}-{position.batch}"
        draft, accelerator = self._work / "checkpoint.tmp", self._accelerator
        if accelerator.is_main_process:
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
        accelerator.wait_for_everyone()
        accelerator.save_state(str(draft))
        if self._memory is not None:
            atomic_json(draft / f"own-{accelerator.process_index}.json", self._memory.state())
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            values = {key: value for key, value in asdict(position).items() if value != float("inf")}
            atomic_json(draft / "position.json", values)
            draft.replace(target)
            for path in set(self._work.glob("checkpoint-*")) - {target}:
                shutil.rmtree(path, ignore_errors=True)
            for path in set(self._work.glob("best-*")) - {self._best(position.best_epoch)}:
                path.unlink(missing_ok=True)
        accelerator.wait_for_everyone()

    def keep_best(self, epoch: int) -> None:
        """Keep the weights as the best so far, those of ``epoch``."""
        if self._accelerator.is_main_process:
            save_weights(self.network, self._best(epoch))

    def load_best(self, epoch: int) -> None:
        """Put the weights that were best after ``epoch`` into the network."""
        from safetensors.torch import load_model

        load_model(self.network, str(self._best(epoch)))

    def _best(self, epoch: int) -> Path:
        return self._work / f"best-{epoch}.safetensors"


def find_checkpoint(work: Path) -> tuple[Path, Position] | None:
    """The newest checkpoint in ``work`` and its position, or None."""
    about = [path / "position.json" for path in work.glob("checkpoint-*")]
    found = [(path.parent, Position(**json.loads(path.read_text("utf-8")))) for path in about if path.is_file()]
    return max(found, key=lambda item: (item[1].step, item[1].epoch), default=None)


@dataclass(frozen=True)
class Callbacks:
    """Functions that a run calls, each where it is given; an exception from one ends the run.

    ``say(text)``: each epoch's losses in words (default: printed). ``after_epoch(epoch, validation_loss)``: epochs from
    0, before the epoch's checkpoint is written. ``after_fit(labels, scores)``: float32 [n] each, the validation split
    under the best weights; on one process.
    """

    say: Callable[[str], None] = say
    after_epoch: Callable[[int, float], None] | None = None
    after_fit: Callable[[np.ndarray, np.ndarray], None] | None = None


PRINTED, SILENT = Callbacks(), Callbacks(say=lambda text: None)


class TrainingLog:
    """``training.jsonl``: one line an epoch (and a step, where asked for), rewound when a run goes on.

    Appends lines to ``path`` and tells ``callbacks`` how epochs went; where ``path`` is None (all processes but one)
    nothing is written or said.
    """

    def __init__(self, path: Path | None, callbacks: Callbacks) -> None:
        self._path, self._callbacks = path, callbacks

    def write(self, **facts: Any) -> None:
        """Append a line; ``kind`` is ``"step"`` (with ``step``) or ``"epoch"`` (with ``epoch``), both counted from 0."""
        if self._path is not None:
            with open(self._path, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(facts, ensure_ascii=False) + "\n")

    def losses(self, position: Position, validation_loss: float) -> float:
        """Append the line of the epoch that ends at ``position``, and tell its losses; ``validation_loss``."""
        facts = {"train_loss": position.train_loss, "validation_loss": validation_loss}
        self.write(kind="epoch", epoch=position.epoch, steps=position.step, **facts)
        if self._path is not None:
            losses = f"train loss {position.train_loss:.4f}, validation loss {validation_loss:.4f}"
            self._callbacks.say(f"epoch {position.epoch + 1}: {losses}")
        if self._callbacks.after_epoch is not None:
            self._callbacks.after_epoch(position.epoch, validation_loss)
        return validation_loss

    def rewind(self, position: Position) -> None:
        """Forget the steps and the epochs from ``position`` on: they will be done (again)."""
        if self._path is None or not self._path.is_file():
            return
        with open(self._path, "rb") as before, replacing(self._path) as kept:
            for line in before:
                try:
                    facts = json.loads(line)
                except ValueError:  # the line that a kill cut short
                    break
                if facts[facts["kind"]] >= getattr(position, facts["kind"]):
                    break
                kept.write(line.rstrip(b"\n") + b"\n")


def read_epochs(path: Path) -> list[dict[str, Any]]:
    """What the log at ``path`` holds of each epoch, in order."""
    with open(path, encoding="utf-8") as stream:
        # With ``log_examples`` most lines are steps: one at a time is kept.
        lines = (json.loads(line) for line in stream)
        return [{k: v for k, v in line.items() if k != "kind"} for line in lines if line["kind"] == "epoch"]

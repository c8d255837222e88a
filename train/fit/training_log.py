"""``training.jsonl``: one line an epoch (and a step, where asked for), rewound when a run goes on from a checkpoint."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from negsample.io.files import replacing


def print_line(text: str) -> None:
    """Print ``text`` at once: what a run says where nobody else listens."""
    print(text, flush=True)


class TrainingLog:
    """Appends lines to ``path``, and says how epochs went; does neither where that is None (all processes but one)."""

    def __init__(self, path: Path | None, say: Callable[[str], None]) -> None:
        self._path = path
        self._say = say

    def write(self, **facts: Any) -> None:
        """Append a line; ``kind`` is ``"step"`` (with ``step``) or ``"epoch"`` (with ``epoch``), both counted from 0."""
        if self._path is not None:
            with open(self._path, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(facts, ensure_ascii=False) + "\n")

    def epoch(self, epoch: int, steps: int, train_loss: float, validation_loss: float) -> None:
        """Append the line of an epoch (from 0) that ended after ``steps`` steps in all, and say its losses."""
        self.write(kind="epoch", epoch=epoch, steps=steps, train_loss=train_loss, validation_loss=validation_loss)
        if self._path is not None:
            self._say(f"epoch {epoch + 1}: train loss {train_loss:.4f}, validation loss {validation_loss:.4f}")

    def rewind(self, step: int, epoch: int) -> None:
        """Forget the steps from ``step`` and the epochs from ``epoch`` on: they will be done (again)."""
        if self._path is None or not self._path.is_file():
            return
        with open(self._path, "rb") as before, replacing(self._path) as kept:
            for line in before:
                try:
                    facts = json.loads(line)
                except ValueError:  # the line that a kill cut short
                    break
                if facts["step"] >= step if facts["kind"] == "step" else facts["epoch"] >= epoch:
                    break
                kept.write(line.rstrip(b"\n") + b"\n")


def read_epochs(path: Path) -> list[dict[str, Any]]:
    """Return what the log at ``path`` holds of each epoch, in order."""
    with open(path, encoding="utf-8") as stream:
        # With ``log_examples`` most lines are steps: one at a time is kept.
        lines = (json.loads(line) for line in stream)
        return [{k: v for k, v in line.items() if k != "kind"} for line in lines if line["kind"] == "epoch"]

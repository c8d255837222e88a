"""``training.jsonl``: one line an epoch (and a step, where asked for), rewound when a run goes on from a checkpoint."""

import json
import os
from pathlib import Path
from typing import Any


class Journal:
    """Appends lines to ``path``; does nothing where that is None (processes other than the main one)."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def write(self, **facts: Any) -> None:
        """Append a line; ``kind`` is ``"step"`` (with ``step``) or ``"epoch"`` (with ``epoch``), both counted from 0."""
        if self._path is not None:
            with open(self._path, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(facts, ensure_ascii=False) + "\n")

    def rewind(self, step: int, epoch: int) -> None:
        """Forget the steps from ``step`` and the epochs from ``epoch`` on: they will be done (again)."""
        if self._path is None or not self._path.is_file():
            return
        draft = self._path.with_suffix(".tmp")
        with open(self._path, encoding="utf-8") as before, open(draft, "w", encoding="utf-8") as kept:
            for line in before:
                try:
                    facts = json.loads(line)
                except ValueError:  # the line that a kill cut short
                    break
                if facts["step"] >= step if facts["kind"] == "step" else facts["epoch"] >= epoch:
                    break
                kept.write(line.rstrip("\n") + "\n")
        os.replace(draft, self._path)

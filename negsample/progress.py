"""Progress on standard error: a bar on a terminal, nothing elsewhere."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class Bar:
    """A bar with a label, a count, elapsed and remaining time; a context manager. Silent where there is no terminal."""

    def __init__(self, label: str, total: int | None = None, done: int = 0) -> None:
        self._label, self._total, self._done = label, total, done
        self._progress: Any = None

    def __enter__(self) -> "Bar":
        if sys.stderr is not None and sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._progress = progress.Progress(
                progress.TextColumn("{task.description}"),
                progress.BarColumn(),
                progress.MofNCompleteColumn(),
                progress.TimeElapsedColumn(),
                progress.TimeRemainingColumn(),
                progress.TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )
            self._task = self._progress.add_task(self._label, total=self._total, completed=self._done, note="")
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def advance(self, steps: int = 1, note: str = "") -> None:
        """Count ``steps`` more as done; ``note`` is shown beside the bar."""
        if self._progress is not None:
            self._progress.update(self._task, advance=steps, **({"note": note} if note else {}))


def track(items: Iterable[T], label: str) -> Iterator[T]:
    """``items``, with a bar that moves as they are taken."""
    with Bar(label) as bar:
        for item in items:
            yield item
            bar.advance()

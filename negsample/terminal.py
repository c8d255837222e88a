"""What commands tell, as numbers, lines and tables; progress on standard error.

Printing can't fail for what the terminal is or for what a text holds.
"""

import codecs
import io
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

# Bytes that steer a terminal, and marks that turn the direction of what follows them.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
# What stands for a mark of ours where an encoding lacks it: a minus sign must not become a question mark.
_PLAIN = {"–": "-", "−": "-", "…": "...", "×": "x", "·": "|", "←": "<-", "→": "->", "±": "+/-", "Δ": "Delta"}
_PLAIN |= {"ρ": "rho", "τ": "tau", "“": '"', "”": '"', "’": "'", "²": "2"}


def _plain(error: Any) -> tuple[str, int]:
    return "".join(_PLAIN.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


codecs.register_error("negsample", _plain)


def accept_any_text() -> None:
    """Let standard output and error take what their encoding has no place for, for the rest of this process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="negsample")


def readable(text: str) -> str:
    """The text with its control characters, but tabs and ends of lines, as escapes (``\\x1b``)."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def shorten(text: str, most: int) -> str:
    """The text on one line, cut where it is longer than ``most`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def say(text: object = "", *, error: bool = False) -> None:
    """Print ``text``, readable, and the end of its line on standard output, or standard ``error``, at once.

    Where there is no such stream nothing happens, and where standard error takes nothing neither. Raises BrokenPipeError
    where nobody reads standard output any more, and OSError where it can't be written.
    """
    stream = sys.stderr if error else sys.stdout
    if stream is None:
        return
    try:
        stream.write(readable(str(text)) + "\n")
        stream.flush()
    except ValueError:
        return  # closed by somebody else in this process
    except OSError as failed:
        if error:
            return
        failed.filename = "standard output"
        raise


def screen_width(otherwise: int) -> int:
    """Columns of the terminal, or ``otherwise`` where standard output is none."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else otherwise


def say_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    texts: Sequence[str] = (),
    widths: Mapping[str, int] | None = None,
    width: int = 200,
) -> None:
    """Print rows of cells under ``head``: the columns ``texts`` to the left and folded, all others to the right, on one line.

    ``widths``: columns of text of a given width, cut where they are longer; ``width``: of the whole, where there is no
    terminal.
    """
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title and readable(title), title_justify="left", box=None, pad_edge=False)
    widths = widths or {}
    for name in head:
        if name in widths:
            table.add_column(name, no_wrap=True, width=widths[name])
        elif name in texts:
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(readable, row))
    drawn = io.StringIO()
    look: dict[str, Any] = {"color_system": None, "markup": False, "emoji": False, "highlight": False}
    Console(file=drawn, width=screen_width(width), **look).print(table)
    say(drawn.getvalue().removesuffix("\n"))


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


def number(value: float | None, digits: int = 3, *, sign: bool = False) -> str:
    """``value`` with ``digits`` decimals, a true minus sign and none before a 0; a dash for None."""
    return "–" if value is None else f"{value:{'+' if sign else ''}z.{digits}f}".replace("-", "−")


def short(value: Any) -> str:
    """Print a number by four significant digits (``"0.0345"``), other values as they are; a dash for None."""
    if value is None:
        return "–"
    return f"{value:.4g}".replace("-", "−") if isinstance(value, float) else str(value)


def interval(low: float | None, high: float | None, digits: int = 3, *, sign: bool = False) -> str:
    """``"0.971 to 0.990"``; ``""`` where there is no interval."""
    if low is None or high is None:
        return ""
    return f"{number(low, digits, sign=sign)} to {number(high, digits, sign=sign)}"


def p_text(p: float | None) -> str:
    """A p value as it is printed."""
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def figure_text(figure: Mapping[str, Any]) -> str:
    """A figure with its interval: ``"0.953 (95 % interval 0.940 to 0.970, n = 320)"``, or why there is none.

    With an ASCII minus sign: it goes to terminals and model cards, where programs read it.
    """
    if figure["value"] is None:
        return f"not defined: {figure['reason']} (n = {figure['n']})"
    span = f"{figure['reason']}, " if figure["reason"] else ""
    if figure["low"] is not None:
        span = f"95 % interval {figure['low']:.3f} to {figure['high']:.3f}, "
    return f"{figure['value']:.3f} ({span}n = {figure['n']})"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table whose columns line up; the first row is its head."""
    widths = [max(3, *(len(row[column]) for row in rows)) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return lines

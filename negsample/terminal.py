"""What commands tell, as lines and tables. Printing can't fail for what the terminal is or for what a text holds."""

import codecs
import io
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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

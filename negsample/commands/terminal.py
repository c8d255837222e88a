"""Tables on the terminal: one look for all commands."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console


def console(stream: TextIO | None = None, width: int = 200) -> "Console":
    """What prints to ``stream`` (standard output), as wide as the terminal, or ``width`` where it is none; no colours."""
    from rich.console import Console

    stream = stream or sys.stdout
    return Console(file=stream, width=None if stream.isatty() else width, highlight=False, markup=False, emoji=False)


def print_table(
    to: "Console",
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    texts: Sequence[str] = (),
    widths: Mapping[str, int] | None = None,
) -> None:
    """Print rows of cells under ``head``: the columns ``texts`` to the left and folded, all others to the right, on one line.

    ``widths``: columns of text of a given width, cut where they are longer.
    """
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    widths = widths or {}
    for name in head:
        if name in widths:
            table.add_column(name, no_wrap=True, width=widths[name])
        elif name in texts:
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    to.print(table)

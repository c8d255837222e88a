"""Scored records on the terminal: a table of the first of them."""

from typing import TYPE_CHECKING, TextIO

from negsample.commands.terminal import console, print_table

if TYPE_CHECKING:
    from negsample.io.read import Row
    from negsample.scoring.outcomes import Outcome

# Records that are shown.
_SHOWN = 20
_NOTE = "%: the share of real summaries of the estimator's own corpus that score lower"


class ScoredTable:
    """Takes scored records and prints the first of them: name, summary, score and aspects, each with its percentile."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, Outcome]] = []
        self._count = 0

    def add(self, row: "Row", outcome: "Outcome", summary_field: str = "summary") -> None:
        """Take in one record."""
        self._count += 1
        if len(self._rows) < _SHOWN:
            name = row.fields.get("id")
            name = row.where.rpartition(", ")[2] if name in (None, "") else name
            self._rows.append((str(name), " ".join(str(row.fields.get(summary_field, "")).split()), outcome))

    def print(self, stream: TextIO) -> None:
        """Print the table, if there is a record; 110 columns wide where it goes to no terminal."""
        if not self._rows:
            return
        aspects = next((list(outcome.aspects) for _, _, outcome in self._rows if outcome.aspects), [])
        shown = console(stream, width=110)
        head = ("record", "summary", "score", *aspects)
        rows = []
        for record, summary, outcome in self._rows:
            values = {"score": outcome.score, **(outcome.aspects or {})}
            shares = outcome.percentiles or {}
            rows.append((record, summary, *(_cell(values.get(name), shares.get(name)) for name in head[2:])))
        record_width = min(12, max(len("record"), *(len(record) for record, *_ in rows)))
        # The summary has what the numbers leave.
        widths = {"record": record_width, "summary": max(16, shown.width - 14 - 12 * (1 + len(aspects)))}
        print_table(shown, head, rows, widths=widths)
        if any(outcome.percentiles for _, _, outcome in self._rows):
            print(_NOTE, file=stream)
        if self._count > len(self._rows):
            print(f"… and {self._count - len(self._rows)} records more; -o FILE writes all of them", file=stream)


def _cell(value: float | None, share: float | None) -> str:
    shown = "–" if value is None else f"{value:.3f}"
    return shown if share is None else f"{shown} {share:>4.0%}"

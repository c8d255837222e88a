"""A table as tidy records, one a figure, and the one writer of them: JSON, CSV, Markdown, pictures."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from negsample.io.files import atomic_json, atomic_text, replacing
from negsample.io.resume import waiting
from negsample.io.run_record import Stopwatch, write_run
from negsample.io.write import write_table
from negsample.number_text import aligned, number

CSV_COLUMNS = ("section", "row", "column", "value", "low", "high", "n", "printed", "mark", "reason")
# The section of what a paper prints and nobody has measured here.
PUBLISHED = "published"


@dataclass(frozen=True)
class Record:
    """One figure: where it stands (``section``, ``row``, ``column``), what it is, and what the paper prints there.

    ``value`` in the paper's unit, None where it is not defined, for the ``reason``; ``low`` and ``high`` end its 95 %
    interval; ``n`` is what it stands on; ``printed`` as printed, "" where nothing is; ``mark`` stands behind the value.
    ``about``: further columns of the files, such as ``p`` or ``level``.
    """

    row: str
    column: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    section: str = ""
    printed: str = ""
    mark: str = ""
    reason: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, str, str]:
        """Where it stands: section, row, column."""
        return self.section, self.row, self.column

    def plain(self) -> dict[str, Any]:
        """The record flat, as the files have it; without what is not set."""
        own = {key: value for key, value in asdict(self).items() if key != "about" and value not in (None, "")}
        return {"row": self.row, "column": self.column, "value": self.value} | own | dict(self.about)

    def text(self, digits: int = 3) -> str:
        """The cell: ``0.812** [0.77, 0.85] (0.795)``, the printed figure last; what is only printed is in brackets alone."""
        if self.section == PUBLISHED:
            return self.printed
        shown = [f"({self.printed})"] if self.printed else []
        if self.value is None:
            return " ".join([f"– ({self.reason})" if self.reason else "", *shown]).strip() or "–"
        span = "" if self.low is None else f"[{number(self.low, min(digits, 2))}, {number(self.high, min(digits, 2))}]"
        return " ".join(filter(None, [number(self.value, digits) + self.mark, span, *shown]))


@dataclass(frozen=True)
class Table:
    """What came of a table. ``about``: the line below its title, ``head``: what its rows are, ``texts``: (name, text) pairs
    to be read with it, ``not_run``: row → why, ``pictures``: name → content of further files, ``more``: further keys of the JSON.
    """

    name: str
    title: str
    paper: str
    records: tuple[Record, ...]
    about: str = ""
    head: str = ""
    digits: int = 3
    texts: tuple[tuple[str, str], ...] = ()
    not_run: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    signatures: Mapping[str, str] = field(default_factory=dict)
    pictures: Mapping[str, bytes] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    def content(self) -> dict[str, Any]:
        """The table as plain values: what its JSON holds."""
        return {
            "table": self.name,
            "title": self.title,
            "paper": self.paper,
            "records": [record.plain() for record in self.records],
            "texts": [{"name": name, "text": text} for name, text in self.texts],
            "not_run": dict(self.not_run),
            "notes": list(self.notes),
            "signatures": dict(self.signatures),
            **self.more,
        }


def beside(records: Sequence[Record], printed: Iterable[Record]) -> tuple[Record, ...]:
    """The records, each with what is printed in its place. What is printed of other rows of a measured column follows;
    what is printed of other columns is a section of its own, ``Published``.
    """
    known = {record.place: record for record in printed}
    columns = {(record.section, record.column) for record in records}
    found = [
        replace(record, printed=known.pop(record.place).printed if record.place in known else "") for record in records
    ]
    rest = [one if (one.section, one.column) in columns else replace(one, section=PUBLISHED) for one in known.values()]
    return (*found, *rest)


def markdown(table: Table) -> str:
    """The table, a grid for each section, with its texts, what was not run, and notes; it reads well on a terminal too."""
    lines = [f"# {table.title}", "", *([table.about, ""] if table.about else [])]
    if any(record.printed and record.section != PUBLISHED for record in table.records):
        lines += [f"In round brackets: as printed in {table.paper}.", ""]
    for section in dict.fromkeys(record.section for record in table.records):
        own = [record for record in table.records if record.section == section]
        usual = Counter(record.n for record in own if record.n is not None).most_common(1)
        most = usual[0][0] if usual else None
        title = f"Published: {table.paper}" if section == PUBLISHED else section
        told = ", ".join(filter(None, [title, f"n = {most}" if usual else ""]))
        lines += [f"## {told}" if title else told, ""] if told else []
        lines += [*aligned(_grid(own, table.head, table.digits, most)), ""]
    for title, entries in (
        ("Texts", [f"{name}: {' '.join(text.split())}" for name, text in table.texts]),
        ("Not run", [f"{name}: {reason}" for name, reason in table.not_run.items()]),
        ("Notes", table.notes),
    ):
        lines += [f"## {title}", "", *(f"- {line}" for line in entries), ""] if entries else []
    return "\n".join(lines[:-1]) + "\n"


def _grid(records: Sequence[Record], head: str, digits: int, most: int | None) -> list[list[str]]:
    columns = list(dict.fromkeys(record.column for record in records))
    rows: dict[str, dict[str, str]] = {}
    for record in records:
        fewer = "" if record.n in (None, most) or record.value is None else f", n = {record.n}"
        rows.setdefault(record.row, {})[record.column] = record.text(digits) + fewer
    body = [[row, *(cells.get(column, "") for column in columns)] for row, cells in rows.items()]
    return [[" ".join(text.replace("|", "\\|").split()) for text in line] for line in [[head, *columns], *body]]


def write(table: Table, out: Path, watch: Stopwatch, *, say: Callable[[str], None] = print, **facts: Any) -> None:
    """Say the table, then write its files, pictures, and ``run.json`` with ``facts``; remove the folder ``work``.

    Several processes may get here together: each writes the same figures.
    """
    content, text = table.content(), markdown(table)
    rows = content["records"]
    columns = list(dict.fromkeys([*CSV_COLUMNS, *(key for row in rows for key in row)]))
    # Shown first: what was found is not lost where it can't be written.
    say(text)
    with waiting(out / "locks" / "report"):
        atomic_json(out / f"{table.name}.json", content)
        write_table(out / f"{table.name}.csv", rows, columns)
        atomic_text(out / f"{table.name}.md", text)
        for name, picture in table.pictures.items():
            with replacing(out / name) as stream:
                stream.write(picture)
        write_run(out / "run.json", watch, signatures=dict(table.signatures), **facts)
        shutil.rmtree(out / "work", ignore_errors=True)
    pictures = "".join(f", {name}" for name in table.pictures)
    say(f"{out}: {table.name}.json, {table.name}.csv, {table.name}.md{pictures}, run.json")

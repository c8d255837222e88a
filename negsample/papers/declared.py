"""The papers' tables and figures as ``tables.yaml`` declares them, with what is printed in each; and a table that was found.

That is tidy records, one a figure, with one writer of them: JSON, CSV, Markdown, drawings.
"""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.eval.report.plots import NO_FORMULAS, picture, style
from negsample.io.files import atomic_json, atomic_text, replacing
from negsample.io.run_record import Stopwatch, waiting, write_run
from negsample.io.write import write_table
from negsample.registry import suggestion
from negsample.settings import read_mapping
from negsample.terminal import aligned, number

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


# The tasks' colours in Figure 2 of Moeed et al. 2020, and marks that tell them apart without.
_MARKS = {"Gen-Story": ("tab:green", "o"), "Ref-Story": ("tab:orange", "s"), "Gen-Ref": ("tab:blue", "^")}


def draw(how: str, records: Sequence[Record]) -> bytes:
    """Draw ``records`` as SVG, in one of the ways of ``DRAWN``."""
    from matplotlib.figure import Figure

    groups: dict[str, list[Record]] = {}
    title, draw_panel = DRAWN[how]
    for record in records:
        if record.value is not None and (name := title(record)) is not None:
            groups.setdefault(name, []).append(record)
    with style(NO_FORMULAS):
        figure = Figure(figsize=(6, 3.2 * max(1, len(groups))), layout="constrained")
        panels = figure.subplots(max(1, len(groups)), 1, squeeze=False)[:, 0]
        for (name, own), axes in zip(groups.items(), panels, strict=False):
            axes.set_title(name)
            draw_panel(axes, own)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(fontsize="x-small")
        return picture(figure)


def _bars(axes: Any, own: Sequence[Record]) -> None:
    """Each row's correlation as a bar with its interval."""
    spans = [(max(0.0, r.value - r.low), max(0.0, r.high - r.value)) if r.low is not None else (0, 0) for r in own]  # type: ignore[operator]
    axes.barh([record.row for record in own], [record.value for record in own], xerr=list(zip(*spans, strict=True)))
    axes.invert_yaxis()


def _curves(axes: Any, own: Sequence[Record]) -> None:
    """Mean and spread of each column over the number of articles."""
    for label in dict.fromkeys(record.column for record in own):
        line = [(int(r.row), r.value, r.about["sd"] or 0) for r in own if r.column == label]
        x, y, spread = zip(*line, strict=True)
        axes.errorbar(x, y, yerr=spread, label=label, capsize=2)
    axes.set(xlabel="articles", xscale="log")


def _first_tokens(axes: Any, own: Sequence[Record]) -> None:
    """Each part's correlation over the tokens that are read of an article."""
    cut = [(*record.row.split("@"), record.value) for record in own if "@" in record.row]
    for name in dict.fromkeys(part for part, *_ in cut):
        axes.plot(*zip(*(place for part, *place in cut if part == name), strict=True), marker="o", label=name)
    axes.set(xlabel="first tokens")


def _points(axes: Any, own: Sequence[Record]) -> None:
    """Each system's mean human score and mean similarity, with its name."""
    for record in own:
        place = record.about["people"], record.value
        axes.plot(*place, "o", color="tab:blue")
        # DUC's lead baseline is summarizer 1, the paper's b.
        baseline = record.row == "1" and record.section.startswith("duc")
        axes.annotate("b" if baseline else record.row, place, fontsize="small")
    axes.set(xlabel="people")


def _distances(axes: Any, own: Sequence[Record]) -> None:
    """People's mean and the distance of headlines and texts, a colour and a mark for each task."""
    for record in own:
        task, place = record.about["task"], (record.about["people"], record.value)
        colour, mark = _MARKS[task]
        known = task in axes.get_legend_handles_labels()[1]
        axes.plot(*place, color=colour, marker=mark, linestyle="", label="" if known else task)
        axes.annotate(record.about["dataset"], place, xytext=(4, 4), textcoords="offset points", fontsize=7)
    axes.set(xlabel="people's mean score", ylabel="Fréchet embedding distance (lower: nearer)")


def _beside_people(title: str, record: Record) -> str | None:
    return None if record.about.get("people") is None else title


# How → the title of a record's panel (None: it is not drawn), and what draws a panel.
DRAWN: dict[str, tuple[Callable[[Record], str | None], Callable[[Any, Sequence[Record]], None]]] = {
    "bars": (lambda record: record.column, _bars),
    "first": (lambda record: record.column, _first_tokens),
    "sampling": (lambda record: f"{record.section}: Pearson over systems", _curves),
    "systems": (lambda record: _beside_people(f"{record.section} · {record.column}", record), _points),
    "headline-distances": (lambda record: _beside_people("", record), _distances),
}


# --- what is declared

_PART = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class Declared:
    """One table or figure of a paper: an entry of ``tables.yaml``, whose head says what the fields are."""

    paper: str
    what: str
    title: str
    name: str = ""
    command: str = ""
    departs: str = "–"
    kind: str = ""
    data: tuple[str, ...] = ()
    rows: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    human: tuple[str, ...] = ()
    without: Mapping[str, Sequence[str]] = field(default_factory=dict)
    level: str = "pooled"
    coefficients: tuple[str, ...] = ()
    against: str = ""
    stars: tuple[tuple[float, str], ...] = ()
    between_people: bool = False
    learned: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()
    plot: str = ""
    notes: tuple[str, ...] = ()
    keys: int = 1
    printed_in: str = ""
    printed: str = ""

    def listed(self) -> tuple[str, str, str, str, str]:
        """A line of the list of all: paper, what, command (after ``negsample``; "–": none), what is published, what departs."""
        own = " ".join(["tables", self.name, *(f"--data {name}" for name in self.data)]) if self.name else "–"
        return self.paper, self.what, self.command or own, self.title, self.departs

    def printed_records(self) -> list[Record]:
        """What is printed, a record a figure; a row is its first ``keys`` words, joined, and "~" a space."""
        head, *lines = [[word.replace("~", " ") for word in line.split()] for line in self.printed.splitlines()] or [[]]
        return [
            Record(" ".join(line[: self.keys]), column, section=self.printed_in, printed=text)
            for line in lines
            for column, text in zip(head[self.keys :], line[self.keys :], strict=True)
            if text not in ("NA", "–")
        ]

    def table(self, records: Sequence[Record], *, notes: Sequence[str] = (), **facts: Any) -> Table:
        """What came of the table: its ``records`` beside what is printed; ``facts`` as `Table` has them."""
        # Another table of the paper may stand below this one.
        below = [each for each in all_declared() if each.command.startswith(f"tables {self.name} ") and not each.name]
        printed = [record for each in (self, *below) for record in each.printed_records()]
        source = f"{self.paper}, {self.what}"
        found = beside(records, printed)
        return Table(self.name, f"{source}: {self.title}", source, found, notes=(*self.notes, *notes), **facts)

    def with_parts(self, given: Sequence[str]) -> "Declared":
        """Return the table with parts replaced by ``NAME=SPEC`` each. Raises InputError for a name that it has not."""
        parts = dict(self.parts)
        for text in given:
            name, equals, value = text.partition("=")
            if not equals or not value:
                raise InputError(f"--part {text}: write NAME=SPEC")
            if name not in parts:
                raise InputError(f"--part {name}: no part of {self.name}; {suggestion(name, list(parts))}")
            parts[name] = value
        return replace(self, parts=parts)

    def metrics(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return label → metric specification, and label → why there is none, in the order of the rows."""
        joined = "+".join(f"({value})" for value in self.parts.values() if value)
        found: dict[str, str] = {}
        lacking: dict[str, str] = {}
        for line in self.rows.splitlines():
            label, spec = line.split(None, 1)
            label = label.replace("~", " ")
            for name in self.parts if "*" in label else [""]:
                own, text = label.replace("*", name), spec.replace("{*}", f"{{{name}}}").replace("{+}", joined)
                missing = [part for part in _PART.findall(text) if not self.parts[part]]
                if missing:
                    lacking[own] = f"no {missing[0]} is packaged; give --part {missing[0]}=SPEC"
                else:
                    found[own] = _PART.sub(lambda match: self.parts[match[1]], text)
        return found, lacking


@cache
def all_declared() -> tuple[Declared, ...]:
    """Every table and figure of the papers, in their order."""
    papers = read_mapping(Path(__file__).with_name("tables.yaml"), "tables.yaml")
    known = {each.name for each in fields(Declared)}
    found = []
    for paper, entries in papers.items():
        for what, entry in entries.items():
            own: dict[str, Any] = {key.replace("-", "_"): value for key, value in entry.items()}
            own["stars"] = tuple((float(p), mark) for p, mark in own.get("stars", ()))
            own |= {key: tuple(value) for key, value in own.items() if isinstance(value, list)}
            assert own.keys() <= known, (paper, what)
            found.append(Declared(paper, what, **own))
    return tuple(found)


def declared(name: str) -> Declared:
    """Return the table that ``negsample tables`` calls ``name``. Raises InputError where there is none."""
    named = {each.name: each for each in all_declared() if each.name}
    if name not in named:
        raise InputError(f"{name}: no table; {suggestion(name, list(named))}")
    return named[name]

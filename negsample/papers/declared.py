"""The papers' tables and figures as ``tables.yaml`` declares them, with what is printed in each."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.papers.records import Record, Table, beside
from negsample.registry import suggestion
from negsample.settings import read_mapping

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

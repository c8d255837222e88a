"""A table of a paper as it is declared in ``tables.yaml``, with what stands for the parts that the paper names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.io.yaml_text import read_mapping
from negsample.registry import suggestion

_PART = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class TableSpec:
    """One entry of ``tables.yaml``, whose fields it has. ``printed``: the published table, head first, cells as printed.

    ``stars``: (p, mark) pairs, the strictest first; they mark the p of the correlation, or, with ``against``, Williams' test
    of a row against that row. ``learned``: rows that a learned metric adds up. ``plot``: how the figures are drawn, "" not.
    """

    name: str
    title: str
    paper: str
    kind: str
    judgments: tuple[str, ...]
    rows: str
    notes: tuple[str, ...]
    printed: tuple[tuple[str, ...], ...]
    level: str = "pooled"
    coefficients: tuple[str, ...] = ()
    human: tuple[str, ...] = ()
    without: Mapping[str, Sequence[str]] | None = None
    against: str = ""
    stars: tuple[tuple[float, str], ...] = ()
    between_people: bool = False
    learned: tuple[str, ...] = ()
    parts: Mapping[str, str] | None = None
    plot: str = ""

    def with_parts(self, given: Sequence[str]) -> "TableSpec":
        """Return the table with parts replaced by ``NAME=SPEC`` each. Raises InputError for a name that it has not."""
        parts = dict(self.parts or {})
        for text in given:
            name, equals, value = text.partition("=")
            if not equals or not value:
                raise InputError(f"--part {text}: write NAME=SPEC")
            if name not in parts:
                hint = suggestion(name, list(parts)) if parts else "it names none"
                raise InputError(f"--part {name}: no part of {self.name}; {hint}")
            parts[name] = value
        return replace(self, parts=parts)

    def metrics(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return label → metric specification, and label → why there is none, in the order of the rows."""
        parts = self.parts or {}
        joined = "+".join(f"({value})" for value in parts.values() if value)
        found: dict[str, str] = {}
        lacking: dict[str, str] = {}
        for line in self.rows.splitlines():
            label, spec = line.split(None, 1)
            for name in parts if "*" in label else [""]:
                own, text = label.replace("*", name), spec.replace("{*}", f"{{{name}}}").replace("{+}", joined)
                missing = [part for part in _PART.findall(text) if not parts[part]]
                if missing:
                    lacking[own] = f"no {missing[0]} is packaged; give --part {missing[0]}=SPEC"
                else:
                    found[own] = _PART.sub(lambda match: parts[match[1]], text)
        return found, lacking


def table_spec(name: str) -> TableSpec:
    """Return the table that ``tables.yaml`` declares under ``name``."""
    entries = read_mapping(Path(__file__).with_name("tables.yaml"), "tables.yaml")
    fields: dict[str, Any] = {key.replace("-", "_"): value for key, value in entries[name].items()}
    fields["printed"] = tuple(tuple(line.split()) for line in fields["printed"].splitlines())
    fields["stars"] = tuple((float(p), mark) for p, mark in fields.get("stars", ()))
    fields |= {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
    return TableSpec(name, **fields)

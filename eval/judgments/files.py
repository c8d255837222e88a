"""The project's own layout: one record a line, in any format that ``negsample.io.read`` reads."""

import json
import math
import re
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from negsample.errors import InputError, RecordError
from negsample.eval.judgments.collect import Collector, Unusable, finite, name_field
from negsample.io.read import Row, document_field, read_rows, text_field, texts_field
from negsample.records import PEOPLE, Judged, document_key, documents_of
from negsample.registry import suggestion

HALVES = ("tune", "report")
# The human score that choices make: the share of its comparisons that a summary won, a tie half.
CHOSEN = "chosen"
# Fields that hold no human score, whatever is in them.
_FIELDS = frozenset(
    "id document_id doc_id system document documents summary references reference dataset half by index annotators".split()
) | {"Unnamed: 0"}


def load(path: str, unusable: Unusable, columns: Sequence[str] = (), *, unjudged: bool = False) -> list[Judged]:
    """Read rows with the fields ``document_id`` (or ``doc_id``), ``system``, ``document`` (or ``documents``, a list),
    ``summary``, ``scores`` (name → number, or a list of the annotators' numbers, which are averaged); optional
    ``references`` (a list), ``dataset``, ``half``, ``annotators`` (name → a list of their numbers, null where one gave none):
    their mean is the score where ``scores`` has none of that name, ``by`` (``people``, or ``judge:NAME`` of a language model's).

    In CSV and TSV the lists, ``scores`` and ``annotators`` are JSON text. Where no row has either, each human score has a
    field of its own: those named ``columns``, else every other field of which most values are numbers, which is told. A
    score that is no number within ±1e30 is left out of its row and counted; a row that lacks a field, or has no score left, is
    left out and counted. Where no row has a ``system`` it is "", and where none has an id of its document, documents go by their
    texts, which is told. Raises InputError for a column that there is not.

    Records with ``a``, ``b`` and ``choice`` are choices between two summaries instead (see `_chosen`). With ``unjudged``,
    summaries without any score are rows too, all with a ``system``, and no field is one unless it is named.
    """
    dataset = Path(path).name.split(".")[0]
    rows = list(read_rows(path))
    names = {name for row in rows for name in row.fields}
    if not names & {"document_id", "doc_id"}:
        unusable.told.append("no row has a 'document_id': those of one text are of one document")
    if any({"a", "b", "choice"} <= row.fields.keys() for row in rows):
        return _chosen(rows, dataset, names, unusable)
    names |= {"system"} if unjudged else set()
    if columns or not (unjudged or any("scores" in row.fields or "annotators" in row.fields for row in rows)):
        columns = _score_columns(path, rows, columns, unusable)
    if asked := sum(row.fields.get("question") not in (None, "") for row in rows):
        unusable.told.append(f"{asked} rows have a question, which no score reads")
    judged = Collector(unusable, unjudged).read(
        rows, partial(_judged, dataset=dataset, names=names, columns=columns, unusable=unusable)
    )
    if several := sum(len(documents_of(row.documents[0])) > 1 for row in judged):
        unusable.told.append(
            f"{several} rows have several documents: head align tells them apart, all else reads one text"
        )
    return judged


def _score_columns(path: str, rows: Sequence[Row], wanted: Sequence[str], unusable: Unusable) -> list[str]:
    """The fields that hold a human score each."""
    names = list(dict.fromkeys(name for row in rows for name in row.fields))
    for name in wanted:
        if name not in names:
            raise InputError(f"--scores-columns {name}: {path} has no such field; {suggestion(name, names)}")
    if wanted:
        return list(wanted)
    found = []
    for name in names:
        values = [value for row in rows if (value := row.fields.get(name)) not in (None, "")]
        if (
            name.strip()
            and name not in _FIELDS
            and 2 * sum(finite(value) is not None for value in values) > len(values)
        ):
            found.append(name)
    if found:
        unusable.told.append(
            f"human scores are the fields with numbers: {', '.join(found)} (--scores-columns names others)"
        )
    return found


def _judged(row: Row, dataset: str, names: Set[str], columns: Sequence[str], unusable: Unusable) -> Judged:
    if "summary" not in row.fields and (
        lists := [name for name, value in row.fields.items() if isinstance(value, list)]
    ):
        hint = "write one record a summary: document_id, system, document, summary, scores"
        reason = f"a record of several summaries: the fields {', '.join(lists)} are lists"
        raise RecordError(row.where, reason, hint)
    summary = text_field(row, "summary")
    rated = _object(row, "annotators")
    given = {name: row.fields.get(name) for name in columns} if columns else rated | _object(row, "scores")
    scores: dict[str, float] = {}
    ratings: dict[str, tuple[float | None, ...]] = {}
    for name, value in given.items():
        own = value if isinstance(value, list) else rated.get(name)
        if isinstance(own, list) and (numbers := [n for each in own if (n := finite(each)) is not None]):
            if len(numbers) < sum(name not in rated or each is not None for each in own):
                unusable.note(f"a rating of {name!r} is missing or not a number", row.where)
            ratings[name] = tuple(map(finite, own))
            value = math.fsum(numbers) / len(numbers) if isinstance(value, list) else value
        number = finite(value)
        if number is not None:
            scores[name] = number
        elif not columns or value not in (None, ""):
            unusable.note(f"score {name!r} is not a finite number", row.where)
    system = name_field(row, "system") if "system" in names else ""
    return Judged(system=system, summary=summary, scores=scores, ratings=ratings, **_about(row, dataset, names))


def _about(row: Row, dataset: str, names: Set[str]) -> dict[str, Any]:
    """What a record says of the document; ``names``: the fields of all records."""
    half = row.fields.get("half") or ""
    if half not in ("", *HALVES):
        raise RecordError(row.where, "field 'half' is neither 'tune' nor 'report'")
    by = str(row.fields.get("by") or PEOPLE)
    if not re.fullmatch(rf"{PEOPLE}|judge:.*\S.*", by):
        raise RecordError(row.where, "field 'by' is neither 'people' nor 'judge:NAME'")
    own, document = bool(names & {"document_id", "doc_id"}), document_field(row)
    return {
        "document_id": name_field(row, "document_id", other="doc_id") if own else document_key(document)[:16],
        "documents": (document,),
        "references": tuple(texts_field(row, "references", "reference")),
        "dataset": str(row.fields.get("dataset") or dataset),
        "half": half,
        "by": by,
    }


def _chosen(rows: Sequence[Row], dataset: str, names: Set[str], unusable: Unusable) -> list[Judged]:
    """Read choices, one person's a record: ``a`` and ``b``, of ``system_a`` and ``system_b``: ``choice`` names one or is
    ``tie``. Returns the summaries, each once, with the score `CHOSEN`.
    """
    found: dict[tuple[str, ...], dict[str, Judged]] = {}
    for row in rows:
        try:
            about, a, b = _about(row, dataset, names), text_field(row, "a"), text_field(row, "b")
            systems = [name_field(row, name) if name in row.fields else "" for name in ("system_a", "system_b")]
            if (choice := text_field(row, "choice")) not in ("a", "b", "tie"):
                raise RecordError(row.where, "field 'choice' is none of a, b, tie")
            if a == b:
                raise RecordError(row.where, "a and b are the same text")
            own = found.setdefault((about["dataset"], about["document_id"], about["by"]), {})
            for name, told in (("documents", "has another text"), ("half", "is of another half")):
                if any(getattr(each, name) != about[name] for each in own.values()):
                    raise RecordError(row.where, f"the document {told} than in an earlier row of its id")
        except RecordError as error:
            unusable.note(error.reason, row.where, error.hint)
            continue
        for mine, other, system, letter in ((a, b, systems[0], "a"), (b, a, systems[1], "b")):
            summary = own.setdefault(mine, Judged(system=system, summary=mine, **about))
            tally = cast(dict[str, list[int]], summary.choices).setdefault(other, [0, 0, 0])
            tally[2 if choice == "tie" else int(choice != letter)] += 1
    judged = [summary for own in found.values() for summary in own.values()]
    counts = [np.sum(list(summary.choices.values()), axis=0) for summary in judged]
    shares = [float((won + tied / 2) / (won + lost + tied)) for won, lost, tied in counts]
    return [replace(summary, scores={CHOSEN: share}) for summary, share in zip(judged, shares, strict=True)]


def _object(row: Row, name: str) -> dict[str, Any]:
    """The object in the field ``name``, or its JSON text; {} where there is none."""
    value = row.fields.get(name) or {}
    if isinstance(value, str):
        with suppress(ValueError):
            value = json.loads(value)
    if not isinstance(value, dict):
        raise RecordError(row.where, f"field {name!r} is not an object")
    return value

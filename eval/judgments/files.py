"""The project's own layout: one record a line, in any format that ``negsample.io.read`` reads."""

import json
from functools import partial
from pathlib import Path
from typing import Any

from negsample.errors import RecordError
from negsample.eval.judgments.collect import Collector, Unusable, finite, name_field
from negsample.io.read import Row, read_rows, text_field
from negsample.records import Judged

HALVES = ("tune", "report")


def load(path: str, unusable: Unusable) -> list[Judged]:
    """Read rows with the fields ``document_id`` (or ``doc_id``), ``system``, ``document`` (or ``documents``, a list),
    ``summary``, ``scores`` (name → number); optional ``references`` (a list), ``dataset``, ``half``.

    In CSV and TSV the lists and ``scores`` are JSON text. A score that is not a finite number is left out of its row
    and counted; a row that lacks a field, or has no score left, is left out and counted.
    """
    dataset = Path(path).name.split(".")[0]
    return Collector(unusable).read(read_rows(path), partial(_judged, dataset=dataset, unusable=unusable))


def _judged(row: Row, dataset: str, unusable: Unusable) -> Judged:
    summary = text_field(row, "summary")
    texts = _nested(row, "documents", list)
    documents = tuple(texts) if texts else (text_field(row, "document"),)
    references = tuple(_nested(row, "references", list) or ())
    for name, values in (("documents", documents), ("references", references)):
        if not all(isinstance(text, str) and text.strip() for text in values):
            raise RecordError(row.where, f"field {name!r} has an entry that is blank or not text")
    half = row.fields.get("half") or ""
    if half not in ("", *HALVES):
        raise RecordError(row.where, "field 'half' is neither 'tune' nor 'report'")
    scores: dict[str, float] = {}
    for name, value in (_nested(row, "scores", dict) or {}).items():
        number = finite(value)
        if number is None:
            unusable.note(f"score {name!r} is not a finite number", row.where)
        else:
            scores[name] = number
    return Judged(
        document_id=name_field(row, "document_id", other="doc_id"),
        system=name_field(row, "system"),
        documents=documents,
        summary=summary,
        references=references,
        scores=scores,
        dataset=str(row.fields.get("dataset") or dataset),
        half=half,
    )


def _nested(row: Row, name: str, kind: type) -> Any:
    """A list or object field, or None where there is none; JSON text in CSV and TSV."""
    value = row.fields.get(name)
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except ValueError:
            value = "?"
    if value is None or value == "":
        return None
    if not isinstance(value, kind):
        raise RecordError(row.where, f"field {name!r} is not {'a list' if kind is list else 'an object'}")
    return value

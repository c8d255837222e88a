"""Scores that another program gave, read from a file and matched with judged summaries."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from negsample.errors import InputError, RecordError
from negsample.eval.judgments.collect import Unusable, name_field
from negsample.eval.score_columns import ScoreColumn
from negsample.io.read import number_field, read_rows
from negsample.records import Judged
from negsample.seeds import digest

NOT_SCORED = "the score file has no row for it"
NULL = "the score file has no number for it"

Key = tuple[str, str, str]


@dataclass(frozen=True)
class ScoreFile:
    """``scores``: (data set or "", document id, system) → score, None where the file has null.

    ``unusable``: what could not be used, by reason; ``fingerprint``: hash of what was read.
    """

    name: str
    path: str
    scores: dict[Key, float | None]
    unusable: Unusable
    fingerprint: str


def parse_scores(argument: str) -> tuple[str, str]:
    """Take ``NAME=FILE`` apart; InputError where it is something else."""
    name, equals, path = argument.partition("=")
    if not equals or not name or not path:
        raise InputError(f"--scores {argument}: write NAME=FILE")
    return name, path


def read_scores(name: str, path: str) -> ScoreFile:
    """Read rows with ``document_id`` (or ``doc_id``), ``system``, ``score`` (higher is better); ``dataset`` if several
    data sets have the same ids, in any format that ``negsample.io.read`` reads.

    A row that can't be used is counted and named in ``unusable``; of two rows for one summary the first is kept.
    Raises InputError for a file that can't be read and one without a single usable row.
    """
    scores: dict[Key, float | None] = {}
    unusable = Unusable()
    for row in read_rows(path):
        try:
            key = (
                name_field(row, "dataset") if "dataset" in row.fields else "",
                name_field(row, "document_id", other="doc_id"),
                name_field(row, "system"),
            )
            empty = "score" in row.fields and row.fields["score"] in (None, "")
            value = None if empty else number_field(row, "score")
        except RecordError as error:
            unusable.note(error.reason, error.where)
            continue
        if key in scores:
            unusable.note("the same document and system again (the first row is kept)", row.where)
        else:
            scores[key] = value
    if not scores:
        why = "; ".join(unusable.lines()[:3])
        raise InputError(f"{path}: no usable score: {why}")
    return ScoreFile(name, path, scores, unusable, digest(*sorted(map(str, scores.items()))).hex()[:12])


def match_scores(file: ScoreFile, rows: Sequence[Judged], datasets: Sequence[str]) -> tuple[ScoreColumn, list[str]]:
    """Match the file's scores with ``rows``, ``datasets[i]`` being the data set of row i: a column, and lines that tell
    what did not match: bad rows, rows of the file without a judged summary.

    Raises InputError where nothing matches.
    """
    values, used = np.full(len(rows), np.nan), set()
    reasons: list[str | None] = [None] * len(rows)
    for i, (row, dataset) in enumerate(zip(rows, datasets, strict=True)):
        names = dict.fromkeys((dataset, row.dataset, ""))
        key = next((k for name in names if (k := (name, row.document_id, row.system)) in file.scores), None)
        if key is None:
            reasons[i] = NOT_SCORED
            continue
        used.add(key)
        value = file.scores[key]
        if value is None:
            reasons[i] = NULL
        else:
            values[i] = value
    unused = [key for key in file.scores if key not in used]
    if not used:
        shown = f"document {unused[0][1]!r}, system {unused[0][2]!r}"
        raise InputError(
            f"{file.path}: no row belongs to a judged summary; its first is {shown}, the judgments' first is "
            f"document {rows[0].document_id!r}, system {rows[0].system!r}"
        )
    lines = [f"{file.path}: {line}" for line in file.unusable.lines()]
    if unused:
        shown = "; ".join(f"document {key[1]}, system {key[2]}" for key in unused[:3])
        more = "; …" if len(unused) > 3 else ""
        lines.append(f"{file.path}: {len(unused)} rows without a judged summary ({shown}{more})")
    signature = f"scores:{file.name}|sha:{file.fingerprint}"
    return ScoreColumn(file.name, "scores", signature, False, values, reasons), lines

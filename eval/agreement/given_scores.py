"""Scores that another program gave, read from a file and matched with judged summaries."""

from collections.abc import Sequence

import numpy as np

from negsample.errors import InputError, RecordError
from negsample.eval.agreement.columns import ScoreColumn
from negsample.eval.judgments.collect import Unusable, name_field
from negsample.io.read import number_field, read_rows
from negsample.records import Judged
from negsample.seeds import digest

NOT_SCORED = "the score file has no row for it"
NULL = "the score file has no number for it"

Key = tuple[str, str, str]


def score_file_column(argument: str, rows: Sequence[Judged], datasets: Sequence[str]) -> tuple[ScoreColumn, list[str]]:
    """Match the scores of ``NAME=FILE`` with ``rows``, ``datasets[i]`` being the data set of row i.

    Returns the column, and lines that tell what did not match: bad rows, rows of the file without a judged summary.
    Raises InputError for another argument, a file that can't be read, and one of which nothing matches.
    """
    label, equals, path = argument.partition("=")
    if not equals or not label or not path:
        raise InputError(f"--scores {argument}: write NAME=FILE")
    scores, unusable = _read(path)
    values, used = np.full(len(rows), np.nan), set()
    reasons: list[str | None] = [None] * len(rows)
    for i, (row, dataset) in enumerate(zip(rows, datasets, strict=True)):
        names = dict.fromkeys((dataset, row.dataset, ""))
        key = next((k for name in names if (k := (name, row.document_id, row.system)) in scores), None)
        if key is None:
            reasons[i] = NOT_SCORED
            continue
        used.add(key)
        value = scores[key]
        if value is None:
            reasons[i] = NULL
        else:
            values[i] = value
    unused = [key for key in scores if key not in used]
    if not used:
        shown = f"document {unused[0][1]!r}, system {unused[0][2]!r}"
        raise InputError(
            f"{path}: no row belongs to a judged summary; its first is {shown}, the judgments' first is "
            f"document {rows[0].document_id!r}, system {rows[0].system!r}"
        )
    lines = [f"{path}: {line}" for line in unusable.lines()]
    if unused:
        shown = "; ".join(f"document {key[1]}, system {key[2]}" for key in unused[:3])
        more = "; …" if len(unused) > 3 else ""
        lines.append(f"{path}: {len(unused)} rows without a judged summary ({shown}{more})")
    fingerprint = digest(*sorted(map(str, scores.items()))).hex()[:12]
    return ScoreColumn(label, "scores", f"scores:{label}|sha:{fingerprint}", False, values, reasons), lines


def _read(path: str) -> tuple[dict[Key, float | None], Unusable]:
    """(Data set or "", document id, system) → score, None where the file has null; and what could not be used.

    The fields are ``document_id`` (or ``doc_id``), ``system``, ``score`` (higher is better), and ``dataset`` if several
    data sets have the same ids. Of two rows for one summary the first is kept.
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
        raise InputError(f"{path}: no usable score: {'; '.join(unusable.lines()[:3])}")
    return scores, unusable

"""Columns of scores beside judged summaries: from models, metrics, and files that another program wrote."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import numpy as np

from negsample.errors import InputError, RecordError
from negsample.eval.judgments.collect import Unusable, name_field
from negsample.eval.metrics.base import score_judged
from negsample.io.read import number_field, read_rows
from negsample.records import Judged
from negsample.scoring.scorer import METRICS, Scorer, make_metric
from negsample.seeds import digest
from negsample.terminal import Bar

# What no metric should lose to.
TRIVIAL = ("words", "copied", "tf-recall", "lead-overlap", "cosine")
UNTRAINED = "align-untrained"
# Always in the table, where they are there; the trivial ones are what the others are measured by.
BASELINES = (*TRIVIAL, UNTRAINED)

Key = tuple[str, str, str]


@dataclass(frozen=True)
class ScoreColumn:
    """Scores of n summaries by one metric, higher is better.

    ``kind``: ``"model"``, ``"aspect"`` (of a model), ``"metric"``, ``"scores"`` (from a file) or ``"baseline"``.
    ``turned``: lower is better at the source, so ``values`` are the source's times −1. ``values`` float64 [n], NaN
    where missing; ``reasons`` [n] says why, else None. ``note``: what a reader must know, or "".
    """

    name: str
    kind: str
    signature: str
    turned: bool
    values: np.ndarray
    reasons: Sequence[str | None]
    note: str = ""

    def unscored(self) -> str:
        """Tell how many rows have no score and why, in one line; "" where all have one."""
        missing = Counter(reason for reason in self.reasons if reason is not None)
        return "; ".join(f"{number} × {reason}" for reason, number in missing.most_common())

    def take(self, rows: Sequence[int]) -> "ScoreColumn":
        """Return the column over ``rows`` alone, in their order."""
        return replace(self, values=self.values[list(rows)], reasons=[self.reasons[row] for row in rows])


def make_scorers(
    models: Sequence[str], metrics: Sequence[str], *, baselines: bool, precision: str = "float32"
) -> tuple[list[Scorer], list[str]]:
    """Make the scorers of metric specifications and of models, called by their folders, and tell what could not be had.

    With ``baselines`` the trivial ones follow, and the untrained estimator;
    one that can't be made (its encoder is not installed) is told of in the second result and is no error. The models compute
    in ``precision``. Raises InputError for a wrong specification and a damaged model.
    """
    if precision != "float32" and not models:
        raise InputError(f"--precision {precision} goes with --model; a metric has its own")
    scorers = [make_metric(spec) for spec in dict.fromkeys(metrics)]
    if models:
        # torch takes seconds to import, and metrics don't need it.
        from negsample.models import load

        for name, folder in zip(_folder_names(models), models, strict=True):
            scorers.append(load(folder, precision=precision).scorer(name))
    missed = []
    there = {scorer.name for scorer in scorers}
    for spec in BASELINES if baselines else ():
        if spec in there or spec not in METRICS:
            continue
        try:
            scorers.append(make_metric(spec))
        except InputError as error:
            missed.append(f"the baseline {spec} is not in the table: {error}")
    return scorers, missed


def score_columns(scorers: Sequence[Scorer], rows: Sequence[Judged]) -> list[ScoreColumn]:
    """Score ``rows`` by all ``scorers``, whose aspects have a column each; rows of equal texts are scored once."""
    columns = []
    with Bar("scoring", total=len(scorers)) as bar:
        for scorer in scorers:
            found = score_judged(scorer, rows)
            kind = "metric" if scorer.signature.startswith("metric:") else "model"
            turned, cut = not scorer.higher_is_better, int(found.cut.sum())
            notes = ["lower is better, so its sign is turned"] * turned
            notes += [f"{cut} of {len(rows)} summaries: longer with their document than the model reads, and cut"] * (
                cut > 0
            )
            for aspect, values in {"": found.scores, **found.aspects}.items():
                name, about = (f"{scorer.name}.{aspect}", f"|aspect:{aspect}") if aspect else (scorer.name, "")
                told = zip(np.isnan(values), found.reasons, strict=True)
                why = [(reason or "the model gives no value here") if gone else None for gone, reason in told]
                own = "baseline" if name in BASELINES else "aspect" if aspect else kind
                note, signed = "" if aspect else "; ".join(notes), -values if turned else values
                columns.append(ScoreColumn(name, own, scorer.signature + about, turned, signed, why, note))
            bar.advance(note=scorer.name)
    return columns


def _folder_names(folders: Sequence[str]) -> list[str]:
    """The last part of each folder's path, with as many parts before it as make all names differ."""
    paths = [Path(folder).expanduser().resolve().parts for folder in folders]
    for folder, parts in zip(folders, paths, strict=True):
        if paths.count(parts) > 1:
            raise InputError(f"--model {folder}: given twice")
    depth = next(k for k in count(1) if len({parts[-k:] for parts in paths}) == len(paths))
    return ["/".join(parts[-depth:]) for parts in paths]


def check_names(scorers: Sequence[Scorer], others: Sequence[str] = ()) -> None:
    """InputError where two columns, of ``scorers`` with their aspects and of ``others``, have one name."""
    own = (
        f"{scorer.name}.{aspect}" if aspect else scorer.name for scorer in scorers for aspect in ("", *scorer.aspects)
    )
    for name, number in Counter([*own, *others]).items():
        if number > 1:
            raise InputError(f"two rows of the table would be called {name!r}; rename one")


# --- scores that another program gave


def score_file_column(argument: str, rows: Sequence[Judged], datasets: Sequence[str]) -> tuple[ScoreColumn, list[str]]:
    """Match the scores of ``NAME=FILE`` with ``rows``, ``datasets[i]`` being the data set of row i.

    Returns the column, and lines that tell what did not match: bad rows, rows of the file without a judged summary.
    Raises InputError for another argument, a file that can't be read, and one of which nothing matches.
    """
    label, equals, path = argument.partition("=")
    if not equals or not label or not path:
        raise InputError(f"--scores {argument}: write NAME=FILE")
    scores, unusable = _read(path)
    values, used = np.full(len(rows), np.nan), set[Key | None]()
    reasons: list[str | None] = [None] * len(rows)
    summaries = Counter((dataset, row.document_id, row.system) for row, dataset in zip(rows, datasets, strict=True))
    for i, (row, dataset) in enumerate(zip(rows, datasets, strict=True)):
        keys = [(name, row.document_id, row.system) for name in (dataset, row.dataset, "")]
        key = next((key for key in keys if key in scores), None)
        value = None if key is None else scores[key]
        used.add(key)
        if summaries[dataset, row.document_id, row.system] > 1:  # choices may be of several by one system
            reasons[i] = "its system has another summary of the document, and the score file does not tell which"
        elif value is not None:
            values[i] = value
        else:
            reasons[i] = f"the score file has no {'row' if key is None else 'number'} for it"
    unused = [key for key in scores if key not in used]
    if used == {None}:
        shown = f"document {unused[0][1]!r}, system {unused[0][2]!r}"
        raise InputError(
            f"{path}: no row belongs to a judged summary; its first is {shown}, the judgments' first is "
            f"document {rows[0].document_id!r}, system {rows[0].system!r}"
        )
    lines = [f"{path}: {line}" for line in unusable.lines()]
    if unused:
        shown = "; ".join([f"document {key[1]}, system {key[2]}" for key in unused[:3]] + ["…"] * (len(unused) > 3))
        lines.append(f"{path}: {len(unused)} rows without a judged summary ({shown})")
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

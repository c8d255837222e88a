"""Columns of scores from models and metrics: each distinct summary is scored once, whatever stands beside it."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.base import mean_over_documents, score_judged
from negsample.progress import Bar
from negsample.records import Judged, document_key
from negsample.scoring.metrics import METRICS, make_metric
from negsample.scoring.scorer import Columns, Item, Scorer

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator

# What no metric should lose to.
TRIVIAL = ("words", "copied", "tf-recall", "lead-overlap", "cosine")
# Always in the table, where they are there; the trivial ones are what the others are measured by.
BASELINES = (*TRIVIAL, "align-untrained")

# Pairs between two movements of the progress bar.
_CHUNK = 1024
BLANK = "a text is blank"


@dataclass(frozen=True)
class ScoreColumn:
    """Columns of n summaries by one metric, higher is better.

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

    def missing(self) -> Counter[str]:
        """Count the rows that have no score, by reason."""
        return Counter(reason for reason in self.reasons if reason is not None)

    def unscored(self) -> str:
        """Tell how many rows have no score and why, in one line; "" where all have one."""
        return "; ".join(f"{count} × {reason}" for reason, count in self.missing().most_common())

    def take(self, rows: Sequence[int]) -> "ScoreColumn":
        """Return the column over ``rows`` alone, in their order."""
        return replace(self, values=self.values[list(rows)], reasons=[self.reasons[row] for row in rows])


@dataclass(frozen=True)
class ColumnSource:
    """A model or a metric: ``score(rows)`` answers with its own column, and those of its aspects.

    ``needs``: as `Scorer.needs`; a model needs the document. ``fitted_on``: keys of documents whose judgments a model was
    fitted to.
    """

    name: str
    needs: frozenset[str]
    score: Callable[[Sequence[Judged]], list[ScoreColumn]]
    fitted_on: frozenset[str] = frozenset()

    def seen(self, rows: Iterable[Judged]) -> int:
        """How many of the documents of ``rows`` the model was fitted on: its figures there are too good."""
        if not self.fitted_on:
            return 0
        return len(self.fitted_on & {document_key(text) for text in {text for row in rows for text in row.documents}})


def column_sources(
    models: Sequence[str], metrics: Sequence[str], *, baselines: bool, precision: str = "float32"
) -> tuple[list[ColumnSource], list[str]]:
    """Make the sources of model folders and of metric specifications, and tell what could not be had.

    With ``baselines`` the trivial ones follow; one that can't be made (its encoder is not installed) is told of in
    the second result and is no error. The models compute in ``precision``. Raises InputError for a wrong specification and
    a damaged model.
    """
    if precision != "float32" and not models:
        raise InputError(f"--precision {precision} goes with --model; a metric has its own")
    sources = [_metric_source(make_metric(spec)) for spec in dict.fromkeys(metrics)]
    if models:
        # torch takes seconds to import, and metrics don't need it.
        from negsample.models import load

        for name, folder in zip(_folder_names(models), models, strict=True):
            sources.append(_model_source(name, load(folder, precision=precision)))
    missed = []
    names = {source.name for source in sources}
    for spec in BASELINES if baselines else ():
        if spec in names or spec not in METRICS:
            continue
        try:
            sources.append(_metric_source(make_metric(spec)))
        except InputError as error:
            missed.append(f"the baseline {spec} is not in the table: {error}")
    check_names(source.name for source in sources)
    return sources, missed


def score_columns(sources: Sequence[ColumnSource], rows: Sequence[Judged]) -> list[ScoreColumn]:
    """Score ``rows`` by all ``sources``; rows of equal texts are scored once."""
    first: dict[tuple[tuple[str, ...], str, tuple[str, ...]], int] = {}
    places = [first.setdefault((row.documents, row.summary, row.references), len(first)) for row in rows]
    # Of equal rows the last one stands for all.
    unique = list(dict(zip(places, rows, strict=True)).values())
    columns = []
    with Bar("scoring", total=len(sources)) as bar:
        for source in sources:
            columns += [column.take(places) for column in source.score(unique)]
            bar.advance(note=source.name)
    return columns


def _metric_source(metric: Scorer) -> ColumnSource:
    kind = "baseline" if metric.name in BASELINES else "metric"
    turned = not metric.higher_is_better
    note = "lower is better, so its sign is turned" if turned else ""

    def score(rows: Sequence[Judged]) -> list[ScoreColumn]:
        found = score_judged(metric, rows)
        values = -found.scores if turned else found.scores
        return [ScoreColumn(metric.name, kind, metric.signature, turned, values, found.reasons, note)]

    return ColumnSource(metric.name, metric.needs, score)


def _folder_names(folders: Sequence[str]) -> list[str]:
    """The last part of each folder's path, with as many parts before it as make all names differ."""
    paths = [Path(folder).expanduser().resolve().parts for folder in folders]
    for folder, parts in zip(folders, paths, strict=True):
        if paths.count(parts) > 1:
            raise InputError(f"--model {folder}: given twice")
    depth = 1
    while len({parts[-depth:] for parts in paths}) < len(paths):
        depth += 1
    return ["/".join(parts[-depth:]) for parts in paths]


def _model_source(name: str, estimator: "Estimator") -> ColumnSource:
    needs = estimator.needs
    references = "references" in needs

    def score(rows: Sequence[Judged]) -> list[ScoreColumn]:
        pairs = [
            (document, row.summary, row.references if references else ()) for row in rows for document in row.documents
        ]
        # Summaries of one document stand together, so that a chunk reads few documents.
        order = sorted({pair for pair in pairs if pair[0].strip() and pair[1].strip() and (pair[2] or not references)})
        place = {pair: k for k, pair in enumerate(order)}
        found, cut = _score_pairs(estimator, order, name)
        note = f"{cut} of {len(order)} pairs were longer than the model reads and were cut" if cut else ""
        columns = []
        absent = f"{BLANK}, or there is no reference" if references else BLANK
        for aspect, scores in found.items():
            at = [place.get(pair) for pair in pairs]
            values = np.array([np.nan if k is None else scores.scores[k] for k in at])
            reasons = [absent if k is None else scores.reasons[k] for k in at]
            every = Columns(values, reasons, np.zeros(len(values), bool))
            means = mean_over_documents(every, [len(row.documents) for row in rows])
            kind, end = ("aspect", f"|aspect:{aspect}") if aspect else ("model", "")
            full = f"{name}.{aspect}" if aspect else name
            about = f"{estimator.signature}{end}"
            columns.append(ScoreColumn(full, kind, about, False, means.scores, means.reasons, note))
        return columns

    return ColumnSource(name, needs, score, estimator.fitted_on)


def _score_pairs(
    estimator: "Estimator", pairs: Sequence[tuple[str, str, tuple[str, ...]]], name: str
) -> tuple[dict[str, Columns], int]:
    """Columns of ``pairs`` by aspect, "" for the model's own; and how many pairs were cut."""
    values = {"": np.full(len(pairs), np.nan)}
    why: list[str | None] = []
    cut = 0
    scorer = estimator.scorer(name)
    with Bar(name, total=len(pairs)) as bar:
        for start in range(0, len(pairs), _CHUNK):
            part = pairs[start : start + _CHUNK]
            scored = scorer.score([Item(*pair) for pair in part])
            for aspect, found in {"": scored.scores, **scored.aspects}.items():
                values.setdefault(aspect, np.full(len(pairs), np.nan))[start : start + len(part)] = found
            cut += int(scored.cut.sum())
            why += scored.reasons
            bar.advance(len(part))

    def reasons(column: np.ndarray) -> list[str | None]:
        missing = np.isnan(column)
        return [
            (reason or "the model gives no value here") if gone else None
            for reason, gone in zip(why, missing, strict=True)
        ]

    none = np.zeros(len(pairs), bool)
    return {aspect: Columns(column, reasons(column), none) for aspect, column in values.items()}, cut


def check_names(names: Iterable[str]) -> None:
    """InputError where two columns have one name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"two rows of the table would be called {name!r}; rename one")

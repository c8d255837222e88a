"""Columns of scores from models and metrics: each distinct summary is scored once, whatever stands beside it."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics import METRICS, Metric, make_metric, score_judged
from negsample.progress import Bar
from negsample.records import Judged

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator

# What no metric should lose to (SPEC §8).
TRIVIAL = ("words", "copied", "tf-recall", "lead-overlap", "cosine")
# Always in the table, where they are there; the trivial ones are what the others are marked against.
BASELINES = (*TRIVIAL, "align-untrained")

# Pairs between two movements of the progress bar.
_CHUNK = 1024
BLANK = "a text is blank"


@dataclass(frozen=True)
class Column:
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
    reasons: tuple[str | None, ...]
    note: str = ""

    def missing(self) -> Counter[str]:
        """How many rows have no score, by reason."""
        return Counter(reason for reason in self.reasons if reason is not None)


@dataclass(frozen=True)
class Scorer:
    """What gives columns: ``score(rows)`` answers with the scorer's own column, and those of its aspects.

    ``needs``: as `Metric.needs`; a model needs the document.
    """

    name: str
    kind: str
    needs: frozenset[str]
    score: Callable[[Sequence[Judged]], list[Column]]


def make_scorers(models: Sequence[str], metrics: Sequence[str], *, baselines: bool) -> tuple[list[Scorer], list[str]]:
    """The scorers of model folders and of metric specifications, and what could not be had.

    With ``baselines`` the trivial ones follow; one that can't be made (its encoder is not installed) is told of in
    the second result and is no error. Raises InputError for a wrong specification and a damaged model.
    """
    scorers = [_metric_scorer(make_metric(spec)) for spec in dict.fromkeys(metrics)]
    if models:
        # torch takes seconds to import, and metrics don't need it.
        from negsample.models.estimator import Estimator

        for name, folder in zip(_folder_names(models), models, strict=True):
            scorers.append(_model_scorer(name, Estimator.load(folder)))
    missed = []
    names = {scorer.name for scorer in scorers}
    for spec in BASELINES if baselines else ():
        if spec in names or spec not in METRICS:
            continue
        try:
            scorers.append(_metric_scorer(make_metric(spec)))
        except InputError as error:
            missed.append(f"the baseline {spec} is not in the table: {error}")
    twice = [name for name, count in Counter(scorer.name for scorer in scorers).items() if count > 1]
    if twice:
        raise InputError(f"{twice[0]}: a model and a metric have this name; rename the model's folder")
    return scorers, missed


def score_columns(scorers: Sequence[Scorer], rows: Sequence[Judged]) -> list[Column]:
    """The columns of all ``scorers`` over ``rows``; rows of equal texts are scored once."""
    first: dict[tuple[tuple[str, ...], str, tuple[str, ...]], int] = {}
    places = [first.setdefault((row.documents, row.summary, row.references), len(first)) for row in rows]
    unique: list[Judged] = []
    for row, place in zip(rows, places, strict=True):
        if place == len(unique):
            unique.append(row)
    columns = []
    with Bar("scoring", total=len(scorers)) as bar:
        for scorer in scorers:
            columns += [_spread(column, places) for column in scorer.score(unique)]
            bar.advance(note=scorer.name)
    return columns


def _spread(column: Column, places: Sequence[int]) -> Column:
    reasons = tuple(column.reasons[place] for place in places)
    return Column(
        column.name, column.kind, column.signature, column.turned, column.values[list(places)], reasons, column.note
    )


def _metric_scorer(metric: Metric) -> Scorer:
    kind = "baseline" if metric.name in BASELINES else "metric"

    def score(rows: Sequence[Judged]) -> list[Column]:
        found = score_judged(metric, rows)
        values = found.values if metric.higher_is_better else -found.values
        note = "" if metric.higher_is_better else "lower is better, so its sign is turned"
        turned = not metric.higher_is_better
        return [Column(metric.name, kind, metric.signature, turned, values, tuple(found.reasons), note)]

    return Scorer(metric.name, kind, metric.needs, score)


def _folder_names(folders: Sequence[str]) -> list[str]:
    """The last part of each folder's path, with as many parts before it as make all names differ."""
    parts = [Path(folder).expanduser().resolve().parts for folder in dict.fromkeys(folders)]
    if len(parts) < len(folders):
        twice = next(folder for folder, count in Counter(folders).items() if count > 1)
        raise InputError(f"--model {twice}: given twice")
    for depth in range(1, max(map(len, parts), default=1) + 1):
        names = ["/".join(part[-depth:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    raise InputError("two --model folders are the same folder; give each once")


def _model_scorer(name: str, estimator: "Estimator") -> Scorer:
    def score(rows: Sequence[Judged]) -> list[Column]:
        pairs = dict.fromkeys((document, row.summary) for row in rows for document in row.documents)
        # Summaries of one document stand together, so that a chunk reads few documents.
        order = sorted(pair for pair in pairs if pair[0].strip() and pair[1].strip())
        place = {pair: k for k, pair in enumerate(order)}
        scores, aspects, why, cut = _score_pairs(estimator, order, name)
        note = f"{cut} of {len(order)} pairs were longer than the model reads and were cut" if cut else ""
        columns = [_over_documents(name, "model", estimator.signature, scores, why, rows, place, note)]
        for aspect, values in aspects.items():
            about = f"{estimator.signature}|aspect:{aspect}"
            columns.append(_over_documents(f"{name}.{aspect}", "aspect", about, values, why, rows, place, note))
        return columns

    return Scorer(name, "model", frozenset({"document"}), score)


def _score_pairs(
    estimator: "Estimator", pairs: Sequence[tuple[str, str]], name: str
) -> tuple[np.ndarray, dict[str, np.ndarray], list[str | None], int]:
    """Scores [n], aspects → [n] (those the estimator has), why one is missing [n], and how many pairs were cut."""
    scores = np.empty(len(pairs))
    why: list[str | None] = []
    aspects: dict[str, np.ndarray] = {}
    cut = 0
    with Bar(name, total=len(pairs)) as bar:
        for start in range(0, len(pairs), _CHUNK):
            part = pairs[start : start + _CHUNK]
            scored = estimator.score_pairs([document for document, _ in part], [summary for _, summary in part])
            scores[start : start + len(part)] = scored.scores
            cut += int(scored.cut.sum())
            why += scored.reasons or [None] * len(part)
            for aspect, values in (scored.aspects or {}).items():
                aspects.setdefault(aspect, np.full(len(pairs), np.nan))[start : start + len(part)] = values
            bar.advance(len(part))
    return scores, aspects, why, cut


def _over_documents(
    name: str,
    kind: str,
    signature: str,
    scores: np.ndarray,
    why: Sequence[str | None],
    rows: Sequence[Judged],
    place: dict[tuple[str, str], int],
    note: str,
) -> Column:
    """Each row's score: the mean over its documents (SPEC §6), missing where it is missing for one of them."""
    values = np.full(len(rows), np.nan)
    reasons: list[str | None] = []
    for i, row in enumerate(rows):
        at = [place.get((document, row.summary)) for document in row.documents]
        known = [k for k in at if k is not None]
        if not at or len(known) < len(at):
            reasons.append(BLANK if at else "the row has no document")
            continue
        values[i] = scores[known].mean()
        missing = next((why[k] for k in known if np.isnan(scores[k])), None)
        reasons.append((missing or "the model gives no value here") if np.isnan(values[i]) else None)
    return Column(name, kind, signature, False, values, tuple(reasons), note)


def names_of(columns: Iterable[Column]) -> list[str]:
    """The names, checked to differ; InputError where two columns have one name."""
    names = [column.name for column in columns]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"two rows of the table would be called {twice[0]!r}; rename one")
    return names

"""What a fit is made from: people's scores of judged summaries, and the inputs that it weighs, the same for all targets."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from negsample.errors import InputError
from negsample.eval.agreement.shares import pairs_of
from negsample.eval.judgments.files import CHOSEN
from negsample.eval.metrics.base import score_judged
from negsample.models.fitted import FurtherMetric, further_metrics
from negsample.records import Judged
from negsample.registry import suggestion
from negsample.scoring.scorer import Columns, Item, Scorer

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator

_FEWEST_ROWS = 5
_FEWEST_DOCUMENTS = 3


@dataclass(frozen=True)
class Target:
    """One human score of n summaries: ``values`` float64 [n], NaN where it is missing; ``weights`` [n] > 0, mean 1; ``pairs``:
    what people chose, as of `pairs_of`, where the score is what choices make.
    """

    name: str
    values: np.ndarray
    weights: np.ndarray
    pairs: np.ndarray | None = None


def targets_of(rows: Sequence[Judged], names: Sequence[str]) -> tuple[list[Target], list[str]]:
    """The human scores ``names`` of ``rows``; none: all that something can be learned from, and why not from the others.

    A summary with several annotators has the mean m of their scores; with the variance v of that mean (sample variance
    over number) it weighs 1/(v̄ + v), v̄ being the mean of v over the summaries: the more they agree, the more it counts, up
    to twice as much as one of usual spread. Raises InputError for an unknown name, too few rows, and where nothing varies.
    """
    known = list(dict.fromkeys(name for row in rows for name in row.scores))
    for name in names:
        if name not in known:
            raise InputError(f"--target {name}: no judgments have that score; {suggestion(name, known)}")
    found, left_out = list[Target](), list[str]()
    for name in names or known:
        values = np.array([row.scores.get(name, np.nan) for row in rows], dtype=np.float64)
        try:
            check(name, values, [row.document_id for row in rows])
        except InputError as error:
            if names or (name == known[-1] and not found):
                raise
            left_out.append(f"left out: {error}")
            continue
        weights = _weights([[n for n in row.ratings.get(name, ()) if n is not None] for row in rows])
        pairs = pairs_of(rows) if name == CHOSEN and any(row.choices for row in rows) else None
        found.append(Target(name, values, weights, pairs))
    return found, left_out


def check(name: str, values: np.ndarray, documents: Sequence[str]) -> None:
    """InputError where ``values`` [n] (NaN: missing) of the human score ``name`` are too few, or don't differ."""
    there = np.isfinite(values)
    count = len({document for document, has in zip(documents, there, strict=True) if has})
    if there.sum() < _FEWEST_ROWS or count < _FEWEST_DOCUMENTS:
        told = f"{name}: {there.sum()} judged summaries of {count} documents can be fitted"
        raise InputError(f"{told}; at least {_FEWEST_ROWS} of {_FEWEST_DOCUMENTS} are needed")
    if np.ptp(values[there]) == 0:
        raise InputError(f"{name}: all {there.sum()} judged summaries have the same score: nothing can be learned")


def _weights(ratings: Sequence[Sequence[float]]) -> np.ndarray:
    variance = np.array([np.var(given, ddof=1) / len(given) if len(given) > 1 else np.nan for given in ratings])
    usual = np.nanmean(variance) if np.isfinite(variance).any() else 0.0
    if usual <= 0:
        return np.ones(len(ratings))
    weights = 1 / (usual + np.where(np.isnan(variance), usual, variance))
    return weights / weights.mean()


def together(targets: Sequence[Target]) -> Target:
    """What the overall score is fitted to: the mean of the targets, each in units of its spread, over those that there are."""
    values = np.stack([(t.values - np.nanmean(t.values)) / np.nanstd(t.values) for t in targets])
    count = np.isfinite(values).sum(axis=0)
    mean = np.where(count > 0, np.nansum(values, axis=0) / np.maximum(count, 1), np.nan)
    return Target("overall", mean, np.mean([t.weights for t in targets], axis=0))


@dataclass(frozen=True)
class Inputs:
    """``values`` float64 [n, K], more is better, NaN where missing (``reasons`` [n] says why); ``directions``: name → −1
    where more of what it is called is worse, in the order of the columns. The first ``aspects`` columns are the logits of
    the overall score and the aspects; ``metrics``, the last ones, are in units of their spread.
    """

    values: np.ndarray
    reasons: list[str | None]
    directions: dict[str, int]
    aspects: int
    metrics: tuple[FurtherMetric, ...]


def inputs(estimator: "Estimator", specs: Sequence[str], rows: Sequence[Judged], *, references: bool = False) -> Inputs:
    """Compute what ``estimator`` and the metrics ``specs`` say of ``rows``.

    Without ``references`` no metric sees any. A row of several documents has the mean over them.
    """
    directions, names = dict(estimator.input_directions), list(estimator.input_directions)[1:]

    def told_of(items: Sequence[Item]) -> Columns:
        told = estimator.inputs([item.document for item in items], [item.summary for item in items])
        return Columns(told.values[:, 0], told.reasons, told.cut, dict(zip(names, told.values.T[1:], strict=True)))

    seen = rows if references else [replace(row, references=()) for row in rows]
    # The overall score's logit, and the others as its aspects.
    own = score_judged(Scorer("features", estimator.signature, True, frozenset({"document"}), told_of), seen)
    columns, reasons, made = list(own.named().values()), own.reasons, []
    for spec, metric in zip(dict.fromkeys(specs), further_metrics(specs, references), strict=True):
        found = score_judged(metric, seen)
        direction = 1 if metric.higher_is_better else -1
        turned = direction * found.scores
        if not np.isfinite(turned).any() or np.nanstd(turned) == 0:
            why = next((reason for reason in found.reasons if reason), "it gives one value to all summaries")
            raise InputError(f"--metric {metric.name}: nothing to fit ({why}); leave it out")
        name = metric.name if metric.name not in directions else f"{metric.name} (metric)"
        centre, spread = float(np.nanmean(turned)), float(np.nanstd(turned))
        made.append(FurtherMetric(spec, name, metric.signature, direction, centre, spread))
        directions[name] = direction
        columns.append((turned - centre) / spread)
        told = [f"{metric.name}: {reason}" if reason else None for reason in found.reasons]
        reasons = [why or reason for why, reason in zip(reasons, told, strict=True)]
    return Inputs(np.stack(columns, axis=1), reasons, directions, 1 + len(estimator._own_aspects), tuple(made))

"""What a fit weighs, for judged summaries: an estimator's evidence, and further metrics. Computed once, used by all fits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.base import score_judged
from negsample.models.fitted import FurtherMetric, further_metrics
from negsample.progress import Bar
from negsample.records import Judged

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator

_CHUNK = 256


@dataclass(frozen=True)
class Inputs:
    """``values`` float64 [n, K], more is better, NaN where missing (``reasons`` [n] says why); ``directions``: name → −1
    where more of what it is called is worse, in the order of the columns. The first ``logits`` columns are those of the
    overall score and the aspects; ``metrics``, the last ones, are in units of their spread.
    """

    values: np.ndarray
    reasons: list[str | None]
    directions: dict[str, int]
    logits: int
    metrics: tuple[FurtherMetric, ...]

    @property
    def own(self) -> np.ndarray:
        """bool [K]: aspects and metrics, which a fit holds less than features."""
        places = np.arange(len(self.directions))
        return (places < self.logits) | (places >= len(places) - len(self.metrics))

    def take(self, rows: np.ndarray) -> "Inputs":
        """The inputs of some rows."""
        return replace(self, values=self.values[rows], reasons=[self.reasons[i] for i in rows])


def inputs(estimator: "Estimator", specs: Sequence[str], rows: Sequence[Judged], *, references: bool = False) -> Inputs:
    """Compute what ``estimator`` and the metrics ``specs`` say of ``rows``.

    Without ``references`` no metric sees any. A row of several documents has the mean over them.
    """
    metrics = further_metrics(specs, references)
    directions = dict(estimator.evidence_directions)
    values, reasons = _evidence(estimator, rows)
    seen = rows if references else [replace(row, references=()) for row in rows]
    made = []
    columns = [values]
    for spec, metric in zip(dict.fromkeys(specs), metrics, strict=True):
        found = score_judged(metric, seen)
        turned = found.scores if metric.higher_is_better else -found.scores
        if not np.isfinite(turned).any() or np.nanstd(turned) == 0:
            why = next((reason for reason in found.reasons if reason), "it gives one value to all summaries")
            raise InputError(f"--metric {metric.name}: nothing to fit ({why}); leave it out")
        name = metric.name if metric.name not in directions else f"{metric.name} (metric)"
        centre, spread = float(np.nanmean(turned)), float(np.nanstd(turned))
        direction = 1 if metric.higher_is_better else -1
        made.append(FurtherMetric(spec, name, metric.signature, direction, centre, spread))
        directions[name] = direction
        columns.append(((turned - centre) / spread)[:, None])
        reasons = [
            why or (f"{metric.name}: {reason}" if reason else None)
            for why, reason in zip(reasons, found.reasons, strict=True)
        ]
    return Inputs(np.concatenate(columns, axis=1), reasons, directions, 1 + len(estimator._own_aspects), tuple(made))


def _evidence(estimator: "Estimator", rows: Sequence[Judged]) -> tuple[np.ndarray, list[str | None]]:
    pairs = [(document, row.summary) for row in rows for document in row.documents]
    # Summaries of one document stand together, so that a chunk reads few documents.
    order = sorted(set(pairs))
    place = {pair: k for k, pair in enumerate(order)}
    found, why = [], []
    with Bar("features", total=len(order)) as bar:
        for start in range(0, len(order), _CHUNK):
            part = order[start : start + _CHUNK]
            told = estimator.evidence([d for d, _ in part], [s for _, s in part])
            found.append(told.values.astype(np.float64))
            why += told.reasons
            bar.advance(len(part))
    every = np.concatenate(found)
    at = [[place[document, row.summary] for document in row.documents] for row in rows]
    means = np.stack([every[places].mean(axis=0) for places in at])
    return means, [next((why[k] for k in places if why[k]), None) for places in at]

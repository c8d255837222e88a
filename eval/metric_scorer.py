"""A metric dressed as a scorer, so that ``negsample score`` treats models and metrics alike."""

from collections.abc import Sequence

import numpy as np

from negsample.eval.metrics import Item, Metric, make_metric
from negsample.scored import Scored


class MetricScorer:
    """Scores pairs by ``metric``; unlike an estimator it reads the references that stand with a pair."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    @property
    def signature(self) -> str:
        """The metric's own, with every option and the version."""
        return self.metric.signature

    @property
    def needs(self) -> frozenset[str]:
        """What every record must have: a subset of ``{"document", "references"}``."""
        return self.metric.needs

    def score_items(
        self, documents: Sequence[str], summaries: Sequence[str], references: Sequence[Sequence[str]]
    ) -> Scored:
        """Scores of n records, NaN with a reason where the metric is undefined; nothing is cut."""
        items = [Item(d, s, tuple(r)) for d, s, r in zip(documents, summaries, references, strict=True)]
        found = self.metric.score(items)
        return Scored(found.values, np.zeros(len(items), bool), reasons=list(found.reasons))


def metric_scorer(spec: str) -> MetricScorer:
    """The scorer for a metric's specification (``rouge1:value=recall``). Raises InputError as ``make_metric`` does."""
    return MetricScorer(make_metric(spec))

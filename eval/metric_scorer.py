"""A metric as a scorer of records, so that ``negsample score`` treats models and metrics alike."""

from collections.abc import Sequence

import numpy as np

from negsample.eval.metrics import Item, make_metric
from negsample.scoring import Scored


class MetricScorer:
    """Scores records by the metric ``spec`` (``rouge1:value=recall``). Raises InputError as ``make_metric`` does.

    ``signature`` and ``needs`` are the metric's own.
    """

    def __init__(self, spec: str) -> None:
        self._metric = make_metric(spec)
        self.signature, self.needs = self._metric.signature, self._metric.needs

    def score_items(
        self, documents: Sequence[str], summaries: Sequence[str], references: Sequence[Sequence[str]]
    ) -> Scored:
        """Score n records: NaN with a reason where the metric is undefined; nothing is cut."""
        items = [Item(d, s, tuple(r)) for d, s, r in zip(documents, summaries, references, strict=True)]
        found = self._metric.score(items)
        return Scored(found.values, np.zeros(len(items), bool), reasons=list(found.reasons))

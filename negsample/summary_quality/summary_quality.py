"""negsample as a metric of the library ``evaluate``, which loads this file by itself."""

from typing import Any

import datasets
import evaluate


class SummaryQuality(evaluate.Metric):
    """Scores in [0, 1], higher is better, of summaries and the documents that they are of; no reference is read."""

    def _info(self) -> evaluate.MetricInfo:
        texts = datasets.Value("string")
        return evaluate.MetricInfo(
            description="Reference-free quality of summaries by negsample.",
            citation="",
            inputs_description="predictions: summaries; documents: what they are of; model: a negsample model folder.",
            features=datasets.Features({"predictions": texts, "documents": texts}),
        )

    def _compute(self, predictions: list[str], documents: list[str], model: str | None = None) -> dict[str, Any]:
        """The mean of the score and of each aspect, and ``scores`` [n]; ``model`` as in ``negsample.models.load``."""
        from negsample.models import load_once

        scored = load_once(model).score_pairs(documents, predictions)
        means = {name: float(column.mean()) for name, column in scored.named().items()}
        return {**means, "scores": scored.scores.tolist()}

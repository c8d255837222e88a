"""A scorer whose answers can be told by hand."""

from collections.abc import Sequence

import numpy as np

from negsample.scoring.scorer import Columns, Item


class FakeScorer:
    """What a `Scorer` has, for a class that says what it answers by ``score_pairs(documents, summaries)``."""

    name = "fake"
    signature = "fake"
    higher_is_better = True
    needs = frozenset({"document"})
    aspects: tuple[str, ...] = ()
    fitted_on: frozenset[str] = frozenset()
    columns: tuple[str, ...] = ("score", "reason")
    shares: tuple[str, ...] = ()

    def score(self, items: Sequence[Item]) -> Columns:
        """Answers of the pairs."""
        return self.score_pairs([item.document for item in items], [item.summary for item in items])  # type: ignore


def columns_of(*scores: float | None, reason: str = "none", **aspects: Sequence[float | None]) -> Columns:
    """Columns with these scores and aspects, None where there is none, and the ``reason`` there."""
    values = np.array([np.nan if score is None else score for score in scores])
    more = {name: np.array([np.nan if value is None else value for value in found]) for name, found in aspects.items()}
    reasons = [reason if np.isnan(value) else None for value in values]
    return Columns(values, reasons, np.zeros(len(values), bool), more)

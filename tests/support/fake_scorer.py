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
    domains: frozenset[str] = frozenset()

    def score(self, items: Sequence[Item]) -> Columns:
        """Answers of the pairs."""
        return self.score_pairs([item.document for item in items], [item.summary for item in items])  # type: ignore


class Lengths(FakeScorer):
    """Words of the summary divided by ``divisor``; a document of over 5 words is cut. ``calls``: pairs at a time."""

    signature = "lengths"

    def __init__(self, divisor: int = 10) -> None:
        self.divisor, self.calls = divisor, list[int]()

    def score_pairs(self, documents: Sequence[str], summaries: Sequence[str]) -> Columns:
        self.calls.append(len(documents))
        scores = np.array([len(text.split()) / self.divisor for text in summaries], np.float32)
        return Columns(scores, [None] * len(scores), np.array([len(text.split()) > 5 for text in documents], bool))


def columns_of(*scores: float | None, reason: str = "none", **aspects: Sequence[float | None]) -> Columns:
    """Columns with these scores and aspects, None where there is none, and the ``reason`` there."""
    values = np.array([np.nan if score is None else score for score in scores])
    more = {name: np.array([np.nan if value is None else value for value in found]) for name, found in aspects.items()}
    reasons = [reason if np.isnan(value) else None for value in values]
    return Columns(values, reasons, np.zeros(len(values), bool), more)

"""A scorer whose answers can be told by hand."""

from collections.abc import Sequence

from negsample.scoring.scorer import Columns, Item


class FakeScorer:
    """What a `Scorer` has, for a class that says what it answers by ``score_pairs(documents, summaries)``."""

    name = "fake"
    signature = "fake"
    higher_is_better = True
    needs = frozenset({"document"})
    aspects: tuple[str, ...] = ()
    fitted_on: frozenset[str] = frozenset()
    ranked = False

    def score(self, items: Sequence[Item]) -> Columns:
        """Answers of the pairs."""
        return self.score_pairs([item.document for item in items], [item.summary for item in items])  # type: ignore

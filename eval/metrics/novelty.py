"""Novelty: how many of a summary's n-grams the document lacks (Scialom et al. 2019, §2.1; Kryściński et al. 2018)."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

from negsample.eval.metrics.base import choice, pair_metric
from negsample.eval.metrics.tokens import ngram_set
from negsample.scoring.scorer import Columns, Item, Scorer, collect
from negsample.text import word_tokens


def _score(items: Sequence[Item], *, n: int, length: str) -> Columns:
    grams_of = lru_cache(maxsize=None)(lambda text: ngram_set(word_tokens(text), n))
    words_in = lru_cache(maxsize=None)(lambda text: len(word_tokens(text)))

    def one(item: Item) -> float | str:
        tokens = word_tokens(item.summary)
        grams = ngram_set(tokens, n)
        if not grams:
            return f"the summary has fewer than {n} words"
        share = len(grams - grams_of(item.document)) / len(grams)
        lengths = [words for words in map(words_in, item.references) if words] if length == "auto" else []
        return share * len(tokens) * len(lengths) / sum(lengths) if lengths else share

    return collect(map(one, items))


def _novelty(n: int) -> Callable[..., Scorer]:
    def make(*, length: str = "auto") -> Scorer:
        options = {"length": choice("length", length, ("auto", "none"))}
        # Higher is more abstractive; Scialom et al. 2019 find it slightly negative against people.
        return pair_metric(f"novelty{n}", make, options, {"document"}, partial(_score, n=n, length=length))

    make.__name__ = make.__qualname__ = f"novelty{n}"
    make.__doc__ = f"""The metric ``novelty{n}``: share of distinct {n}-grams not in the document; higher is more novel.

    ``length``: ``auto`` multiplies by the summary's length over the mean length of the references, where the record has
    any, so that a short summary gains nothing; ``none`` never does. Missing where the summary has fewer than {n} words.
    """
    return make


novelty1, novelty2, novelty3, novelty4 = (_novelty(n) for n in range(1, 5))

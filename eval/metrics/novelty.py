"""Novelty (P2 §2.1, after Kryściński et al. 2018): how many of a summary's n-grams the document does not have."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

from negsample.eval.metrics.base import Item, Metric, Scores, choice, collect, describe
from negsample.eval.metrics.tokens import ngram_set, word_tokens


def novelty(document: str, summary: str, n: int, reference: str | None = None) -> float:
    """Share of the summary's distinct n-grams that the document lacks, in [0, 1]; NaN where it has no n-gram.

    Where a reference is given, times words of the summary / words of the reference (P2: "normalized by the length
    ratio of the generated and reference summaries"), so that a short output gains nothing; the product may pass 1.
    Raises ValueError for a reference without words.
    """
    tokens = word_tokens(summary)
    grams = ngram_set(tokens, n)
    if not grams:
        return float("nan")
    share = len(grams - ngram_set(word_tokens(document), n)) / len(grams)
    if reference is None:
        return share
    length = len(word_tokens(reference))
    if not length:
        raise ValueError("the reference has no words")
    return share * len(tokens) / length


def _score(items: Sequence[Item], *, n: int, length: str) -> Scores:
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


def _novelty(n: int) -> Callable[..., Metric]:
    def make(*, length: str = "auto") -> Metric:
        length = choice("length", length, ("auto", "none"))
        name, signature = describe(f"novelty{n}", {"length": (length, "auto")})
        # Higher is more abstractive; P2's table finds it slightly negative against people.
        return Metric(name, signature, True, frozenset({"document"}), partial(_score, n=n, length=length))

    make.__name__ = make.__qualname__ = f"novelty{n}"
    make.__doc__ = f"""The metric ``novelty{n}``: share of distinct {n}-grams not in the document; higher is more novel.

    ``length``: ``auto`` multiplies by the summary's length over the mean length of the references, where the record
    has any; ``none`` never does. Missing where the summary has fewer than {n} words.
    """
    return make


novelty1, novelty2, novelty3, novelty4 = (_novelty(n) for n in range(1, 5))

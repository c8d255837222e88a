"""Baselines that no metric should lose to: length, copying, term recall, the lead; the fifth, whole-text
cosine, is in ``cosine``."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache, partial

from negsample.eval.metrics.base import choice, number, pair_metric
from negsample.eval.metrics.tokens import content_words, ngram_set, ngrams
from negsample.scoring.scorer import Columns, Item, Scorer, collect
from negsample.sentences import split_sentences
from negsample.text import word_count, word_tokens


def words() -> Scorer:
    """``words``: number of words of the summary (``text.word_count``). Needs nothing; 0 for a blank summary."""
    return pair_metric("words", words, {}, (), _words)


def _words(items: Sequence[Item]) -> Columns:
    return collect(float(word_count(item.summary)) for item in items)


def copied(*, n: int | str = 1) -> Scorer:
    """``copied``: share of the summary's n-grams (tokens, so repeats count) that stand in the document, in [0, 1].

    ``n`` from 1 (the default: the share of copied words) to 9. Words are compared in lower case without punctuation.
    Missing where the summary has fewer than n words.
    """
    order = number("n", n, 1, 9)
    return pair_metric("copied", copied, {"n": order}, {"document"}, partial(_copied, n=order))


def _copied(items: Sequence[Item], *, n: int) -> Columns:
    grams_of = lru_cache(maxsize=None)(lambda text: ngram_set(word_tokens(text), n))

    def one(item: Item) -> float | str:
        tokens = word_tokens(item.summary)
        if len(tokens) < n:
            return f"the summary has fewer than {n} words"
        source = grams_of(item.document)
        return sum(gram in source for gram in ngrams(tokens, n)) / (len(tokens) - n + 1)

    return collect(map(one, items))


def tf_recall() -> Scorer:
    """``tf-recall``: how much of the document's content words, by frequency, the summary names, in [0, 1].

    Σ over the content-word types of the summary of tf_document / Σ over all content-word types of tf_document.
    Content words are those outside ``tokens.STOP_WORDS``. Missing where the document has none, or the summary no word.
    """
    return pair_metric("tf-recall", tf_recall, {}, {"document"}, _tf_recall)


def _tf_recall(items: Sequence[Item]) -> Columns:
    frequencies_of = lru_cache(maxsize=None)(lambda text: Counter(content_words(text)))

    def one(item: Item) -> float | str:
        frequencies = frequencies_of(item.document)
        if not frequencies:
            return "the document has no content words"
        if not word_tokens(item.summary):
            return "the summary has no words"
        named = set(content_words(item.summary))
        return sum(frequencies[word] for word in named if word in frequencies) / frequencies.total()

    return collect(map(one, items))


def lead_overlap(*, sentences: int | str = 3, value: str = "recall") -> Scorer:
    """``lead-overlap``: unigram overlap of the summary with the document's first sentences, in [0, 1].

    ``sentences``: how many (3). ``value``: ``recall`` (the default: the share of the lead's words that the summary
    has; it agrees with people more than the others, so it is the harder baseline), ``precision`` or ``f1``. Words in
    lower case without punctuation, clipped counts. Missing where the lead or the summary has no words.
    """
    count = number("sentences", sentences, 1, 1000)
    options = {"sentences": count, "value": choice("value", value, ("precision", "recall", "f1"))}
    score = partial(_lead_overlap, count=count, value=value)
    return pair_metric("lead-overlap", lead_overlap, options, {"document"}, score)


def _lead_overlap(items: Sequence[Item], *, count: int, value: str) -> Columns:
    lead_of = lru_cache(maxsize=None)(lambda text: Counter(word_tokens(" ".join(split_sentences(text)[:count]))))

    def one(item: Item) -> float | str:
        lead, summary = lead_of(item.document), Counter(word_tokens(item.summary))
        if not lead:
            return "the document has no words in its first sentences"
        if not summary:
            return "the summary has no words"
        shared = (lead & summary).total()
        if value == "f1":
            return 2 * shared / (lead.total() + summary.total())
        return shared / lead.total() if value == "recall" else shared / summary.total()

    return collect(map(one, items))

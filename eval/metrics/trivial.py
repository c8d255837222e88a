"""Baselines that no metric should lose to (SPEC §8, §9): length, copying, term recall, the lead, whole-text cosine."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from negsample.eval.metrics.base import Item, Metric, Scores, choice, collect, describe, number
from negsample.eval.metrics.tokens import content_words, ngram_set, ngrams, word_tokens
from negsample.sentences import split_sentences
from negsample.sentences import words as split_words

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder


def words() -> Metric:
    """``words``: number of white-space-separated tokens of the summary. Needs nothing; 0 for a blank summary."""
    name, signature = describe("words", {})
    return Metric(name, signature, True, frozenset(), _words)


def _words(items: Sequence[Item]) -> Scores:
    return collect(float(len(split_words(item.summary))) for item in items)


def copied(*, n: int | str = 1) -> Metric:
    """``copied``: share of the summary's n-grams (tokens, so repeats count) that stand in the document, in [0, 1].

    ``n`` from 1 (the default: the share of copied words) to 9. Words are compared in lower case without punctuation.
    Missing where the summary has fewer than n words.
    """
    order = number("n", n, 1, 9)
    name, signature = describe("copied", {"n": (order, 1)})
    return Metric(name, signature, True, frozenset({"document"}), partial(_copied, n=order))


def _copied(items: Sequence[Item], *, n: int) -> Scores:
    grams_of = lru_cache(maxsize=None)(lambda text: ngram_set(word_tokens(text), n))

    def one(item: Item) -> float | str:
        tokens = word_tokens(item.summary)
        if len(tokens) < n:
            return f"the summary has fewer than {n} words"
        source = grams_of(item.document)
        return sum(gram in source for gram in ngrams(tokens, n)) / (len(tokens) - n + 1)

    return collect(map(one, items))


def tf_recall() -> Metric:
    """``tf-recall``: how much of the document's content words, by frequency, the summary names, in [0, 1].

    Σ over the content-word types of the summary of tf_document / Σ over all content-word types of tf_document.
    Content words are those outside ``tokens.STOP_WORDS``. Missing where the document has none.
    """
    name, signature = describe("tf-recall", {})
    return Metric(name, signature, True, frozenset({"document"}), _tf_recall)


def _tf_recall(items: Sequence[Item]) -> Scores:
    frequencies_of = lru_cache(maxsize=None)(lambda text: Counter(content_words(text)))

    def one(item: Item) -> float | str:
        frequencies = frequencies_of(item.document)
        if not frequencies:
            return "the document has no content words"
        named = set(content_words(item.summary))
        return sum(frequencies[word] for word in named if word in frequencies) / frequencies.total()

    return collect(map(one, items))


def lead_overlap(*, sentences: int | str = 3, value: str = "recall") -> Metric:
    """``lead-overlap``: unigram overlap of the summary with the document's first sentences, in [0, 1].

    ``sentences``: how many (3). ``value``: ``recall`` (the default: the share of the lead's words that the summary
    has; it agrees with people more than the others, so it is the harder baseline), ``precision`` or ``f1``. Words in
    lower case without punctuation, clipped counts. Missing where the lead has no words.
    """
    count = number("sentences", sentences, 1, 1000)
    value = choice("value", value, ("precision", "recall", "f1"))
    name, signature = describe("lead-overlap", {"sentences": (count, 3), "value": (value, "recall")})
    score = partial(_lead_overlap, count=count, value=value)
    return Metric(name, signature, True, frozenset({"document"}), score)


def _lead_overlap(items: Sequence[Item], *, count: int, value: str) -> Scores:
    lead_of = lru_cache(maxsize=None)(lambda text: Counter(word_tokens(" ".join(split_sentences(text)[:count]))))

    def one(item: Item) -> float | str:
        lead, summary = lead_of(item.document), Counter(word_tokens(item.summary))
        if not lead:
            return "the document has no words in its first sentences"
        shared = (lead & summary).total()
        if value == "f1":
            return 2 * shared / (lead.total() + summary.total())
        return shared / lead.total() if value == "recall" else shared / max(summary.total(), 1)

    return collect(map(one, items))


def cosine(*, encoder: str = "sentence-transformer", against: str = "document") -> Metric:
    """``cosine``: cosine of the mean sentence vectors of the summary and of the document, in [−1, 1].

    ``encoder``: any specification that ``negsample.models.encoders.make_encoder`` knows; a word encoder averages words.
    ``against``: ``document`` (the default: this is a reference-free baseline), ``references`` (the mean of the cosines
    with each), or ``auto``, references where the record has any. Missing where a text has no vector.
    """
    against = choice("against", against, ("document", "references", "auto"))
    from negsample.models.encoders import make_encoder

    made = make_encoder(encoder)
    name, signature = describe(
        "cosine", {"encoder": (encoder, "sentence-transformer"), "against": (against, "document")}
    )
    needs = {"auto": frozenset[str](), "document": frozenset({"document"}), "references": frozenset({"references"})}
    score = partial(_cosine, encoder=made, against=against)
    return Metric(name, f"{signature}|weights:{made.fingerprint[:12]}", True, needs[against], score)


def _cosine(items: Sequence[Item], *, encoder: "Encoder", against: str) -> Scores:
    targets = [_targets(item, against) for item in items]
    texts = {item.summary for item in items} | {text for chosen in targets for text in chosen}
    vector_of = text_vectors(sorted(texts), encoder)

    def one(item: Item, chosen: Sequence[str]) -> float | str:
        if not chosen:
            return "no reference"
        summary = vector_of[item.summary]
        if summary is None:
            return "the summary has no vector"
        vectors = [vector for vector in (vector_of[text] for text in chosen) if vector is not None]
        if not vectors:
            return "the document or reference has no vector"
        return float(np.clip(np.mean([summary @ vector for vector in vectors]), -1.0, 1.0))

    return collect(one(item, chosen) for item, chosen in zip(items, targets, strict=True))


def _targets(item: Item, against: str) -> Sequence[str]:
    if against == "document" or (against == "auto" and not item.references):
        return (item.document,)
    return item.references


def text_vectors(texts: Sequence[str], encoder: "Encoder") -> dict[str, np.ndarray | None]:
    """For each text its mean sentence (or word) vector scaled to length 1, float64 [dim]; None where there is none.

    Every distinct sentence is encoded once.
    """
    units_of = word_tokens if encoder.unit == "word" else split_sentences
    units = {text: units_of(text) for text in texts}
    distinct = sorted({unit for found in units.values() for unit in found})
    place = {unit: row for row, unit in enumerate(distinct)}
    rows = np.asarray(encoder.encode(distinct), dtype=np.float64)
    vectors: dict[str, np.ndarray | None] = {}
    for text, found in units.items():
        mean = rows[[place[unit] for unit in found]].mean(axis=0) if found else np.zeros(encoder.dim)
        length = float(np.linalg.norm(mean))
        vectors[text] = mean / length if length > 0 else None
    return vectors

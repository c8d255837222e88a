"""The four aspects, and the named features that make them up: each says which it speaks for and in which direction.

Centres and scales are plain constants, so that an untrained head can add the features up: the mean over machine-made
summaries of news, and the spread between the summaries of one document. No human score went into them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from negsample.models.align.alignment import Alignment, DocumentView, grams, sentence_means
from negsample.models.align.reader import Text
from negsample.models.align.words import whole_numbers, without_clitic

ASPECTS = ("coverage", "support", "coherence", "form")
"""What is judged of a summary: ``coverage``, whether it says what the document is about; ``support``, whether the document
says what it says (factual consistency); ``coherence``, whether its sentences belong together and follow one another;
``form``, whether each of them is whole and well made."""
# Matches of a document sentence, which salience weights: by sentence vectors, by word vectors, by word forms.
MATCHES = ("sentence", "token", "word")
MATCH_CENTRES = np.array([0.53, 0.52, 0.35], np.float32)
MATCH_SCALES = np.array([0.06, 0.05, 0.065], np.float32)


@dataclass(frozen=True)
class Feature:
    """A feature: its ``name``, the ``aspects`` it speaks for, and its ``direction``.

    ``direction`` +1: more can only be better; −1: more can only be worse. (value − ``centre``) / ``scale`` has about
    mean 0 and spread 1. ``source``: where it comes from, if not from the alignment (one of ``SOURCES``). ``weight``: how
    much it counts in an untrained head, of which the others have 1.
    """

    name: str
    aspects: tuple[str, ...]
    direction: int
    centre: float
    scale: float
    source: str = ""
    weight: float = 1.0


FEATURES: tuple[Feature, ...] = (
    # Share of the document's content words (by frequency and term weight) that the summary names.
    Feature("terms", ("coverage",), +1, 0.33, 0.07),
    # The same over the words that the document repeats.
    Feature("frequent_terms", ("coverage",), +1, 0.54, 0.10),
    # Mean best match of the summary's words in the document, by word vectors; and of the tenth that matches worst.
    Feature("token_support", ("support",), +1, 0.95, 0.05),
    Feature("weakest_tokens", ("support", "form"), +1, 0.83, 0.13),
    # Share of the summary's words, by term weight, that stand in the document; and of its names and numbers.
    Feature("word_support", ("support",), +1, 0.98, 0.045),
    Feature("fact_support", ("support",), +1, 0.98, 0.08),
    # Mean support of a summary sentence by one document sentence and the next, by word vectors; the least such.
    Feature("sentence_support", ("support",), +1, 0.93, 0.07),
    Feature("weakest_sentence", ("coherence", "form"), +1, 0.87, 0.15),
    # Likeness of sentence vectors: of the summary sentence that is least like any of the document.
    Feature("weakest_likeness", ("coherence", "form"), +1, 0.76, 0.19),
    # Runs of two and three words that stand in the document: word order that is attested.
    Feature("known_pairs", ("support",), +1, 0.90, 0.12),
    Feature("known_triples", ("form",), +1, 0.82, 0.18),
    # Neighbouring sentences rest on sentences that follow each other, or at least on later ones.
    Feature("near_order", ("coherence",), +1, 0.60, 0.24),
    Feature("forward_order", ("coherence",), +1, 0.77, 0.26),
    # Content words said again, and pairs of words.
    Feature("repeated_words", ("coherence",), -1, 0.12, 0.08),
    Feature("repeated_pairs", ("coverage", "coherence"), -1, 0.035, 0.055),
    # The same over neighbouring content words: names and phrases.
    Feature("repeated_phrases", ("coherence",), -1, 0.035, 0.06),
    # Whether the first word points back at something that has not been said.
    Feature("dangling_start", ("coherence",), -1, 0.025, 0.14),
    # Share of the sentences (those with a word) that close with an end mark, and of those of fewer than five words.
    Feature("proper_ends", ("form",), +1, 0.97, 0.10),
    Feature("fragments", ("coherence", "form"), -1, 0.01, 0.06),
    # What the judge says of the summary alone, on the scale of real text: of its sentences' form the mean and the least.
    Feature("judged_form", ("form",), +1, -0.15, 0.55, source="judge"),
    Feature("weakest_form", ("form",), +1, -1.05, 0.8, source="judge"),
    Feature("judged_coherence", ("coherence",), +1, -1.0, 0.6, source="judge"),
    # What the support judge says of its sentences beside what the document has of them, in the mean and of the least.
    Feature("judged_support", ("support",), +1, 0.1, 0.5, source="support"),
    Feature("least_support", ("support",), +1, -0.3, 0.8, source="support", weight=0.2),
    # What a language model that has read the document says (``evidence``), on the scale of real summaries.
    Feature("lm_mean", ("coverage", "support", "form"), +1, 0.0, 1.0, source="evidence"),
    Feature("lm_lowest", ("coherence", "form"), +1, 0.0, 1.0, source="evidence", weight=1.5),
    Feature("lm_total", ("support", "coherence", "form"), +1, 0.0, 1.0, source="evidence"),
    Feature("lm_least_sentence", ("support",), +1, 0.0, 1.0, source="evidence"),
    Feature("lm_facts", ("support",), +1, 0.0, 1.0, source="evidence", weight=0.5),
    Feature("lm_explained", ("coverage",), +1, 0.0, 1.0, source="evidence", weight=0.5),
    Feature("lm_unexplained", ("support",), +1, 0.0, 1.0, source="evidence"),
)
SOURCES = {source: tuple(f.name for f in FEATURES if f.source == source) for source in ("judge", "support", "evidence")}
"""Models that a head may have → their features; ``judge`` reads the summary alone, ``support`` and ``evidence`` both texts."""
_LOWEST = 0.1
_SHORT = 5
# Words (English) that a text can hardly begin with: they point back.
_POINTING_BACK = frozenset(
    "he she it they him her them his its their this that these those "
    "and but so also then however therefore moreover meanwhile".split()
)
# Every word counts a little, so that texts of function words alone have a value.
_LEAST_WEIGHT = 0.02
_TELLING = 0.25


def feature_set(sources: Collection[str] = ()) -> tuple[Feature, ...]:
    """The features of the alignment, and of those ``sources`` (of ``SOURCES``) that there are."""
    return tuple(feature for feature in FEATURES if not feature.source or feature.source in sources)


def matches(document: DocumentView, summary: Text, alignment: Alignment) -> np.ndarray:
    """How well each document sentence is covered; float32 [N, 3], the columns of ``MATCHES``, each in [−1, 1]."""
    source = document.text
    if not len(source.pieces) or not len(summary.pieces):
        return np.zeros((len(source.pieces), len(MATCHES)), np.float32)
    known = set(summary.forms)
    named = np.array([form in known for form in source.forms], np.float32)
    weights = source.weights + _LEAST_WEIGHT
    by_words = (sentence_means(each, weights, source) for each in (alignment.covered, named))
    return np.stack([alignment.likeness, *by_words], axis=1).astype(np.float32)


def values(document: DocumentView, summary: Text, alignment: Alignment) -> dict[str, float]:
    """The features of a pair that the alignment gives, by name; both texts must have a word."""
    both = _coverage(document, summary) | _support(document, summary, alignment)
    return both | _coherence(summary, alignment) | _form(document, summary)


def row(found: Mapping[str, float], sources: Collection[str] = ()) -> np.ndarray:
    """The values of ``found`` (``values`` and those of the ``sources``) as a vector [F] in the order of ``feature_set``."""
    return np.array([found[feature.name] for feature in feature_set(sources)], np.float32)


def _coverage(document: DocumentView, summary: Text) -> dict[str, float]:
    forms = set(summary.forms)
    return {
        name: sum(known[form] for form in forms & known.keys()) / max(sum(known.values()), 1e-9)
        for name, known in (("terms", document.terms), ("frequent_terms", document.repeated))
    }


def _support(document: DocumentView, summary: Text, alignment: Alignment) -> dict[str, float]:
    """How much of the summary stands in the document, or is said there in words alike: what has support is not made up."""
    weights = summary.weights + _LEAST_WEIGHT
    known = np.array([form in document.terms for form in summary.forms], np.float32)
    facts = telling_facts(summary)
    lengths = np.bincount(summary.place, minlength=len(summary.pieces))
    focus = alignment.focus
    pairs = grams(summary.forms, 2)
    return {
        "token_support": float(np.average(alignment.support, weights=weights)),
        "weakest_tokens": lowest_mean(alignment.support, weights, _LOWEST),
        "word_support": float(np.average(known, weights=weights)),
        "fact_support": float(known[facts].mean()) if facts.any() else 1.0,
        "sentence_support": float(np.average(focus, weights=lengths)),
        "weakest_sentence": float(focus[summary.worded].min()),
        "weakest_likeness": float(alignment.likeness_of[summary.worded].min()),
        "known_pairs": float(np.mean([pair in document.bigrams for pair in pairs])) if pairs else 1.0,
    }


def telling_facts(text: Text) -> np.ndarray:
    """bool [V]: names and numbers, and words so rare that they are likely names (letter case is often lost)."""
    return text.facts | (text.weights >= 1.0)


def lowest_mean(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """Weighted mean of the lowest ``share`` (by weight) of ``values``: rises with each of them, never falls."""
    order = np.argsort(values, kind="stable")
    sorted_weights = weights[order].astype(np.float64)
    used = np.clip(share * sorted_weights.sum() - (np.cumsum(sorted_weights) - sorted_weights), 0, sorted_weights)
    return float((values[order] * used).sum() / used.sum())


def repeated(items: Sequence[object]) -> float:
    """Share of ``items`` that have been said before, in [0, 1)."""
    return 1 - len(set(items)) / len(items) if items else 0.0


def _coherence(summary: Text, alignment: Alignment) -> dict[str, float]:
    forms = whole_numbers(summary.forms, summary.weights)
    content = [form for form, weight in forms if weight > _TELLING]
    phrases = [(one, other) for (one, first), (other, second) in pairwise(forms) if min(first, second) > _TELLING]
    step = np.diff(alignment.rests_on)
    return {
        "near_order": float(np.exp(-np.abs(step - 1) / 3).mean()) if len(step) else 1.0,
        "forward_order": float((step > 0).mean()) if len(step) else 1.0,
        "repeated_words": repeated(content),
        "repeated_pairs": repeated(grams(tuple(form for form, _ in forms), 2)),
        "repeated_phrases": repeated(phrases),
        "dangling_start": float(without_clitic(summary.forms[0]) in _POINTING_BACK),
    }


def _form(document: DocumentView, summary: Text) -> dict[str, float]:
    triples = grams(summary.forms, 3)
    lengths = np.bincount(summary.place, minlength=len(summary.pieces))
    return {
        "known_triples": float(np.mean([triple in document.trigrams for triple in triples])) if triples else 1.0,
        "proper_ends": float(summary.ends[summary.worded].mean()),
        "fragments": float(((lengths < _SHORT) & summary.whole)[summary.worded].mean()),
    }


def repeated_runs(summary: Text) -> dict[str, list[range]]:
    """Runs of three words that stand more than once in the summary, as forms, in order of first appearance.

    Each with the words that it takes (indices into ``summary.forms``), every time that it stands there.
    """
    forms = tuple(form for form, _ in whole_numbers(summary.forms, summary.weights))
    # Digits that stood side by side are now one form, with spaces between them.
    starts = [0, *accumulate(1 + form.count(" ") * form.replace(" ", "").isdigit() for form in forms)]
    runs: dict[str, list[range]] = {}
    for place, run in enumerate(grams(forms, 3)):
        runs.setdefault(" ".join(run), []).append(range(starts[place], starts[place + 3]))
    return {run: places for run, places in runs.items() if len(places) > 1}

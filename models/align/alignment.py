"""A summary against its document: similarities of sentence vectors and of word vectors, and their best matches."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from negsample.models.align.reader import Text

# Two document sentences that are this close to the best are equally good; the earlier is taken.
_TIE = 1e-3
# Document words compared with a summary at a time: bounds memory for texts of any length.
_BLOCK = 4096
# Inputs of salience.
SALIENCE = 6


@dataclass(frozen=True, eq=False)
class DocumentView:
    """What is computed once for a document, however many summaries it has.

    ``text``; ``salience`` float32 [N, 6], the inputs of salience, a row a sentence: place from the start (1 → 0),
    1/(1 + index), mean similarity to the other sentences, similarity to the mean sentence, mean term weight · frequency,
    length; ``frequency``: form → how often; ``terms``: form → frequency · term weight, ``repeated``: the same for forms
    that come again, the first time not counted, and the sums of both; ``bigrams``, ``trigrams``: runs of forms in it.
    """

    text: Text
    salience: np.ndarray
    frequency: dict[str, int]
    terms: dict[str, float]
    all_terms: float
    repeated: dict[str, float]
    all_repeated: float
    bigrams: frozenset[tuple[str, ...]]
    trigrams: frozenset[tuple[str, ...]]


def grams(forms: tuple[str, ...], n: int) -> list[tuple[str, ...]]:
    """The n-grams of ``forms`` in order."""
    return list(zip(*(forms[i:] for i in range(n)), strict=False))


def view(text: Text) -> DocumentView:
    """The view of a document."""
    n = len(text.pieces)
    if not n:
        return DocumentView(text, np.zeros((0, SALIENCE), np.float32), {}, {}, 0.0, {}, 0.0, frozenset(), frozenset())
    mean = text.vectors.mean(axis=0)
    norm = float(np.linalg.norm(mean))
    to_mean = text.vectors @ mean / max(norm, 1e-9)
    # The mean similarity to the others follows from the mean vector; no N × N matrix is needed.
    central = (text.vectors @ mean * n - 1) / max(n - 1, 1)
    frequency = Counter(text.forms)
    weight: dict[str, float] = {}
    for form, term in zip(text.forms, text.weights.tolist(), strict=True):
        weight[form] = max(weight.get(form, 0.0), term)
    terms = {form: weight[form] * count for form, count in frequency.items()}
    repeated = {form: weight[form] * (count - 1) for form, count in frequency.items() if count > 1}
    telling = np.array([text.weights[i] * np.log1p(frequency[form]) for i, form in enumerate(text.forms)], np.float32)
    lengths = np.bincount(text.place, minlength=n)
    per_sentence = np.bincount(text.place, weights=telling, minlength=n) / np.maximum(lengths, 1)
    index = np.arange(n)
    salience = np.stack(
        [1 - index / max(n - 1, 1), 1 / (1 + index), central, to_mean, per_sentence, np.minimum(lengths / 30, 2.0)],
        axis=1,
    ).astype(np.float32)
    return DocumentView(
        text,
        salience,
        dict(frequency),
        terms,
        sum(terms.values()),
        repeated,
        sum(repeated.values()),
        frozenset(grams(text.forms, 2)),
        frozenset(grams(text.forms, 3)),
    )


@dataclass(frozen=True, eq=False)
class Alignment:
    """Similarities between a document (N sentences, W words) and a summary (M sentences, V words), cosine.

    ``sentences`` [N, M]; ``covered`` [W], the best match of each document word in the summary; ``word_by_sentence``
    [N, V], the best match of each summary word in each document sentence (−1 for one without words); ``focus`` [N, M],
    the weighted mean of it over the words of a summary sentence, the document sentence and the next one taken together;
    ``rests_on`` [M], the document sentence that each summary sentence matches best; ``support`` [V], best match anywhere.
    """

    sentences: np.ndarray
    covered: np.ndarray
    word_by_sentence: np.ndarray
    focus: np.ndarray
    rests_on: np.ndarray
    support: np.ndarray


def align(document: DocumentView, summary: Text) -> Alignment:
    """Compare ``summary`` with ``document``; memory grows with N · V, not with W · V."""
    source = document.text
    n, m, v = len(source.pieces), len(summary.pieces), len(summary.forms)
    sentences = source.vectors @ summary.vectors.T
    covered = np.zeros(len(source.forms), np.float32)
    by_sentence = np.full((n, v), -1.0, np.float32)
    words = summary.words.astype(np.float32).T
    if v:
        for begin, stop in _blocks(source):
            similar = source.words[begin:stop].astype(np.float32) @ words
            covered[begin:stop] = similar.max(axis=1)
            inside = (source.starts >= begin) & (source.starts < stop)
            rows = np.maximum.reduceat(similar, source.starts[inside] - begin, axis=0)
            by_sentence[source.worded[inside]] = rows
    focus = _focus(by_sentence, summary, n, m)
    return Alignment(
        sentences=sentences,
        covered=covered,
        word_by_sentence=by_sentence,
        focus=focus,
        rests_on=first_best(focus + sentences) if n else np.zeros(m, int),
        support=by_sentence.max(axis=0) if n else np.zeros(v, np.float32),
    )


def _blocks(text: Text) -> list[tuple[int, int]]:
    """Stretches of words that begin and end with a sentence, of about ``_BLOCK`` words."""
    bounds = [*text.starts.tolist(), len(text.forms)]
    blocks, begin = [], 0
    for bound in bounds[1:]:
        if bound - begin >= _BLOCK or bound == bounds[-1]:
            blocks.append((begin, bound))
            begin = bound
    return blocks


def sentence_means(values: np.ndarray, weights: np.ndarray, text: Text, empty: float = 0.0) -> np.ndarray:
    """Weighted means [.., M] of ``values`` [.., V] over the words of each of the M sentences of ``text``."""
    m = len(text.pieces)
    out = np.full((*values.shape[:-1], m), empty, np.float32)
    if len(text.starts):
        sums = np.add.reduceat(values * weights, text.starts, axis=-1)
        out[..., text.worded] = sums / np.maximum(np.add.reduceat(weights, text.starts), 1e-6)
    return out


def _focus(by_sentence: np.ndarray, summary: Text, n: int, m: int) -> np.ndarray:
    if not n or not len(summary.forms):
        return np.zeros((n, m), np.float32)
    pair = by_sentence.copy()
    np.maximum(pair[:-1], by_sentence[1:], out=pair[:-1])
    return sentence_means(pair, summary.weights + 0.05, summary)


def first_best(scores: np.ndarray) -> np.ndarray:
    """For each column of [N, M] the first row that is within a thousandth of the best."""
    return np.argmax(scores >= scores.max(axis=0) - _TIE, axis=0)

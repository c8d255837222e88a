"""A summary against its document: similarities of sentence vectors and of word vectors, and their best matches."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from negsample.models.align.reader import Text
from negsample.models.align.words import count_words

# Two document sentences that are this close to the best are equally good; the earlier is taken.
_TIE = 1e-3
# Document words, and similarities, that are worked out at a time: they bound memory for texts of any length.
_BLOCK, _CELLS = 4096, 1 << 23
# Inputs of salience.
SALIENCE = 6


@dataclass(frozen=True, eq=False)
class DocumentView:
    """What is computed once for a document, however many summaries it has.

    ``text``; ``salience`` float32 [N, 6], the inputs of salience, a row a sentence: place from its document's start (1 → 0),
    1/(1 + index), mean similarity to the other sentences, similarity to the mean sentence, mean term weight · frequency,
    length; ``terms``: form → frequency · term weight, ``repeated``: the same for forms that come again, the first time not
    counted; ``bigrams``, ``trigrams``: runs of forms in it.
    """

    text: Text
    salience: np.ndarray
    terms: dict[str, float]
    repeated: dict[str, float]
    bigrams: frozenset[tuple[str, ...]]
    trigrams: frozenset[tuple[str, ...]]


def grams(forms: tuple[str, ...], n: int) -> list[tuple[str, ...]]:
    """The n-grams of ``forms`` in order."""
    return list(zip(*(forms[i:] for i in range(n)), strict=False))


def view(text: Text) -> DocumentView:
    """The view of a document; of a dialogue, the speaker's name is known in each sentence."""
    text = _named(text)
    n = len(text.pieces)
    if not n:
        return DocumentView(text, np.zeros((0, SALIENCE), np.float32), {}, {}, frozenset(), frozenset())
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
    index = np.arange(n) - np.searchsorted(text.documents, text.documents)
    last = np.maximum(np.bincount(text.documents)[text.documents] - 1, 1)
    salience = np.stack(
        [1 - index / last, 1 / (1 + index), central, to_mean, per_sentence, np.minimum(lengths / 30, 2.0)], axis=1
    ).astype(np.float32)
    return DocumentView(text, salience, terms, repeated, *(frozenset(grams(text.forms, n)) for n in (2, 3)))


def _named(text: Text) -> Text:
    """A dialogue with the speaker's name among the words of every sentence of a turn, before them, as it is read where it stands.

    It has no weight, nor has it where it stands: who speaks is not what the text is about, however many turns begin so.
    """
    if not any(text.speakers):
        return text
    names: dict[str, np.ndarray] = {"": np.zeros(0, int)}
    order, named = [], []
    parts = np.split(np.arange(len(text.forms)), np.searchsorted(text.place, np.arange(1, len(text.pieces))))
    for piece, speaker, own in zip(text.pieces, text.speakers, parts, strict=True):
        if speaker and piece.startswith(speaker) and piece[len(speaker) :].lstrip().startswith((":", "：")):
            names[speaker], own = np.split(own, [count_words(speaker)])
        name = names.get(speaker, names[""])
        order.append(np.concatenate([name, own]))
        named.append(np.arange(len(order[-1])) < len(name))
    counts, at, without = np.array(list(map(len, order))), np.concatenate(order), np.concatenate(named)
    return replace(
        text,
        forms=tuple(text.forms[i] for i in at),
        place=np.repeat(np.arange(len(order)), counts),
        starts=(np.cumsum(counts) - counts)[counts > 0],
        worded=np.flatnonzero(counts),
        weights=np.where(without, np.float32(0), text.weights[at]),
        facts=text.facts[at],
        words=text.words[at],
    )


@dataclass(frozen=True, eq=False)
class Alignment:
    """The best matches (cosine) between a document of N sentences and W words and a summary of M sentences and V words.

    ``covered`` [W], ``support`` [V]: of each word, among those of the other text; ``likeness`` [N], ``likeness_of`` [M]: of
    sentence vectors, likewise; ``focus`` [M]: of each summary sentence the weighted mean of its words' matches in one
    document sentence and the next taken together, for the best such; ``rests_on`` [M]: the sentence of the
    document that each matches best, by both.

    Of several documents ``support``, ``likeness_of`` and ``focus`` are means over them of the best match in each: a consensus,
    which every document that bears a thing out makes higher. ``by_document`` [D, M]: the parts of ``focus``.
    """

    covered: np.ndarray
    support: np.ndarray
    likeness: np.ndarray
    likeness_of: np.ndarray
    focus: np.ndarray
    rests_on: np.ndarray
    by_document: np.ndarray


def align(document: DocumentView, summary: Text) -> Alignment:
    """Compare ``summary`` with ``document``, both with a word; memory grows with the one and the other, not their product."""
    source = document.text
    n = len(source.pieces)
    covered = np.full(len(source.forms), -np.inf, np.float32)
    likeness = np.full(n, -np.inf, np.float32)
    # The first sentence of each document.
    firsts = np.flatnonzero(np.diff(source.documents, prepend=-1))
    columns = []
    for part, own_covered, by_sentence in compared(source, summary):
        sentences = source.vectors @ part.vectors.T
        pair = by_sentence.copy()
        np.maximum(pair[:-1], by_sentence[1:], out=pair[:-1])
        pair[firsts[1:] - 1] = by_sentence[firsts[1:] - 1]
        focus = sentence_means(pair, part.weights + 0.05, part)
        both = focus + sentences
        inside = np.maximum.reduceat(focus, firsts, axis=0)
        best_of = (np.maximum.reduceat(values, firsts, axis=0).mean(axis=0) for values in (by_sentence, sentences))
        columns.append((*best_of, inside.mean(axis=0), first_best(both), inside.T))
        np.maximum(covered, own_covered, out=covered)
        np.maximum(likeness, sentences.max(axis=1), out=likeness)
    support, likeness_of, focus_of, rests_on, inside = map(np.concatenate, zip(*columns, strict=True))
    return Alignment(covered, support, likeness, likeness_of, focus_of, rests_on, inside.T)


def compared(source: Text, summary: Text) -> Iterator[tuple[Text, np.ndarray, np.ndarray]]:
    """Stretches of ``summary`` (V words) against all of ``source`` (N sentences, W words).

    Of each: it; the best match of each source word in it, [W] (−∞ where it has no word); and of each
    of its words in each source sentence, [N, V] (−1 for a sentence without words).
    """
    units = max(1, _CELLS // max(len(source.pieces), min(len(source.forms), _BLOCK)))
    sizes = np.cumsum(1 + np.bincount(summary.place, minlength=len(summary.pieces)))
    bounds = [0, *(1 + np.flatnonzero(np.diff(sizes // units))).tolist(), len(summary.pieces)]
    for begin, stop in pairwise(bounds):
        part = summary if stop - begin == len(summary.pieces) else summary.stretch(begin, stop)
        covered = np.full(len(source.forms), -np.inf, np.float32)
        by_sentence = np.full((len(source.pieces), len(part.forms)), -1.0, np.float32)
        if part.forms:
            words = part.words.astype(np.float32).T
            for first, last in _blocks(source):
                similar = source.words[first:last].astype(np.float32) @ words
                covered[first:last] = similar.max(axis=1)
                inside = (source.starts >= first) & (source.starts < last)
                rows = np.maximum.reduceat(similar, source.starts[inside] - first, axis=0)
                by_sentence[source.worded[inside]] = rows
        yield part, covered, by_sentence


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


def first_best(scores: np.ndarray) -> np.ndarray:
    """For each column of [N, M] the first row that is within a thousandth of the best."""
    return np.argmax(scores >= scores.max(axis=0) - _TIE, axis=0)

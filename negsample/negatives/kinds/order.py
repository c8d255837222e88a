"""Sentences and words put in another order; the summary keeps all its words, and so its length.

``swap`` moves whole sentences, ``shuffle`` moves words within a few neighbours. Places in ``change`` count from 0.
"""

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import TypeVar

import numpy as np

from negsample.negatives.context import CannotDamage, Context, Damaged
from negsample.negatives.kinds.word_mutation import draw_count
from negsample.negatives.rebuild import (
    different_texts,
    ended_like,
    moved,
    put_together,
    summary_of,
    without_capital,
    without_end,
)
from negsample.records import Pair

T = TypeVar("T")
WINDOW = 8
"""Words of ``shuffle`` move among this many neighbours."""
_TRIES = 16


def swap(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """2 … S of the S sentences, as likely each, exchange places at random.

    Label: share of the pairs of sentences that still follow each other in the same order (1 minus Kendall's distance),
    because what a reader loses is "this came before that". Sentences that say the same are interchangeable: they make
    no pair. 0 is the reversed summary, so two sentences exchanged give 0.

    Raises CannotDamage for a summary of one sentence, or of one sentence over and over.
    """
    sentences, _ = summary_of(pair)
    texts = different_texts(sentences)
    order = _new_order(texts, rng)
    pairs = [(first, second) for first, second in combinations(order, 2) if texts[first] != texts[second]]
    inverted = sum(first > second for first, second in pairs)
    result = [moved(sentences[source], sentences[place]) for place, source in enumerate(order)]
    change = {"sentences": len(sentences), "order": order, "pairs": len(pairs), "inverted": inverted}
    return Damaged(put_together(result), 1 - inverted / len(pairs), change)


def _new_order(texts: Sequence[str], rng: np.random.Generator) -> list[int]:
    """Which sentence stands at each place now; at least two different ones are the wrong way round."""
    size = len(texts)
    count = int(rng.integers(2, size + 1))
    for _ in range(_TRIES):
        chosen = sorted(rng.choice(size, size=count, replace=False).tolist())
        order = list(range(size))
        for place, source in zip(chosen, rng.permutation(chosen).tolist(), strict=True):
            order[place] = source
        # Sentences that say the same are taken in the order they had.
        waiting = {text: iter([place for place in range(size) if texts[place] == text]) for text in texts}
        order = [next(waiting[texts[source]]) for source in order]
        if order != list(range(size)):
            return order
    return _exchanged(list(range(size)), texts)


def _exchanged(items: Sequence[T], texts: Sequence[str]) -> list[T]:
    """``items`` with the first two neighbours exchanged whose ``texts`` differ."""
    place = next(place for place, (one, other) in enumerate(pairwise(texts)) if one != other)
    return [*items[:place], items[place + 1], items[place], *items[place + 2 :]]


def shuffle(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """Words shuffled within windows of ``WINDOW`` neighbours of one sentence, at random places.

    The windows hold about k words, k drawn as for single words. The marks that end a sentence stay at its end, and a
    function word that stood first loses its capital.

    Label: share of the summary's words that stand where they stood (case aside); a word that a shuffle leaves in its
    place is not counted as damaged.

    Raises CannotDamage where no sentence has two different words, so for a one-word summary too.
    """
    sentences, total = summary_of(pair, least=2)
    bodies = [without_end(sentence.words) for sentence in sentences]
    windows = [(number, *span) for number, body in enumerate(bodies) for span in _windows(body, rng)]
    if not windows:
        raise CannotDamage("no sentence of two different words")
    aim = draw_count(total, total, rng)
    chosen, covered = [], 0
    for which in rng.permutation(len(windows)).tolist():
        number, begin, stop = windows[which]
        short = min(stop, begin + max(aim - covered, 2))
        stop = short if _differ(bodies[number][begin:short]) else stop
        chosen.append((number, begin, stop))
        covered += stop - begin
        if covered >= aim:
            break
    displaced, shuffled = 0, []
    for number, begin, stop in sorted(chosen):
        was = bodies[number][begin:stop]
        now = _rearranged(was, rng)
        if begin == 0 and now[0] != was[0]:
            first = now.index(was[0])
            now[first] = without_capital(was[0])
        displaced += sum(one.casefold() != other.casefold() for one, other in zip(was, now, strict=True))
        bodies[number][begin:stop] = now
        shuffled.append({"at": number, "was": " ".join(was), "is": " ".join(now)})
    result = [ended_like(body, sentence) for body, sentence in zip(bodies, sentences, strict=True)]
    change = {"words": total, "mutated": displaced, "shuffled": shuffled}
    return Damaged(put_together(sentences, result), 1 - displaced / total, change)


def _windows(body: Sequence[str], rng: np.random.Generator) -> list[tuple[int, int]]:
    """Spans of at most ``WINDOW`` words, side by side from a random place, in which there is something to shuffle."""
    first = int(rng.integers(WINDOW)) if len(body) > WINDOW else 0
    edges = sorted({0, len(body), *range(first, len(body), WINDOW)})
    spans = [(begin, stop) for begin, stop in pairwise(edges) if _differ(body[begin:stop])]
    if spans or not _differ(body):
        return spans
    # Long runs of one word: the first place where two words differ.
    place = next(place for place in range(len(body) - 1) if _differ(body[place : place + 2]))
    return [(place, place + 2)]


def _differ(words: Sequence[str]) -> bool:
    return len({word.casefold() for word in words}) > 1


def _rearranged(words: Sequence[str], rng: np.random.Generator) -> list[str]:
    """``words``, which are not all the same, in another order."""
    before = [word.casefold() for word in words]
    for _ in range(_TRIES):
        order = rng.permutation(len(words)).tolist()
        if [before[place] for place in order] != before:
            return [words[place] for place in order]
    return _exchanged(words, before)

"""Words added, deleted and replaced at random (P3 §3.2, "random mutation"; readings in SPEC §2).

n is the number of words of the summary, k the number mutated: round(share · n) for a share drawn uniformly from (0, 1),
at least 1. The label is 1 − k/n, from that k.

``change`` has n as ``words``, k as ``mutated``, and a list for each mutated word: ``added`` [place of the word it
stands before, word], ``deleted`` [place, word], ``replaced`` [place, old word, new word]. Places count words of the
original summary from 0.
"""

import numpy as np

from negsample.negatives.context import CannotDamage, Context, Damaged
from negsample.negatives.layout import Sentence, count_words, lay_out, put_together
from negsample.negatives.vocabulary import same_word
from negsample.records import Pair


def draw_count(total: int, most: int, rng: np.random.Generator) -> int:
    """How many of ``total`` words to mutate: 1 … ``most``."""
    return min(max(round(rng.random() * total), 1), most)


def lay_out_summary(pair: Pair, least: int = 1) -> tuple[tuple[Sentence, ...], int]:
    """The sentences of the pair's summary and the number of its words; CannotDamage where these are below ``least``."""
    sentences = lay_out(pair.summary)
    total = count_words(sentences)
    if total < least:
        raise CannotDamage("one-word summary" if total == 1 else "blank summary")
    return sentences, total


def add(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """k vocabulary words put in at random, 1 ≤ k ≤ n.

    Each goes before a word, so that the marks that end a sentence stay last; several may go to the same place.
    """
    sentences, total = lay_out_summary(pair)
    _check_vocabulary(context)
    count = draw_count(total, total, rng)
    places = sorted(rng.integers(total, size=count).tolist())
    fresh = context.vocabulary.draw(count, rng)
    inserted: dict[int, list[str]] = {}
    for place, word in zip(places, fresh, strict=True):
        inserted.setdefault(place, []).append(word)
    result, at = [], 0
    for sentence in sentences:
        now = []
        for word in sentence.words:
            now += [*inserted.get(at, ()), word]
            at += 1
        result.append(now)
    change = {
        "words": total,
        "mutated": count,
        "added": [[place, word] for place, word in zip(places, fresh, strict=True)],
    }
    return Damaged(put_together(sentences, result), 1 - count / total, change)


def delete(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """k random words taken out, 1 ≤ k ≤ n − 1. Raises CannotDamage for a one-word summary."""
    sentences, total = lay_out_summary(pair, least=2)
    count = draw_count(total, total - 1, rng)
    gone = set(rng.choice(total, size=count, replace=False).tolist())
    return take_out(sentences, total, gone)


def take_out(sentences: tuple[Sentence, ...], total: int, gone: set[int]) -> Damaged:
    """The summary without the words at the places ``gone``."""
    result, deleted, at = [], [], 0
    for sentence in sentences:
        now = []
        for word in sentence.words:
            if at in gone:
                deleted.append([at, word])
            else:
                now.append(word)
            at += 1
        result.append(now)
    change = {"words": total, "mutated": len(gone), "deleted": deleted}
    return Damaged(put_together(sentences, result), 1 - len(gone) / total, change)


def replace(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """k random words replaced by vocabulary words, 1 ≤ k ≤ n, never by the same word (case and punctuation aside)."""
    sentences, total = lay_out_summary(pair)
    _check_vocabulary(context)
    count = draw_count(total, total, rng)
    places = sorted(rng.choice(total, size=count, replace=False).tolist())
    drawn = dict(zip(places, context.vocabulary.draw(count, rng), strict=True))
    result, replaced, at = [], [], 0
    for sentence in sentences:
        now = []
        for word in sentence.words:
            if at in drawn:
                fresh = _unlike(word, drawn[at], context, rng)
                replaced.append([at, word, fresh])
                now.append(fresh)
            else:
                now.append(word)
            at += 1
        result.append(now)
    change = {"words": total, "mutated": count, "replaced": replaced}
    return Damaged(put_together(sentences, result), 1 - count / total, change)


def _check_vocabulary(context: Context) -> None:
    if not context.vocabulary.words:
        raise CannotDamage("empty vocabulary")


def _unlike(word: str, drawn: str, context: Context, rng: np.random.Generator) -> str:
    """``drawn``, or another word of the vocabulary where it is the same as ``word``."""
    # The first test is the cheaper one and nearly always enough.
    if drawn.casefold() not in word.casefold() or not same_word(word, drawn):
        return drawn
    other = context.vocabulary.draw_unlike(word, rng)
    if other is None:
        raise CannotDamage("vocabulary of one word")
    return other

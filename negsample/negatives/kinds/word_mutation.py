"""Words added, deleted and replaced at random (Bao et al. 2021 §3.2, "random mutation").

n is the number of words of the summary, k the number mutated: round(share · n) for a share drawn uniformly from (0, 1),
at least 1. The label is 1 − k/n, from that k.

``change`` has n as ``words``, k as ``mutated``, and a list for each mutated word: ``added`` [place of the word it
stands before, word], ``deleted`` [place, word], ``replaced`` [place, old word, new word]. Places count words of the
original summary from 0.
"""

from collections.abc import Collection, Sequence

import numpy as np

from negsample.negatives.context import CannotDamage, Context, Damaged
from negsample.negatives.rebuild import Sentence, each_word, put_together, summary_of
from negsample.negatives.vocabulary import same_word
from negsample.records import Pair
from negsample.text import fold


def draw_count(total: int, most: int, rng: np.random.Generator) -> int:
    """How many of ``total`` words to mutate: 1 … ``most``."""
    return min(max(round(rng.random() * total), 1), most)


def add(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """k vocabulary words put in at random, 1 ≤ k ≤ n.

    Each goes before a word, so that the marks that end a sentence stay last; several may go to the same place.
    """
    sentences, total = summary_of(pair)
    _check_vocabulary(context)
    count = draw_count(total, total, rng)
    places = sorted(rng.integers(total, size=count).tolist())
    added = list(zip(places, context.vocabulary.draw(count, rng), strict=True))
    inserted: dict[int, list[str]] = {}
    for place, word in added:
        inserted.setdefault(place, []).append(word)
    result = each_word(sentences, lambda at, word: [*inserted.get(at, ()), word])
    change = {"words": total, "mutated": count, "added": [list(item) for item in added]}
    return Damaged(put_together(sentences, result), 1 - count / total, change)


def delete(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """k random words taken out, 1 ≤ k ≤ n − 1. Raises CannotDamage for a one-word summary."""
    sentences, total = summary_of(pair, least=2)
    count = draw_count(total, total - 1, rng)
    return take_out(sentences, rng.choice(total, size=count, replace=False).tolist())


def take_out(sentences: Sequence[Sentence], gone: Collection[int]) -> Damaged:
    """The summary without the words at the places ``gone``."""
    words = [word for sentence in sentences for word in sentence.words]
    gone = set(gone)
    result = each_word(sentences, lambda at, word: [] if at in gone else [word])
    change = {"words": len(words), "mutated": len(gone), "deleted": [[at, words[at]] for at in sorted(gone)]}
    return Damaged(put_together(sentences, result), 1 - len(gone) / len(words), change)


def replace(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """k random words replaced by vocabulary words, 1 ≤ k ≤ n, never by the same word (case and punctuation aside)."""
    sentences, total = summary_of(pair)
    _check_vocabulary(context)
    count = draw_count(total, total, rng)
    places = sorted(rng.choice(total, size=count, replace=False).tolist())
    words = [word for sentence in sentences for word in sentence.words]
    fresh = {}
    for at, drawn in zip(places, context.vocabulary.draw(count, rng), strict=True):
        now: str | None = drawn
        # The first test is the cheaper one and nearly always enough.
        if fold(drawn).casefold() in fold(words[at]).casefold() and same_word(words[at], drawn):
            now = context.vocabulary.draw_unlike(words[at], rng)
        if now is None:
            raise CannotDamage("vocabulary of one word")
        fresh[at] = now
    result = each_word(sentences, lambda at, word: [fresh.get(at, word)])
    change = {"words": total, "mutated": count, "replaced": [[at, words[at], word] for at, word in fresh.items()]}
    return Damaged(put_together(sentences, result), 1 - count / total, change)


def _check_vocabulary(context: Context) -> None:
    if not context.vocabulary.words:
        raise CannotDamage("empty vocabulary")

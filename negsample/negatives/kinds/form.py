"""Damage to the form of sentences: function words dropped, words doubled, sentences cut and glued together.

Beside ``shuffle`` and ``truncate`` these are the faults that systems make and people mark down, while the content stays
nearly whole. Places in ``change`` count words, for ``glue`` sentences, of the original summary from 0.
"""

from collections.abc import Iterator

import numpy as np

from negsample.negatives.context import CannotDamage, Context, Damaged
from negsample.negatives.english import is_function_word
from negsample.negatives.kinds.word_mutation import take_out
from negsample.negatives.rebuild import (
    Sentence,
    count_words,
    draw_places,
    each_word,
    put_together,
    summary_of,
    without_capital,
    without_end,
)
from negsample.negatives.vocabulary import bare
from negsample.records import Pair

# A phrase that is doubled has up to this many words.
_PHRASE = 3


def drop(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """1 … F of the F function words (English), as likely each, are left out, in the style of a telegram.

    The last word of a sentence stays, and words of negation do.

    Label: share of the summary's words that are kept, as for ``delete``.

    Raises CannotDamage where there is no function word, as in other languages.
    """
    sentences, _ = summary_of(pair)
    words = [(word, left) for sentence in sentences for word, left in _with_room(sentence)]
    able = [place for place, (word, left) in enumerate(words) if left > 1 and is_function_word(word)]
    if not able:
        raise CannotDamage("no function word")
    return take_out(sentences, [able[place] for place in draw_places(len(able), len(able), rng)])


def double(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """Phrases of one to three words of a sentence stand there twice in a row.

    About k words are added, k drawn from 1 … n/2: no system doubles more.

    Label: 1 − words added / n, as for ``add``.

    Raises CannotDamage for a summary without a letter or digit.
    """
    sentences, total = summary_of(pair)
    words, room = zip(*(item for sentence in sentences for item in _with_room(sentence)), strict=True)
    able = [place for place, word in enumerate(words) if bare(word)]
    if not able:
        raise CannotDamage("no word to double")
    aim = int(rng.integers(1, max(total // 2, 1) + 1))
    phrases: dict[int, int] = {}
    taken: set[int] = set()
    for begin in (able[place] for place in rng.permutation(len(able)).tolist()):
        size = min(int(rng.integers(1, _PHRASE + 1)), room[begin], aim - len(taken))
        span = range(begin, begin + size)
        if taken.isdisjoint(span):
            phrases[begin] = size
            taken.update(span)
        if len(taken) >= aim:
            break

    def now(place: int, word: str) -> list[str]:
        if place not in phrases:
            return [word]
        phrase = words[place : place + phrases[place]]
        # The copy goes first, without the marks that would end the sentence there.
        copy = without_end(phrase) if len(phrase) == room[place] else phrase
        opens = place == 0 or room[place - 1] == 1
        return [*copy, without_capital(word) if opens else word]

    result = each_word(sentences, now)
    added = sum(map(len, result)) - total
    doubled = [[place, " ".join(words[place : place + size])] for place, size in sorted(phrases.items())]
    change = {"words": total, "mutated": added, "doubled": doubled}
    return Damaged(put_together(sentences, result), 1 - added / total, change)


def _with_room(sentence: Sentence) -> Iterator[tuple[str, int]]:
    """Each word, and how many words of the sentence there are from it to the end."""
    return zip(sentence.words, range(len(sentence.words), 0, -1), strict=True)


def glue(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """Sentences lose their end, and the next follows at once, without a mark or a capital.

    1 … S − 1 of the first S − 1 sentences, as likely each, keep one word or more and lose one or more (those of one
    word lose only their end mark).

    Label: share of the summary's words in sentences that were not cut; the sentence glued on can still be read.

    Raises CannotDamage for a summary of one sentence.
    """
    sentences, total = summary_of(pair)
    if len(sentences) < 2:
        raise CannotDamage("one-sentence summary")
    chosen = draw_places(len(sentences) - 1, len(sentences) - 1, rng)
    merged: list[Sentence] = []
    glued = []
    waiting: list[str] = []
    opener = sentences[0]
    for place, sentence in enumerate(sentences):
        words = list(sentence.words)
        if waiting:
            words[0] = without_capital(words[0])
        else:
            opener = sentence
        if place in chosen:
            body = without_end(words)
            left = int(rng.integers(1, len(body))) if len(body) > 1 else 1
            waiting += body[:left]
            glued.append({"at": place, "was": sentence.text, "left": " ".join(body[:left])})
        else:
            merged.append(Sentence((*waiting, *words), sentence.ending, opener.new_line))
            waiting = []
    gone = count_words(sentences[place] for place in chosen)
    change = {"sentences": len(sentences), "words": total, "kept_words": total - gone, "glued": glued}
    return Damaged(put_together(merged), 1 - gone / total, change)

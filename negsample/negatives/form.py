"""Damage to the form of sentences: function words dropped, words doubled, sentences cut and glued together.

Beside ``shuffle`` and ``truncate`` these are the faults that systems make and people mark down, while the content stays
nearly whole. Places in ``change`` count words, for ``glue`` sentences, of the original summary from 0.
"""

import numpy as np

from negsample.negatives.context import CannotDamage, Context, Damaged
from negsample.negatives.english import is_function_word
from negsample.negatives.layout import Sentence, put_together
from negsample.negatives.pieces import body_of, lowered
from negsample.negatives.vocabulary import bare
from negsample.negatives.words import lay_out_summary, take_out
from negsample.records import Pair

# A phrase that is doubled has up to this many words.
_PHRASE = 3


def drop(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """1 … F of the F function words (English), as likely each, are left out, in the style of a telegram.

    The last word of a sentence stays, and words of negation do.

    Label: share of the summary's words that are kept, as for ``delete``.

    Raises CannotDamage where there is no function word, as in other languages.
    """
    sentences, total = lay_out_summary(pair)
    able, at = [], 0
    for sentence in sentences:
        able += [at + place for place, word in enumerate(sentence.words[:-1]) if is_function_word(word)]
        at += len(sentence.words)
    if not able:
        raise CannotDamage("no function word")
    count = int(rng.integers(1, len(able) + 1))
    return take_out(sentences, total, set(rng.choice(able, size=count, replace=False).tolist()))


def double(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """Phrases of one to three words of a sentence stand there twice in a row.

    About k words are added, k drawn from 1 … n/2: no system doubles more.

    Label: 1 − words added / n, as for ``add``.

    Raises CannotDamage for a summary without a letter or digit.
    """
    sentences, total = lay_out_summary(pair)
    words = [word for sentence in sentences for word in sentence.words]
    room = _room(sentences)
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
    result, doubled, at = [], [], 0
    for sentence in sentences:
        now: list[str] = []
        for place in range(at, at + len(sentence.words)):
            if place in phrases:
                phrase = words[place : place + phrases[place]]
                # The copy goes first, without the marks that would end the sentence there.
                now += body_of(phrase) if place + len(phrase) == at + len(sentence.words) else phrase
                doubled.append([place, " ".join(phrase)])
            again = place in phrases and place == at
            now.append(lowered(words[place]) if again else words[place])
        at += len(sentence.words)
        result.append(now)
    added = sum(map(len, result)) - total
    change = {"words": total, "mutated": added, "doubled": doubled}
    return Damaged(put_together(sentences, result), 1 - added / total, change)


def _room(sentences: tuple[Sentence, ...]) -> list[int]:
    """For each word, how many words of its sentence there are from it to the end."""
    return [left for sentence in sentences for left in range(len(sentence.words), 0, -1)]


def glue(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """Sentences lose their end, and the next follows at once, without a mark or a capital.

    1 … S − 1 of the first S − 1 sentences, as likely each, keep one word or more and lose one or more (those of one
    word lose only their end mark).

    Label: share of the summary's words in sentences that were not cut; the sentence glued on can still be read.

    Raises CannotDamage for a summary of one sentence.
    """
    sentences, total = lay_out_summary(pair)
    if len(sentences) < 2:
        raise CannotDamage("one-sentence summary")
    count = int(rng.integers(1, len(sentences)))
    chosen = set(rng.choice(len(sentences) - 1, size=count, replace=False).tolist())
    merged: list[Sentence] = []
    glued = []
    waiting: list[str] = []
    opener = sentences[0]
    for place, sentence in enumerate(sentences):
        if not waiting:
            opener = sentence
        words = [lowered(sentence.words[0]), *sentence.words[1:]] if waiting else list(sentence.words)
        if place in chosen:
            body = body_of(words)
            left = int(rng.integers(1, len(body))) if len(body) > 1 else 1
            waiting += body[:left]
            glued.append({"at": place, "was": " ".join(sentence.words), "left": " ".join(body[:left])})
        else:
            merged.append(Sentence((*waiting, *words), sentence.ending, opener.new_line))
            waiting = []
    gone = sum(len(sentences[place].words) for place in chosen)
    change = {"sentences": len(sentences), "words": total, "kept_words": total - gone, "glued": glued}
    return Damaged(put_together(merged, [sentence.words for sentence in merged]), 1 - gone / total, change)

"""Whole sentences deleted and replaced at random ("sentence-level mutation", from the later code of Bao et al. 2021).

The label is the share of the summary's words that are kept. In a summary of one sentence a run of k neighbouring words
is deleted or replaced instead, k drawn as for single words. Places in ``change`` count from 0.
"""

from collections.abc import Sequence

import numpy as np

from negsample.negatives.context import CannotDamage, Context, Damaged
from negsample.negatives.kinds.word_mutation import draw_count, take_out
from negsample.negatives.rebuild import Sentence, count_words, draw_places, put_together, sentence_change, summary_of
from negsample.negatives.vocabulary import bare
from negsample.records import Pair
from negsample.sentences import normalise

_TRIES = 16


def delete(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """1 … S − 1 of the S sentences taken out, as likely each. Raises CannotDamage for a one-word summary."""
    sentences, total = summary_of(pair, least=2)
    if len(sentences) == 1:
        count = draw_count(total, total - 1, rng)
        begin = int(rng.integers(total - count + 1))
        return take_out(sentences, range(begin, begin + count))
    gone = sorted(draw_places(len(sentences), len(sentences) - 1, rng))
    left = [() if place in gone else sentence.words for place, sentence in enumerate(sentences)]
    kept = sum(map(len, left))
    deleted = [{"at": place, "sentence": sentences[place].text} for place in gone]
    return Damaged(put_together(sentences, left), kept / total, sentence_change(sentences, kept, deleted=deleted))


def replace(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """1 … S of the S sentences, as likely each, replaced by sentences from summaries of other documents of the split.

    A run of words in a one-sentence summary is replaced by a run of as many from such a sentence, or by all of it if it
    has fewer. Raises CannotDamage where the split has no other sentence.
    """
    sentences, total = summary_of(pair)
    if len(sentences) == 1:
        return _replace_run(pair, sentences[0], context, rng)
    result = [sentence.words for sentence in sentences]
    chosen = sorted(draw_places(len(sentences), len(sentences), rng))
    replaced = []
    for place in chosen:
        was = sentences[place].text
        other = context.other_sentence(pair, rng, unlike=was)
        result[place] = tuple(other.text.split())
        replaced.append({"at": place, "was": was, "is": other.text, "from": other.id})
    kept = total - count_words(sentences[place] for place in chosen)
    return Damaged(put_together(sentences, result), kept / total, sentence_change(sentences, kept, replaced=replaced))


def _replace_run(pair: Pair, sentence: Sentence, context: Context, rng: np.random.Generator) -> Damaged:
    words, total = sentence.words, len(sentence.words)
    count = draw_count(total, total, rng)
    begin = int(rng.integers(total - count + 1))
    was = words[begin : begin + count]
    for _ in range(_TRIES):
        other = context.other_sentence(pair, rng)
        run = other.text.split()
        start = int(rng.integers(max(len(run) - count, 0) + 1))
        run = _unmarked(run[start : start + count])
        if normalise(" ".join(run)) != normalise(" ".join(_unmarked(was))):
            break
    else:
        raise CannotDamage("no other sentence in the split")
    replaced = [{"at_word": begin, "was": " ".join(was), "is": " ".join(run), "from": other.id}]
    change = sentence_change([sentence], total - count, replaced=replaced)
    now = [*words[:begin], *run, *words[begin + count :]]
    return Damaged(put_together([sentence], [now]), 1 - count / total, change)


def _unmarked(run: Sequence[str]) -> list[str]:
    # A full stop in mid-sentence would make two sentences of one, and the right one is put at the end anyway.
    return [*run[:-1], bare(run[-1]) or run[-1]]

"""Sentences replaced by others of the same document that the summary does not use: on topic, true, but not salient."""

from functools import lru_cache

import numpy as np

from negsample.negatives.context import CannotDamage, Context, Damaged
from negsample.negatives.rebuild import (
    count_words,
    ended_like,
    of_like_length,
    pick,
    put_together,
    sentence_change,
    summary_of,
    without_end,
)
from negsample.records import Pair
from negsample.sentences import normalise, split_sentences
from negsample.text import fold

_RUN = 4
# Shares of a document sentence's letter runs above which it counts as being in one sentence of the summary, or in all
# of them together. Half of the sentences of a news article have less than .25 in common with any summary sentence.
_IN_ONE = 0.5
_IN_ALL = 0.65


def make(pair: Pair, context: Context, rng: np.random.Generator, most: int | None = None) -> Damaged:
    """1 … S of the S sentences (at most ``most``), as likely each, replaced by sentences of the document.

    An intruder is about as long as what it replaces (letters, within a quarter), so that the summary keeps about its
    length; it takes over the marks that ended that sentence. It is not, and not nearly, in the summary: less than half
    of its runs of four letters are in any one summary sentence (nor the other way round), and less than two thirds in
    the whole summary. No intruder comes twice. Sentences for which there is none stay.

    Label: share of the summary's words in sentences that stay; an intruder is true, but not what was worth saying.

    Raises CannotDamage where the document has no such sentence.
    """
    sentences, total = summary_of(pair)
    pool = _strangers(pair.document, pair.summary)
    if not pool:
        raise CannotDamage("every document sentence is in the summary")
    count = int(rng.integers(1, min(len(sentences), most or len(sentences)) + 1))
    free = list(pool)
    result = [list(sentence.words) for sentence in sentences]
    marked = any(sentence.ending for sentence in sentences)
    replaced = []
    for place in rng.permutation(len(sentences)).tolist():
        was = sentences[place].text
        near = of_like_length(free, was)
        if not near:
            continue
        intruder = free.pop(pick(near, rng))
        result[place] = intruder.split()
        # In a summary without end marks it has none either; where this sentence alone has none it keeps its own.
        if sentences[place].ending or not marked:
            result[place] = ended_like(without_end(result[place]), sentences[place])
        replaced.append({"at": place, "was": was, "is": intruder})
        if len(replaced) == count:
            break
    if not replaced:
        raise CannotDamage("no document sentence of like length")
    gone = count_words(sentences[item["at"]] for item in replaced)
    replaced.sort(key=lambda item: item["at"])
    change = sentence_change(sentences, total - gone, replaced=replaced)
    return Damaged(put_together(sentences, result), 1 - gone / total, change)


# A pair's negatives are made one after another.
@lru_cache(maxsize=4)
def _strangers(document: str, summary: str) -> tuple[str, ...]:
    """The sentences of ``document`` that are not in ``summary``, each once, in order."""
    parts = [_runs(sentence) for sentence in split_sentences(summary)]
    whole: set[str] = set().union(*parts)
    found: dict[str, str] = {}
    for sentence in split_sentences(document):
        runs = _runs(sentence)
        if not runs or len(runs & whole) >= _IN_ALL * len(runs):
            continue
        if all(len(runs & part) < _IN_ONE * min(len(runs), len(part)) for part in parts if part):
            found.setdefault(normalise(sentence), sentence)
    return tuple(found.values())


def _runs(sentence: str) -> frozenset[str]:
    """The runs of four letters or digits, all else left out: the same however a text is tokenised."""
    text = "".join(letter for letter in fold(sentence).casefold() if letter.isalnum())
    starts = range(max(len(text) - _RUN + 1, 1)) if text else ()
    return frozenset(text[start : start + _RUN] for start in starts)

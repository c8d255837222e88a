"""What a kind of negative is given and gives back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from negsample.negatives.index import PairIndex, index_of
from negsample.negatives.vocabulary import Vocabulary, VocabularyCounter
from negsample.records import Pair
from negsample.sentences import normalise, split_sentences

_TRIES = 16


class CannotDamage(Exception):
    """This pair does not allow this kind of negative; ``reason`` is short and the same for all such pairs."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Damaged:
    """A damaged summary, its label in [0, 1], and what was done to it, in JSON types that a person can read."""

    summary: str
    label: float
    change: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Borrowed:
    """A text from the summary of another document, and the id of the pair it is from."""

    text: str
    id: str


@dataclass(frozen=True, slots=True)
class Context:
    """What negatives of one split may draw from.

    ``vocabulary`` has the words of the training split, whatever split this is. ``positions`` [pairs of the split] are
    the positions of its pairs in ``index``; ``read(position)`` gives a pair's summary and id.
    """

    vocabulary: Vocabulary
    index: PairIndex
    positions: np.ndarray
    read: Callable[[int], Borrowed]

    def other_summary(self, pair: Pair, rng: np.random.Generator) -> Borrowed:
        """The summary of another document of the split, each pair of the split being as likely as another.

        Neither the document nor any of its summaries, nor a document linked to it by a shared summary. Raises
        CannotDamage where the split has none.
        """
        index, positions = self.index, self.positions
        own = index.positions_of(pair)
        group = index.group[index.document[own.start]] if own else -1
        for _ in range(_TRIES if len(positions) else 0):
            position = positions[rng.integers(len(positions))]
            if index.group[index.document[position]] != group:
                return self.read(int(position))
        others = positions[index.group[index.document[positions]] != group]
        if not len(others):
            raise CannotDamage("no other document in the split")
        return self.read(int(others[rng.integers(len(others))]))

    def other_sentence(self, pair: Pair, rng: np.random.Generator, unlike: str = "") -> Borrowed:
        """A sentence of such a summary that is not ``unlike`` (case and white space aside); white space is folded.

        Raises CannotDamage where none is found.
        """
        avoid = normalise(unlike)
        for _ in range(_TRIES):
            other = self.other_summary(pair, rng)
            sentences = _sentences(other.text)
            sentence = sentences[rng.integers(len(sentences))]
            if normalise(sentence) != avoid:
                return Borrowed(sentence, other.id)
        raise CannotDamage("no other sentence in the split")


# Splitting is what drawing sentences spends its time on; a small corpus fits.
@lru_cache(maxsize=2048)
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(split_sentences(text))


def context_of(pairs: Sequence[Pair]) -> Context:
    """Return a context of a few pairs in memory, with their vocabulary."""
    index = index_of(pairs)

    def read(position: int) -> Borrowed:
        pair = pairs[index.number[position]]
        return Borrowed(pair.summary, pair.id)

    counter = VocabularyCounter()
    for pair in pairs:
        counter.add(pair.document)
        counter.add(pair.summary)
    return Context(counter.finish(), index, np.arange(len(index.number)), read)

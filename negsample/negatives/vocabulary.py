"""The words that negatives are made with: those of the training split, in bounded memory, in whatever order read."""

import unicodedata
from collections import Counter
from dataclasses import dataclass

import numpy as np

from negsample.seeds import digest
from negsample.text import fold

MAX_TYPES = 100_000
# Longer tokens are links, encoded data and the like, or lines of a script that sets no spaces.
MAX_LETTERS = 100
_FOLD_AT = 20_000
_TRIES = 16


def bare(word: str) -> str:
    """``word`` without the punctuation and symbols around it; ``""`` where no letter or digit is left."""
    if word and word[0].isalnum() and word[-1].isalnum():
        return word
    inner = [place for place, letter in enumerate(word) if not _is_outer(letter)]
    return word[inner[0] : inner[-1] + 1] if any(letter.isalnum() for letter in word) else ""


def _is_outer(letter: str) -> bool:
    # Punctuation, symbols, control and format characters. Combining marks (M) belong to the letter before them.
    return unicodedata.category(letter)[0] in "PSC"


def same_word(one: str, other: str) -> bool:
    """Whether two words agree but for case, outer punctuation and what ``fold`` takes away."""
    return fold(bare(one)).casefold() == fold(bare(other)).casefold()


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words to draw from, sorted; ``cumulative`` [types] int64 are running counts, None where all types are equal."""

    words: tuple[str, ...]
    cumulative: np.ndarray | None = None

    def draw(self, count: int, rng: np.random.Generator) -> list[str]:
        """``count`` words, drawn independently. The vocabulary must not be empty."""
        if self.cumulative is None:
            places = rng.integers(len(self.words), size=count)
        else:
            places = np.searchsorted(self.cumulative, rng.integers(self.cumulative[-1], size=count), side="right")
        return [self.words[place] for place in places]

    def draw_unlike(self, word: str, rng: np.random.Generator) -> str | None:
        """A word that is not ``word`` (case and outer punctuation aside); None where the vocabulary has no other."""
        for _ in range(_TRIES):
            (drawn,) = self.draw(1, rng)
            if not same_word(drawn, word):
                return drawn
        others = [other for other in self.words if not same_word(other, word)]
        return others[rng.integers(len(others))] if others else None


class VocabularyCounter:
    """Counts the words of texts, keeping at most ``MAX_TYPES`` types.

    Where a corpus has more, the types kept are those with the smallest hashes: a random choice which depends neither on
    the order of the texts nor on how often a type occurs, and whose counts are exact.
    """

    def __init__(self) -> None:
        self._raw: Counter[str] = Counter()
        self._counts: dict[str, int] = {}
        self._highest: bytes | None = None

    def add(self, text: str) -> None:
        """Count the words of ``text``."""
        self._raw.update(text.split())
        if len(self._raw) > _FOLD_AT:
            self._fold()

    def _fold(self) -> None:
        for token, count in self._raw.items():
            word = bare(token)
            if not word or len(word) > MAX_LETTERS:
                continue
            if word in self._counts:
                self._counts[word] += count
            # A type above the highest hash was shut out before, or would be now: its count could not be exact.
            elif self._highest is None or _hash(word) <= self._highest:
                self._counts[word] = count
        self._raw.clear()
        if len(self._counts) > MAX_TYPES + MAX_TYPES // 2:
            self._prune()

    def _prune(self) -> None:
        if len(self._counts) > MAX_TYPES:
            kept = sorted((_hash(word), word) for word in self._counts)[:MAX_TYPES]
            self._highest = kept[-1][0]
            self._counts = {word: self._counts[word] for _, word in kept}

    def finish(self, draw: str = "uniform") -> Vocabulary:
        """The vocabulary so far; ``draw`` is ``"uniform"`` (over types) or ``"frequency"``."""
        self._fold()
        self._prune()
        words = tuple(sorted(self._counts))
        counts = np.cumsum([self._counts[word] for word in words], dtype=np.int64)
        return Vocabulary(words, None if draw == "uniform" else counts)


def _hash(word: str) -> bytes:
    return digest(word, size=8)

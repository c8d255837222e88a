"""Sentences and words as the alignment sees them: pieces short enough to encode, word forms, term weights, facts."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from negsample.records import documents_of
from negsample.sentences import SENTENCE_END, split_sentences, turns
from negsample.text import CHARACTERS, LETTERS, SPACED, find_spans, fold, has_no_spaces, readable, straight

# The digits of a number between its marks stand apart, because publishers write "1,600" and "1 , 600" alike.
_LETTER = rf"[{SPACED}--_]"
_WORD = rf"\d+|(?P<run>[{LETTERS}&&\w]+)|[{CHARACTERS}&&\w]\p{{M}}*|{_LETTER}+(?:'{_LETTER}+)*"
_POSSESSIVE = re.compile(r"'s?$")
# Characters of a piece; one beyond ASCII counts as four, because tokenizers cut such text finer.
_PIECE = 600
_WIDE = 4
# Term weight of what is no whole word.
_OTHER_SCRIPT = 0.5


@dataclass(frozen=True)
class Words:
    """The words of one piece (a sentence, or a stretch of a very long one).

    ``forms``: lower case, possessive and plural endings off; ``spans``: (start, stop) characters of each;
    ``weights`` float32 [w] in [0, 1]: how much a word tells (function words near 0, rare words 1);
    ``facts`` bool [w]: numbers and, as far as letter case tells, names; ``ends``: whether it closes with an end mark.
    """

    forms: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    weights: np.ndarray
    facts: np.ndarray
    ends: bool


class Piece(NamedTuple):
    """A sentence, or a stretch of a very long one; whether the sentence ``opens`` and whether it ``closes`` with it; of a
    dialogue, who speaks; of several documents (``joined``), which it is of, from 0.
    """

    text: str
    opens: bool = True
    closes: bool = True
    speaker: str = ""
    document: int = 0

    def split(self, parts: Sequence[str]) -> list["Piece"]:
        """This piece in the ``parts`` that its text was cut into."""
        last = len(parts) - 1
        return [
            self._replace(text=part, opens=self.opens and i == 0, closes=self.closes and i == last)
            for i, part in enumerate(parts)
        ]


def pieces(text: str) -> list[Piece]:
    """The sentences of ``readable(text)``, one that is too long for an encoder cut between words (or inside one)."""
    return [
        piece
        for number, document in enumerate(documents_of(readable(text)))
        for speaker, line in [(turn.speaker, turn.line) for turn in turns(document) or ()] or [("", document)]
        for sentence in split_sentences(line)
        for piece in Piece(sentence, speaker=speaker, document=number).split(_cut(sentence))
    ]


def cut_tokens(text: str, starts: Sequence[int], most: int) -> list[str]:
    """``text`` in parts of at most ``most`` (≥ 1) tokens, cut between words where a part has a space in it.

    ``starts``: the character at which each token of ``text`` begins, in order.
    """
    parts, begin, first = [], 0, 0
    while len(starts) - first > most:
        stop = starts[first + most]
        space = text.rfind(" ", begin + 1, stop + 1)
        stop = space if space > begin else stop
        if stop <= begin:
            break  # several tokens of one character: no cut makes them fewer
        parts.append(text[begin:stop].strip())
        begin = stop
        first = next((i for i in range(first + 1, len(starts)) if starts[i] >= begin), len(starts))
    return [part for part in (*parts, text[begin:].strip()) if part]


def whole_numbers(forms: Sequence[str], weights: np.ndarray) -> list[tuple[str, float]]:
    """Forms with their weights, the digits that stand side by side as one form: 1,000,000 is read as 1 000 000."""
    joined: list[tuple[str, float]] = []
    for digits, run in groupby(zip(forms, map(float, weights), strict=True), lambda item: item[0].isdigit()):
        own = list(run)
        joined += [(" ".join(form for form, _ in own), own[0][1])] if digits else own
    return joined


def _cut(sentence: str) -> list[str]:
    if len(sentence) <= _PIECE // _WIDE or (len(sentence) <= _PIECE and sentence.isascii()):
        return [sentence]
    starts = [place for place, letter in enumerate(sentence) for _ in range(1 if letter.isascii() else _WIDE)]
    return cut_tokens(sentence, starts, _PIECE)


def stem(word: str) -> str:
    """Folded, in lower case, without possessive and plural endings: ``Banks'`` and ``bank`` are one form."""
    form = _POSSESSIVE.sub("", fold(word).lower())
    if len(form) > 3 and form.endswith("s") and not form.endswith(("ss", "us", "is")):
        return form[:-1]
    return form


def without_clitic(word: str) -> str:
    """``word`` up to its first apostrophe: ``they`` of "they're"."""
    return straight(word).partition("'")[0]


def count_words(text: str) -> int:
    """How many words ``text`` has, as the alignment counts them: in scripts without spaces its characters."""
    return sum(1 for _ in find_spans(_WORD, straight(text)))


def read_words(piece: str, weigh: Callable[[str], float]) -> Words:
    """The words of ``piece``, which is ``readable``; ``weigh`` gives the term weight of a lower-case word."""
    spans = list(find_spans(_WORD, straight(piece)))
    raw = [piece[begin:stop] for begin, stop in spans]
    facts = [
        any(letter.isdigit() for letter in word) or (place > 0 and word[0].isupper() and len(word) > 1)
        for place, word in enumerate(raw)
    ]
    return Words(
        tuple(map(stem, raw)),
        tuple(spans),
        np.array([weigh(fold(word).lower()) for word in raw], np.float32),
        np.array(facts, bool),
        bool(SENTENCE_END.search(piece)),
    )


class TermWeights:
    """How much a word tells, from its place in the tokenizer's vocabulary, which is ordered by frequency.

    weight = (log(1 + rank) / log(1 + last rank))², the rank counted from ``the`` where that is an entry; 1 for a word that
    is cut into several pieces and for numbers; 0.5 for single letters of other scripts,
    and where no spaces are set. No corpus is needed, so that an untrained head has weights as well.
    Zipf's law makes log rank a stand-in for inverse document frequency.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._vocabulary: dict[str, int] = tokenizer.get_vocab()
        self._first = next((self._vocabulary[form] for form in ("the", "Ġthe", "▁the") if form in self._vocabulary), 0)
        self._scale = math.log(1 + max(1, max(self._vocabulary.values()) - self._first))

    def __call__(self, word: str) -> float:
        """The weight of a lower-case word, in [0, 1]."""
        if word[0].isdigit():
            return 1.0
        place = next(
            (self._vocabulary[form] for form in (word, "Ġ" + word, "▁" + word) if form in self._vocabulary), None
        )
        if place is None:
            # The clitics of English ("it's", "don't") are function words with an ending.
            head = without_clitic(word)
            if head and head != word:
                return self(head)
            return _OTHER_SCRIPT if has_no_spaces(word) else 1.0
        if place <= self._first:
            return _OTHER_SCRIPT if not word.isascii() else 0.0
        return min(1.0, (math.log(1 + place - self._first) / self._scale) ** 2)

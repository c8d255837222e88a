"""Small operations on laid-out sentences that several kinds of negatives share."""

from collections.abc import Sequence

import numpy as np

from negsample.negatives.english import is_function_word
from negsample.negatives.layout import Sentence
from negsample.sentences import SENTENCE_END, normalise

# Two sentences are of like length where their letters differ by no more than this share, or this number.
_SHARE = 0.25
_LETTERS = 8
_NEAREST = 5
# Marks that would look odd before a full stop.
_PAUSES = ",;:-–—"


def _parts(words: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """Words of a sentence, the end marks attached to the last of them, and words of mere punctuation that follow."""
    stop = len(words)
    while stop > 1 and not any(letter.isalnum() for letter in words[stop - 1]):
        stop -= 1
    match = SENTENCE_END.search(words[stop - 1])
    if not match or not match.start():
        return list(words[:stop]), "", list(words[stop:])
    return [*words[: stop - 1], words[stop - 1][: match.start()]], match.group(), list(words[stop:])


def body_of(words: Sequence[str]) -> list[str]:
    """``words`` of a sentence without the marks that end it, attached or standing alone; at least one word stays."""
    return _parts(words)[0]


def closed_like(body: Sequence[str], place: Sentence) -> list[str]:
    """``body`` with the marks that end the sentence ``place``, attached or standing alone as they are there."""
    _, marks, alone = _parts(place.words)
    last = body[-1]
    if marks and not SENTENCE_END.search(last):
        last = (last.rstrip(_PAUSES) or last) + marks
    return [*body[:-1], last, *alone]


def in_place_of(sentence: Sentence, place: Sentence) -> Sentence:
    """``sentence`` where ``place`` stood: on its line, and with its ending if it has no marks of its own."""
    bare_end = sentence.words[-1][-1].isalnum()
    return Sentence(sentence.words, sentence.ending or (place.ending if bare_end else ""), place.new_line)


def text_of(sentence: Sentence) -> str:
    """The words joined by single spaces."""
    return " ".join(sentence.words)


def same_texts(sentences: Sequence[Sentence]) -> list[str]:
    """A text for each sentence, equal for sentences that differ only in case."""
    return [normalise(text_of(sentence)) for sentence in sentences]


def lowered(word: str) -> str:
    """``word`` without the capital of a sentence's beginning, if it is a function word ("The", not "London" or "I")."""
    return word.lower() if is_function_word(word) and word != "I" else word


def letters(text: str) -> int:
    """Number of characters without white space: a length that means the same in scripts which set no spaces."""
    return sum(map(len, text.split()))


def of_like_length(texts: Sequence[str], target: str) -> list[int]:
    """Places of up to five ``texts`` that are about as long as ``target``, the nearest in words first.

    Their letters differ by at most a quarter of the target's, or 8.
    """
    length, words = letters(target), len(target.split())
    slack = max(_LETTERS, _SHARE * length)
    near = [place for place, text in enumerate(texts) if abs(letters(text) - length) <= slack]
    return sorted(near, key=lambda place: abs(len(texts[place].split()) - words))[:_NEAREST]


def pick(items: Sequence[int], rng: np.random.Generator) -> int:
    """One of ``items``, each as likely."""
    return items[int(rng.integers(len(items)))]

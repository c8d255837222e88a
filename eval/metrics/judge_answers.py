"""What score, from 1 to 5, an answer of a language model names: in words as a person reads it, and by its probabilities."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_N = r"(?<![\w.,/£$-])(\d+(?:\.\d+)?|one|two|three|four|five)(?![\w%]|[.,]\d|-\d)"
_OF = r"\s*\(?(?:/|out\s+of)\s*(\d+|five)\b"
# What may stand between "score" and the number.
_LINK = r"(?:[\s:=*_\"'`(\[]|of|is|as|it|an?|be|around|about|the|this|summary)*?"
# From the surest to the least sure. In the first that is found at all, the last number counts.
_WAYS = tuple(
    re.compile(way, re.IGNORECASE)
    for way in (
        rf"\b(?:final|overall)\s+(?:\w+\s+)?(?:score|rating|grade)\b{_LINK}{_N}(?:{_OF})?",
        rf"\b(?:score[sd]?|rat(?:e[sd]?|ing)|grade)\b{_LINK}{_N}(?:{_OF})|{_N}{_OF}|{_N}[ -]stars?\b",
        rf"\b(?:scor|rat|grad|giv)\w*\b[^.\d\n]{{0,80}}?{_N}(?:{_OF})?",
        rf"^\W*{_N}(?=\s*[-–—:.,;)(\n])|(?:^|\s)\W*{_N}\W*$|:\W*{_N}\s*\n",
        rf"\ba\s+(?:perfect\s+)?{_N}\s+(?:in|for|on)\b|\({_N}\)",
    )
)
_LETTER = re.compile(r"\W*([A-E])\W*")
# "What keeps it from a perfect 5", "it would be a 5 if": not the score that is given.
_UNREAL = re.compile(
    r"\b(?:perfect|prevent\w*|keep\w*|make|reach\w*|achiev\w*|from being|would be|would have made|not)\b[^.]{0,60}$",
    re.I,
)
_UNREAL_AFTER = re.compile(r"\s*(?:would|indicat|mean)", re.I)
# How tokenizers write a space and the end of a line: a character each.
_MARKS = str.maketrans("Ġ▁Ċ", "  \n")


class Read(NamedTuple):
    """The score that a text names, and where in it the number begins."""

    value: float
    place: int


class Token(NamedTuple):
    """A token of an answer, with the likeliest at its place and their log probabilities; its own is among them."""

    text: str
    likely: Sequence[tuple[str, float]]


def read_score(text: str) -> Read | None:
    """The score in [1, 5] that ``text`` names, None where it names none: ``10``, ``8/10`` and refusals are none.

    The last one counts, but not one that is only spoken of, nor the parts into which a score is broken down after it. A
    letter from A to E alone, of a multiple choice, stands for 1 to 5.
    """
    if letter := _LETTER.fullmatch(text):
        return Read("ABCDE".index(letter[1]) + 1, letter.start(1))
    above = re.split(r"\bbreakdown\b", text, maxsplit=1, flags=re.I)[0]
    return _read(above) or (_read(text) if above != text else None)


def _read(text: str) -> Read | None:
    for way in _WAYS:
        given: list[Read] = []
        unreal: list[Read] = []
        for found in way.finditer(text):
            # Of the alternatives of a way one was taken: its groups are the number and, perhaps, what it is out of.
            number, *of = (group for group in range(1, way.groups + 1) if found[group])
            value = float(_WORDS.get(found[number].lower(), 0) or found[number])
            if 1 <= value <= 5 and (not of or found[of[0]].lower() in ("5", "five")):
                spoken_of = _UNREAL.search(text[: found.start()]) or _UNREAL_AFTER.match(text, found.end())
                (unreal if spoken_of else given).append(Read(value, found.start(number)))
        if given or unreal:
            return (given or unreal)[-1]
    return None


def expected_score(tokens: Iterable[Token]) -> float | None:
    """The mean of 1 to 5, weighted by their probabilities where the answer's score stands (Liu et al. 2023, eq. 1).

    None where the answer names no score, or one that is not a token from 1 to 5.
    """
    tokens = list(tokens)
    found = read_score("".join(token.text.translate(_MARKS) for token in tokens))
    end = 0
    for token in tokens if found else ():
        end += len(token.text)
        if found and end > found.place:
            if _digit(token.text) != found.value:
                return None
            likely = [(_digit(text), math.exp(log)) for text, log in token.likely]
            shares = [(digit, share) for digit, share in likely if digit]
            # A service may say of an unlikely token only that it is: its probability is then 0.
            total = sum(share for _, share in shares)
            return sum(digit * share for digit, share in shares) / total if total else None
    return None


def _digit(token: str) -> int:
    """The number from 1 to 5 that a token is, else 0."""
    plain = token.translate(_MARKS).strip(" \t\n\"'*`")
    return int(plain) if plain in ("1", "2", "3", "4", "5") else 0

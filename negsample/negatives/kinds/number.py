"""Numbers that are wrong by arithmetic, in the format that they had."""

import re
from decimal import Decimal

import numpy as np

from negsample.negatives.context import Context, Damaged
from negsample.negatives.english import NUMBER_WORDS
from negsample.negatives.mentions import NUMBER
from negsample.negatives.rebuild import Edit, Sentence, edit_sentences, exchange, pick
from negsample.records import Pair

_IN_WORDS = {value: word for word, value in NUMBER_WORDS.items()}
_WORD = re.compile(
    rf"(?<![\w-])(?:{'|'.join(NUMBER_WORDS)})(?![\w'’]|-(?:one|{'|'.join(NUMBER_WORDS)})\b)", re.IGNORECASE
)
_PLAIN = re.compile(r"(\d{1,3}(?:,\d{3})+|[1-9]\d{0,14}|0)(\.\d{1,6})?")
_FACTORS = tuple(map(Decimal, ("0.5", "2", "10", "1.1", "0.9")))


def make(pair: Pair, context: Context, rng: np.random.Generator, most: int | None = None) -> Damaged:
    """A number of each of 1 … S sentences (at most ``most``) is halved, doubled, made tenfold, or moved by a tenth.

    In digits with or without groups and decimals, ordinals ("21st"), and words from two to ninety; years are moved by 1 … 10,
    hours of a time by 1 … 3. Label and exception: ``edit_sentences``.
    """

    def draw(sentence: Sentence) -> Edit | None:
        text = sentence.text
        found = [match for pattern in (NUMBER, _WORD) for match in pattern.finditer(text)]
        options = [(match, fresh) for match in found if (fresh := wrong(match.group()))]
        if not options:
            return None
        match, fresh = pick(options, rng)
        return exchange(text, *match.span(), pick(fresh, rng))

    return edit_sentences(pair, rng, most, draw, "no number in the summary")


def wrong(number: str) -> list[str]:
    """What ``number`` may become; empty where its format is not known, and for 0."""
    if number.lower() in NUMBER_WORDS:
        value = NUMBER_WORDS[number.lower()]
        near = (value / 2, value * 2, value * 10, value + 1, value - 1, value + 10, value - 10)
        return [_IN_WORDS[other] for other in near if other in _IN_WORDS]
    if number[:-2].isdecimal() and number[-2:].isalpha():
        day = int(number[:-2])
        return [_ordinal(other) for other in dict.fromkeys((day + 1, day - 1, day + 7, day * 2)) if 0 < other != day]
    if re.fullmatch(r"\d\d?:\d\d", number):
        hour, minute = number.split(":")
        size = 12 if int(hour) < 13 else 24
        return [f"{(int(hour) + step) % size or size}:{minute}" for step in (-3, -2, -1, 1, 2, 3)]
    match = _PLAIN.fullmatch(number)
    if match is None:
        return []
    value = Decimal(number.replace(",", ""))
    if len(number) == 4 and number.isdecimal() and 1000 <= value < 2100:
        return [str(int(value) + step) for step in range(-10, 11) if step]
    group = "," if "," in number else ""
    now = [f"{value * factor:{group}.{len(match.group(2) or '.') - 1}f}" for factor in _FACTORS]
    return [fresh for fresh in dict.fromkeys(now) if fresh != number and Decimal(fresh.replace(",", ""))]


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"

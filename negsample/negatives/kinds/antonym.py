"""Words exchanged for their contrary, or for what says more or less: direction, quantity, time, modality, cause."""

import re
from collections.abc import Iterable, Mapping
from functools import cache

import numpy as np

from negsample.negatives.context import Context, Damaged
from negsample.negatives.english import CONTRARIES, IDIOMS
from negsample.negatives.rebuild import Edit, Sentence, edit_sentences, exchange, pick
from negsample.records import Pair


def make(pair: Pair, context: Context, rng: np.random.Generator, most: int | None = None) -> Damaged:
    """A word of each of 1 … S sentences (at most ``most``) becomes its contrary (``english.CONTRARIES``).

    Label and exception: ``edit_sentences``.
    """

    def draw(sentence: Sentence) -> Edit | None:
        options = exchanges(sentence.text, CONTRARIES, IDIOMS)
        return pick(options, rng) if options else None

    return edit_sentences(pair, rng, most, draw, "no word with a contrary in the list")


def exchanges(text: str, table: Mapping[str, tuple[str, ...]], idioms: Iterable[str]) -> list[Edit]:
    """The edits of a sentence that exchange a phrase of ``table``, outside ``idioms``, for one that isn't in it yet.

    Words with a capital that don't begin the sentence are names and stay.
    """
    options = []
    for match in _pattern((*table, *idioms)).finditer(text):
        was, names = match.group(), text[: match.start()].strip("\"'“‘([ ")
        if was.islower() or (was[1:].islower() and not names):
            free = [fresh for fresh in table.get(was.lower(), ()) if not _within(fresh, text)]
            options += [exchange(text, *match.span(), fresh) for fresh in free]
    return options


@cache
def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    longest = sorted((re.escape(phrase) for phrase in phrases), key=len, reverse=True)
    return re.compile(rf"(?<![\w'’-])(?:{'|'.join(longest)})(?![\w-]|['’]\w)", re.IGNORECASE)


def _within(phrase: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(phrase)}\b", text, re.IGNORECASE) is not None

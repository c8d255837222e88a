"""Dialogues: what one of them said or did is told of another."""

import re

import numpy as np

from negsample.negatives.context import CannotDamage, Context, Damaged
from negsample.negatives.parse import speakers
from negsample.negatives.rebuild import Edit, Sentence, edit_sentences, pick
from negsample.records import Pair


def make(pair: Pair, context: Context, rng: np.random.Generator, most: int | None = None) -> Damaged:
    """In each of 1 … S sentences (at most ``most``) a speaker's name becomes that of another who isn't in the sentence.

    Wherever the name stands in it. Label and exception: ``edit_sentences``; CannotDamage for a document that is no dialogue, too.
    """
    names = speakers(pair.document)
    if not names:
        raise CannotDamage("the document is no dialogue")

    def draw(sentence: Sentence) -> Edit | None:
        there = [name for name in names if standing(name, sentence.text)]
        others = [name for name in names if name not in there]
        if not there or not others:
            return None
        was, fresh = pick(there, rng), pick(others, rng)
        return renamed(sentence.text, {was: fresh})

    return edit_sentences(pair, rng, most, draw, "no sentence with a speaker for whom another can stand")


def standing(name: str, text: str) -> list[re.Match[str]]:
    """Where ``name`` stands in ``text`` as a word."""
    return list(re.finditer(rf"(?<![\w#]){re.escape(name)}(?![\w#])", text))


def renamed(text: str, names: dict[str, str]) -> Edit:
    """The edit that puts another name for each that stands in ``text``; one of them must."""
    found = sorted((match for name in names for match in standing(name, text)), key=re.Match.start)
    start, stop = found[0].start(), found[-1].end()
    pattern = "|".join(rf"(?<![\w#]){re.escape(name)}(?![\w#])" for name in names)
    return Edit(start, stop, re.sub(pattern, lambda match: names[match.group()], text[start:stop]))

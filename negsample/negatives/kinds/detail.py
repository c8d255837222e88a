"""A detail added that the document does not have."""

import numpy as np

from negsample.negatives.context import Context, Damaged
from negsample.negatives.parse import Parsed, content, of_sentence, stems
from negsample.negatives.rebuild import Edit, Sentence, edit_sentences, pick
from negsample.records import Pair

_TRIES = 12
_HEADS = frozenset(
    "in on at with for from by after before during through without against near since until across despite".split()
)
# Phrases with words that begin so are true of anything.
_EMPTY = frozenset(
    "pape work stud meth appr resu orde gene part way addi arti case fact prac cont time term long fiel doma this that thes "
    "thos it them".split()
)


def make(pair: Pair, context: Context, rng: np.random.Generator, most: int | None = None) -> Damaged:
    """Each of 1 … S sentences (at most ``most``) gets a prepositional phrase from a summary of another document of the split.

    Of 2 … 5 words, none of which (function words aside) begins with four letters that one of document or summary begins with;
    after a noun that punctuation or the end follows. ``change`` has the other pair's id under ``"from"``. Label and exception:
    ``edit_sentences``; CannotDamage without the spaCy model or another document.
    """
    known = stems(pair.document) | stems(pair.summary)

    def draw(sentence: Sentence) -> Edit | None:
        places = _places(of_sentence(sentence.text))
        if not places:
            return None
        for _ in range(_TRIES):
            other = context.other_sentence(pair, rng)
            phrases = [phrase for phrase in _phrases(of_sentence(other.text)) if not content(phrase) & known]
            if phrases:
                at = pick(places, rng)
                return Edit(at, at, f" {pick(phrases, rng)}", {"from": other.id})
        return None

    return edit_sentences(pair, rng, most, draw, "no detail of another document can be added")


def _phrases(parsed: Parsed) -> list[str]:
    found = []
    for token in parsed.tokens:
        part = list(token.subtree)
        if (
            token.dep_ == "prep"
            and token.lower_ in _HEADS
            and token.is_lower
            and part[0] == token
            and 2 <= len(part) <= 5
        ):
            phrase = parsed.cut(token.i, part[-1].i + 1)
            noun = part[-1].pos_ in ("NOUN", "PROPN", "NUM")
            if noun and all(inner.is_alpha or inner.like_num for inner in part) and not stems(phrase) & _EMPTY:
                found.append(phrase)
    return found


def _places(parsed: Parsed) -> list[int]:
    """After which characters a phrase can stand: nouns before punctuation or the end."""
    tokens = parsed.tokens
    return [
        token.idx + len(token)
        for token in tokens
        if token.pos_ in ("NOUN", "PROPN")
        and (token.i + 1 == len(tokens) or tokens[token.i + 1].text in (".", ",", ";", "!", "?"))
    ]

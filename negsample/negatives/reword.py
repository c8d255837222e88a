"""Innocent changes of wording: what a sentence says stays true."""

import numpy as np

from negsample.negatives import mentions
from negsample.negatives.english import SYNONYMS
from negsample.negatives.kinds.antonym import exchanges
from negsample.negatives.parse import Parsed, of_sentence
from negsample.negatives.rebuild import Edit, draw_places, pick

# Sentences with these may become false by what is left out.
_BOUND = frozenset(
    "no not n't never none nothing nobody neither nor without only all every each any most few fewer less least first last "
    "if unless than cannot hardly rarely best worst".split()
)
_ADJUNCTS = frozenset("in at during after before since within throughout across on through".split())
# Adverbs without which more is said than with them, or something else.
_KEPT = frozenset(
    "hardly barely nearly only rarely scarcely allegedly reportedly possibly probably apparently partly supposedly seemingly "
    "potentially mostly mainly partially virtually practically usually generally typically likely largely early unlikely "
    "purportedly falsely wrongly supposedly occasionally sometimes almost poorly badly differently".split()
)


def reword(sentence: str, rng: np.random.Generator) -> str | None:
    """``sentence`` with 1 … 3 words exchanged for synonyms, or without an adverb or a phrase of time or place.

    What is left out needs the spaCy model; None where nothing can be changed.
    """
    ways = [_synonyms, _shorter] if rng.random() < 0.6 else [_shorter, _synonyms]
    return next((now for way in ways if (now := way(sentence, rng)) is not None), None)


def _synonyms(sentence: str, rng: np.random.Generator) -> str | None:
    options: dict[int, list[Edit]] = {}
    for edit in exchanges(sentence, SYNONYMS, ()):
        options.setdefault(edit.start, []).append(edit)
    if not options:
        return None
    places = list(options)
    chosen = {places[place] for place in draw_places(len(places), min(len(places), 3), rng)}
    # From the end, so that places still hold.
    for start in sorted(chosen, reverse=True):
        sentence = pick(options[start], rng).of(sentence)
    return sentence


def _shorter(sentence: str, rng: np.random.Generator) -> str | None:
    if not mentions.has_model():
        return None
    parsed = of_sentence(sentence)
    bound = {token.lower_ for token in parsed.tokens} & _BOUND or {token.tag_ for token in parsed.tokens} & {
        "JJS",
        "RBS",
    }
    options = [] if bound else _omissible(parsed)
    return pick(options, rng).of(sentence) if options else None


def _omissible(parsed: Parsed) -> list[Edit]:
    """An adverb in "-ly" of a verb, between words; a phrase after a verb's object, at the end of the sentence."""
    tokens, found = parsed.tokens, []
    for token in tokens[1:-1]:
        before, after = tokens[token.i - 1], tokens[token.i + 1]
        adverb = (
            token.tag_ == "RB" and token.dep_ == "advmod" and token.lower_.endswith("ly") and token.head.pos_ == "VERB"
        )
        if adverb and token.lower_ not in _KEPT and before.is_alpha and after.is_alpha and after.dep_ != "cc":
            found.append(Edit(token.idx, after.idx, ""))
        part = list(token.subtree)
        last = tokens[-1].is_punct and part[-1].i + 2 == len(tokens) and part[0] == token and len(part) <= 6
        with_object = any(child.dep_ == "dobj" and child.i < token.i for child in token.head.children)
        if token.dep_ == "prep" and token.lower_ in _ADJUNCTS and last and with_object:
            found.append(Edit(before.idx + len(before), tokens[-1].idx, ""))
    return found

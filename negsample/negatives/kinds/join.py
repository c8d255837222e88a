"""Two facts of the document joined wrongly: who or what one sentence is about, and what another says."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from negsample.negatives.context import Context, Damaged
from negsample.negatives.parse import Parsed, content, of_document, of_sentence
from negsample.negatives.rebuild import Edit, Sentence, edit_sentences, pick, without_end
from negsample.records import Pair

_MOST_WORDS = 25
_FIRST = ("i", "we")


class _Told(NamedTuple):
    """A sentence's main verb (its Penn tag, its first character), and the head of its subject (text, part of speech).

    The tag of "was" and "were" has that word, as these go with their subjects in the past, too.
    """

    tag: str
    start: int
    subject: str
    part: str


def make(pair: Pair, context: Context, rng: np.random.Generator, most: int | None = None) -> Damaged:
    """Each of 1 … S sentences (at most ``most``) goes on, from its main verb, as another sentence of the document does.

    From a main verb of the same Penn tag, whose subject isn't in the sentence and is no pronoun; with at most a quarter of
    the words that the sentence has. Label and exception: ``edit_sentences``; CannotDamage without the spaCy model.
    """
    others = _others(pair.document)

    def draw(sentence: Sentence) -> Edit | None:
        text, told = sentence.text, _told(of_sentence(sentence.text))
        stop = len(" ".join(without_end(sentence.words)))
        if (
            told is None
            or len(text[told.start : stop].split()) < 3
            or (told.part == "PRON" and told.subject not in _FIRST)
        ):
            return None
        known = content(text)
        options = [
            Edit(told.start, stop, rest)
            for other, rest in others
            if other.tag == told.tag
            and not content(other.subject) & known
            and 4 * len(content(rest) & known) <= len(content(rest))
        ]
        return pick(options, rng) if options else None

    return edit_sentences(pair, rng, most, draw, "no other sentence of the document that can follow the subject")


def _told(parsed: Parsed) -> _Told | None:
    """What ``parsed`` tells of whom; None where the main verb has no subject before it."""
    for verb in parsed.tokens:
        if verb.dep_ == "ROOT" and verb.pos_ in ("VERB", "AUX"):
            tag = verb.tag_ + verb.lower_ if verb.lower_ in ("was", "were") else verb.tag_
            for head in verb.lefts:
                if head.dep_ in ("nsubj", "nsubjpass"):
                    return _Told(tag, verb.idx, parsed.cut(head.i, head.i + 1).lower(), head.pos_)
    return None


@lru_cache(maxsize=4)
def _others(document: str) -> tuple[tuple[_Told, str], ...]:
    """Of the statements of ``document`` about somebody or something named: all from the main verb to the end."""
    found = []
    for parsed in of_document(document):
        told = _told(parsed)
        if told and told.part in ("NOUN", "PROPN") and "?" not in parsed.text:
            rest = without_end(parsed.text[told.start :].split())
            if 3 <= len(rest) <= _MOST_WORDS and not set(" ".join(rest)) & set('"“”()[]`'):
                found.append((told, " ".join(rest)))
    return tuple(found)

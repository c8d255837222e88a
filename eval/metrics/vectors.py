"""One vector for a whole text, by any encoder: what the cosine family and the corpus metrics compare."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from negsample.errors import InputError
from negsample.sentences import split_sentences
from negsample.sentences import words as split_words
from negsample.text import readable

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

logger = logging.getLogger(__name__)

Pool = Literal["mean", "max", "whole"]
NO_VECTOR = "has no vector"
_TEXTS_AT_A_TIME = 1000


def pooled_encoder(spec: str, pool: str) -> "Encoder":
    """Make the encoder of ``spec``; InputError where it can't be had, or can't give vectors of texts by ``pool``."""
    from negsample.models.encoders import make_encoder

    encoder = make_encoder(spec)
    check_pool(encoder, pool)
    return encoder


def weights_of(*encoders: "Encoder") -> str:
    """Return the part of a signature that tells the encoders' weights."""
    return "|weights:" + "+".join(encoder.fingerprint[:12] for encoder in encoders)


def check_pool(encoder: "Encoder", pool: str) -> None:
    """Raise InputError where ``pool=whole`` is asked of an encoder of single words."""
    if pool == "whole" and encoder.unit == "word":
        raise InputError(
            f"pool=whole needs an encoder of texts, and {encoder.name} reads single words; "
            f"write encoder={encoder.name}(unit=sentence), or pool=mean"
        )


def encode_distinct(encoder: "Encoder", texts: Sequence[str]) -> np.ndarray:
    """Encode texts, float32 [n, dim]; those of slow encoders come from the embedding cache, which runs share.

    Texts that the encoder had to cut are counted in a warning.
    """
    from negsample.models.embedding_cache import EmbeddingCache
    from negsample.models.encoders.words import WordEncoder

    if not texts:
        return np.zeros((0, encoder.dim), dtype=np.float32)
    before = encoder.counts["truncated"]
    # Word vectors are looked up faster than read back.
    quick = encoder.unit == "word" or isinstance(encoder, WordEncoder)
    rows = np.asarray(encoder.encode(texts)) if quick else EmbeddingCache(encoder).rows(texts)
    cut = encoder.counts["truncated"] - before
    if cut:
        logger.warning("%s: %d of %d texts are longer than it reads and lost their end", encoder.name, cut, len(texts))
    return rows


def text_vectors(texts: Sequence[str], encoder: "Encoder", pool: str = "mean") -> dict[str, np.ndarray | None]:
    """Return the vector of each distinct text, float64 [dim], not scaled; None where there is none.

    ``pool``: ``mean`` or ``max`` (in each dimension) over the vectors of its sentences, or of its words for an encoder
    with ``unit="word"``; ``whole``: the text handed to the encoder as one. Zero rows (nothing known) are left out.
    """
    check_pool(encoder, pool)
    distinct = list(dict.fromkeys(texts))
    vectors: dict[str, np.ndarray | None] = {}
    for start in range(0, len(distinct), _TEXTS_AT_A_TIME):
        units = {text: _units(text, encoder, pool) for text in distinct[start : start + _TEXTS_AT_A_TIME]}
        wanted = sorted({unit for found in units.values() for unit in found})
        rows = encode_distinct(encoder, wanted)
        row_of = {wanted[row]: row for row in np.flatnonzero(rows.any(axis=1))}
        for text, found in units.items():
            own = rows[[row_of[unit] for unit in found if unit in row_of]].astype(np.float64)
            pooled = None if not len(own) else own.max(axis=0) if pool == "max" else own.mean(axis=0)
            vectors[text] = pooled if pooled is not None and pooled.any() else None
    return vectors


def _units(text: str, encoder: "Encoder", pool: str) -> list[str]:
    text = readable(text)
    if pool == "whole":
        return [text] if text.strip() else []
    if encoder.unit == "word":
        # Punctuation is no word, though GloVe has vectors for it.
        return [word for word in split_words(text) if any(letter.isalnum() for letter in word)]
    return split_sentences(text)


def unit_vectors(texts: Sequence[str], encoder: "Encoder", pool: str = "mean") -> dict[str, np.ndarray | None]:
    """Return ``text_vectors`` scaled to length 1."""
    return {
        text: None if vector is None else vector / np.linalg.norm(vector)
        for text, vector in text_vectors(texts, encoder, pool).items()
    }

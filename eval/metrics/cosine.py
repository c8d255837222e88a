"""Cosine and angle of the vectors of two texts (Sun & Nenkova 2019; Moeed et al. 2020).

Sun & Nenkova's measures: ``enc-2``, ``enc-3``: ``cosine(encoder=use,pool=whole)``, ``use-large``; InferSent likewise;
``avg``, ``max``: ``cosine(encoder=word2vec(path=PATH,pool=mean),pool=whole)`` with that encoder's ``pool=mean`` or
``pool=max``; ELMo's ``-a`` and ``-m``: ``hf(pool=mean)``, ``hf(pool=max)``; ``enc-avg``: the metric of that name, or
``encoder=A+B+C``.
"""

import logging
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.base import Against, Score, compare_with_targets, metric, number, targets_of
from negsample.registry import split_outside, unquote
from negsample.scoring.scorer import Columns, Item, collect
from negsample.sentences import split_sentences
from negsample.sentences import words as split_words
from negsample.text import readable

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

logger = logging.getLogger(__name__)

Pool = Literal["mean", "max", "whole"]
NO_VECTOR = "has no vector"
_TEXTS_AT_A_TIME = 1000
Alike = Callable[[np.ndarray, np.ndarray], float]
# The packaged encoders in the place of the paper's seven: two of sentences, word and token vectors by mean and by max.
OFFLINE = (
    "use-multilingual+sentence-transformer+glove(unit=sentence,pool=mean)+glove(unit=sentence,pool=max)"
    "+hf(pool=mean)+hf(pool=max)"
)


@metric("cosine")
def cosine(
    *,
    encoder: str = "sentence-transformer",
    against: Against = "document",
    pool: Pool = "mean",
    first: int = 0,
) -> tuple[Score, str]:
    """``cosine``: cosine of the vectors of the summary and of the document or reference, in [−1, 1], higher is better.

    ``encoder``: any specification that ``make_encoder`` knows; several joined by ``+`` (one with commas or a ``+`` of
    its own in parentheses) give the mean of their cosines (their enc-avg). ``pool``: ``mean`` (default) or ``max`` over
    the vectors of a text's sentences (of its words for a word encoder), or ``whole``, the text encoded as one, as they
    do. ``first``: read only the document's first tokens (white-space separated; they try 400 and 750), 0 for all.
    ``against``: ``document`` (default: a reference-free baseline), ``references``, or ``auto``, references
    where the record has any, the best of several (reading: they have one).
    Missing where a text has no vector by one of the encoders.
    """
    return _by_vectors(encoder, cosine_similarity, first, against=against, pool=pool)


@metric("enc-avg")
def enc_avg(*, encoder: str = OFFLINE, against: Against = "document", first: int = 0) -> tuple[Score, str]:
    """``enc-avg``: the mean of the cosines by several encoders of whole texts, in [−1, 1], higher is better.

    Sun & Nenkova 2019, §2. Options as for ``cosine``. The default encoders are the packaged ones; theirs are USE
    (both), word2vec and ELMo by mean and by max, InferSent. A text longer than an encoder reads loses its end, with a
    warning.
    """
    return _by_vectors(encoder, cosine_similarity, first, against=against, pool="whole")


def _by_vectors(encoder: str, alike: Alike, first: int = 0, **options: str) -> tuple[Score, str]:
    number("first", first, 0, 10**9)
    encoders = [pooled_encoder(spec, options["pool"]) for spec in split_encoders(encoder)]
    return lambda items: score_vectors(items, encoders, alike, first=first, **options), weights_of(*encoders)


@metric("aes")
def aes(
    *,
    encoder: str = "use-multilingual",
    against: Against = "auto",
    pool: Pool = "whole",
) -> tuple[Score, str]:
    """``aes``: angular similarity of a summary and its reference or document, in [0, 1], higher is better.

    Moeed et al. 2020, eq. 1–2; a corpus's AES is the mean over its pairs. ``encoder``: Moeed et al. have USE version 2
    (DAN), whole texts; the default is the packaged multilingual USE, which reads texts of any length. ``pool``: ``whole``
    (theirs), or ``mean`` or ``max`` over sentence vectors. ``against``: ``references``, ``document``, or ``auto``,
    references where the record has any, the best of several (reading: they have one). Missing
    where a text has no vector.
    """
    return _by_vectors(encoder, angular_similarity, against=against, pool=pool)


def split_encoders(text: str) -> list[str]:
    """Split ``A+B+C(option=value,option=value)`` into its specifications, their parentheses taken off.

    Raises InputError for an empty one or a parenthesis without its partner.
    """
    pieces = split_outside(text, "+")
    if pieces is None or not all(pieces):
        raise InputError(f"encoder={text}: write one specification, or several as A+B+C(option=value,…)")
    return [unquote(piece) for piece in pieces]


def score_vectors(
    items: Sequence[Item],
    encoders: Sequence["Encoder"],
    alike: Alike,
    *,
    against: str = "document",
    pool: str = "mean",
    first: int = 0,
) -> Columns:
    """Compute the mean over ``encoders``, made already, of how ``alike`` two texts' vectors are; options as of `cosine`."""
    if first:
        items = [Item(first_tokens(item.document, first), item.summary, item.references) for item in items]
    texts = sorted({text for item in items for text in (item.summary, *targets_of(item, against))})
    tables = [
        {text: None if own is None else own / np.linalg.norm(own) for text, own in text_vectors(texts, e, pool).items()}
        for e in encoders
    ]

    def problem(text: str) -> str | None:
        for encoder, table in zip(encoders, tables, strict=True):
            if table[text] is None:
                return NO_VECTOR if len(encoders) == 1 else f"{NO_VECTOR} by {encoder.name}"
        return None

    def similarity(summary: str, target: str) -> float:
        return sum(alike(*(table[text] for text in (summary, target))) for table in tables) / len(tables)  # type: ignore[arg-type, misc]

    return collect(compare_with_targets(item, against, problem, similarity) for item in items)


def cosine_similarity(u: np.ndarray, v: np.ndarray) -> float:
    """u·v of unit vectors [d], in [−1, 1]."""
    return min(1.0, max(-1.0, float(u @ v)))


def angular_similarity(u: np.ndarray, v: np.ndarray) -> float:
    """1 − arccos(cos(u, v))/π, in [0, 1]; ``u`` and ``v`` [d], not zero (Cer et al. 2018).

    The angle is 2 atan2(‖û − v̂‖, ‖û + v̂‖) of the unit vectors: the same angle without arccos's loss of half the digits
    near ±1, so equal vectors give exactly 1.
    """
    u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
    return float(1 - 2 * np.arctan2(np.linalg.norm(u - v), np.linalg.norm(u + v)) / np.pi)


def first_tokens(text: str, count: int) -> str:
    """Return ``text`` up to the end of its ``count``-th white-space-separated token, line breaks kept."""
    for place, match in enumerate(re.finditer(r"\S+", text), start=1):
        if place == count:
            return text[: match.end()]
    return text


# --- one vector for a whole text


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

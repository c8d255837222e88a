"""Cosine and angle of the vectors of two texts (Sun & Nenkova 2019; Moeed et al. 2020).

Sun & Nenkova's measures: ``enc-2``, ``enc-3``: ``cosine(encoder=use,pool=whole)``, ``use-large``; InferSent likewise;
``avg``, ``max``: ``cosine(encoder=word2vec(path=PATH,pool=mean),pool=whole)`` with that encoder's ``pool=mean`` or
``pool=max``; ELMo's ``-a`` and ``-m``: ``hf(pool=mean)``, ``hf(pool=max)``; ``enc-avg``: the metric of that name, or
``encoder=A+B+C``.
"""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.base import Against, Score, Several, compare_with_targets, metric, number, targets_of
from negsample.eval.metrics.vectors import NO_VECTOR, Pool, pooled_encoder, unit_vectors, weights_of
from negsample.registry import split_outside, unquote
from negsample.scoring.scorer import Columns, Item, collect

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

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
    references: Several = "max",
    pool: Pool = "mean",
    first: int = 0,
) -> tuple[Score, str]:
    """``cosine``: cosine of the vectors of the summary and of the document or reference, in [−1, 1], higher is better.

    ``encoder``: any specification that ``make_encoder`` knows; several joined by ``+`` (one with commas or a ``+`` of
    its own in parentheses) give the mean of their cosines (their enc-avg). ``pool``: ``mean`` (default) or ``max`` over
    the vectors of a text's sentences (of its words for a word encoder), or ``whole``, the text encoded as one, as they
    do. ``first``: read only the document's first tokens (white-space separated; they try 400 and 750), 0 for all.
    ``against``: ``document`` (default: a reference-free baseline), ``references``, or ``auto``, references
    where the record has any. ``references``: ``max`` or ``mean`` over several (reading: they have one).
    Missing where a text has no vector by one of the encoders.
    """
    return _by_vectors(encoder, cosine_similarity, first, against=against, references=references, pool=pool)


@metric("enc-avg")
def enc_avg(
    *, encoder: str = OFFLINE, against: Against = "document", references: Several = "max", first: int = 0
) -> tuple[Score, str]:
    """``enc-avg``: the mean of the cosines by several encoders of whole texts, in [−1, 1], higher is better.

    Sun & Nenkova 2019, §2. Options as for ``cosine``. The default encoders are the packaged ones; theirs are USE
    (both), word2vec and ELMo by mean and by max, InferSent. A text longer than an encoder reads loses its end, with a
    warning.
    """
    return _by_vectors(encoder, cosine_similarity, first, against=against, references=references, pool="whole")


def _by_vectors(encoder: str, alike: Alike, first: int = 0, **options: str) -> tuple[Score, str]:
    number("first", first, 0, 10**9)
    encoders = [pooled_encoder(spec, options["pool"]) for spec in split_encoders(encoder)]
    return lambda items: score_vectors(items, encoders, alike, first=first, **options), weights_of(*encoders)


@metric("aes")
def aes(
    *,
    encoder: str = "use-multilingual",
    against: Against = "auto",
    references: Several = "max",
    pool: Pool = "whole",
) -> tuple[Score, str]:
    """``aes``: angular similarity of a summary and its reference or document, in [0, 1], higher is better.

    Moeed et al. 2020, eq. 1–2; a corpus's AES is the mean over its pairs. ``encoder``: Moeed et al. have USE version 2
    (DAN), whole texts; the default is the packaged multilingual USE, which reads texts of any length. ``pool``: ``whole``
    (theirs), or ``mean`` or ``max`` over sentence vectors. ``against``: ``references``, ``document``, or ``auto``,
    references where the record has any. ``references``: ``max`` or ``mean`` over several (reading: they have one). Missing
    where a text has no vector.
    """
    return _by_vectors(encoder, angular_similarity, against=against, references=references, pool=pool)


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
    references: str = "max",
    pool: str = "mean",
    first: int = 0,
) -> Columns:
    """Compute the mean over ``encoders``, made already, of how ``alike`` two texts' vectors are; options as of `cosine`."""
    if first:
        items = [Item(first_tokens(item.document, first), item.summary, item.references) for item in items]
    texts = sorted({text for item in items for text in (item.summary, *targets_of(item, against))})
    tables = [unit_vectors(texts, encoder, pool) for encoder in encoders]

    def problem(text: str) -> str | None:
        for encoder, table in zip(encoders, tables, strict=True):
            if table[text] is None:
                return NO_VECTOR if len(encoders) == 1 else f"{NO_VECTOR} by {encoder.name}"
        return None

    def similarity(summary: str, target: str) -> float:
        return sum(alike(*(table[text] for text in (summary, target))) for table in tables) / len(tables)  # type: ignore[arg-type, misc]

    return collect(compare_with_targets(item, against, references, problem, similarity) for item in items)


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

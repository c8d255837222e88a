"""Cosine and angle of the vectors of two texts (Sun & Nenkova 2019; Moeed et al. 2020).

Sun & Nenkova's measures: ``enc-2``, ``enc-3``: ``cosine(encoder=use,pool=whole)``, ``use-large``; InferSent likewise;
``avg``, ``max``: ``cosine(encoder=word2vec(path=PATH,pool=mean),pool=whole)`` with that encoder's ``pool=mean`` or
``pool=max``; ELMo's ``-a`` and ``-m``: ``hf(pool=mean)``, ``hf(pool=max)``; ``enc-avg``: the metric of that name, or
``encoder=A+B+C``.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.base import Against, Score, Several, compare_with_targets, metric, number, targets_of
from negsample.eval.metrics.vectors import NO_VECTOR, Pool, pooled_encoder, unit_vectors, weights_of
from negsample.scoring.scorer import Columns, Item, collect
from negsample.spec import split_outside, unquote

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

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
    return _by_cosine(encoder, against=against, references=references, pool=pool, first=first)


@metric("enc-avg")
def enc_avg(
    *, encoder: str = OFFLINE, against: Against = "document", references: Several = "max", first: int = 0
) -> tuple[Score, str]:
    """``enc-avg``: the mean of the cosines by several encoders of whole texts, in [−1, 1], higher is better.

    Sun & Nenkova 2019, §2. Options as for ``cosine``. The default encoders are the packaged ones; theirs are USE
    (both), word2vec and ELMo by mean and by max, InferSent. A text longer than an encoder reads loses its end, with a
    warning.
    """
    return _by_cosine(encoder, against=against, references=references, pool="whole", first=first)


def _by_cosine(encoder: str, *, against: str, references: str, pool: str, first: int) -> tuple[Score, str]:
    number("first", first, 0, 10**9)
    encoders = [pooled_encoder(spec, pool) for spec in split_encoders(encoder)]
    options: dict[str, Any] = {
        "encoders": encoders,
        "against": against,
        "references": references,
        "pool": pool,
        "first": first,
    }
    return lambda items: score_cosine(items, **options), weights_of(*encoders)


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
    made = pooled_encoder(encoder, pool)
    return lambda items: score_aes(items, encoder=made, against=against, references=references, pool=pool), weights_of(
        made
    )


def split_encoders(text: str) -> list[str]:
    """Split ``A+B+C(option=value,option=value)`` into its specifications, their parentheses taken off.

    Raises InputError for an empty one or a parenthesis without its partner.
    """
    pieces = split_outside(text, "+")
    if pieces is None or not all(pieces):
        raise InputError(f"encoder={text}: write one specification, or several as A+B+C(option=value,…)")
    return [unquote(piece) for piece in pieces]


def score_cosine(
    items: Sequence[Item],
    *,
    encoders: Sequence["Encoder"],
    against: str = "document",
    references: str = "max",
    pool: str = "mean",
    first: int = 0,
) -> Columns:
    """Compute ``cosine`` with encoders that are made already."""
    if first:
        items = [Item(first_tokens(item.document, first), item.summary, item.references) for item in items]
    texts = _texts(items, against)
    tables = [unit_vectors(texts, encoder, pool) for encoder in encoders]

    def problem(text: str) -> str | None:
        for encoder, table in zip(encoders, tables, strict=True):
            if table[text] is None:
                return NO_VECTOR if len(encoders) == 1 else f"{NO_VECTOR} by {encoder.name}"
        return None

    def similarity(summary: str, target: str) -> float:
        values = [float(table[summary] @ table[target]) for table in tables]  # type: ignore[operator]
        return sum(min(1.0, max(-1.0, value)) for value in values) / len(values)

    return collect(compare_with_targets(item, against, references, problem, similarity) for item in items)


def score_aes(
    items: Sequence[Item], *, encoder: "Encoder", against: str = "auto", references: str = "max", pool: str = "whole"
) -> Columns:
    """Compute ``aes`` with an encoder that is made already."""
    table = unit_vectors(_texts(items, against), encoder, pool)

    def problem(text: str) -> str | None:
        return NO_VECTOR if table[text] is None else None

    def similarity(summary: str, target: str) -> float:
        return angular_similarity(table[summary], table[target])  # type: ignore[arg-type]

    return collect(compare_with_targets(item, against, references, problem, similarity) for item in items)


def angular_similarity(u: np.ndarray, v: np.ndarray) -> float:
    """1 − arccos(cos(u, v))/π, in [0, 1]; ``u`` and ``v`` [d], not zero (Cer et al. 2018).

    The angle is 2 atan2(‖û − v̂‖, ‖û + v̂‖) of the unit vectors: the same angle without arccos's loss of half the digits
    near ±1, so equal vectors give exactly 1.
    """
    u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
    return float(1 - 2 * np.arctan2(np.linalg.norm(u - v), np.linalg.norm(u + v)) / np.pi)


def _texts(items: Sequence[Item], against: str) -> list[str]:
    return sorted({text for item in items for text in (item.summary, *targets_of(item, against))})


def first_tokens(text: str, count: int) -> str:
    """Return ``text`` up to the end of its ``count``-th white-space-separated token, line breaks kept."""
    for place, match in enumerate(re.finditer(r"\S+", text), start=1):
        if place == count:
            return text[: match.end()]
    return text

"""Angular embedding similarity (Moeed et al., 2020: P4 eq. 1–2; the similarity is Cer et al.'s, 2018)."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from negsample.eval.metrics.base import Item, Metric, Scores, choice, collect, describe
from negsample.eval.metrics.comparison import AGAINST, SEVERAL, compare, needs_of, targets_of
from negsample.eval.metrics.vectors import NO_VECTOR, POOLS, check_pool, unit_vectors

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder


def angular_similarity(u: np.ndarray, v: np.ndarray) -> float:
    """1 − arccos(cos(u, v))/π, in [0, 1]; ``u`` and ``v`` [d], not zero.

    The angle is 2 atan2(‖û − v̂‖, ‖û + v̂‖) of the unit vectors: the same angle without arccos's loss of half the digits
    near ±1, so equal vectors give exactly 1.
    """
    u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
    return float(1 - 2 * np.arctan2(np.linalg.norm(u - v), np.linalg.norm(u + v)) / np.pi)


def aes(
    *, encoder: str = "use-multilingual", against: str = "auto", references: str = "max", pool: str = "whole"
) -> Metric:
    """``aes``: angular similarity of a summary and its reference or document, in [0, 1], higher is better.

    A corpus's AES is the mean over its pairs. ``encoder``: P4 has USE version 2 (DAN), whole texts; the default is the
    packaged multilingual USE, which reads texts of any length. ``pool``: ``whole`` (P4), or ``mean`` or ``max`` over
    sentence vectors. ``against``: ``references``, ``document``, or ``auto``, references where the record has any.
    ``references``: ``max`` or ``mean`` over several (reading: P4 has one). Missing where a text has no vector.
    """
    choice("against", against, AGAINST)
    choice("references", references, SEVERAL)
    choice("pool", pool, POOLS)
    from negsample.models.encoders import make_encoder

    made = make_encoder(encoder)
    check_pool(made, pool)
    name, signature = describe(
        "aes",
        {
            "encoder": (encoder, "use-multilingual"),
            "against": (against, "auto"),
            "references": (references, "max"),
            "pool": (pool, "whole"),
        },
    )
    score = partial(score_aes, encoder=made, against=against, references=references, pool=pool)
    return Metric(name, f"{signature}|weights:{made.fingerprint[:12]}", True, needs_of(against), score)


def score_aes(
    items: Sequence[Item], *, encoder: "Encoder", against: str = "auto", references: str = "max", pool: str = "whole"
) -> Scores:
    """What the metric ``aes`` computes, with an encoder that is made already."""
    texts = sorted({text for item in items for text in (item.summary, *targets_of(item, against))})
    vector_of = unit_vectors(texts, encoder, pool)

    def problem(text: str) -> str | None:
        return NO_VECTOR if vector_of[text] is None else None

    def similarity(summary: str, target: str) -> float:
        u, v = vector_of[summary], vector_of[target]
        assert u is not None
        assert v is not None
        return angular_similarity(u, v)

    return collect(compare(item, against, references, problem, similarity) for item in items)

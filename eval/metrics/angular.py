"""Angular embedding similarity (Moeed et al. 2020, eq. 1–2; the similarity is that of Cer et al. 2018)."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from negsample.eval.metrics.base import pair_metric
from negsample.eval.metrics.targets import compare_with_targets, needs_of, target_options, targets_of
from negsample.eval.metrics.vectors import NO_VECTOR, pooled_encoder, unit_vectors, weights_of
from negsample.scoring.scorer import Columns, Item, Scorer, collect

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
) -> Scorer:
    """``aes``: angular similarity of a summary and its reference or document, in [0, 1], higher is better.

    A corpus's AES is the mean over its pairs. ``encoder``: Moeed et al. have USE version 2 (DAN), whole texts; the
    default is the packaged multilingual USE, which reads texts of any length. ``pool``: ``whole`` (theirs), or ``mean``
    or ``max`` over sentence vectors. ``against``: ``references``, ``document``, or ``auto``, references where the
    record has any. ``references``: ``max`` or ``mean`` over several (reading: they have one). Missing where a text has
    no vector.
    """
    options = {"encoder": encoder, **target_options(against, references), "pool": pool}
    made = pooled_encoder(encoder, pool)
    score = partial(score_aes, encoder=made, against=against, references=references, pool=pool)
    return pair_metric("aes", aes, options, needs_of(against), score, more=weights_of(made))


def score_aes(
    items: Sequence[Item], *, encoder: "Encoder", against: str = "auto", references: str = "max", pool: str = "whole"
) -> Columns:
    """Compute ``aes`` with an encoder that is made already."""
    texts = sorted({text for item in items for text in (item.summary, *targets_of(item, against))})
    vector_of = unit_vectors(texts, encoder, pool)

    def problem(text: str) -> str | None:
        return NO_VECTOR if vector_of[text] is None else None

    def similarity(summary: str, target: str) -> float:
        u, v = vector_of[summary], vector_of[target]
        assert u is not None
        assert v is not None
        return angular_similarity(u, v)

    return collect(compare_with_targets(item, against, references, problem, similarity) for item in items)

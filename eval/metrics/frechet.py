"""Fréchet distance of two sets of texts (Moeed et al. 2020, eq. 3; Heusel et al. 2017; d'Autume et al. 2019)."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.base import describe
from negsample.eval.metrics.corpus import CorpusMetric, CorpusScore
from negsample.eval.metrics.vectors import NO_VECTOR, pooled_encoder, text_vectors, weights_of
from negsample.spec import defaults_of

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder


def frechet_distance(x: np.ndarray, y: np.ndarray) -> float:
    """Compute ‖μx − μy‖² + Tr(Σx + Σy − 2 (Σx Σy)^½) of the rows of ``x`` [n, d] and ``y`` [m, d]; real, ≥ 0, lower is nearer.

    Σ is the unbiased covariance; n, m ≥ 2. With centred rows X and Y, Tr((Σx Σy)^½) is the sum of the singular values
    of X Yᵀ over √((n − 1)(m − 1)): the non-zero eigenvalues of ΣxΣy are those of (X Yᵀ)(X Yᵀ)ᵀ over (n − 1)(m − 1). So
    no square root of a matrix is taken, nothing turns complex, and few texts in many dimensions need an n × m matrix
    only. A side with more texts than dimensions is first replaced by the triangle R of its QR decomposition, for
    RᵀR = XᵀX leaves the singular values as they are.

    Raises InputError for values that are not finite.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("a vector has values that are not finite; check the encoder's weights")
    means = x.mean(axis=0) - y.mean(axis=0)
    root_x, root_y = _root(x), _root(y)
    common = np.linalg.svd(root_x @ root_y.T, compute_uv=False).sum()
    distance = means @ means + np.square(root_x).sum() + np.square(root_y).sum() - 2 * common
    # Exactly, the distance is never negative; what is below zero is rounding.
    return max(0.0, float(distance))


def _root(rows: np.ndarray) -> np.ndarray:
    """A matrix A [k, d], k = min(n, d), with AᵀA the covariance of ``rows`` [n, d]."""
    centred = (rows - rows.mean(axis=0)) / np.sqrt(len(rows) - 1)
    return np.asarray(np.linalg.qr(centred, mode="r")) if len(rows) > rows.shape[1] else centred


def fed(*, encoder: str = "use-multilingual", pool: str = "whole") -> CorpusMetric:
    """``fed``: Fréchet distance of the vectors of generated and of reference texts, ≥ 0, lower is better.

    ``encoder``: Moeed et al. have USE version 2 (DAN), whole texts; the default is the packaged multilingual USE, which
    reads texts of any length. ``pool``: ``whole``, or ``mean`` or ``max`` over sentence vectors. At least two texts a
    side; texts without a vector are left out and counted. The figure depends on the length of the texts (their §2.2.2)
    and, a covariance of few texts being a poor one, on their number: compare corpora of like size.
    """
    made = pooled_encoder(encoder, pool)
    name, signature = describe("fed", {"encoder": encoder, "pool": pool}, defaults_of(fed))
    score = partial(score_fed, encoder=made, pool=pool)
    return CorpusMetric(name, signature + weights_of(made), False, score)


def score_fed(
    generated: Sequence[str], reference: Sequence[str], *, encoder: "Encoder", pool: str = "whole"
) -> CorpusScore:
    """Compute ``fed`` with an encoder that is made already.

    Raises InputError where a side has fewer than two texts with a vector.
    """
    vector_of = text_vectors([*generated, *reference], encoder, pool)
    sides, missing = [], {}
    for name, texts in (("generated", generated), ("reference", reference)):
        rows = [vector for text in texts if (vector := vector_of[text]) is not None]
        if len(rows) < len(texts):
            missing[f"a {name} text {NO_VECTOR}"] = len(texts) - len(rows)
        if len(rows) < 2:
            raise InputError(f"fed needs at least two {name} texts with a vector, got {len(rows)} of {len(texts)}")
        sides.append(np.array(rows))
    return CorpusScore(frechet_distance(*sides), len(sides[0]), len(sides[1]), missing)

"""Metrics of one set of texts against another, by the same specifications as pair metrics: the Fréchet distance.

Moeed et al. 2020, eq. 3; Heusel et al. 2017; d'Autume et al. 2019.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.base import choice, signature_of
from negsample.eval.metrics.cosine import NO_VECTOR, Pool, pooled_encoder, text_vectors, weights_of
from negsample.registry import Registry, build, defaults_of, parse, write
from negsample.scoring.scorer import METRICS

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

CORPUS_METRICS = Registry("corpus metric", {"fed": "negsample.eval.metrics.corpus:fed"}, plural="corpus_metrics")


@dataclass(frozen=True)
class CorpusMetric:
    """``name`` and ``signature`` as in ``Scorer``; ``score`` takes generated and reference texts, in any order, and tells its
    ``value``, how many ``generated`` and ``reference`` texts it stands on, and those ``missing`` (reason → how many).
    """

    name: str
    signature: str
    higher_is_better: bool
    score: Callable[[Sequence[str], Sequence[str]], dict[str, Any]] = field(repr=False)


def make_corpus_metric(spec: str) -> CorpusMetric:
    """Make the corpus metric that ``spec`` names, e.g. ``"fed"`` or ``"fed(encoder=sentence-transformer,pool=mean)"``.

    Raises InputError for an unknown name, option or value.
    """
    name = parse(spec, "corpus metric").name
    if name not in CORPUS_METRICS and name in METRICS:
        raise InputError(
            f"{name} scores pairs, not corpora; use negsample score --metric {name} (known here: "
            f"{', '.join(CORPUS_METRICS.names())})"
        )
    return build(CORPUS_METRICS, spec, CorpusMetric)


def corpus_metric(spec: str, generated: Sequence[str], reference: Sequence[str]) -> dict[str, Any]:
    """Compute the metric ``spec`` of ``generated`` texts against ``reference`` texts, ready to be written as JSON: ``metric``,
    what its ``score`` tells, ``higher_is_better``, ``signature``. Raises InputError for a bad ``spec`` and for too few texts.
    """
    made = make_corpus_metric(spec)
    told = made.score(generated, reference)
    return {"metric": made.name, **told, "higher_is_better": made.higher_is_better, "signature": made.signature}


# --- the Fréchet distance

# 1 / condition of a covariance above which Cholesky, which costs a fifth of QR, gives the same distance to 1e-11.
_WELL_CONDITIONED = 1e-6


def frechet_distance(x: np.ndarray, y: np.ndarray) -> float:
    """Compute ‖μx − μy‖² + Tr(Σx + Σy − 2 (Σx Σy)^½) of the rows of ``x`` [n, d] and ``y`` [m, d]; real, ≥ 0, lower is nearer.

    Σ is the unbiased covariance; n, m ≥ 2. With centred rows X and Y, Tr((Σx Σy)^½) is the sum of the singular values
    of X Yᵀ over √((n − 1)(m − 1)): the non-zero eigenvalues of ΣxΣy are those of (X Yᵀ)(X Yᵀ)ᵀ over (n − 1)(m − 1). So
    no square root of a matrix is taken, nothing turns complex, and few texts in many dimensions need an n × m matrix
    only. A side with more texts than dimensions is first replaced by a triangle R with RᵀR = XᵀX, which leaves the
    singular values as they are: by Cholesky where XᵀX is well conditioned, else by the QR decomposition of X.

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
    from scipy.linalg import lapack

    centred = (rows - rows.mean(axis=0)) / np.sqrt(len(rows) - 1)
    if len(rows) <= rows.shape[1]:
        return centred
    covariance = centred.T @ centred
    root, failed = lapack.dpotrf(covariance)
    if not failed and lapack.dpocon(root, np.linalg.norm(covariance, 1))[0] > _WELL_CONDITIONED:
        return np.asarray(root)
    return np.asarray(np.linalg.qr(centred, mode="r"))


def fed(*, encoder: str = "use-multilingual", pool: Pool = "whole") -> CorpusMetric:
    """``fed``: Fréchet distance of the vectors of generated and of reference texts, ≥ 0, lower is better.

    ``encoder``: Moeed et al. have USE version 2 (DAN), whole texts; the default is the packaged multilingual USE, which
    reads texts of any length. ``pool``: ``whole``, or ``mean`` or ``max`` over sentence vectors. At least two texts a
    side; texts without a vector are left out and counted. The figure depends on the length of the texts (their §2.2.2)
    and, a covariance of few texts being a poor one, on their number: compare corpora of like size.
    """
    made = pooled_encoder(encoder, choice("pool", pool, get_args(Pool)))
    options = {"encoder": encoder, "pool": pool}
    signature, score = (
        signature_of("fed", options) + weights_of(made),
        functools.partial(score_fed, encoder=made, pool=pool),
    )
    return CorpusMetric(write("fed", options, defaults_of(fed)), signature, False, score)


def score_fed(
    generated: Sequence[str], reference: Sequence[str], *, encoder: "Encoder", pool: str = "whole"
) -> dict[str, Any]:
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
    counts = {"generated": len(sides[0]), "reference": len(sides[1])}
    return {"value": frechet_distance(*sides), **counts, "missing": missing}

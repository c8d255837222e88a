"""Weights ≥ 0 of inputs that order summaries as people do, held towards one that needs no fit.

Where documents have several judged summaries, what is fitted are people's ranks within each document: the squared loss
over all pairs of summaries of a document, Σ ((t_i − t_j) − (f_i − f_j))², is n times the squared loss of the values
centred within the document, so that each document comes in by a matrix of sums. Adding a constant to people's scores, or
multiplying them by one, then changes nothing. Else the scores themselves are fitted by least squares over all summaries.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from negsample.eval.agreement.correlation import standardised
from negsample.seeds import generator

# A document with fewer differently scored summaries orders nothing.
FEWEST = 3
_FOLDS = 5
# Strengths with which aspects and metrics are held at 0 (inputs have spread 1); features are held ten times as strongly, or
# left out.
_STRENGTHS = (1.0, 0.3, 0.1, 0.03)
_FEATURES_HELD = 10.0
_TINY = 1e-9
# How many times the estimator as it is counts among the settings, how many judged summaries, one a document, it is worth
# beside them, and with how few documents it is taken at once.
_PRIOR = 4.0
_ROWS = 20.0
_FEWEST_DOCUMENTS = 3


@dataclass(frozen=True)
class Ranked:
    """One target's rows as sums over each document.

    ``sums`` float64 [D, K + 2, K + 2]: Σ weight·z zᵀ with z = (1, inputs, target) of a document's rows, inputs in units
    of their spread and target centred within the document where ``within``. ``own`` bool [K]: aspects and metrics, which
    are held less than features. ``aspects``: places of those that a fit may start from, the overall score first.
    """

    sums: np.ndarray
    within: bool
    own: np.ndarray
    aspects: tuple[int, ...]
    spread: np.ndarray

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return len(self.sums)


def ranked(
    inputs: np.ndarray,
    people: np.ndarray,
    documents: np.ndarray,
    weights: np.ndarray,
    own: np.ndarray,
    aspects: Sequence[int],
) -> Ranked:
    """Take the sums of rows ``inputs`` [n, K], ``people`` [n] (nothing missing), ``documents`` int [n] (codes from 0 on)
    and ``weights`` [n] > 0.
    """
    from scipy.stats import rankdata

    count = int(documents.max()) + 1
    order = np.argsort(documents, kind="stable")
    groups = np.split(order, np.searchsorted(documents[order], np.arange(1, count)))
    within = is_within(people, documents)
    blocks = []
    for rows in groups:
        x, y, w = inputs[rows], people[rows], weights[rows]
        if within:
            useful = len(rows) >= FEWEST and np.ptp(y) > 0
            w = w * useful
            x = x - np.average(x, axis=0, weights=weights[rows])
            y = standardised(rankdata(y)[None])[0]
        z = np.concatenate([np.ones((len(rows), 1)), x, y[:, None]], axis=1)
        blocks.append((z * w[:, None]).T @ z)
    sums = np.stack(blocks)
    total = _centred(sums.sum(axis=0), within)
    spread = np.sqrt(np.clip(np.diag(total), 0, None))
    scale = np.concatenate([[1.0], np.where(spread > 1e-6, spread, np.inf)])
    return Ranked(sums / scale[:, None] / scale, within, own, tuple(aspects), spread[:-1])


def is_within(people: np.ndarray, documents: np.ndarray) -> bool:
    """Whether most rows [n] stand beside two others, differently scored, of their document (int [n], codes from 0 on)."""
    counts = np.bincount(documents)
    low, high = np.full(len(counts), np.inf), np.full(len(counts), -np.inf)
    np.minimum.at(low, documents, people)
    np.maximum.at(high, documents, people)
    return bool(2 * counts[(counts >= FEWEST) & (high > low)].sum() > len(people))


def _centred(sums: np.ndarray, within: bool) -> np.ndarray:
    """Covariances [K + 1, K + 1] of inputs and target, from sums over documents."""
    n = max(sums[0, 0], _TINY)
    mean = sums[0, 1:] / n
    return sums[1:, 1:] / n - (0 if within else np.outer(mean, mean))


@dataclass(frozen=True)
class Setting:
    """What a fit starts from (``aspect``: place in `Ranked.aspects`; None: the one that agrees best) and how strongly
    aspects and metrics (``own``) and ``features`` are held at 0.
    """

    aspect: int | None
    own: float
    features: float


UNFITTED = Setting(0, np.inf, np.inf)
_HELD = [(np.inf, np.inf)] + [(own, held) for own in _STRENGTHS for held in (np.inf, _FEATURES_HELD * own)]
# From the estimator as it is to the freest.
SETTINGS = tuple(Setting(start, own, held) for start in (0, None) for own, held in _HELD)


def solve(data: Ranked, documents: np.ndarray, setting: Setting) -> np.ndarray:
    """Weights ≥ 0 [K] of the standardised inputs over ``documents`` (places): Σ (t − Σ w x)² + Σ penalty·w², the first
    one free. The overall score alone (weight 1) where nothing is to be learned.
    """
    from scipy.optimize import nnls

    covariance = _centred(data.sums[documents].sum(axis=0), data.within)
    g, square = covariance[:-1, -1], covariance[:-1, :-1]
    start = data.aspects[0]
    if setting.aspect is None:
        start = best_aspect(data, documents)
    penalty = np.where(data.own, setting.own, setting.features)
    penalty[start] = 0.0
    used = np.flatnonzero(np.isfinite(penalty))
    weights = np.zeros(len(g))
    lower = np.linalg.cholesky(square[np.ix_(used, used)] + np.diag(penalty[used] + _TINY))
    weights[used] = nnls(lower.T, np.linalg.solve(lower, g[used]))[0]
    if not weights.any():
        weights[data.aspects[0]] = 1.0
    return weights


def spread_of(data: Ranked, documents: np.ndarray, weights: np.ndarray) -> float:
    """The spread of the weighted sum over ``documents`` (within them)."""
    square = _centred(data.sums[documents].sum(axis=0), data.within)[:-1, :-1]
    return float(np.sqrt(max(weights @ square @ weights, _TINY)))


def folds(documents: np.ndarray, *seed: object, most: int = _FOLDS) -> list[np.ndarray]:
    """Random parts of ``documents`` (places), at most ``most``; all rows of a document are in its part."""
    return np.array_split(generator("fit", *seed).permutation(documents), min(most, len(documents)))


def cross_validated(data: Ranked, documents: np.ndarray, *seed: object) -> np.ndarray:
    """What each document adds to the agreement of each of `SETTINGS` when it is fitted on other ones: [S, D'].

    Within documents: the correlation with people's ranks in the document. Else its share of the correlation over all rows.
    """
    parts = folds(documents, *seed)
    held = np.concatenate(parts)
    sums = np.empty((len(SETTINGS), len(held), 3, 3))
    at = 0
    for part in parts:
        rest = np.setdiff1d(documents, part)
        for s, setting in enumerate(SETTINGS):
            weights = solve(data, rest, setting)
            weights = weights / spread_of(data, rest, weights)
            # Rows: 1, the sum less its mean over the rest, the target.
            rows = np.zeros((3, data.sums.shape[1]))
            rows[0, 0] = rows[2, -1] = 1.0
            rows[1, 1:-1] = weights
            total = data.sums[rest].sum(axis=0)
            rows[1, 0] = -(0.0 if data.within else weights @ total[0, 1:-1] / max(total[0, 0], _TINY))
            sums[s, at : at + len(part)] = rows @ data.sums[part] @ rows.T
        at += len(part)
    if data.within:
        sums = sums[:, sums[0, :, 2, 2] > 0]
        return sums[..., 1, 2] / np.sqrt(np.maximum(sums[..., 1, 1], _TINY) * sums[..., 2, 2])
    total = sums.sum(axis=1)
    count = total[:, 0, 0]
    mean = total[:, 0] / count[:, None]
    spread = np.sqrt(np.maximum(np.einsum("sii->si", total) / count[:, None] - mean**2, _TINY))
    f, y = mean[:, None, 1], mean[:, None, 2]
    shares = sums[..., 1, 2] - f * sums[..., 0, 2] - y * sums[..., 0, 1] + f * y * sums[..., 0, 0]
    return shares / (spread[:, 1] * spread[:, 2] * count)[:, None] * len(held)


@dataclass(frozen=True)
class Weights:
    """Weights ≥ 0 of the raw inputs, [K]: their sum has spread 1 and mean 0 over the rows fitted. ``offset`` gives the mean.

    ``freedom``: how much of it was fitted, 0 where the estimator is as it was.
    """

    raw: np.ndarray
    offset: float
    freedom: float

    def sums(self, inputs: np.ndarray) -> np.ndarray:
        """Σ weight·input + offset, [n], for ``inputs`` [n, K]; NaN where one with a weight is missing."""
        used = np.flatnonzero(self.raw)
        return inputs[:, used] @ self.raw[used] + self.offset


def fit_weights(data: Ranked, documents: np.ndarray, inputs: np.ndarray, *seed: object) -> Weights:
    """Fit ``documents`` (places), whose rows' raw ``inputs`` are [n, K]: the mean of `SETTINGS`, each as likely as its
    cross-validated agreement is beside the best one's.

    A setting whose agreement lies t standard errors (of the paired difference over documents) below the best has the
    likelihood exp(−t²/2); the estimator as it is counts ``_PRIOR`` times. With few documents errors are large, and much of
    the mean is what needed no fit; with many, it is the best setting. Where single summaries are fitted, the estimator as it
    is counts like ``_ROWS`` of them besides: from ten, errors can't be estimated. With fewer than three documents it is the
    estimator alone.
    """
    if len(documents) < _FEWEST_DOCUMENTS:
        return _raw(data, solve(data, documents, UNFITTED), inputs, 0.0)
    each = cross_validated(data, documents, *seed)
    mean = each.mean(axis=1) if each.shape[1] > 1 else np.zeros(len(SETTINGS))
    best = int(np.argmax(mean))
    below = each[best] - each
    error = below.std(axis=1, ddof=1) / np.sqrt(max(1, each.shape[1])) if each.shape[1] > 1 else np.zeros(len(SETTINGS))
    # Settings that are all but the same have an error of next to nothing, which makes no difference clear.
    error = np.maximum(error, np.median(error) / 4)
    distance = np.divide(mean[best] - mean, error, out=np.zeros(len(SETTINGS)), where=error > 0)
    likely = np.exp(-(np.minimum(distance, 30.0) ** 2) / 2)
    likely[0] *= _PRIOR
    likely /= likely.sum()
    if not data.within:
        share = len(inputs) / (len(inputs) + _ROWS)
        likely *= share
        likely[0] += 1 - share
    weights = np.zeros(len(data.own))
    for share, setting in zip(likely, SETTINGS, strict=True):
        found = solve(data, documents, setting)
        weights += share * found / spread_of(data, documents, found)
    return _raw(data, weights, inputs, float(1 - likely[0]))


def _raw(data: Ranked, weights: np.ndarray, inputs: np.ndarray, freedom: float) -> Weights:
    """Weights of raw inputs from those of standardised ones: a sum of mean 0 and spread 1 over ``inputs`` [n, K]."""
    raw = np.where(data.spread > 0, weights / np.where(data.spread > 0, data.spread, 1.0), 0.0)
    sums = inputs @ raw
    size = float(sums.std())
    raw = raw / size if size > 1e-9 else raw
    return Weights(raw, -float((inputs @ raw).mean()), freedom)


def best_aspect(data: Ranked, documents: np.ndarray) -> int:
    """The place of the aspect (or overall score) that agrees best with people over ``documents``."""
    covariance = _centred(data.sums[documents].sum(axis=0), data.within)
    places = np.array(data.aspects)
    spread = np.sqrt(np.clip(np.diag(covariance)[places], _TINY, None))
    return int(places[np.argmax(covariance[places, -1] / spread)])

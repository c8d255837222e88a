"""How well scores follow labels: accuracy and AUC for 0/1 labels, Pearson, Spearman and MSE for graded ones."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from negsample.resampling import NO_INTERVAL, resampled_interval
from negsample.seeds import generator

RESAMPLES = 1000


def accuracy(labels: np.ndarray, scores: np.ndarray) -> float:
    """Share of scores on the right side of 0.5 (Bao et al. 2021 §4.3); a score of exactly 0.5 counts as 1."""
    return float(np.mean((scores >= 0.5) == (labels >= 0.5)))


def auc(labels: np.ndarray, scores: np.ndarray) -> float:
    """Area under the ROC curve: the chance that a positive scores above a negative, ties counting half; NaN for one class."""
    from scipy.stats import rankdata

    positive = labels >= 0.5
    p, n = int(positive.sum()), int((~positive).sum())
    if not p or not n:
        return float("nan")
    return float((rankdata(scores)[positive].sum() - p * (p + 1) / 2) / (p * n))


def pearson(labels: np.ndarray, scores: np.ndarray) -> float:
    """Pearson's r; NaN where either side is constant."""
    x = np.asarray(labels, np.float64) - np.mean(labels, dtype=np.float64)
    y = np.asarray(scores, np.float64) - np.mean(scores, dtype=np.float64)
    norm = np.sqrt((x @ x) * (y @ y))
    return float(np.clip(x @ y / norm, -1, 1)) if norm > 1e-12 * len(x) else float("nan")


def spearman(labels: np.ndarray, scores: np.ndarray) -> float:
    """Spearman's ρ, ties sharing their mean rank; NaN where either side is constant."""
    from scipy.stats import rankdata

    return pearson(rankdata(labels), rankdata(scores))


def mse(labels: np.ndarray, scores: np.ndarray) -> float:
    """Mean squared error."""
    return float(np.mean((np.asarray(labels, np.float64) - np.asarray(scores, np.float64)) ** 2))


Statistic = Callable[[np.ndarray, np.ndarray], float]
Documents = Sequence[Any] | np.ndarray
BINARY: dict[str, Statistic] = {"accuracy": accuracy, "auc": auc}
GRADED: dict[str, Statistic] = {"pearson": pearson, "spearman": spearman, "mse": mse}
UNDEFINED = {"auc": "only one class of labels", "pearson": "labels or scores are all the same"}


def is_graded(labels: np.ndarray) -> bool:
    """Whether any label lies strictly between 0 and 1."""
    return bool(np.any((labels > 0) & (labels < 1)))


def document_resamples(documents: Documents, seed: int, count: int) -> Iterator[np.ndarray]:
    """Draw ``count`` bootstrap resamples of whole documents: int [..] each, the examples in it.

    ``documents`` [n] says which document each example belongs to: examples of one document are not independent.
    """
    _, codes = np.unique(np.asarray(documents), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    rng = generator(seed, "figures")
    for _ in range(count):
        yield np.concatenate([groups[i] for i in rng.integers(len(groups), size=len(groups))])


def figures(
    labels: np.ndarray, scores: np.ndarray, documents: Documents, *, seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, dict[str, Any]]:
    """Return the figures that suit the labels, as plain values: name → ``value``, ``low``, ``high``, ``n``, ``reason``.

    ``labels`` in [0, 1] and ``scores`` float [n]; the 95 % interval is of percentiles 2.5 and 97.5 over ``resamples``
    ``document_resamples`` (0: no interval), as `resampled_interval` has it, without those on which a figure is not defined.
    Where there is none, and where a ``value`` is not defined (None), the ``reason`` says why.
    """
    labels, scores = np.asarray(labels, np.float64), np.asarray(scores, np.float64)
    statistics = GRADED if is_graded(labels) else BINARY
    drawn = [
        [statistic(labels[rows], scores[rows]) for statistic in statistics.values()]
        for rows in document_resamples(documents, seed, resamples)
    ]
    found, units = dict[str, dict[str, Any]](), len(np.unique(np.asarray(documents)))
    for column, (name, statistic) in enumerate(statistics.items()):
        value: Any = statistic(labels, scores)
        low, high, _ = resampled_interval(np.array([row[column] for row in drawn]), units)
        reason = NO_INTERVAL if resamples and low is None else ""
        if not np.isfinite(value):
            value = low = high = None
            reason = UNDEFINED.get(name, UNDEFINED["pearson"])
        found[name] = {"value": value, "low": low, "high": high, "n": len(labels), "reason": reason}
    return found


def by_kind(labels: np.ndarray, scores: np.ndarray, kinds: Sequence[str]) -> dict[str, dict[str, float | int]]:
    """For each kind of example: n, mean label and mean score."""
    chosen = {kind: np.asarray(kinds) == kind for kind in dict.fromkeys(kinds)}
    return {
        kind: {"n": int(own.sum()), "label": float(labels[own].mean()), "score": float(scores[own].mean())}
        for kind, own in chosen.items()
    }

"""Figures of many models on the same test examples, with intervals, and their paired differences."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from negsample.models.evaluation import RESAMPLES
from negsample.seeds import generator

K = TypeVar("K", bound=Hashable)
# Numbers held at once by the bootstrap.
_CHUNK = 8_000_000


@dataclass(frozen=True)
class Difference:
    """A value minus another model's, with its 95 % interval from the same resamples; None where one is not defined."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Tested:
    """A figure with its 95 % interval; ``n`` examples of ``documents``; ``values`` of each seed, of which it is the mean.

    ``value`` is None with a ``reason`` where it is not defined. ``differences`` by the names that were asked for.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    documents: int
    values: tuple[float | None, ...]
    reason: str = ""
    differences: Mapping[str, Difference] = field(default_factory=dict)


def compare_on(
    figure: str,
    labels: np.ndarray,
    documents: np.ndarray,
    scores: Mapping[K, Sequence[np.ndarray]],
    against: Mapping[K, Mapping[str, K]],
    *,
    seed: int = 0,
) -> dict[K, Tested]:
    """The ``figure`` (``accuracy`` or ``pearson``) of each model on the same examples, and the differences asked for.

    ``labels`` float [n] in [0, 1], ``documents`` int [n]; ``scores``: model → one array [n] for each of its seeds;
    ``against``: model → name of a difference → the model to subtract. A model's figure is the mean over its seeds.

    Percentile bootstrap over documents, 1,000 resamples, the same for all models (and, for one seed, those of
    ``figures``), so that a difference is paired. A resample on which a figure is not defined is left out.
    """
    labels = np.asarray(labels, np.float64)
    _, codes = np.unique(documents, return_inverse=True)
    count = int(codes.max()) + 1
    sampled = {
        key: [_Sampled.of(figure, labels, np.asarray(own, np.float64), codes, count, seed) for own in each]
        for key, each in scores.items()
    }
    means = {key: _Sampled.mean(each) for key, each in sampled.items()}
    found = {}
    for key, mean in means.items():
        low, high = _interval(mean.drawn)
        reason = ""
        if not np.isfinite(mean.value):
            reason = "labels or scores are all the same"
        elif low is None:
            reason = "one document: no interval"
        found[key] = Tested(
            value=_defined(mean.value),
            low=low if np.isfinite(mean.value) else None,
            high=high if np.isfinite(mean.value) else None,
            n=len(labels),
            documents=count,
            values=tuple(_defined(each.value) for each in sampled[key]),
            reason=reason,
            differences={name: _difference(mean, means[other]) for name, other in against.get(key, {}).items()},
        )
    return found


@dataclass(frozen=True, eq=False)
class _Sampled:
    """A figure on all examples, and on each resample: float [B]."""

    value: float
    drawn: np.ndarray

    @classmethod
    def of(
        cls, figure: str, labels: np.ndarray, scores: np.ndarray, codes: np.ndarray, count: int, seed: int
    ) -> "_Sampled":
        columns, statistic = _SUMS[figure]
        # A resample's figure follows from the sums over its documents.
        sums = np.stack([np.bincount(codes, column, count) for column in columns(labels, scores)], axis=1)
        drawn = [np.zeros(0)]
        if count > 1:
            rng = generator(seed, "figures")
            size = max(1, _CHUNK // count)
            for start in range(0, RESAMPLES, size):
                rows = rng.integers(count, size=(min(size, RESAMPLES - start), count))
                drawn.append(statistic(_totals(sums, rows)))
        return cls(float(statistic(sums.sum(axis=0)[None])[0]), np.concatenate(drawn))

    @classmethod
    def mean(cls, each: Sequence["_Sampled"]) -> "_Sampled":
        return cls(float(np.mean([one.value for one in each])), np.mean([one.drawn for one in each], axis=0))


def _totals(sums: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """``sums`` [D, k] added up over each row of ``rows`` [B, D]: [B, k]."""
    return np.stack([column[rows].sum(axis=1) for column in sums.T], axis=1)


def _accuracy_columns(labels: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
    return [np.ones(len(labels)), ((scores >= 0.5) == (labels >= 0.5)).astype(float)]


def _accuracy(sums: np.ndarray) -> np.ndarray:
    return sums[:, 1] / sums[:, 0]


def _pearson_columns(labels: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
    # About their means, so that nothing is lost when large sums are subtracted.
    x, y = labels - labels.mean(), scores - scores.mean()
    return [np.ones(len(x)), x, y, x * x, y * y, x * y]


def _pearson(sums: np.ndarray) -> np.ndarray:
    n, x, y, xx, yy, xy = sums.T
    norm = np.sqrt(np.maximum(xx - x * x / n, 0) * np.maximum(yy - y * y / n, 0))
    good = norm > 1e-12 * n
    return np.where(good, np.clip((xy - x * y / n) / np.where(good, norm, 1), -1, 1), np.nan)


_SUMS = {"accuracy": (_accuracy_columns, _accuracy), "pearson": (_pearson_columns, _pearson)}


def _interval(drawn: np.ndarray) -> tuple[float | None, float | None]:
    drawn = drawn[np.isfinite(drawn)]
    if not len(drawn):
        return None, None
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)


def _difference(one: _Sampled, other: _Sampled) -> Difference:
    value = _defined(one.value - other.value)
    low, high = _interval(one.drawn - other.drawn)
    return Difference(value, *((low, high) if value is not None else (None, None)))


def _defined(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None

"""Figures of many models on the same test examples, with intervals, and their paired differences."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from negsample.models.evaluation import BINARY, GRADED, ONE_DOCUMENT, RESAMPLES, UNDEFINED, document_resamples
from negsample.resampling import percentile_interval

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Difference:
    """A value minus another model's, with its 95 % interval from the same resamples; None where one is not defined."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class ModelFigure:
    """A model's figure on ``n`` examples of ``documents``, with its 95 % interval; the mean of the ``values`` of its seeds.

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
) -> dict[K, ModelFigure]:
    """Return the ``figure`` (``accuracy`` or ``pearson``) of each model on the same examples, and the differences asked for.

    ``labels`` float [n] in [0, 1], ``documents`` int [n]; ``scores``: model → one array [n] for each of its seeds;
    ``against``: model → name of a difference → the model to subtract. A model's figure is the mean over its seeds.

    The ``document_resamples`` are the same for all models, and those of ``evaluation.figures``, so that a difference is
    paired. A resample on which a figure is not defined is left out.
    """
    statistic = {**BINARY, **GRADED}[figure]
    labels = np.asarray(labels, np.float64)
    own = {key: [np.asarray(one, np.float64) for one in each] for key, each in scores.items()}
    drawn: dict[K, list[float]] = {key: [] for key in own}
    for rows in document_resamples(documents, seed, RESAMPLES):
        for key, each in own.items():
            drawn[key].append(float(np.mean([statistic(labels[rows], one[rows]) for one in each])))
    samples = {key: np.array(each) for key, each in drawn.items()}
    values = {key: [statistic(labels, one) for one in each] for key, each in own.items()}
    means = {key: float(np.mean(each)) for key, each in values.items()}
    count = len(np.unique(documents))
    found = {}
    for key, mean in means.items():
        whole = _interval(mean, samples[key])
        reason = UNDEFINED["pearson"] if whole.value is None else ONE_DOCUMENT if whole.low is None else ""
        differences = {
            name: _interval(mean - means[other], samples[key] - samples[other])
            for name, other in against.get(key, {}).items()
        }
        of_seeds = tuple(None if np.isnan(value) else value for value in values[key])
        found[key] = ModelFigure(whole.value, whole.low, whole.high, len(labels), count, of_seeds, reason, differences)
    return found


def _interval(value: float, samples: np.ndarray) -> Difference:
    """Return ``value`` with the interval of its ``samples``; None for all where it is not defined."""
    if np.isnan(value):
        return Difference(None, None, None)
    return Difference(value, *percentile_interval(samples)[:2])

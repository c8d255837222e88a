"""A target fitted: its weights, the line that puts their sum on people's scale, and an interval for each summary."""

from dataclasses import dataclass

import numpy as np

from negsample.eval.learn.weights import Problem, Weights, fit_weights
from negsample.models.fitted import FittedTarget, on_scale
from negsample.resampling import mean_interval
from negsample.seeds import generator

_TINY = 1e-9


@dataclass(frozen=True)
class TargetFit:
    """``weights`` of the raw inputs; people's score is ``level`` + ``slope``·their sum. ``scale``, ``half_width``: as of
    `FittedTarget`.
    """

    weights: Weights
    level: float
    slope: float
    scale: tuple[float, float]
    half_width: float

    def named(self, human: str, names: list[str], confidence: float) -> FittedTarget:
        """As the model folder holds it; ``names`` [K] of the inputs."""
        raw = self.weights.raw
        weights = {name: self.slope * float(weight) for name, weight in zip(names, raw, strict=True) if weight}
        offset = self.level + self.slope * self.weights.offset
        return FittedTarget(human, weights, offset, self.scale, self.half_width, confidence)

    def answer(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As of `on_scale`."""
        return on_scale(self.level + self.slope * sums, self.scale, self.half_width)


def fit_target(task: Problem, confidence: float) -> TargetFit:
    """Fit ``task``, of at least two documents.

    The half width is the ⌈(n + 1)·confidence⌉-th smallest absolute error of summaries whose document neither the weights
    nor the line have seen (Lei et al. 2018, "Distribution-free predictive inference for regression", alg. 2), or the whole
    scale where n is too small for it.
    """
    people = task.people
    sums, answers = np.empty((2, len(people)))
    folds = list(task.folds())
    for fitted, left in folds:
        sums[left] = fit_weights(task.part(fitted)).sums(task.inputs[left])
    for fitted, left in folds:
        level, slope = line(sums[fitted], people[fitted])
        answers[left] = np.clip(level + slope * sums[left], people[fitted].min(), people[fitted].max())
    scale = float(people.min()), float(people.max())
    width = half_width(people - answers, confidence, scale[1] - scale[0])
    return TargetFit(fit_weights(task), *line(sums, people), scale, width)


def half_width(errors: np.ndarray, confidence: float, scale: float) -> float:
    """The half width that ``errors`` [n] of held-out summaries ask for; ``scale`` where they are too few."""
    place = int(np.ceil((len(errors) + 1) * confidence))
    return scale if place > len(errors) else float(np.sort(np.abs(errors))[place - 1])


def line(sums: np.ndarray, people: np.ndarray) -> tuple[float, float]:
    """Level and slope of the least-squares line of ``people`` on ``sums`` [n]; where it does not rise, their mean and 0."""
    centred, level, spread = sums - sums.mean(), float(people.mean()), float(sums.std())
    slope = float(np.mean(centred * (people - level))) / spread**2 if spread > _TINY else 0.0
    slope = slope if slope > _TINY * float(np.ptp(people)) else 0.0
    return level - slope * float(sums.mean()), slope


@dataclass(frozen=True)
class HeldOut:
    """Every row answered by a fit that has not seen its document: ``sums``, ``answers`` on people's scale [n], ``ends`` of the
    intervals [n, 2].
    """

    sums: np.ndarray
    answers: np.ndarray
    ends: np.ndarray

    def coverage(self, task: Problem, seed: int, resamples: int) -> tuple[float, float | None, float | None]:
        """The share of people's scores in their intervals, with its own 95 % interval (documents resampled)."""
        slack = _TINY * max(1.0, float(np.ptp(task.people)))
        inside = (task.people >= self.ends[:, 0] - slack) & (task.people <= self.ends[:, 1] + slack)
        per, all_of = np.bincount(task.documents, weights=inside), np.bincount(task.documents)
        return float(inside.mean()), *mean_interval(per, generator(seed, "coverage"), resamples, all_of)


def held_out(task: Problem, confidence: float) -> HeldOut:
    """Cross-validate the whole of `fit_target`, the choice of strength and the line included, over documents."""
    sums, answers = np.empty((2, len(task.people)))
    ends = np.empty((len(task.people), 2))
    for fitted, left in task.folds():
        found = fit_target(task.part(fitted), confidence)
        sums[left] = found.weights.sums(task.inputs[left])
        answers[left], ends[left] = found.answer(sums[left])
    return HeldOut(sums, answers, ends)

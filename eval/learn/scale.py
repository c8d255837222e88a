"""A target fitted: its weights, the line that puts their sum on people's scale, and an interval for each summary."""

from dataclasses import dataclass

import numpy as np

from negsample.eval.learn.weights import Problem, Weights, fit_weights
from negsample.models.fitted import FittedTarget

_TINY = 1e-9
Knots = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class TargetFit:
    """``weights`` of the raw inputs. ``knots``, ``half_width``: as of `FittedTarget`."""

    weights: Weights
    knots: Knots
    half_width: float

    def named(self, human: str, names: list[str], confidence: float) -> FittedTarget:
        """As the model folder holds it; ``names`` [K] of the inputs."""
        raw = {name: float(weight) for name, weight in zip(names, self.weights.raw, strict=True) if weight}
        return FittedTarget(human, raw, self.weights.offset, self.knots, self.half_width, confidence)

    def answer(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As of `FittedTarget`."""
        return self.named("", [""] * len(self.weights.raw), 0.0).answer(sums)


def fit_target(task: Problem, confidence: float) -> TargetFit:
    """Fit ``task``, of at least two documents.

    The half width is the ⌈(n + 1)·confidence⌉-th smallest absolute error of summaries whose document neither the weights
    nor the line have seen (Lei et al. 2018, "Distribution-free predictive inference for regression", alg. 2), or the whole
    scale where n is too small for it.
    """
    sums, errors = np.empty(len(task.people)), np.empty(len(task.people))
    folds = list(task.folds())
    for fitted, left in folds:
        sums[left] = fit_weights(task.part(fitted)).sums(task.inputs[left])
    for fitted, left in folds:
        errors[left] = task.people[left] - np.interp(sums[left], *line(sums[fitted], task.people[fitted]))
    width = half_width(errors, confidence, float(np.ptp(task.people)))
    return TargetFit(fit_weights(task), line(sums, task.people), width)


def half_width(errors: np.ndarray, confidence: float, scale: float) -> float:
    """The half width that ``errors`` [n] of held-out summaries ask for; ``scale`` where they are too few."""
    place = int(np.ceil((len(errors) + 1) * confidence))
    return scale if place > len(errors) else float(np.sort(np.abs(errors))[place - 1])


def line(sums: np.ndarray, people: np.ndarray) -> Knots:
    """The ends of the least-squares line of ``people`` on ``sums`` [n], where it leaves the range of ``people``."""
    low, high = float(people.min()), float(people.max())
    centre, level, spread = float(sums.mean()), float(people.mean()), float(sums.std())
    slope = float(np.mean((sums - centre) * (people - level))) / spread**2 if spread > _TINY else 0.0
    if low == high or slope <= _TINY * (high - low):
        return (centre - 1.0, centre + 1.0), (level, level)
    return (centre + (low - level) / slope, centre + (high - level) / slope), (low, high)


@dataclass(frozen=True)
class HeldOut:
    """Every row answered by a fit that has not seen its document: ``sums``, ``answers`` on people's scale [n], ``ends`` of the
    intervals [n, 2].
    """

    sums: np.ndarray
    answers: np.ndarray
    ends: np.ndarray

    def covered(self, people: np.ndarray) -> np.ndarray:
        """bool [n]: whether people's score lies in the interval."""
        slack = _TINY * max(1.0, float(np.ptp(people)))
        return (people >= self.ends[:, 0] - slack) & (people <= self.ends[:, 1] + slack)


def held_out(task: Problem, confidence: float) -> HeldOut:
    """Cross-validate the whole of `fit_target`, the choice of strength and the line included, over documents."""
    n = len(task.people)
    sums, answers, ends = np.empty(n), np.empty(n), np.empty((n, 2))
    for fitted, left in task.folds():
        part = task.part(fitted)
        if part.count < 2:
            # Nothing is left to choose or to calibrate by: the estimator as it is.
            answers[left] = sums[left] = task.inputs[left, 0]
            ends[left] = np.array([task.people.min(), task.people.max()])
            continue
        found = fit_target(part, confidence)
        sums[left] = found.weights.sums(task.inputs[left])
        answers[left], ends[left] = found.answer(sums[left])
    return HeldOut(sums, answers, ends)

"""One target fitted: weights whose strength is chosen by cross-validation over documents, people's scale, intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from negsample.eval.fit.calibration import Calibration, calibrate
from negsample.eval.fit.ranking import Ranked, Weights, fit_weights, folds, ranked


@dataclass(frozen=True)
class Problem:
    """Rows without a missing value: ``inputs`` [n, K], ``people`` [n], ``documents`` int [n] (codes from 0 on); ``data``
    has their sums. ``rows`` [n]: their places among all rows.
    """

    inputs: np.ndarray
    people: np.ndarray
    documents: np.ndarray
    data: Ranked
    rows: np.ndarray

    def of(self, documents: np.ndarray) -> np.ndarray:
        """The places of the rows of ``documents``."""
        return np.flatnonzero(np.isin(self.documents, documents))


def problem(
    inputs: np.ndarray,
    people: np.ndarray,
    weights: np.ndarray,
    document_ids: Sequence[str],
    own: np.ndarray,
    aspects: Sequence[int],
) -> Problem:
    """What is to be fitted, from rows [n] of which those with a missing value (NaN) are left out.

    ``inputs`` [n, K]; ``own`` bool [K] and ``aspects``: as of `Ranked`. Documents are numbered in the order of their ids,
    so that the order of rows changes nothing.
    """
    rows = np.flatnonzero(np.isfinite(inputs).all(axis=1) & np.isfinite(people))
    ids = np.array([str(document_ids[int(row)]) for row in rows])
    documents = np.unique(ids, return_inverse=True)[1]
    x, y = inputs[rows], people[rows]
    return Problem(x, y, documents, ranked(x, y, documents, weights[rows], own, aspects), rows)


@dataclass(frozen=True)
class TargetFit:
    """``weights`` of the raw inputs, and how their sum is put on people's scale."""

    weights: Weights
    calibration: Calibration


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
        slack = 1e-9 * max(1.0, float(np.ptp(people)))
        return (people >= self.ends[:, 0] - slack) & (people <= self.ends[:, 1] + slack)


def fit_target(task: Problem, documents: np.ndarray, *seed: object, confidence: float = 0.9) -> TargetFit:
    """Fit the rows of ``documents`` (at least two)."""
    rows = task.of(documents)
    sums = np.empty(len(task.people))
    parts = folds(documents, "calibration", *seed)
    for number, part in enumerate(parts):
        rest = np.setdiff1d(documents, part)
        weights = fit_weights(task.data, rest, task.inputs[rows], number, *seed)
        sums[task.of(part)] = weights.sums(task.inputs[task.of(part)])
    places = [np.flatnonzero(np.isin(task.documents[rows], part)) for part in parts]
    calibration = calibrate(sums[rows], task.people[rows], places, confidence)
    return TargetFit(fit_weights(task.data, documents, task.inputs[rows], *seed), calibration)


def held_out(task: Problem, *seed: object, confidence: float = 0.9) -> HeldOut:
    """Cross-validate the whole of `fit_target`, the choice of strength and scale included, over documents."""
    every = np.arange(task.data.documents)
    n = len(task.people)
    sums, answers, ends = np.empty(n), np.empty(n), np.empty((n, 2))
    for number, part in enumerate(folds(every, "held out", *seed)):
        rest = np.setdiff1d(every, part)
        rows = task.of(part)
        if len(rest) < 2:
            # Nothing is left to choose or to calibrate by: the estimator as it is.
            answers[rows] = sums[rows] = task.inputs[rows, task.data.aspects[0]]
            ends[rows] = np.array([task.people.min(), task.people.max()])
            continue
        found = fit_target(task, rest, number, *seed, confidence=confidence)
        sums[rows] = found.weights.sums(task.inputs[rows])
        answers[rows] = np.interp(
            sums[rows], np.array(found.calibration.knots[0]), np.array(found.calibration.knots[1])
        )
        width = found.calibration.half_width
        low, high = found.calibration.knots[1][0], found.calibration.knots[1][-1]
        ends[rows] = np.clip(np.stack([answers[rows] - width, answers[rows] + width], axis=1), low, high)
    return HeldOut(sums, answers, ends)

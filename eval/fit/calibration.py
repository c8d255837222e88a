"""From fitted sums to people's own scale, with an interval for each summary (split conformal residuals)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Of the line in the isotonic regression.
_LINE = 0.01

Knots = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True)
class Calibration:
    """``knots``: as of `negsample.models.fitted.FittedTarget`; ``kind``: ``"linear"`` or ``"isotonic"``; ``half_width``: of
    the interval.
    """

    knots: Knots
    kind: str
    half_width: float


def calibrate(sums: np.ndarray, people: np.ndarray, parts: Sequence[np.ndarray], confidence: float) -> Calibration:
    """Put ``sums`` [n] on the scale of ``people`` [n]; every sum must come from a fit that did not see its document.

    ``parts``: the rows of each fold. Isotonic regression is taken where it predicts the folds left out clearly better than
    a line: by more than one standard error of the difference of their squared errors. The half width is the
    ⌈(n + 1)·confidence⌉-th smallest of the folds' absolute errors (Lei et al. 2018, "Distribution-free predictive inference
    for regression", alg. 2), or the whole scale where n is too small for it.
    """
    errors = {kind: _errors(sums, people, parts, kind) for kind in ("linear", "isotonic")}
    gain = np.array([np.mean(errors["linear"][part] ** 2 - errors["isotonic"][part] ** 2) for part in parts])
    clearly = len(parts) > 2 and gain.mean() > gain.std(ddof=1) / np.sqrt(len(parts))
    kind = "isotonic" if clearly else "linear"
    return Calibration(curve(sums, people, kind), kind, half_width(errors[kind], confidence, float(np.ptp(people))))


def half_width(errors: np.ndarray, confidence: float, scale: float) -> float:
    """The half width that ``errors`` [n] of held-out summaries ask for; ``scale`` where they are too few."""
    place = int(np.ceil((len(errors) + 1) * confidence))
    return scale if place > len(errors) else float(np.sort(np.abs(errors))[place - 1])


def _errors(sums: np.ndarray, people: np.ndarray, parts: Sequence[np.ndarray], kind: str) -> np.ndarray:
    errors = np.zeros(len(sums))
    for part in parts:
        rest = np.setdiff1d(np.arange(len(sums)), part)
        errors[part] = people[part] - np.interp(sums[part], *curve(sums[rest], people[rest], kind))
    return errors


def curve(sums: np.ndarray, people: np.ndarray, kind: str) -> Knots:
    """The knots of the line or of the isotonic regression of ``people`` on ``sums`` [n], within the range of ``people``.

    A hundredth of the line is in the isotonic regression, and beyond its ends the line's slope goes on to the ends of
    people's scale, so that different sums get different scores.
    """
    low, high = float(people.min()), float(people.max())
    centre, level, spread = float(sums.mean()), float(people.mean()), float(sums.std())
    slope = float(np.mean((sums - centre) * (people - level))) / spread**2 if spread > 1e-9 else 0.0
    if low == high or slope <= 1e-9 * (high - low):
        return (centre - 1.0, centre + 1.0), (level, level)
    if kind == "linear":
        return (centre + (low - level) / slope, centre + (high - level) / slope), (low, high)
    from sklearn.isotonic import IsotonicRegression

    order = np.argsort(sums, kind="stable")
    at = sums[order]
    stepped = IsotonicRegression().fit_transform(at, people[order])
    blended = (1 - _LINE) * stepped + _LINE * np.clip(level + slope * (at - centre), low, high)
    # Both ends of each step, and one place for equal sums.
    ends = np.flatnonzero(np.diff(stepped, prepend=np.nan, append=np.nan)[:-1] != 0)
    ends = np.union1d(ends, np.append(ends[1:] - 1, len(at) - 1))
    ends = ends[np.diff(at[ends], prepend=-np.inf) > 0]
    x, y = at[ends].tolist(), blended[ends].tolist()
    if y[0] > low:
        x, y = [x[0] - (y[0] - low) / slope, *x], [low, *y]
    if y[-1] < high:
        x, y = [*x, x[-1] + (high - y[-1]) / slope], [*y, high]
    return tuple(x), tuple(y)

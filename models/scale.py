"""What the height of a score means: 0.5 is a middling real summary, and equal steps are equal shares of real and damaged ones."""

from collections.abc import Mapping

import numpy as np

_SHARES = np.linspace(0.05, 0.95, 19)
# Summaries of either sort below which a scale would be chance.
_LEAST = 8
# Knots that coincide are set so far apart: a better summary never has the same score.
_APART = 1e-4


def scale_of(real: Mapping[str, np.ndarray], damaged: Mapping[str, np.ndarray]) -> dict[str, list[float]]:
    """The logits, ascending, that stand for scores of .05, .1, … .95: of ``score`` and each aspect.

    ``real``, ``damaged``: outputs float [n] in (0, 1) of real summaries, and of damaged ones; NaN is left out. The median of
    the real ones is .5; those below it, real or damaged, are spread evenly over (0, .5), those above over (.5, 1). A column
    with fewer than eight of either is left out.
    """
    found = {}
    for name in real:
        good, bad = (logits(np.asarray(column)[np.isfinite(column)]) for column in (real[name], damaged[name]))
        if min(len(good), len(bad)) < _LEAST:
            continue
        middle, every = np.median(good), np.concatenate([good, bad])
        below, above = np.append(every[every < middle], middle), np.append(every[every > middle], middle)
        knots = np.where(
            _SHARES < 0.5,
            np.quantile(below, np.minimum(2 * _SHARES, 1)),
            np.quantile(above, np.maximum(2 * _SHARES - 1, 0)),
        )
        lifted = np.maximum.accumulate(knots - _APART * np.arange(len(knots))) + _APART * np.arange(len(knots))
        found[name] = [round(float(knot), 5) for knot in lifted]
    return found


def logits(outputs: np.ndarray) -> np.ndarray:
    """log(p / (1 − p)), float64, of outputs in [0, 1]; finite."""
    p = np.clip(np.asarray(outputs, np.float64), 1e-7, 1 - 1e-7)
    return np.log(p) - np.log1p(-p)  # type: ignore[no-any-return]


def scaled(knots: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Scores in (0, 1) of logits ``z``, rising with them, by the ``knots`` of ``scale_of``; NaN of NaN."""
    inside = np.interp(z, knots, _SHARES)
    lower = _SHARES[0] * np.exp(np.minimum(z - knots[0], 0))
    upper = 1 - (1 - _SHARES[-1]) * np.exp(np.minimum(knots[-1] - z, 0))
    return np.where(z < knots[0], lower, np.where(z > knots[-1], upper, inside)) + 0 * z  # type: ignore[no-any-return]


def on_scale(columns: Mapping[str, np.ndarray], scale: Mapping[str, list[float]]) -> dict[str, np.ndarray]:
    """Outputs float [n] in (0, 1) by name, those that ``scale`` (``scale_of``) knows brought to it."""
    return {
        name: scaled(np.array(scale[name]), logits(column)) if name in scale else column
        for name, column in columns.items()
    }

"""Keeping a reward from paying for words alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# How much of what earlier calls showed is kept at each call (``Partial``).
_MEMORY = 0.9


@dataclass(frozen=True)
class Band:
    """r − strength·e², where e is by how much of the nearer limit the number of words lies outside ``low``–``high``."""

    low: int
    high: int
    strength: float = 1.0

    def adjust(self, values: np.ndarray, words: np.ndarray, groups: Sequence[str]) -> np.ndarray:
        """Rewards float64 [n] with the penalty for ``words`` [n]."""
        outside = np.maximum(0.0, np.maximum((self.low - words) / self.low, (words - self.high) / self.high))
        return values - self.strength * outside**2

    def state(self) -> list[float]:
        """Nothing to remember."""
        return []


class Partial:
    """r − b·(w − w̄): what is left given the number of words w; w̄ is the mean over the summaries of the same document.

    b is the slope of r on w within documents, from this call and, fading by 0.9 a call, those before it: the summaries of
    one document are too few for a slope of their own (two would always lie on it).
    """

    def __init__(self, state: Sequence[float] = (0.0, 0.0)) -> None:
        self._both, self._words = state

    def adjust(self, values: np.ndarray, words: np.ndarray, groups: Sequence[str]) -> np.ndarray:
        """Rewards float64 [n] without what goes with ``words`` [n] among those of one of ``groups`` [n]; NaN stays."""
        good = np.flatnonzero(~np.isnan(values))
        _, group = np.unique(np.array([groups[int(i)] for i in good]), return_inverse=True)
        apart = _centred(words[good].astype(np.float64), group)
        self._both = _MEMORY * self._both + float(apart @ _centred(values[good], group))
        self._words = _MEMORY * self._words + float(apart @ apart)
        adjusted = values.copy()
        if self._words:
            adjusted[good] -= self._both / self._words * apart
        return adjusted

    def state(self) -> list[float]:
        """What a resumed run needs."""
        return [self._both, self._words]


def _centred(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    if not len(values):
        return values
    return values - (np.bincount(group, values) / np.bincount(group))[group]


def within_spread(values: np.ndarray, groups: Sequence[str]) -> float:
    """Standard deviation of ``values`` float64 [n] within ``groups``; over all where no group has two; 0 for none."""
    good = np.flatnonzero(~np.isnan(values))
    if len(good) < 2:
        return 0.0
    _, group = np.unique(np.array([groups[int(i)] for i in good]), return_inverse=True)
    free = len(good) - int(group.max()) - 1
    inside = float(np.sqrt((_centred(values[good], group) ** 2).sum() / free)) if free else 0.0
    return inside if inside > 1e-9 else float(values[good].std(ddof=1))

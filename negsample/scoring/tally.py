"""The figures over all scored records: mean and interval, what was cut, what has no score and why."""

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from negsample.resampling import mean_interval
from negsample.scoring.scorer import Columns
from negsample.seeds import generator

# Of the interval of a mean: resamples, and blocks of scores that are resampled.
_RESAMPLES = 1000
_BLOCKS = 1000


@dataclass
class Tally:
    """Mean and 95 % interval of scores as they come, and what was left out.

    ``cut`` counts the items that were longer than the scorer reads; ``bad`` those without a score, by reason; by field
    ``replaced`` the records that had something where the new score, or what belongs to it, now stands, and ``removed``
    those whose field belonged to an earlier score; ``unread`` those that have what the scorer does not read, by what it is;
    ``kinds`` the kinds of text among the first (``negsample.scoring.kinds``).
    """

    n: int = 0
    cut: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    _sums: list[float] = field(default_factory=list)

    def add(self, columns: Columns) -> None:
        """Take in what a scorer says of further items."""
        missing = np.isnan(columns.scores)
        self.bad.update(str(reason) for reason, gone in zip(columns.reasons, missing, strict=True) if gone)
        self.cut += int(columns.cut[~missing].sum())
        for score in columns.scores[~missing].tolist():
            if self.n < _BLOCKS:
                self._sums.append(0.0)
            self._sums[self.n % _BLOCKS] += score
            self.n += 1

    @property
    def mean(self) -> float | None:
        """Mean of the scores; None where there are none."""
        return math.fsum(self._sums) / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Percentile interval of the mean, the scores resampled; None for fewer than two.

        It stays within the range of the scores. From the 1001st score on, what is resampled are 1,000 blocks of scores
        (every thousandth one), so that memory is flat.
        """
        if self.n < 2:
            return None
        blocks = len(self._sums)
        counts = np.full(blocks, self.n // blocks) + (np.arange(blocks) < self.n % blocks)
        low, high = mean_interval(np.array(self._sums), generator(0, "score", "bootstrap"), _RESAMPLES, counts)
        return None if low is None or high is None else (low, high)

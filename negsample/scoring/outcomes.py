"""What becomes of a scored record: the fields it gets, and the figures over all of them."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Of the interval of a mean: resamples, and blocks of scores that are resampled.
_RESAMPLES = 1000
_BLOCKS = 1000


@dataclass(frozen=True)
class Settings:
    """How records are scored: the fields that hold the texts (of a table), pairs computed at a time, what a bad record
    does ("stop", or "skip": it comes back without a score), whether ``aspects`` and ``percentiles`` are added (the scorer
    must have them), and the field that the score goes to.
    """

    document_field: str = "document"
    summary_field: str = "summary"
    batch_size: int = 32
    on_bad: str = "stop"
    aspects: bool = False
    output_field: str = "score"
    percentiles: bool = False

    def added(self) -> tuple[str, str, str, str, str, str]:
        """The fields that scoring adds: score, percentile, aspects, their percentiles, the reason why one is missing, and
        intervals of those aspects that are fitted to people's scores.
        """
        own = "" if self.output_field == "score" else f"{self.output_field}_"
        ends = ("percentile", "aspects", "aspect_percentiles", "reason", "intervals")
        return self.output_field, *(f"{own}{end}" for end in ends)  # type: ignore[return-value]


DEFAULTS = Settings()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one record: a ``score``, or a ``reason`` why there is none (``where`` names the record).

    ``aspects``, where they were asked for: name → value in [0, 1], None where it can't be judged, and ``reason`` then says
    why. ``percentiles``: ``score`` and each aspect → the share of real summaries that score lower. ``intervals``: of those
    aspects that have one.
    """

    score: float | None
    cut: bool = False
    where: str = ""
    reason: str | None = None
    aspects: Mapping[str, float | None] | None = None
    percentiles: Mapping[str, float | None] | None = None
    intervals: Mapping[str, tuple[float, float]] | None = None

    def fields(self, names: tuple[str, str, str, str, str, str] = DEFAULTS.added()) -> dict[str, Any]:
        """Return the fields that are added to the record, called as `Settings.added` says."""
        score, percentile, aspects, shares, reason, intervals = names
        fields: dict[str, Any] = {score: _rounded(self.score, 7)}
        if self.percentiles is not None:
            fields[percentile] = _rounded(self.percentiles.get("score"), 4)
        if self.aspects is not None:
            fields[aspects] = {name: _rounded(value, 7) for name, value in self.aspects.items()}
        if self.aspects is not None and self.percentiles is not None:
            fields[shares] = {name: _rounded(self.percentiles.get(name), 4) for name in self.aspects}
        if self.intervals:
            fields[intervals] = {name: [round(end, 7) for end in ends] for name, ends in self.intervals.items()}
        if self.reason is not None:
            fields[reason] = f"{self.where}: {self.reason}" if self.where else self.reason
        return fields


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


@dataclass
class Tally:
    """Mean and 95 % interval of scores as they come, and what was left out.

    ``cut`` counts the pairs that were longer than the model reads; ``bad`` the records without a score, by reason;
    ``replaced`` the records that had something in a field that the new score, or what belongs to it, has taken.
    """

    n: int = 0
    cut: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)
    _sums: list[float] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Take in one outcome."""
        if outcome.score is None:
            self.bad[str(outcome.reason)] += 1
            return
        if self.n < _BLOCKS:
            self._sums.append(0.0)
        self._sums[self.n % _BLOCKS] += outcome.score
        self.n += 1
        self.cut += outcome.cut

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
        import numpy as np

        from negsample.resampling import mean_interval
        from negsample.seeds import generator

        blocks = len(self._sums)
        counts = np.full(blocks, self.n // blocks) + (np.arange(blocks) < self.n % blocks)
        low, high = mean_interval(np.array(self._sums), generator(0, "score", "bootstrap"), _RESAMPLES, counts)
        return None if low is None or high is None else (low, high)

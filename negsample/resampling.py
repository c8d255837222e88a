"""Percentile intervals of resampled figures, and the two-sided p of resampled differences."""

import numpy as np

from negsample.errors import InputError

# Fewer units (documents, say) have no interval. In simulations (correlations of .4 and .5, pooled and within documents) the 95 %
# percentile interval held the truth 50 times in 100 with 2 documents, 82 with 5, 90 with 10, 93 with 60.
MIN_UNITS = 10
FEW_DOCUMENTS = f"resample, for fewer than {MIN_UNITS} documents give no interval"
ALIKE = "resample, for all are alike and give no interval"
SKIPPED = "resample without a value"
NO_INTERVAL = f"fewer than {MIN_UNITS} documents, or resamples all alike, give no interval"


def check_resamples(count: int) -> None:
    """InputError for a number of bootstrap resamples that is negative, or more than memory holds."""
    if not 0 <= count <= 100_000:
        raise InputError(f"bootstrap is {count}; give the number of resamples, from 0 to 100000")


def resampled_interval(samples: np.ndarray, units: int) -> tuple[float | None, float | None, dict[str, int]]:
    """Return the 95 % percentile interval of a figure of ``units`` by ``samples`` [B] of it, and reason → resamples left out.

    No interval with fewer than `MIN_UNITS` or two defined samples, and none of resamples that are all alike: that is little
    data, not certainty.
    """
    if units < MIN_UNITS:
        return None, None, {FEW_DOCUMENTS: len(samples)}
    good = samples[~np.isnan(samples)]
    skipped = {SKIPPED: len(samples) - len(good)}
    if len(good) < 2:
        return None, None, skipped
    low, high = np.quantile(good, [0.025, 0.975])
    if high - low < 1e-12:
        return None, None, {ALIKE: len(samples)}
    return float(low), float(high), skipped


def mean_interval(
    sums: np.ndarray, rng: np.random.Generator, resamples: int = 1000, counts: np.ndarray | None = None
) -> tuple[float | None, float | None]:
    """Return the 95 % percentile interval of a mean, of which whole units (documents, say) are drawn with replacement.

    ``sums`` [units]: the sum of each unit's values; ``counts`` [units]: how many they are, one each by default. None as
    of `resampled_interval`.
    """
    units = len(sums)
    if not units:
        return None, None
    drawn = rng.multinomial(units, np.full(units, 1 / units), size=resamples)
    return resampled_interval(drawn @ sums / (units if counts is None else drawn @ counts), units)[:2]


def bootstrap_p(differences: np.ndarray, units: int) -> float | None:
    """Return twice the smaller share of resampled differences on either side of 0, (k + 1)/(B + 1) each; at most 1.

    ``differences`` [B], of ``units``; undefined (NaN) ones are left out; None with fewer than two, or `MIN_UNITS` units. It
    inverts the percentile interval: p ≤ 0.05 where the 95 % interval excludes 0 (up to the + 1).
    """
    good = differences[~np.isnan(differences)]
    if len(good) < 2 or units < MIN_UNITS:
        return None
    # Differences of 0 may differ from it in their last bits; they stand on both sides.
    side = min(np.count_nonzero(good <= 1e-10), np.count_nonzero(good >= -1e-10))
    return float(min(1.0, 2 * (side + 1) / (len(good) + 1)))


def patterns(rng: np.random.Generator, units: int, count: int) -> tuple[np.ndarray, bool]:
    """Draw ``count`` random patterns of 0 and 1, int8 [count, units], or all 2**units of them (and True) if no more."""
    if count and units < 31 and 2**units <= count:
        return ((np.arange(2**units)[:, None] >> np.arange(units)) % 2).astype(np.int8), True
    return rng.integers(0, 2, size=(count, units), dtype=np.int8), False


def permutation_p(observed: float, drawn: np.ndarray, exact: bool) -> float | None:
    """Return the two-sided p of ``observed`` among ``drawn`` [m], values under exchanged labels; NaN is left out.

    b = number with |value| ≥ |observed|; p = (b + 1)/(m + 1) for random patterns (Phipson and Smyth 2010), b/m where
    all patterns were taken (``exact``). None without any.
    """
    good = drawn[~np.isnan(drawn)]
    if not len(good):
        return None
    # The sum of the same numbers in another order may differ in the last bits; equal counts as "at least as far".
    far = np.count_nonzero(np.abs(good) >= abs(observed) - 1e-10)
    return float(far / len(good)) if exact else float((far + 1) / (len(good) + 1))

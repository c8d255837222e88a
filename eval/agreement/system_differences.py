"""Which of several systems is better by one metric, all scored on the same documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from negsample.eval.agreement.significance import ALPHA, holm
from negsample.resampling import bootstrap_p, patterns, percentile_interval, permutation_p
from negsample.seeds import generator

_CHUNK = 4_000_000  # numbers held at once


@dataclass(frozen=True)
class SystemComparison:
    """One system beside the first.

    ``mean`` with its percentile interval ``low``–``high`` (documents resampled). ``difference`` = mean − mean of the
    first system, with its paired interval; ``p``: paired permutation, two-sided; ``p_bootstrap``: from the resampled
    differences; ``p_holm``: ``p`` adjusted by Holm over the systems compared with the first. All five are None for the
    first system itself. ``rank``: 1 + the number of systems that are significantly better (see `compare_systems`), so
    systems that the data can't tell apart share a rank.
    """

    system: str
    mean: float
    low: float | None
    high: float | None
    rank: int
    documents: int
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p: float | None = None
    p_bootstrap: float | None = None
    p_holm: float | None = None


def compare_systems(
    scores: np.ndarray, systems: Sequence[str], *, bootstrap: int = 1000, permutations: int = 10_000, seed: int = 0
) -> list[SystemComparison]:
    """Compare the columns of ``scores`` float64 [documents, systems], higher is better; the first is the baseline.

    At least 2 documents × 2 systems, all finite. Paired bootstrap: documents are drawn with replacement, the same for
    all systems. Paired permutation: the sign of each document's difference is turned at random (the labels change
    places); p = (b + 1)/(m + 1) with b the draws at least as far from 0 as the difference observed, or exactly
    b/2**documents where all sign patterns are no more than ``permutations``.

    Rank: every two systems are compared by the paired permutation, Holm-adjusted over all pairs; a system's rank is 1 +
    the number of systems with a higher mean and an adjusted p ≤ `ALPHA`.
    """
    n, count = scores.shape
    weights = generator(seed, "compare", "bootstrap").multinomial(n, np.full(n, 1 / n), size=bootstrap)
    sampled = weights @ scores / n
    pairs = list(combinations(range(count), 2))
    p = _pairwise_p(scores, pairs, permutations, seed)
    means = scores.mean(axis=0)
    better = np.zeros(count, dtype=int)
    for (i, j), value in zip(pairs, holm(p), strict=True):
        if value <= ALPHA:
            better[j if means[i] > means[j] else i] += 1
    # The pairs of the first system come first.
    p_holm = holm(p[: count - 1])

    result = []
    for s, name in enumerate(systems):
        low, high, _ = percentile_interval(sampled[:, s])
        own = (name, float(means[s]), low, high, 1 + int(better[s]), n)
        if s == 0:
            result.append(SystemComparison(*own))
            continue
        differences = sampled[:, s] - sampled[:, 0]
        difference_low, difference_high, _ = percentile_interval(differences)
        result.append(
            SystemComparison(
                *own,
                difference=float(means[s] - means[0]),
                difference_low=difference_low,
                difference_high=difference_high,
                p=p[s - 1],
                p_bootstrap=bootstrap_p(differences),
                p_holm=float(p_holm[s - 1]),
            )
        )
    return result


def _pairwise_p(scores: np.ndarray, pairs: Sequence[tuple[int, int]], permutations: int, seed: int) -> list[float]:
    """Two-sided paired permutation p of each two systems; the same sign patterns for all."""
    n = len(scores)
    first, second = [i for i, _ in pairs], [j for _, j in pairs]
    differences = scores[:, first] - scores[:, second]
    # In units of the largest difference, so that "as far as" does not depend on the metric's scale.
    size = np.abs(differences).max(axis=0)
    differences = differences / np.where(size > 0, size, 1.0)
    keep, exact = patterns(generator(seed, "compare", "permutation"), n, permutations)
    step = max(1, _CHUNK // n)
    drawn = [(2.0 * keep[start : start + step] - 1) @ differences for start in range(0, len(keep), step)]
    values, observed = np.concatenate(drawn) / n, differences.mean(axis=0)
    found = [permutation_p(float(observed[k]), values[:, k], exact) for k in range(len(pairs))]
    return [p for p in found if p is not None]


@dataclass(frozen=True)
class Disagreement:
    """A document on which two systems' scores lie far apart; ``difference`` = ``score`` − ``baseline``."""

    document: int
    baseline: float
    score: float
    difference: float


def largest_differences(scores: np.ndarray, system: int, count: int) -> list[Disagreement]:
    """Find the ``count`` documents (rows of ``scores``) on which ``system`` and the first differ most, largest first.

    Equal differences stand in the order of the documents.
    """
    difference = scores[:, system] - scores[:, 0]
    order = np.argsort(-np.abs(difference), kind="stable")[:count]
    return [Disagreement(int(d), float(scores[d, 0]), float(scores[d, system]), float(difference[d])) for d in order]

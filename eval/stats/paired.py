"""Which of several systems is better by one metric, all scored on the same documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from negsample.errors import InputError
from negsample.eval.stats.agreement import check_bootstrap
from negsample.eval.stats.significance import holm
from negsample.resampling import bootstrap_p, patterns, permutation_p
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
    scores: np.ndarray,
    *,
    systems: Sequence[str] | None = None,
    documents: Sequence[str] | None = None,
    bootstrap: int = 1000,
    permutations: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
    alpha: float = 0.05,
) -> list[SystemComparison]:
    """Compare the columns of ``scores`` float64 [documents, systems], higher is better; the first is the baseline.

    Paired bootstrap: documents are drawn with replacement, the same for all systems. Paired permutation: the sign of
    each document's difference is turned at random (the labels change places); p = (b + 1)/(m + 1) with b the draws at
    least as far from 0 as the difference observed, or exactly b/2**documents where all sign patterns are no more than
    ``permutations``.

    Rank: every two systems are compared by the paired permutation, Holm-adjusted over all pairs; a system's rank is 1 +
    the number of systems with a higher mean and an adjusted p ≤ ``alpha``.

    Raises InputError for missing or infinite scores (naming document and system), fewer than two systems or documents.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[0] < 2 or scores.shape[1] < 2:
        raise InputError(f"comparing systems needs at least 2 documents × 2 systems, got {list(scores.shape)}")
    check_bootstrap(bootstrap, confidence)
    if permutations < 1:
        raise InputError(f"permutations is {permutations}; give 1 or more")
    n, count = scores.shape
    names = [f"system {s + 1}" for s in range(count)] if systems is None else list(systems)
    labels = [str(d + 1) for d in range(n)] if documents is None else list(documents)
    if len(names) != count or len(labels) != n:
        raise InputError(f"{len(names)} system and {len(labels)} document names for {n} documents × {count} systems")
    bad = np.argwhere(~np.isfinite(scores))
    if len(bad):
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise InputError(
            f"system {names[bad[0][1]]!r} has no score for document {labels[bad[0][0]]!r}{more}; "
            "all systems must be scored on the same documents"
        )

    weights = generator(seed, "compare", "bootstrap").multinomial(n, np.full(n, 1 / n), size=bootstrap)
    sampled = weights @ scores / n
    p = _pairwise_p(scores, permutations, seed)
    adjusted = holm(np.array([p[pair] for pair in combinations(range(count), 2)]))
    means = scores.mean(axis=0)
    better = np.zeros(count, dtype=int)
    for (i, j), value in zip(combinations(range(count), 2), adjusted, strict=True):
        if value <= alpha:
            better[j if means[i] > means[j] else i] += 1
    p_first = holm(np.array([p[0, s] for s in range(1, count)]))

    result = []
    for s, name in enumerate(names):
        low, high = _interval(sampled[:, s], confidence)
        if s == 0:
            result.append(SystemComparison(name, float(means[0]), low, high, 1 + int(better[0]), n))
            continue
        differences = sampled[:, s] - sampled[:, 0]
        difference_low, difference_high = _interval(differences, confidence)
        result.append(
            SystemComparison(
                name,
                float(means[s]),
                low,
                high,
                1 + int(better[s]),
                n,
                float(means[s] - means[0]),
                difference_low,
                difference_high,
                p[0, s],
                bootstrap_p(differences),
                float(p_first[s - 1]),
            )
        )
    return result


def _interval(samples: np.ndarray, confidence: float) -> tuple[float | None, float | None]:
    if len(samples) < 2:
        return None, None
    low, high = np.quantile(samples, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def _pairwise_p(scores: np.ndarray, permutations: int, seed: int) -> dict[tuple[int, int], float]:
    """Two-sided paired permutation p of every two systems; the same sign patterns for all."""
    n, count = scores.shape
    pairs = list(combinations(range(count), 2))
    first, second = [i for i, _ in pairs], [j for _, j in pairs]
    differences = scores[:, first] - scores[:, second]
    # In units of the largest difference, so that "as far as" does not depend on the metric's scale.
    size = np.abs(differences).max(axis=0)
    differences = differences / np.where(size > 0, size, 1.0)
    keep, exact = patterns(generator(seed, "compare", "permutation"), n, permutations)
    step = max(1, _CHUNK // n)
    drawn = [(2.0 * keep[start : start + step] - 1) @ differences for start in range(0, len(keep), step)]
    values, observed = np.concatenate(drawn) / n, differences.mean(axis=0)
    found = {pair: permutation_p(float(observed[k]), values[:, k], exact) for k, pair in enumerate(pairs)}
    return {pair: p for pair, p in found.items() if p is not None}


@dataclass(frozen=True)
class Disagreement:
    """A document on which two systems' scores lie far apart; ``difference`` = ``score`` − ``baseline``."""

    document: int
    baseline: float
    score: float
    difference: float


def largest_differences(scores: np.ndarray, system: int, *, baseline: int = 0, count: int = 10) -> list[Disagreement]:
    """The ``count`` documents (rows of ``scores``) on which ``system`` and ``baseline`` differ most, largest first.

    Equal differences stand in the order of the documents.
    """
    difference = scores[:, system] - scores[:, baseline]
    order = np.argsort(-np.abs(difference), kind="stable")[:count]
    return [
        Disagreement(int(d), float(scores[d, baseline]), float(scores[d, system]), float(difference[d])) for d in order
    ]

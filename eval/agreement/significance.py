"""Is the difference of two metrics' agreement with people real? Williams, paired bootstrap, paired permutation; many
comparisons: Bonferroni and Holm; who beats whom.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from negsample.eval.agreement import levels as lv
from negsample.eval.agreement.permutation import Counted, swapped_differences
from negsample.resampling import bootstrap_p, patterns, percentile_interval, permutation_p
from negsample.seeds import generator

ALPHA = 0.05
WILLIAMS_SUMMARY = "the Williams test is not defined for a mean of per-document correlations"
WILLIAMS_KENDALL = "the Williams test is not defined for Kendall's τ"
WILLIAMS_FEW = "the Williams test needs at least four rows or systems"
WILLIAMS_DEGENERATE = "the two metrics determine each other"


class Williams(NamedTuple):
    """``t`` with n − 3 degrees of freedom; ``p_one``: first > second; ``p_two``: they differ."""

    t: float
    p_one: float
    p_two: float


def williams(r12: float, r13: float, r23: float, n: int) -> Williams | None:
    """Test the difference of two dependent correlations that share variable 1 (the human score).

    ``r12``, ``r13``: correlation of the first and of the second metric with variable 1; ``r23``: of the two metrics;
    ``n``: number of independent rows, at least 4.

    t = (r12 − r13) √( (n − 1)(1 + r23) / ( 2 |R| (n − 1)/(n − 3) + r̄² (1 − r23)³ ) ),
    |R| = 1 − r12² − r13² − r23² + 2 r12 r13 r23,  r̄ = (r12 + r13)/2.

    Williams (1959), "The comparison of regression variables", J. R. Stat. Soc. B 21; as T₂ in Steiger (1980), "Tests
    for comparing elements of a correlation matrix", Psychol. Bull. 87, eq. 7. None where 0/0 (one metric is the other
    turned round); equal correlations give t = 0.
    """
    from scipy.stats import t as student

    determinant = max(0.0, 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23)
    below = 2 * determinant * (n - 1) / (n - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    if r12 == r13:
        return Williams(0.0, 0.5, 1.0)
    if below < 1e-12:
        return None
    t = (r12 - r13) * np.sqrt((n - 1) * (1 + r23) / below)
    return Williams(float(t), float(student.sf(t, n - 3)), float(2 * student.sf(abs(t), n - 3)))


@dataclass(frozen=True)
class MetricsComparison:
    """Two metrics against one human score, over the rows (summary level: the documents) where both are defined.

    ``difference`` = ``value_first`` − ``value_second``; ``low``, ``high``: its percentile interval, documents (system
    level: documents and systems) resampled. ``p_bootstrap``, ``p_permutation``, ``williams_p_two``: two-sided;
    ``williams_p_one``: first better than second. Each is None where undefined; ``reason`` and ``williams_reason`` say
    why.
    """

    dataset: str
    human: str
    level: str
    coefficient: str
    first: str
    second: str
    n: int
    documents: int
    value_first: float | None = None
    value_second: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_bootstrap: float | None = None
    p_permutation: float | None = None
    williams_t: float | None = None
    williams_p_one: float | None = None
    williams_p_two: float | None = None
    reason: str | None = None
    williams_reason: str | None = None


def compare_metrics(
    table: lv.ScoreTable,
    human: str,
    *,
    level: str = "summary",
    coefficient: str = "spearman",
    bootstrap: int = 1000,
    permutations: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[MetricsComparison]:
    """Compare every two metrics of ``table`` by their agreement with the human score ``human``.

    Paired bootstrap: the same resamples for both. Paired permutation: within a random half of the documents the two
    metrics change places, after both were put on one scale, for which see `negsample.eval.agreement.permutation`. Williams:
    pooled and system level, Pearson and Spearman (Clark et al. 2019 use it with Spearman); at the pooled level it takes
    rows that share a document as independent and is too bold. The permutation takes the systems as given: at the system
    level it says whether these systems on other documents would show the difference, not whether other systems would;
    Williams and the bootstrap, which resamples systems too, are for that.
    """
    missing = {name: np.isnan(column) for name, column in table.metrics.items()}
    no_human = np.isnan(table.human[human])
    resamples = lv.make_resamples(table, bootstrap, seed)
    keep, exact = patterns(generator(seed, "permutation", table.dataset), len(table.document_names), permutations)
    exchanges = keep.astype(np.float64), exact
    every = list(combinations(table.metrics, 2))
    groups: dict[bytes, list[tuple[str, str]]] = {}
    for pair in every:
        groups.setdefault(np.packbits(missing[pair[0]] | missing[pair[1]] | no_human).tobytes(), []).append(pair)
    found: dict[tuple[str, str], MetricsComparison] = {}
    for pairs in groups.values():
        columns = list(dict.fromkeys(name for pair in pairs for name in pair))
        block = lv.make_block(table, [*(table.metrics[name] for name in columns), table.human[human]])
        scores = _BlockScores(block, level, coefficient, resamples, exchanges)
        for first, second in pairs:
            values = scores.compare(columns.index(first), columns.index(second))
            found[first, second] = MetricsComparison(table.dataset, human, level, coefficient, first, second, **values)
            if progress:
                progress(len(found), len(every))
    return [found[pair] for pair in every]


class _BlockScores:
    """What the comparisons of one block share: values and resamples of each metric against the human score."""

    def __init__(
        self, block: lv.Block, level: str, coefficient: str, resamples: lv.Resamples, exchanges: tuple[np.ndarray, bool]
    ) -> None:
        self.block, self.level, self.coefficient = block, level, coefficient
        self.resamples, (self.keep, self.exact) = resamples, exchanges
        self.counted: Counted = {}
        human = len(block.values) - 1
        with_human = [(k, human) for k in range(human)]
        if level == "summary":
            self.per_document = lv.document_correlations(block, coefficient, with_human)
        else:
            pairs = list(combinations(range(human + 1), 2))
            self.point = dict(zip(pairs, lv.block_correlations(block, level, coefficient, pairs), strict=True))
            self.samples = lv.resampled_correlations(block, level, coefficient, with_human, resamples)

    def compare(self, i: int, j: int) -> dict[str, Any]:
        """Compare columns ``i`` and ``j``: the fields of a `MetricsComparison` from ``n`` on."""
        n, documents = self.block.values.shape[1], len(np.unique(self.block.documents))
        both = None
        if self.level == "summary":
            both = self.per_document[:, [i, j]]
            both = np.where(np.isnan(both).any(axis=1, keepdims=True), np.nan, both)
            first, second = lv.averaged(both, np.ones((1, len(both))))[0]
            samples = lv.averaged(both, self.resamples.weights)
            used = ~np.isnan(both[:, 0])
            n, documents = int(used[self.block.documents].sum()), int(used.sum())
        else:
            human = len(self.block.values) - 1
            first, second = self.point[i, human], self.point[j, human]
            samples = self.samples[:, [i, j]]
        if np.isnan(first) or np.isnan(second):
            return {
                "n": n,
                "documents": documents,
                "reason": f"no {self.level}-level correlation with the human score for both metrics",
                "williams_reason": "no two correlations to compare",
            }
        differences = samples[:, 0] - samples[:, 1]
        low, high, _ = percentile_interval(differences)
        p_permutation = None
        if len(self.keep) and not lv.too_long(self.block, self.level, self.coefficient):
            drawn = swapped_differences(self.block, self.level, self.coefficient, i, j, self.keep, both, self.counted)
            p_permutation = permutation_p(first - second, drawn, self.exact)
        return {
            "n": n,
            "documents": documents,
            "value_first": float(first),
            "value_second": float(second),
            "difference": float(first - second),
            "low": low,
            "high": high,
            "p_bootstrap": bootstrap_p(differences),
            "p_permutation": p_permutation,
            **self._williams(float(first), float(second), i, j),
        }

    def _williams(self, first: float, second: float, i: int, j: int) -> dict[str, Any]:
        if self.level == "summary":
            return {"williams_reason": WILLIAMS_SUMMARY}
        if self.coefficient == "kendall":
            return {"williams_reason": WILLIAMS_KENDALL}
        n = len(self.block.known_systems()) if self.level == "system" else self.block.values.shape[1]
        if n < 4:
            return {"williams_reason": WILLIAMS_FEW}
        test = williams(first, second, float(self.point[min(i, j), max(i, j)]), n)
        if test is None:
            return {"williams_reason": WILLIAMS_DEGENERATE}
        return {f"williams_{name}": value for name, value in test._asdict().items()}


def bonferroni(p: np.ndarray | Sequence[float]) -> np.ndarray:
    """Return min(1, m p), m the number of p that are not NaN; NaN stays NaN. Any shape."""
    values = np.asarray(p, dtype=np.float64)
    return np.minimum(1.0, values * np.count_nonzero(~np.isnan(values)))


def holm(p: np.ndarray | Sequence[float]) -> np.ndarray:
    """Adjust p by Holm's step-down: the k-th smallest of m times (m − k + 1), never below the ones before, at most 1.

    NaN stays NaN and does not count in m. Any shape. Holm (1979), "A simple sequentially rejective multiple test
    procedure", Scand. J. Stat. 6.
    """
    values = np.asarray(p, dtype=np.float64)
    flat = values.ravel()
    good = np.flatnonzero(~np.isnan(flat))
    order = good[np.argsort(flat[good], kind="stable")]
    adjusted = np.full(flat.shape, np.nan)
    steps = flat[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps)) if len(order) else []
    return adjusted.reshape(values.shape)


@dataclass(frozen=True)
class BeatsMatrix:
    """``p[i][j]``: adjusted p of the difference of ``names[i]`` and ``names[j]`` (symmetric; None on the diagonal and
    where undefined). ``beats[i][j]``: i agrees better with people than j, and p ≤ `ALPHA`.
    """

    names: tuple[str, ...]
    p: tuple[tuple[float | None, ...], ...]
    beats: tuple[tuple[bool, ...], ...]
    test: str
    adjustment: str = "holm"
    alpha: float = ALPHA


def beats_matrix(comparisons: Sequence[MetricsComparison], test: str) -> BeatsMatrix:
    """Tell who beats whom, from the comparisons of one human score at one level with one coefficient.

    ``test``: "permutation" or "williams", whose two-sided p is Holm-adjusted over all the comparisons given.
    """
    raw = [c.williams_p_two if test == "williams" else c.p_permutation for c in comparisons]
    adjusted = holm([np.nan if value is None else value for value in raw])
    names = tuple(dict.fromkeys(name for c in comparisons for name in (c.first, c.second)))
    p: list[list[float | None]] = [[None] * len(names) for _ in names]
    beats = [[False] * len(names) for _ in names]
    for comparison, value in zip(comparisons, adjusted, strict=True):
        if np.isnan(value) or comparison.difference is None:
            continue
        i, j = names.index(comparison.first), names.index(comparison.second)
        p[i][j] = p[j][i] = float(value)
        beats[i][j] = bool(value <= ALPHA and comparison.difference > 0)
        beats[j][i] = bool(value <= ALPHA and comparison.difference < 0)
    return BeatsMatrix(names, tuple(map(tuple, p)), tuple(map(tuple, beats)), test)

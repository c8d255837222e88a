"""Is the difference of two metrics' agreement with people real? Williams, paired bootstrap, paired permutation; many
comparisons: Bonferroni and Holm; who beats whom.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from negsample.errors import InputError
from negsample.eval.stats import correlation_levels as lv
from negsample.eval.stats.agreement import KENDALL_ROWS, check_bootstrap
from negsample.eval.stats.correlation import check_coefficient
from negsample.eval.stats.permutation import Own, Swaps, make_swaps, swapped_differences
from negsample.resampling import bootstrap_p, percentile_interval, permutation_p

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
    """Test of the difference of two dependent correlations that share variable 1 (the human score).

    ``r12``, ``r13``: correlation of the first and of the second metric with variable 1; ``r23``: of the two metrics;
    ``n``: number of independent rows, at least 4.

    t = (r12 − r13) √( (n − 1)(1 + r23) / ( 2 |R| (n − 1)/(n − 3) + r̄² (1 − r23)³ ) ),
    |R| = 1 − r12² − r13² − r23² + 2 r12 r13 r23,  r̄ = (r12 + r13)/2.

    Williams (1959), "The comparison of regression variables", J. R. Stat. Soc. B 21; as T₂ in Steiger (1980), "Tests
    for comparing elements of a correlation matrix", Psychol. Bull. 87, eq. 7. None where 0/0 (one metric is the other
    turned round); equal correlations give t = 0. Raises InputError for correlations outside [−1, 1] and n < 4.
    """
    from scipy.stats import t as student

    for value in (r12, r13, r23):
        if not -1 <= value <= 1:
            raise InputError(f"{value} is not a correlation; give numbers between -1 and 1")
    if n < 4:
        raise InputError(f"the Williams test needs at least 4 rows, got {n}")
    determinant = max(0.0, 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23)
    below = 2 * determinant * (n - 1) / (n - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    if r12 == r13:
        return Williams(0.0, 0.5, 1.0)
    if below < 1e-12:
        return None
    t = (r12 - r13) * np.sqrt((n - 1) * (1 + r23) / below)
    return Williams(float(t), float(student.sf(t, n - 3)), float(2 * student.sf(abs(t), n - 3)))


@dataclass(frozen=True)
class Comparison:
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
    table: lv.Table,
    human: str,
    *,
    level: str = "summary",
    coefficient: str = "spearman",
    metrics: Sequence[str] | None = None,
    bootstrap: int = 1000,
    permutations: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    progress: Callable[[int, int], None] | None = None,
) -> list[Comparison]:
    """Every two of ``metrics`` (default: all of the table) against the human score ``human``.

    Paired bootstrap: the same resamples for both. Paired permutation: within a random half of the documents the two
    metrics change places, after both were put on one scale, for which see `negsample.eval.stats.permutation`. Williams:
    pooled and system level, Pearson and Spearman (P0 uses it with Spearman); at the pooled level it takes rows that
    share a document as independent and is too bold. The permutation takes the systems as given: at the system level it
    says whether these systems on other documents would show the difference, not whether other systems would; Williams
    and the bootstrap, which resamples systems too, are for that.

    Raises InputError for unknown names and impossible numbers.
    """
    check_coefficient(coefficient)
    if level not in lv.LEVELS:
        raise InputError(f"no level is called {level!r}; known: {', '.join(lv.LEVELS)}")
    check_bootstrap(bootstrap, confidence)
    if permutations < 0:
        raise InputError(f"permutations is {permutations}; give a number of 0 or more")
    names = list(table.metrics if metrics is None else metrics)
    missing = {name: np.isnan(table.column(name)) for name in names}
    no_human = np.isnan(table.judgment(human))
    resamples = lv.make_resamples(table, bootstrap, seed)
    swaps = make_swaps(seed, table.dataset, len(table.document_names), permutations)
    groups: dict[bytes, list[tuple[str, str]]] = {}
    for pair in combinations(names, 2):
        groups.setdefault(np.packbits(missing[pair[0]] | missing[pair[1]] | no_human).tobytes(), []).append(pair)
    found: dict[tuple[str, str], Comparison] = {}
    for pairs in groups.values():
        columns = list(dict.fromkeys(name for pair in pairs for name in pair))
        block = lv.make_block(table, [*(table.metrics[name] for name in columns), table.human[human]])
        scores = _Scores(block, level, coefficient, resamples, swaps)
        for first, second in pairs:
            empty = Comparison(
                table.dataset, human, level, coefficient, first, second, block.values.shape[1], len(block.present())
            )
            found[first, second] = _compare(empty, scores, columns.index(first), columns.index(second), confidence)
            if progress:
                progress(len(found), len(names) * (len(names) - 1) // 2)
    return [found[pair] for pair in combinations(names, 2)]


class _Scores:
    """What the comparisons of one block share: values and resamples of each metric against the human score."""

    def __init__(self, block: lv.Block, level: str, coefficient: str, resamples: lv.Resamples, swaps: Swaps) -> None:
        self.block, self.level, self.coefficient = block, level, coefficient
        self.resamples, self.swaps = resamples, swaps
        self.own: Own = {}
        human = len(block.values) - 1
        pairs = [(k, human) for k in range(human)]
        nothing = np.full((0, human), np.nan)
        self.per_document = lv.document_correlations(block, coefficient, pairs) if level == "summary" else nothing
        self.samples = nothing
        self.matrix = np.full((human + 1, human + 1), np.nan)
        if level == "pooled":
            everything = list(combinations(range(human + 1), 2))
            for (i, j), value in zip(everything, lv.pooled_point(block, coefficient, everything), strict=True):
                self.matrix[i, j] = self.matrix[j, i] = value
            if len(resamples.weights) and not self.too_long():
                self.samples = lv.pooled_samples(block, coefficient, pairs, resamples)
        elif level == "system":
            self.matrix = lv.system_point(block, coefficient)
            if len(resamples.weights):
                self.samples = lv.system_samples(block, coefficient, pairs, resamples)

    def too_long(self) -> bool:
        """Whether resampled Kendall correlations of all rows would take too long."""
        return self.level == "pooled" and self.coefficient == "kendall" and self.block.values.shape[1] > KENDALL_ROWS


def _compare(empty: Comparison, scores: _Scores, i: int, j: int, confidence: float) -> Comparison:
    if scores.level == "summary":
        both = scores.per_document[:, [i, j]]
        both = np.where(np.isnan(both).any(axis=1, keepdims=True), np.nan, both)
        values = lv.averaged(both, np.ones((1, len(both))))[0]
        samples = lv.averaged(both, scores.resamples.weights)
        used = ~np.isnan(both[:, 0])
        empty = replace(empty, documents=int(used.sum()), n=int(used[scores.block.documents].sum()))
    else:
        both = None
        values = scores.matrix[[i, j], -1]
        samples = scores.samples[:, [i, j]]
    if np.isnan(values).any():
        return replace(
            empty,
            reason=f"no {scores.level}-level correlation with the human score for both metrics",
            williams_reason="no two correlations to compare",
        )
    differences = samples[:, 0] - samples[:, 1]
    low, high, _ = percentile_interval(differences, confidence)
    drawn = None
    if len(scores.swaps.keep) and not scores.too_long():
        drawn = swapped_differences(
            scores.block, scores.level, scores.coefficient, i, j, scores.swaps, both, scores.own
        )
    result = replace(
        empty,
        value_first=float(values[0]),
        value_second=float(values[1]),
        difference=float(values[0] - values[1]),
        low=low,
        high=high,
        p_bootstrap=bootstrap_p(differences),
        p_permutation=None if drawn is None else permutation_p(values[0] - values[1], drawn, scores.swaps.exact),
    )
    return _with_williams(result, scores, i, j)


def _with_williams(result: Comparison, scores: _Scores, i: int, j: int) -> Comparison:
    if scores.level == "summary":
        return replace(result, williams_reason=WILLIAMS_SUMMARY)
    if scores.coefficient == "kendall":
        return replace(result, williams_reason=WILLIAMS_KENDALL)
    n = result.n
    if scores.level == "system":
        n = len(np.unique(scores.block.systems[scores.block.systems >= 0]))
    if n < 4:
        return replace(result, williams_reason=WILLIAMS_FEW)
    assert result.value_first is not None
    assert result.value_second is not None
    test = williams(result.value_first, result.value_second, float(scores.matrix[i, j]), n)
    if test is None:
        return replace(result, williams_reason=WILLIAMS_DEGENERATE)
    return replace(result, williams_t=test.t, williams_p_one=test.p_one, williams_p_two=test.p_two)


def bonferroni(p: np.ndarray | Sequence[float]) -> np.ndarray:
    """min(1, m p), m the number of p that are not NaN; NaN stays NaN. Any shape."""
    values = np.asarray(p, dtype=np.float64)
    return np.minimum(1.0, values * np.count_nonzero(~np.isnan(values)))


def holm(p: np.ndarray | Sequence[float]) -> np.ndarray:
    """Holm's step-down adjusted p: the k-th smallest of m times (m − k + 1), never below the ones before, at most 1.

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
    where undefined). ``beats[i][j]``: i agrees better with people than j, and p ≤ alpha.
    """

    names: tuple[str, ...]
    p: tuple[tuple[float | None, ...], ...]
    beats: tuple[tuple[bool, ...], ...]
    test: str
    adjustment: str
    alpha: float


def beats_matrix(
    comparisons: Sequence[Comparison], *, test: str = "permutation", adjust: str = "holm", alpha: float = 0.05
) -> BeatsMatrix:
    """Who beats whom, from the comparisons of one human score at one level with one coefficient.

    ``test``: "permutation", "bootstrap" or "williams" (two-sided p); ``adjust`` over all the comparisons given: "holm",
    "bonferroni" or "none". Raises InputError for other names and for comparisons of different kinds.
    """
    fields = {"permutation": "p_permutation", "bootstrap": "p_bootstrap", "williams": "williams_p_two"}
    adjustments: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "holm": holm,
        "bonferroni": bonferroni,
        "none": lambda p: p,
    }
    if test not in fields:
        raise InputError(f"no test is called {test!r}; known: {', '.join(fields)}")
    if adjust not in adjustments:
        raise InputError(f"no adjustment is called {adjust!r}; known: {', '.join(adjustments)}")
    if len({(c.dataset, c.human, c.level, c.coefficient) for c in comparisons}) > 1:
        raise InputError("a matrix of who beats whom takes one data set, human score, level and coefficient")
    raw = [getattr(c, fields[test]) for c in comparisons]
    adjusted = adjustments[adjust](np.array([np.nan if p is None else p for p in raw], dtype=np.float64))
    names = tuple(dict.fromkeys(name for c in comparisons for name in (c.first, c.second)))
    p: list[list[float | None]] = [[None] * len(names) for _ in names]
    beats = [[False] * len(names) for _ in names]
    for comparison, value in zip(comparisons, adjusted, strict=True):
        if np.isnan(value) or comparison.difference is None:
            continue
        i, j = names.index(comparison.first), names.index(comparison.second)
        p[i][j] = p[j][i] = float(value)
        beats[i][j] = bool(value <= alpha and comparison.difference > 0)
        beats[j][i] = bool(value <= alpha and comparison.difference < 0)
    return BeatsMatrix(names, tuple(map(tuple, p)), tuple(map(tuple, beats)), test, adjust, alpha)

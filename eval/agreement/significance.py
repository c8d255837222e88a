"""Is the difference of two metrics' agreement with people real? Williams, paired bootstrap, paired permutation; many
comparisons: Bonferroni and Holm; who beats whom.

The permutation: within some documents two metrics change places, and their correlations are taken again. If the metrics
were exchangeable, which of the two a document's scores came from would not matter. The scores of a document change places
together, because a document's rows are not independent. First both metrics are put on one scale within the data set (over
the rows used), which leaves each one's own correlation as it was: z-scores; at the system level, then means per system.
The summary level needs none: exchanging the labels of a document turns the sign of its difference of correlations.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from negsample.eval.agreement import levels as lv
from negsample.eval.agreement.columns import TRIVIAL
from negsample.eval.agreement.correlation import standardised
from negsample.eval.agreement.figures import AgreementFigure
from negsample.eval.agreement.levels import MAIN_COEFFICIENT
from negsample.resampling import bootstrap_p, patterns, permutation_p, resampled_interval
from negsample.seeds import generator

ALPHA = 0.05
# Williams is exact where rows are independent (systems); the permutation keeps a document's rows together.
TESTS = {level: "williams" if level == "system" else "permutation" for level in MAIN_COEFFICIENT}
WILLIAMS_SUMMARY = "the Williams test is not defined for a mean of per-document correlations"
WILLIAMS_LABELS = "the Williams test compares correlations"
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

    ``coefficient``: the level's in `MAIN_COEFFICIENT`. ``difference`` = ``value_first`` − ``value_second``; ``low``,
    ``high``: its percentile interval, documents (system level: documents and systems) resampled. ``p_bootstrap``,
    ``p_permutation``, ``williams_p_two``: two-sided; ``williams_p_one``: first better than second. Each is None where
    undefined; ``reason`` and ``williams_reason`` say why.
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
    bootstrap: int = 1000,
    permutations: int = 1000,
    seed: int = 0,
) -> list[MetricsComparison]:
    """Compare every two metrics of ``table`` by their agreement with the human score ``human``, by `MAIN_COEFFICIENT`.

    Paired bootstrap: the same resamples for both. Paired permutation: within a random half of the documents the two
    metrics change places. Williams: pooled and system level (Clark et al. 2019 use it with Spearman); at the pooled level
    it takes rows that share a document as independent and is too bold. The permutation takes the systems as given: at the
    system level it says whether these systems on other documents would show the difference, not whether other systems
    would; Williams and the bootstrap, which resamples systems too, are for that.
    """
    missing = {name: np.isnan(column) for name, column in table.metrics.items()}
    no_human = np.isnan(table.human[human])
    resamples = lv.make_resamples(table, bootstrap, seed)
    keep, exact = patterns(generator(seed, "permutation", table.dataset), len(table.document_names), permutations)
    exchanges = keep.astype(np.float64)
    every = list(combinations(table.metrics, 2))
    groups: dict[bytes, list[tuple[str, str]]] = {}
    for pair in every:
        groups.setdefault(np.packbits(missing[pair[0]] | missing[pair[1]] | no_human).tobytes(), []).append(pair)
    found: dict[tuple[str, str], MetricsComparison] = {}
    for pairs in groups.values():
        columns = list(dict.fromkeys(name for pair in pairs for name in pair))
        block = lv.make_block(table, [*(table.metrics[name] for name in columns), table.human[human]])
        places = [(columns.index(first), columns.index(second)) for first, second in pairs]
        compared = _compared(block, level, places, resamples, exchanges, exact)
        for (first, second), values in zip(pairs, compared, strict=True):
            about = (table.dataset, human, level, MAIN_COEFFICIENT[level], first, second)
            found[first, second] = MetricsComparison(*about, **values)
    return [found[pair] for pair in every]


def _compared(
    block: lv.Block, level: str, pairs: lv.Pairs, resamples: lv.Resamples, keep: np.ndarray, exact: bool
) -> Iterator[dict[str, Any]]:
    """For each pair of columns the fields of a `MetricsComparison` from ``n`` on; the last column is the human score."""
    human, coefficient, point = len(block.values) - 1, MAIN_COEFFICIENT[level], dict[tuple[int, int], float]()
    with_human = [(k, human) for k in range(human)]
    if level == "summary":
        per_document = lv.document_correlations(block, coefficient, with_human)
    else:
        every = with_human if level == "label" else list(combinations(range(human + 1), 2))
        point = dict(zip(every, lv.block_correlations(block, level, coefficient, every).tolist(), strict=True))
        every_sample = lv.resampled_correlations(block, level, coefficient, with_human, resamples)
    why = {"summary": WILLIAMS_SUMMARY, "label": WILLIAMS_LABELS}.get(level)
    for i, j in pairs:
        n, documents, both = block.values.shape[1], len(np.unique(block.documents)), None
        if level == "summary":
            both = per_document[:, [i, j]]
            both = np.where(np.isnan(both).any(axis=1, keepdims=True), np.nan, both)
            first, second = lv.averaged(both, np.ones((1, len(both))))[0].tolist()
            samples = lv.averaged(both, resamples.weights)
            used = ~np.isnan(both[:, 0])
            n, documents = int(used[block.documents].sum()), int(used.sum())
        else:
            first, second, samples = point[i, human], point[j, human], every_sample[:, [i, j]]
        values: dict[str, Any] = {"n": n, "documents": documents}
        if np.isnan(first) or np.isnan(second):
            reason = f"no {level}-level correlation with the human score for both metrics"
            yield {**values, "reason": reason, "williams_reason": "no two correlations to compare"}
            continue
        drawn = swapped_differences(block, level, i, j, keep, both)
        values |= difference_fields(first, second, samples[:, 0] - samples[:, 1], drawn, exact, documents)
        rows = len(block.known_systems()) if level == "system" else n
        between = point.get((min(i, j), max(i, j)), np.nan)
        test = williams(first, second, between, rows) if not np.isnan(between) and rows >= 4 else None
        if test is None:
            yield {**values, "williams_reason": why or (WILLIAMS_FEW if rows < 4 else WILLIAMS_DEGENERATE)}
        else:
            yield values | {f"williams_{name}": value for name, value in test._asdict().items()}


def difference_fields(
    first: float, second: float, samples: np.ndarray, exchanged: np.ndarray, exact: bool, documents: int
) -> dict[str, Any]:
    """The fields of a `MetricsComparison` on the difference of two values of ``documents``: ``samples`` [B] of it in resamples,
    and where labels are ``exchanged`` [P], in all ways if ``exact``.
    """
    low, high, _ = resampled_interval(samples, documents)
    p = {
        "p_bootstrap": bootstrap_p(samples, documents),
        "p_permutation": permutation_p(first - second, exchanged, exact),
    }
    told = {"value_first": first, "value_second": second, "difference": first - second}
    return {**told, "low": low, "high": high, **p}


# --- the permutation


def swapped_differences(
    block: lv.Block, level: str, i: int, j: int, keep: np.ndarray, per_document: np.ndarray | None = None
) -> np.ndarray:
    """[P]: difference of the correlations of columns ``i`` and ``j`` with the last column under each exchange.

    ``keep`` float64 [P, D]: 1 where the document keeps its labels, 0 where they change places. ``per_document`` [D, 2]:
    the two columns' correlations within each document (summary level only).
    """
    if level == "summary":
        assert per_document is not None
        difference = np.subtract(*per_document.T)
        defined = ~np.isnan(difference)
        return (2 * keep[:, defined] - 1) @ difference[defined] / defined.sum()
    if level == "label":
        return (2 * keep - 1) @ _auc_shares(block, i, j)
    known = block.systems >= 0 if level == "system" else slice(None)
    a, b, human = standardised(block.values[[i, j, -1]][:, known])
    if level == "pooled":
        # Pearson of the exchanged columns with the human score, by sums per document.
        present, starts = np.unique(block.documents, return_index=True)
        sums = np.add.reduceat(np.stack([a, b, a * a, b * b, a * human, b * human]), starts, axis=1)
        own, other, kept = sums[[0, 2, 4]].T, sums[[1, 3, 5]].T, keep[:, present]
        first, second = kept @ own + (1 - kept) @ other, kept @ other + (1 - kept) @ own
        return _pearson_of_sums(first, len(human)) - _pearson_of_sums(second, len(human))
    _, systems, counts = np.unique(block.systems[known], return_inverse=True, return_counts=True)
    d, s = block.total_documents, len(counts)
    cell = block.documents[known] * s + systems
    of_a, of_b, of_human = (np.bincount(cell, weights=c, minlength=d * s).reshape(d, s) for c in (a, b, human))
    first, second = keep @ of_a + (1 - keep) @ of_b, keep @ of_b + (1 - keep) @ of_a
    third = np.broadcast_to(of_human.sum(axis=0), first.shape)
    means = np.round(np.stack([first, second, third], axis=1) / counts, 12)
    matrices = lv.stacked(means.__getitem__, len(keep), 3, s, MAIN_COEFFICIENT[level])
    return matrices[:, 0, 2] - matrices[:, 1, 2]


def _auc_shares(block: lv.Block, i: int, j: int) -> np.ndarray:
    """[D]: what each document adds to AUC of column ``i`` − AUC of column ``j``; where its labels change places, it is taken off.

    The scale is that of ranks. For a pair (good, bad) of documents c and d, of signs s and t (1: kept, −1: exchanged), the
    difference of the exchanged columns has no term in s t: it is a sum of a part times s and a part times t.
    """
    from scipy.stats import rankdata

    a, b = rankdata(block.values[[i, j]], axis=-1)
    good = block.values[-1] == block.values[-1].max()
    parts = np.empty(len(a))
    for side, sign in ((good, 1), (~good, -1)):
        others = np.sort(np.concatenate([a[~side], b[~side]]))
        below = [np.searchsorted(others, c[side]) + np.searchsorted(others, c[side], side="right") for c in (a, b)]
        parts[side] = sign * (below[0] - below[1]) / 4
    return np.bincount(block.documents, parts, block.total_documents) / (good.sum() * (~good).sum())


def _pearson_of_sums(sums: np.ndarray, n: int) -> np.ndarray:
    """From Σx, Σx², Σxh [P, 3], h standardised over the n rows."""
    variance = sums[:, 1] / n - (sums[:, 0] / n) ** 2
    return sums[:, 2] / n / np.sqrt(np.where(variance > 1e-14, variance, np.nan))


# --- many comparisons


def bonferroni(p: np.ndarray | Sequence[float]) -> np.ndarray:
    """Return min(1, m p), m the number of p that are not NaN; NaN stays NaN."""
    values = np.asarray(p, dtype=np.float64)
    return np.minimum(1.0, values * np.count_nonzero(~np.isnan(values)))


def holm(p: np.ndarray | Sequence[float]) -> np.ndarray:
    """Adjust p by Holm's step-down: the k-th smallest of m times (m − k + 1), never below the ones before, at most 1.

    NaN stays NaN and does not count in m. Holm (1979), "A simple sequentially rejective multiple test procedure", Scand. J.
    Stat. 6.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")  # NaN last
    steps = values[order] * (np.count_nonzero(~np.isnan(values)) - np.arange(len(values)))
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


@dataclass(frozen=True)
class BeatsMatrix:
    """``p[i][j]``: adjusted p of the difference of ``names[i]`` and ``names[j]`` (symmetric; None on the diagonal and
    where undefined). ``beats[i][j]``: i agrees better with people than j, and p ≤ `ALPHA`.
    """

    names: tuple[str, ...]
    p: tuple[tuple[float | None, ...], ...]
    beats: tuple[tuple[bool, ...], ...]
    test: str


def beats_matrix(comparisons: Sequence[MetricsComparison], test: str) -> BeatsMatrix:
    """Tell who beats whom, from the comparisons of one human score at one level with one coefficient.

    ``test``: "permutation" or "williams", whose two-sided p is Holm-adjusted over all the comparisons given.
    """
    raw = [c.williams_p_two if test == "williams" else c.p_permutation for c in comparisons]
    adjusted = holm([np.nan if value is None else value for value in raw])
    names = tuple(dict.fromkeys(name for c in comparisons for name in (c.first, c.second)))
    p: list[list[float | None]] = [[None] * len(names) for _ in names]
    beats = [[False] * len(names) for _ in names]
    for comparison, value in zip(comparisons, adjusted.tolist(), strict=True):
        i, j = names.index(comparison.first), names.index(comparison.second)
        if comparison.difference is not None and not np.isnan(value):
            p[i][j] = p[j][i] = value
            beats[i][j] = value <= ALPHA and comparison.difference > 0
            beats[j][i] = value <= ALPHA and comparison.difference < 0
    return BeatsMatrix(names, tuple(map(tuple, p)), tuple(map(tuple, beats)), test)


@dataclass(frozen=True)
class BaselineVerdict:
    """A metric beside the best trivial baseline of the same data set, human score, level and coefficient.

    ``above``: the metric's value is higher. ``clear``: the paired test (Holm over all pairs of the table) finds the
    two different in that direction; None where they were not compared.
    """

    baseline: str
    baseline_value: float
    above: bool
    clear: bool | None

    @property
    def text(self) -> str:
        """For a table: above or below the baseline where the test tells them apart, else more carefully put."""
        if self.above:
            return f"above {self.baseline}" + (", not clearly" if self.clear is False else "")
        return f"{'below' if self.clear else 'not above'} {self.baseline}"


def baseline_verdicts(
    figures: Sequence[AgreementFigure], beats: Mapping[tuple[str, str], BeatsMatrix]
) -> dict[tuple[str, str, str, str], BaselineVerdict]:
    """(human, metric, level, coefficient) → verdict, for every figure of one data set that has a value.

    The trivial baselines have none, and neither has a figure beside which no trivial baseline has a value.
    """
    best, found = dict[tuple[str, str, str], tuple[float, str]](), {}
    valued = [(f, (f.human, f.level, f.coefficient), f.value) for f in figures if f.value is not None]
    for figure, key, value in valued:
        if figure.metric in TRIVIAL and (key not in best or value > best[key][0]):
            best[key] = value, figure.metric
    for figure, key, value in valued:
        if figure.metric in TRIVIAL or key not in best:
            continue
        (most, rival), matrix, clear = best[key], beats.get((figure.human, figure.level)), None
        main = MAIN_COEFFICIENT[figure.level] == figure.coefficient
        if matrix and main and {figure.metric, rival} <= {*matrix.names}:
            i, j = matrix.names.index(figure.metric), matrix.names.index(rival)
            clear = matrix.beats[i][j] if value > most else matrix.beats[j][i]
        verdict = BaselineVerdict(rival, most, value > most, clear)
        found[figure.human, figure.metric, figure.level, figure.coefficient] = verdict
    return found

"""Williams by hand, permutation and bootstrap against explicit ones, corrections, who beats whom."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from negsample.eval.agreement import significance as sg
from negsample.eval.agreement.levels import MAIN_COEFFICIENT, make_block, make_resamples, make_table
from negsample.eval.agreement.significance import (
    MetricsComparison,
    beats_matrix,
    bonferroni,
    compare_metrics,
    holm,
    swapped_differences,
    williams,
)
from negsample.resampling import bootstrap_p, patterns, permutation_p

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}
LEVELS = ("pooled", "summary", "system")


def exchangeable(documents=10, systems=6, seed=0, ties=False):
    """Two metrics that are the human score plus noise of the same law: no difference to be found."""
    rng = np.random.default_rng(seed)
    d, s = (a.ravel() for a in np.meshgrid(np.arange(documents), np.arange(systems), indexing="ij"))
    human = rng.normal(size=systems)[s] + rng.normal(size=documents)[d] + rng.normal(size=len(d))
    a, b = human + rng.normal(size=(2, len(d)))
    if ties:
        human, a, b = np.round(human), np.round(a), np.round(b)
    return make_table(
        "null", [f"d{i:02}" for i in d], [f"s{i}" for i in s], {"h": human}, {"a": a, "b": b}, np.arange(len(d))
    )


@pytest.mark.parametrize(
    ("given", "t", "above"),
    [
        # |R| = 1 − .25 − .09 − .16 + 2·.5·.3·.4 = .62;  r̄² (1 − r23)³ = .16 · .216 = .03456
        # t = .2 √(22 · 1.4 / (2 · .62 · 22/20 + .03456)) = .2 · 4.692824
        ((0.5, 0.3, 0.4, 23), 0.938565, lambda t: stats.t.sf(t, 20)),
        # |R| = .326, r̄² (1 − r23)³ = .08575, t = .6 √(5.2 / 1.38975). With 2 degrees of freedom P(T > t) = ½ − t/(2√(2 + t²)).
        ((0.8, 0.2, 0.3, 5), 1.160605, lambda t: 0.5 - t / (2 * math.sqrt(2 + t**2))),
        # |R| = .63, r̄² (1 − r23)³ = .1225, t = −.5 √(3 / 3.9025). With 1 degree of freedom P(T > t) = ½ − arctan(t)/π.
        ((0.1, 0.6, 0.0, 4), -0.438390, lambda t: 0.5 - math.atan(t) / math.pi),
    ],
)
def test_williams_by_hand(given, t, above):
    found = williams(*given)
    assert found.t == pytest.approx(t, abs=2e-6)
    assert found.p_one == pytest.approx(above(t), abs=1e-6)
    assert found.p_two == pytest.approx(2 * min(found.p_one, 1 - found.p_one))
    r12, r13, r23, n = given
    assert (-found.t, 1 - found.p_one) == pytest.approx(williams(r13, r12, r23, n)[:2])
    assert (williams(0.4, 0.4, 1.0, 10), williams(0.5, -0.5, -1.0, 10)) == ((0.0, 0.5, 1.0), None)


def test_holm_and_bonferroni_by_hand():
    p = [0.01, 0.04, 0.03, np.nan, 0.005]
    # Sorted .005 .01 .03 .04, times 4 3 2 1: .02 .03 .06 .04; the last may not fall below .06.
    np.testing.assert_allclose(holm(p), [0.03, 0.06, 0.06, np.nan, 0.02])
    np.testing.assert_allclose(bonferroni(p), [0.04, 0.16, 0.12, np.nan, 0.02])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_laws(p):
    adjusted = holm(p)
    assert (adjusted >= np.array(p)).all()
    assert (adjusted <= bonferroni(p) + 1e-15).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()


def explicit_difference(block, level, keep):
    """Exchange whole documents of the two standardised columns, then scipy."""
    f = SCIPY[MAIN_COEFFICIENT[level]]
    a, b, h = (stats.zscore(v) for v in block.values)
    stay = keep[block.documents] == 1
    first, second = np.where(stay, a, b), np.where(stay, b, a)
    if level == "pooled":
        return f(first, h)[0] - f(second, h)[0]
    if level == "system":
        means = [[v[block.systems == s].mean() for s in np.unique(block.systems)] for v in (first, second, h)]
        return f(means[0], means[2])[0] - f(means[1], means[2])[0]
    rows = [block.documents == d for d in np.unique(block.documents)]
    return np.mean([f(first[i], h[i])[0] - f(second[i], h[i])[0] for i in rows])


@pytest.mark.parametrize("level", LEVELS)
def test_exchanges_equal_explicit_ones(level):
    table = exchangeable(documents=8, systems=5, seed=1, ties=level != "system")
    block = make_block(table, [table.metrics["a"], table.metrics["b"], table.human["h"]])
    keep = patterns(np.random.default_rng(0), 8, 25)[0].astype(float)
    rows = [block.documents == d for d in range(8)]
    own = [[stats.spearmanr(block.values[k, i], block.values[2, i])[0] for k in (0, 1)] for i in rows]
    found = swapped_differences(block, level, 0, 1, keep, np.array(own))
    np.testing.assert_allclose(found, [explicit_difference(block, level, row) for row in keep], atol=1e-10)


def test_three_metrics_have_the_p_of_each_two_alone():
    table = exchangeable(documents=10, systems=5, seed=7, ties=True)
    rng = np.random.default_rng(8)
    three = replace(table, metrics={**table.metrics, "c": np.round(table.human["h"] + rng.normal(size=50))})
    for level in LEVELS:
        options = {"level": level, "bootstrap": 30, "permutations": 50}
        together = compare_metrics(three, "h", **options)
        for pair, x in zip(("ab", "ac", "bc"), together, strict=True):
            y = compare_metrics(replace(three, metrics={name: three.metrics[name] for name in pair}), "h", **options)[0]
            assert (x.first, x.second) == tuple(pair)
            assert (x.difference, x.low, x.high, x.p_permutation) == pytest.approx(
                (y.difference, y.low, y.high, y.p_permutation), abs=1e-12
            )


def test_williams_where_it_is_defined():
    table = exchangeable(documents=12, systems=9, seed=4)
    block = make_block(table, [table.metrics["a"], table.metrics["b"], table.human["h"]])
    a, b, h = ([v[block.systems == s].mean() for s in range(9)] for v in block.values)
    system = compare_metrics(table, "h", level="system", bootstrap=0, permutations=0)[0]
    expected = williams(*(stats.spearmanr(*pair)[0] for pair in ((a, h), (b, h), (a, b))), 9)
    assert (system.williams_t, system.williams_p_one, system.williams_p_two) == pytest.approx(expected)
    pooled = compare_metrics(table, "h", level="pooled", bootstrap=0, permutations=0)[0]
    expected = williams(*(stats.pearsonr(*pair)[0] for pair in block.values[[[0, 2], [1, 2], [0, 1]]]), 108)
    assert pooled.williams_t == pytest.approx(expected.t)
    assert (pooled.low, pooled.p_bootstrap, pooled.p_permutation) == (None, None, None)
    summary = compare_metrics(table, "h", level="summary", bootstrap=0)[0]
    assert (summary.williams_t, summary.williams_reason) == (None, sg.WILLIAMS_SUMMARY)


def test_paired_bootstrap_equals_explicit():
    table = exchangeable(documents=10, systems=5, seed=5)
    found = compare_metrics(table, "h", level="pooled", bootstrap=40, seed=2)[0]
    differences = []
    for weights in make_resamples(table, 40, 2).weights.astype(int):
        rows = np.concatenate([np.flatnonzero(table.documents == d) for d in np.repeat(np.arange(10), weights)])
        a, b, h = (v[rows] for v in (table.metrics["a"], table.metrics["b"], table.human["h"]))
        differences.append(stats.pearsonr(a, h)[0] - stats.pearsonr(b, h)[0])
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(differences, [0.025, 0.975])), abs=1e-12)
    assert found.p_bootstrap == bootstrap_p(np.array(differences), 10)


def test_a_real_difference_is_found_and_missing_rows_are_paired():
    rng = np.random.default_rng(6)
    documents, systems = np.repeat(np.arange(30), 6), np.tile(np.arange(6), 30)
    human = rng.normal(size=180)
    good, bad = human + 0.3 * rng.normal(size=180), rng.normal(size=180)
    good[:6] = np.nan
    table = make_table(
        "x",
        [f"{d:02}" for d in documents],
        [str(s) for s in systems],
        {"h": human},
        {"bad": bad, "good": good, "none": np.full(180, np.nan), "better": good + 0.0},
        np.arange(180),
    )
    for level in ("pooled", "summary"):
        found = compare_metrics(table, "h", level=level)
        first = found[0]
        assert (first.first, first.second, first.n, first.documents) == ("bad", "good", 174, 29)
        assert first.difference < -0.5
        matrix = beats_matrix(found, "permutation")
        assert matrix.names == ("bad", "good", "none", "better")
        assert matrix.beats[1] == (True, False, False, False)
        assert not any(matrix.beats[0])
        assert matrix.p[0][2] is None
        assert matrix.p[1][3] == 1.0
        assert matrix.p[1][0] == matrix.p[0][1] == pytest.approx(3 / 1001)  # three comparisons have a p
        none = next(c for c in found if c.second == "none")
        assert none.difference is None
        assert none.reason


def test_matrix_adjusts_over_all_pairs():
    def made(first, second, difference, p):
        return MetricsComparison(
            "d", "h", "pooled", "pearson", first, second, 9, 9, difference=difference, williams_p_two=p
        )

    comparisons = [made("a", "b", 0.2, 0.02), made("a", "c", 0.3, 0.01), made("b", "c", 0.1, 0.2)]
    assert beats_matrix(comparisons, "williams").beats == ((False, True, True), (False,) * 3, (False,) * 3)
    # Sorted 0.01, 0.02, 0.2, times 3, 2, 1.
    assert beats_matrix(comparisons, "williams").p[0] == (None, pytest.approx(0.04), pytest.approx(0.03))
    assert beats_matrix(comparisons, "permutation").p[0][1] is None


def test_patterns_and_p_by_hand():
    all_patterns, exact = patterns(np.random.default_rng(0), 3, 8)
    assert exact
    assert {tuple(row) for row in all_patterns} == set(product((0, 1), repeat=3))
    assert not patterns(np.random.default_rng(0), 3, 7)[1]
    assert permutation_p(2.0, np.array([1.0, -2.0, 3.0, np.nan]), exact=False) == 3 / 4
    assert permutation_p(2.0, np.array([2.0, -2.0, 1.0, 0.0]), exact=True) == 0.5
    assert permutation_p(2.0, np.array([np.nan]), exact=False) is None
    # One of nine differences is ≤ 0: 2 (1 + 1)/(9 + 1).
    assert bootstrap_p(np.array([-1.0, 1, 1, 1, 1, 1, 1, 1, 1]), 10) == pytest.approx(0.4)
    assert bootstrap_p(np.zeros(9), 10) == 1.0
    assert bootstrap_p(np.array([np.nan, 1.0]), 10) is None
    assert bootstrap_p(np.ones(9), 9) is None

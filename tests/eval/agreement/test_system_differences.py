import numpy as np
import pytest
from scipy import stats

from negsample.eval.agreement import compare
from negsample.eval.agreement.compare import largest_differences


def compare_systems(scores, systems="abcd", **options):
    return compare.compare_systems(scores, systems[: scores.shape[1]], **options)


def test_exact_permutation_by_hand():
    # Differences 1, 2, 3: of the 8 sign patterns only +++ and −−− are as far from 0 as 6/3. p = 2/8.
    scores = np.array([[0.0, 1], [0, 2], [0, 3]])
    first, second = compare_systems(scores)
    assert (first.difference, first.p, first.p_holm) == (None, None, None)
    assert second.difference == 2
    assert second.p == second.p_holm == 0.25
    assert (first.rank, second.rank) == (1, 1)


def test_exact_p_does_not_depend_on_the_scale():
    scores = np.array([[0.0, 1], [0, 2], [0, 3], [0, -0.5]])
    for size in (1e-12, 1.0, 1e12):
        # |sum| ≥ 5.5: +1+2+3−.5 and +1+2+3+.5 and their opposites, 4 of 16.
        assert compare_systems(scores * size)[1].p == 0.25


def test_equal_systems_share_a_rank():
    scores = np.tile(np.random.default_rng(0).random((20, 1)), (1, 3))
    found = compare_systems(scores)
    assert [f.rank for f in found] == [1, 1, 1]
    assert [f.p for f in found[1:]] == [1.0, 1.0]
    assert (found[1].difference_low, found[1].difference_high) == (0, 0)


def test_ranks_with_ties():
    rng = np.random.default_rng(1)
    base = rng.random(80)
    up, up_too = base + 1 + 0.1 * rng.normal(size=(2, 80))
    scores = np.stack([base, up, up_too, base - 1], axis=1)
    found = compare_systems(scores, systems=["base", "up", "up too", "down"])
    # Two better ones that can't be told apart, then the base, then one that all three beat.
    assert [(f.system, f.rank) for f in found] == [("base", 3), ("up", 1), ("up too", 1), ("down", 4)]


def test_bootstrap_interval_against_the_normal_law():
    scores = np.random.default_rng(2).normal(size=(2000, 2))
    found = compare_systems(scores, bootstrap=4000, permutations=2000)[1]
    difference = scores[:, 1] - scores[:, 0]
    half = 1.96 * difference.std(ddof=1) / np.sqrt(2000)
    assert found.difference_low == pytest.approx(difference.mean() - half, abs=0.1 * half)
    assert found.difference_high == pytest.approx(difference.mean() + half, abs=0.1 * half)
    half = 1.96 * scores[:, 1].std(ddof=1) / np.sqrt(2000)
    assert found.low == pytest.approx(scores[:, 1].mean() - half, abs=0.1 * half)
    # Many documents: the permutation test is the t test.
    assert found.p == pytest.approx(stats.ttest_rel(scores[:, 1], scores[:, 0])[1], abs=0.04)


def test_p_is_uniform_without_a_difference():
    rng = np.random.default_rng(3)
    p = [compare_systems(rng.normal(size=(25, 2)), bootstrap=0, permutations=199, seed=s)[1].p for s in range(400)]
    assert stats.kstest(np.array(p) - rng.random(400) / 200, "uniform").pvalue > 0.01


def test_coverage_of_the_difference():
    rng = np.random.default_rng(4)
    covered = 0
    for seed in range(600):
        scores = rng.normal(size=(80, 2)) + np.array([0, 0.3])
        found = compare_systems(scores, bootstrap=300, permutations=1, seed=seed)[1]
        covered += found.difference_low <= 0.3 <= found.difference_high
    assert 0.93 <= covered / 600 <= 0.97


def test_holm_over_the_systems():
    scores = np.array([[0.0, 1, -1], [0, 2, 2], [0, 3, 0.5], [0, 4, 1]])
    found = compare_systems(scores)
    raw = [f.p for f in found[1:]]
    assert raw[0] == 2 / 16
    smaller, larger = sorted(raw)
    assert sorted(f.p_holm for f in found[1:]) == [2 * smaller, max(2 * smaller, larger)]


def test_same_seed_same_numbers():
    scores = np.random.default_rng(5).random((30, 3))
    assert compare_systems(scores, seed=1) == compare_systems(scores, seed=1)
    assert compare_systems(scores, seed=1)[0].low != compare_systems(scores, seed=2)[0].low


def test_documents_that_differ_most():
    scores = np.array([[0.0, 1], [0, -3], [5, 5], [0, 1]])
    found = largest_differences(scores, 1, 3)
    assert [(d.document, d.difference) for d in found] == [(1, -3), (0, 1), (3, 1)]

"""Weights ≥ 0 that order summaries as people do, held as documents left out ask for; their sums on people's scale."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr, zscore
from sklearn.linear_model import Ridge

from negsample.eval.learn.inputs import Inputs, Target
from negsample.eval.learn.weights import (
    STRENGTHS,
    Problem,
    agreements,
    best_aspect,
    fit_target,
    fit_weights,
    half_width,
    held_out,
    line,
    problem,
    sizes,
    solve,
)


def made(
    documents: int, systems: int, truth: list[float], noise: float = 1.0, weights: np.ndarray | None = None
) -> Problem:
    """Inputs [n, 6]: the score, two aspects of which it is the mean, three features."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(documents * systems, 6))
    x[:, 0] = x[:, 1:3].mean(axis=1)
    y = x @ np.array(truth) + noise * rng.normal(size=len(x))
    return as_problem(x, y, np.repeat(np.arange(documents), systems), weights)


def as_problem(x: np.ndarray, y: np.ndarray, documents: np.ndarray, weights: np.ndarray | None = None) -> Problem:
    found = Inputs(x, [None] * len(x), {f"i{k}": 1 for k in range(x.shape[1])}, 3, ())
    target = Target("h", y, np.ones(len(y)) if weights is None else weights)
    return problem(found, target, [f"d{code:03}" for code in documents])


def groups(task: Problem) -> list[np.ndarray]:
    return [task.of(np.array([code])) for code in range(task.count)]


@pytest.mark.parametrize("systems", [6, 1])
def test_a_solution_is_scikit_learns_positive_ridge(systems: int) -> None:
    weights = np.random.default_rng(3).uniform(0.5, 2, 72)
    task = made(72 // systems, systems, [0, 1, -1, 0.5, 0, -0.5], weights=weights)
    assert task.within == (systems > 1)
    x, target = task.inputs.copy(), task.people.copy()
    for rows in groups(task) if task.within else [np.arange(72)]:
        x[rows] -= np.average(x[rows], axis=0, weights=weights[rows])
        target[rows] = zscore(rankdata(target[rows])) if task.within else target - np.average(target, weights=weights)
    spread = np.sqrt(np.average(x**2, axis=0, weights=weights))
    for strength, found in zip(STRENGTHS, solve(task), strict=True):
        ridge = Ridge(alpha=strength * weights.sum(), fit_intercept=False, positive=True, tol=1e-12)
        np.testing.assert_allclose(found, ridge.fit(x / spread, target, weights).coef_ / spread, atol=1e-5)


def test_agreement_is_within_documents_where_most_have_three_differently_scored_summaries() -> None:
    def within(people: list[float], documents: list[int]) -> bool:
        x = np.random.default_rng(0).normal(size=(len(people), 3))
        return as_problem(x, np.array(people), np.array(documents)).within

    assert not within([1, 2, 2, 3, 3, 3, 5], [0, 0, 0, 1, 1, 1, 2])
    assert within([1, 2, 2, 3, 3, 4, 5], [0, 0, 0, 1, 1, 1, 2])
    assert not within([1, 2, 3, 4, 5, 6], [0, 0, 1, 1, 2, 2])
    task = made(9, 5, [0, 2, 0, 0, 0, 0])
    each = [spearmanr(task.inputs[rows, 1], task.people[rows])[0] for rows in groups(task)]
    assert agreements(task, task.inputs.T)[1] == pytest.approx(np.mean(each))
    assert best_aspect(task) == 1
    pooled = made(30, 1, [0, 0, 1, 0, 0, 0])
    assert agreements(pooled, pooled.inputs.T)[2] == pytest.approx(
        np.corrcoef(pooled.inputs[:, 2], pooled.people)[0, 1]
    )


def test_more_of_anything_is_never_worse() -> None:
    task = made(20, 5, [0, 1, -2, 0.5, -0.5, 0])
    found = fit_weights(task)
    assert (found.raw >= 0).all()
    better = task.inputs + np.abs(np.random.default_rng(1).normal(size=task.inputs.shape))
    assert (found.sums(better) >= found.sums(task.inputs)).all()
    assert found.sums(task.inputs).mean() == pytest.approx(0, abs=1e-9)
    assert found.sums(task.inputs).std() == pytest.approx(1)


def test_many_documents_teach_more_than_few_and_two_nothing() -> None:
    task = made(120, 8, [0, 1.0, 0, 1.0, 0, 0], noise=2.0)
    left = task.part(task.of(np.arange(60, 120)))

    def agreement(count: int) -> float:
        found = fit_weights(task.part(task.of(np.arange(count))))
        return float(np.corrcoef(found.sums(left.inputs), left.inputs[:, 1] + left.inputs[:, 3])[0, 1])

    none = fit_weights(task.part(task.of(np.arange(2))))
    assert (none.strength, np.flatnonzero(none.raw).tolist()) == (None, [0])
    assert agreement(2) < agreement(4) < 0.95 < agreement(60)


def test_where_everything_disagrees_the_score_stays_as_it_is() -> None:
    found = fit_weights(made(12, 6, [-1, -1, -1, -1, -1, -1], noise=0.1))
    assert (found.strength, np.flatnonzero(found.raw).tolist()) == (None, [0])


@settings(max_examples=8)
@given(st.floats(-100, 100), st.floats(0.01, 100), st.integers(0, 3))
def test_another_scale_or_order_of_rows_changes_nothing(shift: float, factor: float, seed: int) -> None:
    task = made(8, 5, [0, 1.0, 0, 0.5, 0, 0])
    people = np.round(task.people)  # ties
    order = np.random.default_rng(seed).permutation(len(people))
    moved = as_problem(task.inputs[order], factor * people[order] + shift, task.documents[order])
    expected = fit_weights(as_problem(task.inputs, people, task.documents)).raw
    np.testing.assert_allclose(fit_weights(moved).raw, expected, atol=1e-9)


@settings(max_examples=20)
@given(st.integers(3, 40))
def test_folds_part_the_documents_and_sizes_leave_some(count: int) -> None:
    task = made(count, 2, [0] * 6)
    left = [task.documents[places] for _, places in task.folds()]
    assert len(left) == min(5, count)
    assert sorted(np.concatenate(left).tolist()) == sorted(task.documents.tolist())
    assert sum(len(set(codes.tolist())) for codes in left) == count
    assert sizes(count) == [size for size in (5, 10, 20) if size <= count - max(5, count // 4)]


def test_the_line_and_the_half_width_by_hand() -> None:
    # Least squares of (0, 1), (1, 1), (2, 4) has slope 1.5 through (1, 2).
    assert line(np.array([0.0, 1, 2]), np.array([1.0, 1, 4])) == pytest.approx((0.5, 1.5))
    for sums in (np.ones(4), np.array([4.0, 3, 2, 1])):
        assert line(sums, np.array([1.0, 2, 3, 4])) == (2.5, 0)
    errors = np.array([0.1, -0.4, 0.2, 0.3])
    # (4 + 1) · 0.6 = the third smallest.
    assert (half_width(errors, 0.6, 9.0), half_width(errors, 0.9, 9.0)) == (0.3, 9.0)


@pytest.mark.parametrize("slope", [0, -1, 1])
def test_intervals_of_new_documents_hold_what_they_promise(slope: int) -> None:
    """Also where people's scores don't rise with the inputs: one level for all, its interval cut at the ends of the scale."""
    rng, inside, documents = np.random.default_rng(3), [], 80
    for _ in range(25):
        x = rng.normal(size=(2 * documents, 3))
        people = slope * x.sum(axis=1) + rng.normal(size=len(x))
        fit = fit_target(as_problem(x, people, np.arange(len(x))).part(np.arange(documents)), 0.9)
        values, ends = fit.answer(fit.weights.sums(x[documents:]))
        inside.append((ends[:, 0] <= people[documents:]) & (people[documents:] <= ends[:, 1]))
        low, high = fit.scale
        np.testing.assert_allclose(ends[:, 0], np.maximum(values - fit.half_width, low))
        np.testing.assert_allclose(ends[:, 1], np.minimum(values + fit.half_width, high))
        assert slope >= 0 or (values == fit.level).all()
    assert 0.86 <= np.mean(inside) <= 0.94


def test_a_document_is_answered_by_a_fit_that_has_not_seen_it() -> None:
    # People's scores of one document are turned round; its own answers must not follow.
    rng, documents = np.random.default_rng(0), np.arange(60) // 5
    x, mine = rng.normal(size=(60, 3)), documents == 3
    y = x[:, 1] + 0.1 * rng.normal(size=60)
    answers = [held_out(as_problem(x, people, documents), 0.9).sums[mine] for people in (y, np.where(mine, -y, y))]
    np.testing.assert_allclose(*answers, atol=1e-12)

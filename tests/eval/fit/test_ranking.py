"""Weights ≥ 0 that order summaries as people do, held towards the estimator as it is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from negsample.eval.agreement.correlation import correlation_matrix
from negsample.eval.fit.ranking import (
    SETTINGS,
    UNFITTED,
    Setting,
    Weights,
    best_aspect,
    cross_validated,
    fit_weights,
    folds,
    is_within,
    ranked,
    solve,
)

# Two aspects behind the overall score, and three features.
OWN = np.array([True, True, True, False, False, False])


def made(documents: int, systems: int, truth: np.ndarray, noise: float = 1.0, seed: int = 0):
    """Inputs [n, 6] (the first is the mean of the next two), people's scores and documents."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(documents * systems, 6))
    x[:, 0] = x[:, 1:3].mean(axis=1)
    y = x @ truth + noise * rng.normal(size=len(x))
    return x, y, np.repeat(np.arange(documents), systems)


def data_of(x: np.ndarray, y: np.ndarray, documents: np.ndarray):
    return ranked(x, y, documents, np.ones(len(y)), OWN, range(3))


def test_a_solution_is_the_positive_ridge_of_the_values_centred_within_documents() -> None:
    x, y, documents = made(12, 6, np.array([0, 1, -1, 0.5, 0, -0.5]))
    data = data_of(x, y, documents)
    found = solve(data, np.arange(12), Setting(None, 0.3, 3.0))
    centred = np.concatenate([x[documents == d] - x[documents == d].mean(axis=0) for d in range(12)])
    ranks = np.concatenate([np.argsort(np.argsort(y[documents == d])) for d in range(12)]).astype(float)
    # Ranks 0 … 5 in every document, in units of their spread.
    target = (ranks - 2.5) / np.sqrt(35 / 12)
    scaled = centred / np.sqrt((centred**2).mean(axis=0))
    start = int(np.argmax(correlation_matrix(np.column_stack([scaled[:, :3], target]).T, "pearson")[3, :3]))
    assert best_aspect(data, np.arange(12)) == start
    penalty = np.array([0.3, 0.3, 0.3, 3.0, 3.0, 3.0])
    penalty[start] = 1e-9
    root = np.sqrt(penalty * len(y))
    expected = Ridge(alpha=1.0, fit_intercept=False, positive=True, tol=1e-12).fit(scaled / root, target).coef_ / root
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_without_halves_of_a_document_the_scores_themselves_are_fitted() -> None:
    x, y, _ = made(60, 1, np.array([0, 1.0, 0, 0.5, 0, 0]), noise=0.1)
    documents = np.arange(60)
    assert not is_within(y, documents)
    data = data_of(x, y, documents)
    found = solve(data, documents, Setting(0, 0.03, 0.3))
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    penalty = np.array([1e-9, 0.03, 0.03, 0.3, 0.3, 0.3])
    root = np.sqrt(penalty * 60)
    ridge = Ridge(alpha=1.0, fit_intercept=True, positive=True, tol=1e-12).fit(scaled / root, (y - y.mean()) / y.std())
    np.testing.assert_allclose(found, ridge.coef_ / root, atol=1e-6)


def test_within_needs_three_differently_scored_summaries_of_most_documents() -> None:
    assert is_within(np.array([1, 2, 2, 3, 3, 3, 5.0]), np.array([0, 0, 0, 1, 1, 1, 2])) is False
    assert is_within(np.array([1, 2, 2, 3, 3, 4, 5.0]), np.array([0, 0, 0, 1, 1, 1, 2])) is True
    assert is_within(np.array([1, 2, 3, 4.0]), np.array([0, 0, 1, 1])) is False


def test_a_mean_of_settings_never_weighs_anything_below_zero() -> None:
    x, y, documents = made(20, 5, np.array([0, 1, -2, 0.5, -0.5, 0]))
    found = fit_weights(data_of(x, y, documents), np.arange(20), x, 0)
    assert (found.raw >= 0).all()
    # More of anything is never worse.
    better = x + np.abs(np.random.default_rng(1).normal(size=x.shape))
    assert (found.sums(better) >= found.sums(x)).all()


def test_few_documents_change_little_and_many_much() -> None:
    truth = np.array([0, 1.0, 0, 1.0, 0, 0])
    x, y, documents = made(120, 8, truth, noise=2.0)
    data = data_of(x, y, documents)

    def agreement(found: Weights) -> float:
        rows = documents >= 60
        return float(np.corrcoef(found.sums(x)[rows], (x @ truth)[rows])[0, 1])

    few, many = (fit_weights(data, np.arange(count), x[documents < count], 0) for count in (4, 60))
    none = fit_weights(data, np.arange(2), x, 0)
    assert none.freedom == 0.0
    assert np.flatnonzero(none.raw).tolist() == [0]
    assert few.freedom < many.freedom
    assert agreement(none) < 0.6 < 0.95 < agreement(many)


def test_noise_teaches_next_to_nothing() -> None:
    x, _, documents = made(40, 6, np.zeros(6))
    y = x[:, 0] + 0.2 * np.random.default_rng(5).normal(size=len(x))
    found = fit_weights(data_of(x, y, documents), np.arange(40), x, 0)
    assert np.corrcoef(found.sums(x), x[:, 0])[0, 1] > 0.99


def test_cross_validation_of_the_estimator_as_it_is_is_its_mean_correlation() -> None:
    x, y, documents = made(15, 6, np.array([1.0, 0, 0, 0, 0, 0]))
    each = cross_validated(data_of(x, y, documents), np.arange(15), 0)
    expected = []
    for d in range(15):
        ranks = np.argsort(np.argsort(y[documents == d]))
        expected.append(np.corrcoef(x[documents == d, 0], ranks)[0, 1])
    assert SETTINGS[0] == UNFITTED
    assert each.shape == (len(SETTINGS), 15)
    np.testing.assert_allclose(np.sort(each[0]), np.sort(expected), atol=1e-9)


def test_over_all_rows_the_shares_make_up_the_correlation() -> None:
    x, y, _ = made(50, 1, np.array([1.0, 0, 0, 0, 0, 0]))
    each = cross_validated(data_of(x, y, np.arange(50)), np.arange(50), 0)
    # The folds are each put on the scale of the others, which moves the correlation a little.
    assert each[0].mean() == pytest.approx(np.corrcoef(x[:, 0], y)[0, 1], abs=0.02)


@settings(max_examples=30)
@given(st.integers(2, 60), st.integers(0, 5))
def test_folds_part_the_documents(count: int, seed: int) -> None:
    parts = folds(np.arange(count), seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(count))
    assert len(parts) == min(5, count)
    assert all(len(part) for part in parts)


@settings(max_examples=8)
@given(st.floats(-100, 100), st.floats(0.01, 100), st.integers(0, 3))
def test_another_scale_or_order_of_rows_changes_nothing(shift: float, factor: float, seed: int) -> None:
    x, y, documents = made(8, 5, np.array([0, 1.0, 0, 0.5, 0, 0]))
    y = np.round(y)  # ties
    found = fit_weights(data_of(x, y, documents), np.arange(8), x, 0)
    order = np.random.default_rng(seed).permutation(len(y))
    moved = data_of(x[order], factor * y[order] + shift, documents[order])
    np.testing.assert_allclose(fit_weights(moved, np.arange(8), x[order], 0).raw, found.raw, atol=1e-9)

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from negsample.eval.agreement.correlation import (
    COEFFICIENTS,
    correlation_matrix,
    p_value,
    partial,
    weighted_pooled,
)

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
few_values = st.integers(0, 3).map(float)


def reference(x, y, coefficient):
    """scipy's value, NaN where a side is constant."""
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan
    return SCIPY[coefficient](x, y)[0]


def test_by_hand():
    # x = 1 2 3 4, y = 1 3 2 4: Σxy = 4, Σx² = Σy² = 5 → r = ρ = 0.8; five pairs in order, one not: τ = (5 − 1)/6.
    for coefficient, expected in {"pearson": 0.8, "spearman": 0.8, "kendall": 4 / 6}.items():
        found = correlation_matrix(np.array([[1.0, 2, 3, 4], [1, 3, 2, 4]]), coefficient)[0, 1]
        assert found == pytest.approx(expected, abs=1e-12)
    # x = 1 1 2 3, y = 1 2 2 3: one pair tied in each, the other four in order: τ_b = 4 / √((6 − 1)(6 − 1)).
    found = correlation_matrix(np.array([[1.0, 1, 2, 3], [1, 2, 2, 3]]), "kendall")[0, 1]
    assert found == pytest.approx(0.8, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(arrays(float, st.tuples(st.integers(2, 4), st.integers(3, 12)), elements=few_values))
@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_heavy_ties_against_scipy(coefficient, values):
    found = correlation_matrix(values, coefficient)
    for i in range(len(values)):
        for j in range(len(values)):
            expected = reference(values[i], values[j], coefficient)
            np.testing.assert_allclose(found[i, j], expected, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_pearson_of_extreme_sizes(scale):
    values = np.random.default_rng(2).normal(size=(2, 20))
    expected = stats.pearsonr(*values)[0]
    assert correlation_matrix(values * scale, "pearson")[0, 1] == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.data())
@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_weights_equal_explicit_resamples(coefficient, data):
    documents = np.sort(data.draw(arrays(np.int64, st.integers(3, 14), elements=st.integers(0, 4))))
    elements = data.draw(
        st.sampled_from([few_values, st.floats(-5, 5, allow_subnormal=False).map(lambda v: round(v, 3))])
    )
    values = data.draw(arrays(float, (3, len(documents)), elements=elements))
    draws = data.draw(arrays(np.int64, (4, 5), elements=st.integers(0, 4)))
    weights = np.stack([np.bincount(row, minlength=5) for row in draws])
    pairs = [(0, 1), (0, 2), (1, 2)]
    found = weighted_pooled(values, documents, weights, coefficient, pairs)
    for b, row in enumerate(draws):
        index = np.concatenate([np.flatnonzero(documents == d) for d in row])
        for p, (i, j) in enumerate(pairs):
            expected = reference(values[i, index], values[j, index], coefficient)
            np.testing.assert_allclose(found[b, p], expected, atol=1e-12)


def test_chunks_change_nothing(monkeypatch):
    rng = np.random.default_rng(3)
    values, documents = rng.integers(0, 6, size=(3, 50)).astype(float), np.sort(rng.integers(0, 7, size=50))
    weights = rng.multinomial(7, np.full(7, 1 / 7), size=20)
    for coefficient in COEFFICIENTS:
        whole = weighted_pooled(values, documents, weights, coefficient, [(0, 1), (1, 2)])
        square = correlation_matrix(values, coefficient)
        with monkeypatch.context() as patch:
            patch.setattr("negsample.eval.agreement.correlation._CHUNK", 170)
            np.testing.assert_allclose(
                weighted_pooled(values, documents, weights, coefficient, [(0, 1), (1, 2)]), whole, atol=1e-13
            )
            np.testing.assert_allclose(correlation_matrix(values, coefficient), square, atol=1e-13)


def test_partial_equals_correlation_of_residuals():
    rng = np.random.default_rng(4)
    z = rng.normal(size=80)
    x, y = z + rng.normal(size=80), 0.5 * z + rng.normal(size=80)
    matrix = correlation_matrix(np.stack([x, y, z]), "pearson")
    residual = [v - np.polyval(np.polyfit(z, v, 1), z) for v in (x, y)]
    assert partial(matrix[0, 1], matrix[0, 2], matrix[1, 2]) == pytest.approx(stats.pearsonr(*residual)[0], abs=1e-10)
    # Nothing is left of a column that is determined.
    assert np.isnan(partial(0.3, 1.0, 0.3))


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
@pytest.mark.parametrize("n", [3, 8, 40])
def test_p_value_against_scipy(coefficient, n):
    x, y = np.random.default_rng(n).normal(size=(2, n))
    result = SCIPY[coefficient](x, y)
    assert p_value(x, y, result[0], coefficient) == pytest.approx(result[1], rel=1e-9)

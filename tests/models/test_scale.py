"""The scale of a score: where the median, the quarters and the ends come to lie; that it only ever rises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.models.folder import logits, scale_of, scaled


def expit(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def test_the_median_real_summary_is_a_half_and_steps_are_shares() -> None:
    # Real ones at 0 … 10 (median 5), damaged ones at −10 … 0.
    real, damaged = np.arange(0.0, 11), np.arange(-10.0, 1)
    knots = np.array(scale_of({"score": expit(real)}, {"score": expit(damaged)})["score"])
    # Below 5 lie −10 … 0 twice at 0, 1 … 4, and 5 itself: of these seventeen the middle one, −2, is a quarter.
    below = np.sort([*damaged, *real[:6]])
    assert scaled(knots, np.array([5.0, np.median(below), 7.5])) == pytest.approx([0.5, 0.25, 0.75], abs=2e-3)
    assert 0 < scaled(knots, np.array([-40.0]))[0] < 1e-9
    assert np.isnan(scaled(knots, np.array([np.nan]))[0])


def test_too_few_give_no_scale() -> None:
    assert scale_of({"score": np.full(7, 0.5)}, {"score": np.full(20, 0.5)}) == {}


@given(st.lists(st.floats(-9, 9), min_size=8, max_size=60), st.lists(st.floats(-9, 9), min_size=2, max_size=30))
def test_more_is_never_less(known: list[float], asked: list[float]) -> None:
    half = expit(np.array(known))
    knots = np.array(scale_of({"x": half}, {"x": half[::-1] * 0.9})["x"])
    assert (np.diff(knots) > 0).all()
    found = scaled(knots, np.sort(asked))
    assert ((found > 0) & (found < 1)).all()
    assert (np.diff(found) >= 0).all()
    assert logits(expit(np.array([1.5])))[0] == pytest.approx(1.5)

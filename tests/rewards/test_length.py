"""What is left of a reward when it may not pay for words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.rewards.length import Band, Partial, within_spread


def test_a_reward_that_is_length_has_nothing_left_given_length() -> None:
    words = np.array([10.0, 20.0, 30.0, 50.0])
    found = Partial().adjust(0.1 * words, words, ["a", "a", "b", "b"])
    # The mean within each document stays: 1.5 and 4.
    assert found == pytest.approx([1.5, 1.5, 4.0, 4.0])


def test_the_slope_is_taken_within_documents_and_remembered_across_calls() -> None:
    partial = Partial()
    partial.adjust(np.array([0.0, 2.0]), np.array([1.0, 3.0]), ["a", "a"])  # slope 1: sums 2 and 2
    # Now no slope in this call: sums 0.9·2 = 1.8, and 1.8 + 2 = 3.8.
    found = partial.adjust(np.array([1.0, 1.0]), np.array([1.0, 3.0]), ["b", "b"])
    assert found == pytest.approx([1 + 1.8 / 3.8, 1 - 1.8 / 3.8])
    again = Partial(partial.state())
    values, words = np.array([1.0, np.nan, 5.0]), np.array([4.0, 5.0, 9.0])
    assert np.array_equal(
        again.adjust(values, words, ["c", "c", "c"]), partial.adjust(values, words, ["c", "c", "c"]), equal_nan=True
    )


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8))
def test_a_document_alone_keeps_its_reward(values: list[float]) -> None:
    groups = [str(i) for i in range(len(values))]
    found = Partial().adjust(np.array(values), np.arange(1.0, len(values) + 1), groups)
    assert np.array_equal(found, np.array(values))


def test_the_band_is_free_inside_and_smooth_outside() -> None:
    words = np.array([20.0, 25.0, 40.0, 60.0, 0.0])
    assert Band(20, 40).adjust(np.ones(5), words, [""] * 5) == pytest.approx([1, 1, 1, 1 - 0.25, 0])
    edge = Band(20, 40).adjust(np.zeros(2), np.array([40.0, 41.0]), [""] * 2)
    assert 0 <= edge[0] - edge[1] < 0.001


def test_the_spread_is_that_within_documents() -> None:
    assert within_spread(np.array([1.0, 3.0, 101.0, 103.0]), ["a", "a", "b", "b"]) == pytest.approx(2**0.5)
    assert within_spread(np.array([1.0, 3.0, np.nan]), ["a", "b", "c"]) == pytest.approx(2**0.5)
    assert within_spread(np.array([1.0]), ["a"]) == 0.0

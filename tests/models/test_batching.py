"""Lengths of the frame, cutting, and padding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.models.batching import pad, percentile_length


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 9),  # position 8 exactly
        ([10, 20], 18),  # 10 + 0.8 · 10
        ([10, 21], 19),  # 18.8, rounded up
        ([0, 0, 0], 1),
    ],
)
def test_percentile_length(lengths: list[int], expected: int) -> None:
    assert percentile_length(lengths) == expected


@given(st.lists(st.integers(0, 500), min_size=1))
def test_percentile_length_is_the_least_whole_number_not_below_the_percentile(lengths: list[int]) -> None:
    found = percentile_length(lengths)
    percentile = np.percentile(lengths, 80)
    assert found >= percentile - 1e-9
    assert found == 1 or found - 1 < percentile + 1e-9


def test_pad() -> None:
    padded, mask = pad([np.array([4, 5]), np.array([], dtype=int), np.array([6])], fill=-1)
    assert padded.tolist() == [[4, 5], [-1, -1], [6, -1]]
    assert mask.tolist() == [[True, True], [False, False], [True, False]]
    padded, mask = pad([np.ones((1, 2), dtype=np.float32), np.full((2, 2), 3, dtype=np.float32)])
    assert padded.dtype == np.float32
    assert padded.tolist() == [[[1, 1], [0, 0]], [[3, 3], [3, 3]]]
    padded, mask = pad([np.empty((0, 2))])  # networks can't read a batch without a place
    assert padded.tolist() == [[[0, 0]]]
    assert mask.tolist() == [[False]]
    for no_rows in (pad, percentile_length):
        with pytest.raises(ValueError):
            no_rows([])

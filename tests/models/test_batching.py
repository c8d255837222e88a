"""Lengths of the frame, cutting, and padding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.models.batching import like_lengths, pad
from negsample.models.features.rows import percentile_length


@given(st.lists(st.integers(0, 500), min_size=1))
def test_percentile_length_is_the_least_whole_number_not_below_the_percentile(lengths: list[int]) -> None:
    found = percentile_length(lengths)
    percentile = np.percentile(lengths, 80)
    assert found >= percentile - 1e-9
    assert found == 1 or found - 1 < percentile + 1e-9


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 90), st.integers(1, 9), st.integers(0, 30))
def test_batches_have_every_row_once_and_not_too_many_tokens(
    lengths: list[int], tokens: int, rows: int, padding: int
) -> None:
    batches = list(like_lengths(lengths, "cpu", tokens, rows, padding))
    assert sorted(row for batch in batches for row in batch) == [n for n, length in enumerate(lengths) if length]
    for batch in batches:
        own = [lengths[row] for row in batch]
        assert len(batch) == 1 or len(batch) <= min(rows, tokens // max(own))
        assert len(batch) * max(own) - sum(own) <= padding
    # Without a limit, and on a GPU, rows of any length go together.
    assert (
        list(like_lengths([3, 40, 1], "cpu", 120, 9))
        == list(like_lengths([3, 40, 1], "cuda", 120, 9, 0))
        == [[1, 0, 2]]
    )


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
    with pytest.raises(ValueError):
        pad([])

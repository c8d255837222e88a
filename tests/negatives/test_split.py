import numpy as np
import pytest

from negsample.errors import InputError
from negsample.negatives.split import Shares, assign, link
from negsample.seeds import digest


def keys_of(count):
    return np.sort(np.array([digest("document", number) for number in range(count)], dtype="S16"))


def alone(count):
    return np.arange(count, dtype=np.int32)


@pytest.mark.parametrize(
    ("group", "shares", "expected"),
    [
        *((alone(sum(counts)), None, counts) for counts in ([800, 100, 100], [1700, 212, 212], [19, 3, 3], [11, 2, 2])),
        # From six documents on validation and test get two each, so that a summary of another document can be drawn.
        *((alone(sum(counts)), None, counts) for counts in ([6, 2, 2], [2, 2, 2], [3, 1, 1], [1, 1, 1])),
        (alone(200), Shares(0.5, 0.2, 0.3), [100, 40, 60]),
        (alone(200), Shares(0.9, 0.0, 0.1), [180, 0, 20]),
        # 400 documents; each of the first 100 shares its group with one of the next 100.
        (np.concatenate([np.arange(100), np.arange(100), np.arange(100, 300)]), None, [320, 40, 40]),
        # A group too large for test goes to training; few small ones are shared out; all are above half the share.
        (np.concatenate([np.zeros(500, dtype=int), np.arange(1, 501)]), None, [800, 100, 100]),
        (np.concatenate([np.zeros(996, dtype=int), np.arange(1, 5)]), None, [996, 2, 2]),
        (np.repeat(np.arange(15), 2), None, [22, 4, 4]),
    ],
)
def test_shares_are_met_to_rounding_and_groups_stay_together(group, shares, expected):
    parts = [assign(keys_of(len(group)), group, seed, shares) for seed in (1, 2)]
    for part in parts:
        assert np.bincount(part, minlength=3).tolist() == expected
        assert all(len(set(part[group == number].tolist())) == 1 for number in np.unique(group))
    assert np.array_equal(parts[0], assign(keys_of(len(group)), group, 1, shares))
    assert len(group) < 100 or not np.array_equal(*parts)


def test_link_follows_shared_summaries_through_other_documents():
    # Documents 0 and 1 share summary 0, 1 and 2 share summary 1; 3 stands alone with two summaries.
    group = link(np.array([0, 1, 1, 2, 3, 3]), np.array([0, 0, 1, 1, 2, 3]))
    assert group[0] == group[1] == group[2] != group[3]


@pytest.mark.parametrize(
    "shares", [(0.8, 0.1, 0.2), (0.0, 0.5, 0.5), (1.2, -0.1, -0.1), (float("nan"), 0.5, 0.5), (0.8, 0.1, float("inf"))]
)
def test_wrong_shares_are_refused(shares):
    with pytest.raises(InputError, match="shares"):
        Shares(*shares)

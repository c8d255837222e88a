import numpy as np
import pytest

from negsample.errors import InputError
from negsample.negatives.split import Shares, assign, link
from negsample.seeds import digest


def keys_of(count):
    return np.sort(np.array([digest("document", number) for number in range(count)], dtype="S16"))


def alone(count):
    return np.arange(count, dtype=np.int32)


def counts(part):
    return np.bincount(part, minlength=3).tolist()


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        (1000, [800, 100, 100]),
        (2124, [1700, 212, 212]),
        (25, [19, 3, 3]),
        (15, [11, 2, 2]),
        # From six documents on validation and test get two each, so that a summary of another document can be drawn.
        (10, [6, 2, 2]),
        (6, [2, 2, 2]),
        (5, [3, 1, 1]),
        (3, [1, 1, 1]),
    ],
)
def test_shares_are_met_to_rounding(documents, expected):
    assert counts(assign(keys_of(documents), alone(documents), seed=3)) == expected


def test_other_shares():
    part = assign(keys_of(200), alone(200), 0, Shares(0.5, 0.2, 0.3))
    assert counts(part) == [100, 40, 60]
    assert counts(assign(keys_of(200), alone(200), 0, Shares(0.9, 0.0, 0.1))) == [180, 0, 20]


def test_the_seed_decides():
    first, again, other = (assign(keys_of(300), alone(300), seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    "shares", [(0.8, 0.1, 0.2), (0.0, 0.5, 0.5), (1.2, -0.1, -0.1), (float("nan"), 0.5, 0.5), (0.8, 0.1, float("inf"))]
)
def test_wrong_shares_are_refused(shares):
    with pytest.raises(InputError, match="shares"):
        Shares(*shares)


def test_link_follows_shared_summaries_through_other_documents():
    # Documents 0 and 1 share summary 5, 1 and 2 share summary 6; 3 stands alone with two summaries.
    document = np.array([0, 1, 1, 2, 3, 3])
    summary = np.array([0, 0, 1, 1, 2, 3])
    group = link(document, summary)
    assert group[0] == group[1] == group[2] != group[3]


def test_linked_documents_stay_together_and_the_shares_are_still_met():
    # 400 documents; each of the first 100 shares its group with one of the next 100.
    group = np.concatenate([np.arange(100), np.arange(100), np.arange(100, 300)])
    part = assign(keys_of(400), group, seed=5)
    assert np.array_equal(part[:100], part[100:200])
    assert counts(part) == [320, 40, 40]
    assert 0 < np.count_nonzero(part[:100]) < 100


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        # A group too large for test goes to training; few small ones are shared out; all are above half the share.
        (np.concatenate([np.zeros(500, dtype=int), np.arange(1, 501)]), [800, 100, 100]),
        (np.concatenate([np.zeros(996, dtype=int), np.arange(1, 5)]), [996, 2, 2]),
        (np.repeat(np.arange(15), 2), [22, 4, 4]),
    ],
)
def test_large_groups(group, expected):
    for seed in range(3):
        part = assign(keys_of(len(group)), group, seed)
        assert counts(part) == expected
        assert all(len(set(part[group == number].tolist())) == 1 for number in np.unique(group)[:20])


@pytest.mark.parametrize(
    ("count", "group", "told"),
    [
        (2, alone(2), "has 2 documents and 3 splits"),
        (0, alone(0), "has 0 documents"),
        (50, 0 * alone(50), "repeat so much"),
    ],
)
def test_what_can_not_be_split(count, group, told):
    with pytest.raises(InputError, match=told):
        assign(keys_of(count), group, 0)

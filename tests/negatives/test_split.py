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


def test_a_group_too_large_for_test_goes_to_training():
    group = np.concatenate([np.zeros(500, dtype=int), np.arange(1, 501)])
    for seed in range(5):
        part = assign(keys_of(1000), group, seed)
        assert set(part[:500].tolist()) == {0}
        assert counts(part) == [800, 100, 100]


def test_few_small_groups_are_shared_out():
    group = np.concatenate([np.zeros(996, dtype=int), np.arange(1, 5)])
    assert counts(assign(keys_of(1000), group, 0)) == [996, 2, 2]


def test_groups_of_equal_size_all_above_half_the_share():
    group = np.repeat(np.arange(15), 2)
    part = assign(keys_of(30), group, 0)
    assert np.array_equal(part[::2], part[1::2])
    assert counts(part) == [22, 4, 4]


def test_too_few_documents():
    with pytest.raises(InputError, match="has 2 documents and 3 splits"):
        assign(keys_of(2), alone(2), 0)
    with pytest.raises(InputError, match="has 0 documents"):
        assign(keys_of(0), alone(0), 0)


def test_one_summary_for_all_is_refused():
    with pytest.raises(InputError, match="summaries repeat so much"):
        assign(keys_of(50), np.zeros(50, dtype=int), 0)

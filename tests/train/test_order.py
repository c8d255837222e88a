"""Each example once an epoch, in an order that depends on the seed and the epoch alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from negsample.train.order import epoch_batches, share

LENGTHS = st.lists(st.integers(1, 500), min_size=1, max_size=300).map(np.array)


@given(LENGTHS, st.integers(0, 5), st.integers(0, 5), st.integers(1, 40))
def test_an_epoch_has_every_example_once(lengths, seed, epoch, size):
    batches = epoch_batches(lengths, seed, epoch, size)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert len(batches) == -(-len(lengths) // size)
    assert max(map(len, batches)) <= size


@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 5))
def test_processes_and_parts_share_a_batch_out(size, parts, processes):
    batch = np.arange(100, 100 + size)
    pieces = [share(batch, parts, processes, rank) for rank in range(processes)]
    assert all(len(each) == parts for each in pieces)
    assert sorted(np.concatenate([piece for each in pieces for piece in each]).tolist()) == batch.tolist()


def test_order_changes_with_epoch_and_seed_only():
    lengths = np.arange(1, 200)
    first = epoch_batches(lengths, 1, 0, 8)
    assert all(np.array_equal(a, b) for a, b in zip(first, epoch_batches(lengths, 1, 0, 8), strict=True))
    for other in (epoch_batches(lengths, 1, 1, 8), epoch_batches(lengths, 2, 0, 8)):
        assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_batches_hold_examples_of_like_length():
    lengths = np.random.default_rng(0).integers(1, 1000, 2000)
    grouped = sum(lengths[b].max() * len(b) for b in epoch_batches(lengths, 0, 0, 20))
    shuffled = np.random.default_rng(1).permutation(2000).reshape(-1, 20)
    mixed = sum(lengths[b].max() * len(b) for b in shuffled)
    # Work over padding: nearly none when grouped (the mean length is about 500), nearly double when mixed.
    assert grouped < 1.1 * lengths.sum()
    assert mixed > 1.7 * lengths.sum()

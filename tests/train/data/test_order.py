"""Each example once an epoch, in an order that depends on the seed and the epoch alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from negsample.train.data.order import Order, share

LENGTHS = st.lists(st.integers(1, 500), min_size=1, max_size=300).map(np.array)


def flat(batches):
    return [np.concatenate(batch) for batch in batches]


def equal(one, other):
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@given(LENGTHS, st.integers(0, 5), st.integers(0, 5), st.integers(1, 40))
def test_an_epoch_has_every_example_once(lengths, seed, epoch, size):
    order = Order(lengths, size)
    batches = flat(order.batches(seed, epoch))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert len(batches) == order.per_epoch == -(-len(lengths) // size)
    assert max(map(len, batches)) <= size


@given(st.lists(st.integers(0, 30), min_size=1, max_size=200).map(np.array), st.integers(1, 40), st.integers(1, 4))
def test_documents_stay_together(documents, size, processes):
    order = Order(np.ones(len(documents), int), size, documents)
    batches = list(order.batches(0, 0))
    assert len(batches) == order.per_epoch
    pieces = [piece for batch in batches for rank in range(processes) for piece in share(batch, 2, processes, rank)]
    assert sorted(np.concatenate(pieces).tolist()) == list(range(len(documents)))
    for piece in pieces:
        for document in set(documents[piece].tolist()):
            assert (documents[piece] == document).sum() == (documents == document).sum()


@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 5))
def test_processes_and_parts_share_a_batch_out(size, parts, processes):
    batch = [np.array([100 + i]) for i in range(size)]
    pieces = [share(batch, parts, processes, rank) for rank in range(processes)]
    assert all(len(each) == parts for each in pieces)
    together = [piece for each in pieces for piece in each]
    assert sorted(np.concatenate(together).tolist()) == list(range(100, 100 + size))
    assert max(map(len, together)) - min(map(len, together)) <= 1


def test_order_changes_with_epoch_and_seed_only():
    order = Order(np.arange(1, 200), 8)
    first = flat(order.batches(1, 0))
    assert equal(first, flat(order.batches(1, 0)))
    assert equal(first, flat(Order(np.arange(1, 200), 8).batches(1, 0)))
    assert not equal(first, flat(order.batches(1, 1)))
    assert not equal(first, flat(order.batches(2, 0)))


@given(LENGTHS, st.integers(1, 40), st.booleans(), st.data())
def test_an_epoch_can_be_entered_anywhere(lengths, size, grouped, data):
    order = Order(lengths, size, np.arange(len(lengths)) // 3 if grouped else None)
    start = data.draw(st.integers(0, order.per_epoch))
    assert equal(flat(order.batches(2, 1))[start:], flat(order.batches(2, 1, start)))


def test_batches_hold_examples_of_like_length():
    lengths = np.random.default_rng(0).integers(1, 1000, 2000)
    grouped = sum(lengths[b].max() * len(b) for b in flat(Order(lengths, 20).batches(0, 0)))
    shuffled = np.random.default_rng(1).permutation(2000).reshape(-1, 20)
    mixed = sum(lengths[b].max() * len(b) for b in shuffled)
    # Work over padding: nearly none when grouped (the mean length is about 500), nearly double when mixed.
    assert grouped < 1.1 * lengths.sum()
    assert mixed > 1.7 * lengths.sum()

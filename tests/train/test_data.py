"""Texts read once and kept on disk; each example once an epoch, in an order that depends on seed and epoch alone."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from negsample.errors import InputError
from negsample.io import files
from negsample.train import data
from negsample.train.config import make_config
from negsample.train.data import open_split, prepare_split
from negsample.train.fit.loop import BatchOrder, redrawn, share
from negsample.train.job import train

LENGTHS = st.lists(st.integers(1, 500), min_size=1, max_size=300).map(np.array)
EXAMPLES = [("aaaa", "bb"), ("aaaa", "b"), ("cccccccc", "bb"), ("cccccccc", "dddddd"), ("e", "f"), ("aaaa", "aaaa")]


class Letters:
    """Features: the bytes of a text; a pair is cut at 12 of them."""

    dtype, width, unit = "uint8", 1, "letter"

    def __init__(self):
        self.asked = []

    def read(self, texts):
        self.asked += texts
        return [np.frombuffer(text.encode(), np.uint8) for text in texts]

    def lengths(self, documents, summaries):
        return np.minimum(documents + summaries, 12)

    def was_cut(self, documents, summaries):
        return documents + summaries > 12


def prepared(folder, features):
    """The split of EXAMPLES, read by ``features``."""
    lines = [
        json.dumps({"id": str(n), "document": document, "summary": summary, "label": n % 2})
        for n, (document, summary) in enumerate(EXAMPLES)
    ]
    (folder / "examples.jsonl").write_text("\n".join(lines) + "\n")
    prepare_split([folder / "examples.jsonl"], folder / "split", features)
    return open_split(folder / "split")


@pytest.mark.parametrize("block", [1, 4, 100])
def test_each_text_is_read_once_and_found_again(block, tmp_path, monkeypatch):
    # Of the second two examples nothing is new, in blocks of two; what comes after them still finds its own rows.
    monkeypatch.setattr(data, "_CHUNK", 2)
    monkeypatch.setattr(data, "_BLOCK", block)
    features = Letters()
    split = prepared(tmp_path, features)
    # "aaaa" is a document and a summary.
    assert sorted(features.asked) == ["aaaa", "aaaa", "b", "bb", "cccccccc", "dddddd", "e", "f"]
    documents, summaries = split.read(np.array([5, 4, 1]))
    assert [bytes(text).decode() for text in documents + summaries] == ["aaaa", "e", "aaaa", "aaaa", "f", "b"]
    assert [split.id(number) for number in (0, 5)] == ["0", "5"]
    assert split.labels.tolist() == [0, 1, 0, 1, 0, 1]
    with pytest.raises(IndexError):
        split.documents[4]
    assert split.costs(Letters()).tolist() == [6, 5, 10, 12, 2, 8]
    assert split.cut(Letters()) == 1
    with (tmp_path / "split" / "documents.bin").open("ab") as stream:
        stream.write(b"x")
    with pytest.raises(InputError, match="start again"):
        open_split(tmp_path / "split")
    documents, summaries = split.units(np.array([3, 0]))
    assert (documents.tolist(), summaries.tolist()) == ([8, 4], [6, 2])


def test_a_split_that_another_machine_can_not_see(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_PATIENCE", 0.0)
    with pytest.raises(InputError, match="--out on a file system that all machines share"):
        open_split(tmp_path / "split")


def flat(batches):
    return [np.concatenate(batch) for batch in batches]


def equal(one, other):
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@given(LENGTHS, st.integers(0, 5), st.integers(0, 5), st.integers(1, 40))
def test_an_epoch_has_every_example_once(lengths, seed, epoch, size):
    order = BatchOrder(lengths, size)
    batches = flat(order.epoch(seed, epoch))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert len(batches) == order.per_epoch == -(-len(lengths) // size)
    assert max(map(len, batches)) <= size


@given(st.lists(st.integers(0, 30), min_size=1, max_size=200).map(np.array), st.integers(1, 40), st.integers(1, 4))
def test_documents_stay_together(documents, size, processes):
    order = BatchOrder(np.ones(len(documents), int), size, documents)
    batches = list(order.epoch(0, 0))
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
    order = BatchOrder(np.arange(1, 200), 8)
    first = flat(order.epoch(1, 0))
    assert equal(first, flat(order.epoch(1, 0)))
    assert equal(first, flat(BatchOrder(np.arange(1, 200), 8).epoch(1, 0)))
    assert not equal(first, flat(order.epoch(1, 1)))
    assert not equal(first, flat(order.epoch(2, 0)))


@given(LENGTHS, st.integers(1, 40), st.booleans(), st.data())
def test_an_epoch_can_be_entered_anywhere(lengths, size, grouped, data):
    order = BatchOrder(lengths, size, np.arange(len(lengths)) // 3 if grouped else None)
    start = data.draw(st.integers(0, order.per_epoch))
    assert equal(flat(order.epoch(2, 1))[start:], flat(order.epoch(2, 1, start)))


def test_batches_hold_examples_of_like_length():
    lengths = np.random.default_rng(0).integers(1, 1000, 2000)
    grouped = sum(lengths[b].max() * len(b) for b in flat(BatchOrder(lengths, 20).epoch(0, 0)))
    shuffled = np.random.default_rng(1).permutation(2000).reshape(-1, 20)
    mixed = sum(lengths[b].max() * len(b) for b in shuffled)
    # Work over padding: nearly none when grouped (the mean length is about 500), nearly double when mixed.
    assert grouped < 1.1 * lengths.sum()
    assert mixed > 1.7 * lengths.sum()


@given(st.lists(st.integers(0, 12), min_size=1, max_size=30), st.integers(1, 3), st.integers(1, 4))
def test_every_set_has_all_originals_and_every_negative_one_set(counts, negatives, redraws):
    most = negatives * redraws
    kinds = np.concatenate([[1, *[0] * min(count, most)] for count in counts])
    sets = redrawn(kinds == 1, negatives, redraws)
    originals = np.flatnonzero(kinds == 1)
    assert len(sets) == redraws
    for each in sets:
        assert set(originals) <= set(each.tolist())
        assert (np.diff(each) > 0).all()
    seen = np.concatenate([np.setdiff1d(each, originals) for each in sets])
    assert sorted(seen.tolist()) == np.flatnonzero(kinds == 0).tolist()


def test_epochs_see_other_negatives_and_the_test_split_stays(pairs_file, tmp_path):
    common = {"corpus": str(pairs_file), "head": "fc", "encoder": "glove(unit=sentence)", "log_examples": True}
    train(make_config({**common, "epochs": 3, "redraws": 2}), tmp_path / "two")
    lines = [json.loads(line) for line in (tmp_path / "two" / "training.jsonl").read_text("utf-8").splitlines()]
    epochs = [[]]
    for line in lines:
        if line["kind"] == "step":
            epochs[-1] += line["ids"]
        else:
            epochs.append([])
    assert len(epochs) == 4
    numbers = [{name.rpartition("-")[2] for name in epoch if not name.endswith("/original")} for epoch in epochs[:3]]
    assert numbers == [{"1"}, {"2"}, {"1"}]
    originals = [sorted(name for name in epoch if name.endswith("/original")) for epoch in epochs[:3]]
    assert originals[0] == originals[1]
    assert len(set(originals[0])) == len(originals[0])

"""Prepared splits: lengths worked out block by block, texts shared, and what another machine is told."""

import json

import numpy as np
import pytest

from negsample.errors import InputError
from negsample.io.files import appears
from negsample.train.data import prepare


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


EXAMPLES = [("aaaa", "bb"), ("aaaa", "b"), ("cccccccc", "bb"), ("cccccccc", "dddddd"), ("e", "f"), ("aaaa", "aaaa")]


@pytest.fixture
def split(tmp_path):
    lines = [
        json.dumps({"id": str(n), "document": document, "summary": summary, "label": n % 2})
        for n, (document, summary) in enumerate(EXAMPLES)
    ]
    (tmp_path / "examples.jsonl").write_text("\n".join(lines) + "\n")
    features = Letters()
    prepare.prepare_split(tmp_path / "examples.jsonl", tmp_path / "split", features)
    # Each text once a store, in the order in which they come.
    assert features.asked == ["aaaa", "cccccccc", "e", "bb", "b", "dddddd", "f", "aaaa"]
    return prepare.open_split(tmp_path / "split")


@pytest.mark.parametrize("block", [1, 4, 6, 100])
def test_lengths_block_by_block(block, split, monkeypatch):
    monkeypatch.setattr(prepare, "_BLOCK", block)
    assert split.costs(Letters()).tolist() == [6, 5, 10, 12, 2, 8]
    assert split.cut(Letters()) == 1
    documents, summaries = split.units()
    assert (documents.tolist(), summaries.tolist()) == ([4, 4, 8, 8, 1, 4], [2, 1, 2, 6, 1, 4])
    documents, summaries = split.units(np.array([3, 0]))
    assert (documents.tolist(), summaries.tolist()) == ([8, 4], [6, 2])


class Lengths:
    """An encoder whose vector is the length of the text."""

    name, fingerprint, dim, unit = "lengths", "e" * 40, 1, "sentence"

    def encode(self, texts):
        return np.array([[len(text)] for text in texts], np.float32)


def test_examples_without_a_new_text_leave_the_stores_as_they_are(tmp_path, monkeypatch):
    from negsample.models.embedding_cache import EmbeddingCache
    from negsample.models.features.rows import RowFeatures

    features = RowFeatures(Lengths(), 3, 3, EmbeddingCache(Lengths(), tmp_path / "vectors"))
    assert features.read([]) == []
    # Of the second two examples nothing is new; what comes after them must still find its own rows.
    told = [("Aa.", "B."), ("Aa.", "Cccc."), ("Aa.", "B."), ("Aa.", "Cccc."), ("Ddd. E.", "Ff."), ("Aa.", "Gg. H.")]
    lines = [
        json.dumps({"id": str(n), "document": document, "summary": summary, "label": 1})
        for n, (document, summary) in enumerate(told)
    ]
    (tmp_path / "examples.jsonl").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(prepare, "_CHUNK", 2)
    prepare.prepare_split(tmp_path / "examples.jsonl", tmp_path / "split", features)
    split = prepare.open_split(tmp_path / "split")
    read = features.collate(
        [split.documents[i] for i in split.document_of], [split.summaries[i] for i in split.summary_of]
    )
    assert read["document"][:, :, 0].tolist() == [[3, 0], [3, 0], [3, 0], [3, 0], [4, 2], [3, 0]]
    assert read["summary"][:, :, 0].tolist() == [[2, 0], [5, 0], [2, 0], [5, 0], [3, 0], [3, 2]]


def test_a_split_that_another_machine_can_not_see(tmp_path, monkeypatch):
    monkeypatch.setattr(prepare, "appears", lambda path: appears(path, 0.0))
    with pytest.raises(InputError, match="--out on a file system that all machines share"):
        prepare.open_split(tmp_path / "split")

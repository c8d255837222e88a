"""Ids are told apart however many there are."""

from collections import Counter

import pytest

from negsample.corpora import pairs as corpus_pairs
from negsample.corpora.pairs import CorpusOptions
from negsample.errors import RecordError
from negsample.io.read import Row


def read(ids, **options):
    records = [Row(f"line {n}", {"id": i, "document": f"d {n}", "summary": f"s {n}"}) for n, i in enumerate(ids)]
    pairs = corpus_pairs.pairs_from(records, "c", "document", "summary", CorpusOptions(), Counter(), **options)
    return [pair.id for pair in pairs]


@pytest.fixture(autouse=True)
def _few_recent(monkeypatch):
    # So that hashes move from the set to the array many times.
    monkeypatch.setattr(corpus_pairs, "_RECENT", 3)


def test_different_ids():
    ids = [f"p{number}" for number in range(50)]
    assert read(ids) == ids


@pytest.mark.parametrize("again", [0, 1, 17, 48])
def test_an_id_that_comes_again(again):
    ids = [f"p{number}" for number in range(49)]
    with pytest.raises(RecordError, match=f"line 49: repeats an id \\('p{again}'\\)"):
        read([*ids, f"p{again}"])


def test_ids_may_repeat_where_the_corpus_says_so():
    ids = ["a", "b", "a", "c", "d", "e", "a", "b"]
    assert read(ids, unique_ids=False) == ["a", "b", "a-2", "c", "d", "e", "a-3", "b-2"]

"""A sample of a corpus: which pairs, in which order, and that each is as likely as any other."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from negsample.corpora import CorpusOptions, load_pairs
from negsample.corpora.pairs import describe_part, sampled
from negsample.errors import InputError
from negsample.records import Pair
from negsample.seeds import digest
from negsample.train.config import make_config
from negsample.train.data import find_corpora, pairs_of


def pairs(count: int) -> list[Pair]:
    return [Pair(f"p{number}", f"Document {number}.", f"Summary {number}.", "c") for number in range(count)]


def test_those_with_the_lowest_hashes_in_the_order_of_the_corpus() -> None:
    places = {pair.id: digest(7, "sample", pair.id, size=8) for pair in pairs(40)}
    lowest = sorted(places, key=places.__getitem__)[:9]
    found = [pair.id for pair in sampled(iter(pairs(40)), 9, 7)]
    assert sorted(found) == sorted(lowest)
    assert found == sorted(found, key=lambda name: int(name[1:]))
    # A quarter of the range of the first byte is 0x00 to 0x3f.
    quarter = [name for name, place in places.items() if place[0] < 0x40]
    assert [pair.id for pair in sampled(iter(pairs(40)), 0.25, 7)] == quarter


@given(st.integers(0, 12), st.integers(1, 9), st.integers(0, 5), st.integers(0, 3), st.permutations(range(12)))
def test_laws(count: int, small: int, more: int, seed: int, order: list[int]) -> None:
    every = pairs(count)
    found, larger = list(sampled(iter(every), small, seed)), list(sampled(iter(every), small + more, seed))
    assert len(found) == min(small, count)
    # A part of a larger one, in the order of the corpus, whatever that order is.
    assert [pair for pair in larger if pair in found] == found
    turned = [pair for pair in (pairs(12)[place] for place in order) if pair in every]
    assert [pair for pair in turned if pair in found] == list(sampled(iter(turned), small, seed))


def test_each_part_is_as_likely_as_any_other() -> None:
    times = Counter(tuple(pair.id for pair in sampled(iter(pairs(6)), 3, seed)) for seed in range(4000))
    every = list(combinations([f"p{number}" for number in range(6)], 3))
    assert set(times) == set(every)
    assert chisquare([times[each] for each in every]).pvalue > 0.01
    share = [sum(1 for _ in sampled(iter(pairs(50)), 0.1, seed)) for seed in range(400)]
    # Binomial, 20,000 draws: mean 2,000, standard deviation 42.
    assert sum(share) == pytest.approx(2000, abs=4 * 42)


def test_limit_comes_first_and_each_corpus_is_sampled(tmp_path: Path) -> None:
    for name, count in (("one", 30), ("two", 5)):
        rows = [json.dumps({"id": p.id, "document": p.document, "summary": p.summary}) for p in pairs(count)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    one, two = (str(tmp_path / f"{name}.jsonl") for name in ("one", "two"))
    first = {pair.id for pair in load_pairs(one, CorpusOptions(limit=10))}
    found = [pair.id for pair in load_pairs(one, CorpusOptions(limit=10, sample=6, seed=2))]
    assert len(found) == 6
    assert set(found) < first
    config = make_config({"corpus": [one, two], "sample": 6, "limit": 10, "seed": 2})
    assert [pair.id for pair in pairs_of(config, Counter())] == [*found, *(f"p{number}" for number in range(5))]


def test_looking_for_a_corpus_does_not_read_it_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"document": "One.", "summary": "1."}\nnot JSON\n')
    find_corpora(make_config({"corpus": str(path), "sample": 1}))


@pytest.mark.parametrize("sample", [0, -3, 1.5, 0.0, -0.5, float("nan")])
def test_what_is_neither_number_nor_share_is_refused(sample: float) -> None:
    with pytest.raises(InputError, match=r"sample is .*; give a whole number of pairs, or a share between 0 and 1"):
        CorpusOptions(sample=sample)
    with pytest.raises(InputError, match="sample"):
        make_config({"sample": sample})


def test_what_is_read_in_words() -> None:
    assert describe_part({}) == ""
    assert describe_part({"sample": 30000.0}) == ", a sample of 30000 pairs of each"
    assert describe_part({"limit": 7, "sample": 0.1}) == ", a sample of a share of 0.1 of the first 7 pairs of each"

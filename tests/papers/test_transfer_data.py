"""No test document of a target is trained or validated on, whatever the corpora share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests_support import write_pairs

from negsample.errors import InputError
from negsample.io.read import read_examples
from negsample.negatives.recipe import parse_recipe
from negsample.papers.transfer_config import (
    DomainSplit,
    choose,
    held_out,
    split_domain,
    target_examples,
    training_examples,
)
from negsample.train.config import make_config
from negsample.train.data import make_examples

_PAIRS = st.lists(st.tuples(st.integers(0, 25), st.integers(0, 40)), min_size=1, max_size=40)


def domain(pairs, seed):
    """A domain of ``pairs`` of (document, summary), both numbers, split at random by document."""
    rng = np.random.default_rng(seed)
    part = rng.integers(3, size=100)
    unique = sorted(set(pairs))
    rows = np.array([(b"d%d" % d, b"s%d" % s) for d, s in unique], np.dtype([("key", "S16"), ("summary", "S16")]))
    return DomainSplit(rows, np.array([part[d] for d, _ in unique], np.uint8))


def pairs_of_split(split):
    return list(zip(split.rows["key"].tolist(), split.rows["summary"].tolist(), split.part.tolist(), strict=True))


@given(st.lists(_PAIRS, min_size=2, max_size=4), st.integers(0, 99), st.integers(1, 12))
def test_no_choice_meets_a_test_document(corpora, seed, size):
    splits = [domain(pairs, seed + number) for number, pairs in enumerate(corpora)]
    held = held_out(splits[1:])
    tested = [(d, s) for split in splits[1:] for d, s, part in pairs_of_split(split) if part == 2]
    documents, summaries = {d for d, _ in tested}, {s for _, s in tested}
    for chosen in ([splits[0]], splits[:-1], splits):
        read = {(d, s) for split in chosen for d, s, _ in pairs_of_split(split)}
        training = {d for split in chosen for d, _, part in pairs_of_split(split) if part == 0}
        every = choose(chosen, held, None, seed)
        allowed = {d for d in training if d not in documents and not {s for e, s in read if e == d} & summaries}
        assert set(every.train.tolist()) == allowed
        assert every.left_out == len(training) - len(allowed)
        assert every.train_pairs == sum(d in allowed for d, _ in read)
        assert not set(every.validation.tolist()) & (documents | training)
        learned = {s for d, s in read if d in allowed}
        for d in every.validation.tolist():
            assert not {s for e, s in read if e == d} & (learned | summaries)
        cut = choose(chosen, held, size, seed)
        if every.train_pairs < size:
            assert cut is None
            continue
        larger = choose(chosen, held, size + 1, seed) or every
        assert set(cut.train.tolist()) <= set(larger.train.tolist()) <= allowed
        # Whole documents until there are enough: without the last one there are too few.
        counts = [sum(e == d for e, _ in read) for d in cut.train.tolist()]
        assert cut.train_pairs == sum(counts) >= size > sum(counts[:-1])
        assert len(cut.validation) <= max(8, round(len(cut.train) / 8))


def config_of(path, **more):
    return make_config({"corpus": str(path), **more})


def test_a_domain_is_split_and_tested_as_train_does(pairs_file, tmp_path):
    config, recipe = config_of(pairs_file, negatives=2), parse_recipe("crosspair")
    split = split_domain(config, tmp_path / "domain")
    assert np.bincount(split.part).tolist() == [48, 6, 6]
    target_examples(config, recipe, tmp_path / "domain", tmp_path / "tests")
    make_examples(config, recipe, tmp_path / "examples")
    own, other = (list(read_examples(tmp_path / place / "test.jsonl.gz")) for place in ("tests", "examples"))
    assert own == other
    assert len(own) == 18


def test_training_has_as_many_sets_of_negatives_as_epochs_take_turns_with(pairs_file, tmp_path):
    config = config_of(pairs_file, negatives=2, redraws=3, epochs=3)
    split = split_domain(config, tmp_path / "domain")
    choice = choose([split], held_out([split]), None, 0)
    training_examples(choice, [config], parse_recipe("crosspair"), tmp_path / "training")
    count = {}
    for name in ("train", "validation"):
        kinds = [example.kind for example in read_examples(tmp_path / "training" / f"{name}.jsonl.gz")]
        count[name] = (kinds.count("original"), kinds.count("crosspair"))
    assert count == {"train": (48, 48 * 2 * 3), "validation": (6, 6 * 2)}


def test_a_corpus_that_has_changed_is_refused(tmp_path):
    path = tmp_path / "pairs.jsonl"
    write_pairs(path, 30)
    config, recipe = config_of(path), parse_recipe("crosspair")
    split = split_domain(config, tmp_path / "domain")
    choice = choose([split], held_out([split]), None, 0)
    write_pairs(path, 20)
    with pytest.raises(InputError, match=r"pairs\.jsonl: has changed since the experiment was begun"):
        target_examples(config, recipe, tmp_path / "domain", tmp_path / "tests")
    with pytest.raises(InputError, match="has changed"):
        training_examples(choice, [config], recipe, tmp_path / "training")
    (tmp_path / "domain" / "split.npz").unlink()
    with pytest.raises(InputError, match="has changed"):
        split_domain(config, tmp_path / "domain")

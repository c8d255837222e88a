"""The description of a transfer experiment: what it may say, and what it means."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests_support import write_pairs

from negsample.errors import InputError
from negsample.io.read import read_examples
from negsample.models.evaluation import figures
from negsample.negatives.recipe import parse_recipe
from negsample.papers.stand_ins import small_transfer
from negsample.papers.transfer_config import (
    DomainSplit,
    TransferConfig,
    choose,
    held_out,
    split_domain,
    target_examples,
    training_examples,
)
from negsample.papers.transfer_report import compare_on
from negsample.resampling import NO_INTERVAL
from negsample.settings import make_settings
from negsample.train.config import make_config
from negsample.train.data import make_examples

BASE = {"sources": {"a": "a.jsonl", "b": "b.jsonl", "c": "c.jsonl"}}


def make_transfer(values, where="t.yaml"):
    return make_settings(TransferConfig, values, where)


def test_domains_take_their_own_options_before_those_of_train():
    config = make_transfer(
        {
            "sources": {
                "plain": "a.jsonl",
                "own": {"corpus": ["b.jsonl", "c.jsonl"], "limit": 7, "sample": 4, "document_field": "text"},
            },
            "targets": {"far": {"corpus": "d.jsonl", "on_bad": "skip"}},
            "train": {"limit": 50, "sample": 0.5, "seed": 3, "encoder": "glove"},
        }
    )
    own, plain = (config.domain(name) for name in ("own", "plain"))
    assert (own.corpora(), own.limit, own.document_field, own.seed) == (["b.jsonl", "c.jsonl"], 7, "text", 3)
    assert (own.sample, plain.sample) == (4, 0.5)
    assert (plain.limit, plain.on_bad) == (50, "stop")
    assert config.domain("far").on_bad == "skip"
    assert config.all_seeds() == (3,)


def test_a_head_has_settings_of_its_own():
    config = make_transfer(
        {
            **BASE,
            "recipes": ["crosspair", {"add": 1, "delete": 2}],
            "heads": ["fc", {"head": "cls", "label": "small", "encoder": "minilm", "epochs": 1, "sizes": [20, "all"]}],
            "train": {"encoder": "glove", "epochs": 4},
        }
    )
    fc, small = config.labelled_heads
    assert (small.label, small.sizes) == ("small", (20, None))
    first = config.config_of(fc, config.mixes[1], 5)
    assert (first.head, first.encoder, first.epochs, first.seed) == ("fc", "glove", 4, 5)
    assert first.recipe == {"add": 1.0, "delete": 2.0}
    second = config.config_of(small, config.mixes[0], 0)
    assert (second.head, second.encoder, second.epochs, second.learning_rate) == ("cls", "minilm", 1, 3e-5)


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"source": {}}, "unknown key 'source'; did you mean sources?"),
        ({"sources": {}}, "sources"),
        ({"sources": ["a"]}, "sources"),
        ({"sources": {"a": {"corpus": "x.jsonl", "limt": 3}}}, "sources: a: unknown key 'limt'; did you mean limit?"),
        ({"sources": {"a": {"limit": 3}}}, "sources: a: no corpus"),
        ({"sources": {"a": ["x.jsonl", "x.jsonl"]}}, "sources: a: corpus 'x.jsonl' is given twice"),
        ({"sources": {"a": "-"}}, "sources: a: standard input"),
        ({"sources": {"a": "x.jsonl"}, "leave_one_out": True}, "leave_one_out needs two sources"),
        ({"sources": {"mixture": "x.jsonl", "b": "y.jsonl"}, "mixture": True}, "sources: the name 'mixture'"),
        ({"targets": ["d"]}, "targets: 'd' is no source"),
        ({"targets": {"a": "other.jsonl"}}, "targets: a"),
        ({"targets": []}, "targets"),
        ({"targets": {}}, "targets"),
        ({"recipes": ["crosspare"]}, "crosspair"),
        ({"recipes": ["add", {"add": 2}]}, "recipes: 'add' is given twice"),
        ({"heads": ["fx"]}, "no head is called 'fx'"),
        ({"heads": [{"encoder": "glove"}]}, "heads: {'encoder': 'glove'} names no head"),
        ({"heads": [{"head": "fc", "encoder": "glov"}]}, "no encoder is called 'glov'; did you mean glove?"),
        ({"heads": [{"head": "fc", "epoch": 3}]}, "heads: fc: unknown key 'epoch'; did you mean epochs?"),
        ({"heads": [{"head": "fc", "redraws": 3}]}, "heads: fc: redraws must be the same for all heads"),
        ({"heads": [{"head": "fc", "limit": 3}]}, "heads: fc: limit must be the same for all heads"),
        ({"heads": [{"head": "fc", "sizes": [1]}]}, "heads: fc: sizes: 1"),
        ({"heads": ["fc", {"head": "fc", "epochs": 2}]}, "heads: the label 'fc' is given twice"),
        ({"heads": [{"head": "align", "loss": "bce"}]}, "head align has a loss of its own"),
        ({"sizes": [30, "many"]}, "sizes"),
        ({"sizes": [30, 30]}, "sizes: 30 is given twice"),
        ({"few_shot": [0]}, "few_shot: 0"),
        ({"seeds": [2**63]}, "seeds: seed must be at most"),
        ({"seeds": [1, 1]}, "seeds: 1 is given twice"),
        ({"mixture": "perhaps"}, "mixture"),
        ({"train": {"corpus": "x"}}, "train: corpus is said in sources"),
        ({"train": {"head": "fc"}}, "train: head is said in"),
        ({"train": {"learning_rat": 1}}, "train: unknown key 'learning_rat'; did you mean learning_rate?"),
    ],
)
def test_what_is_wrong_is_named(values, place):
    with pytest.raises(InputError) as error:
        make_transfer({**BASE, **values} if "source" not in values else values, "t.yaml")
    assert str(error.value).startswith("t.yaml: ")
    assert place in str(error.value)
    assert "\n" not in str(error.value)


def test_the_example_in_the_documentation_is_right():
    page = Path(__file__).parents[2] / "docs" / "transfer.md"
    if not page.is_file():
        pytest.skip("docs/transfer.md is not beside the tests")
    config = make_transfer(yaml.safe_load(page.read_text("utf-8").split("```yaml\n")[1].split("```")[0]))
    names = [source.name for source in config.all_sources()]
    assert names == ["news", "patents", "science", "mixture", "all but news"]
    assert config.target_names == ["news", "bills"]
    assert [(h.label, h.sizes) for h in config.labelled_heads] == [("fc", (1000, 10000, None)), ("BERT", (None,))]
    assert config.domains["bills"].limit == 30000


def test_plain_values_make_the_same_experiment_again():
    config = make_transfer({**BASE, "sizes": [5, "all"], "few_shot": [3], "heads": [{"head": "cls", "sizes": [9]}]})
    assert make_transfer(json.loads(json.dumps(config.as_dict()))) == config


def test_smoke_replaces_corpora_and_encoders_and_keeps_the_shape():
    config = make_transfer(
        {
            "sources": {"cnn": {"corpus": "cnn_dailymail", "corpus_config": "3.0.0"}, "patents": "big_patent"},
            "targets": ["cnn"],
            "heads": [{"head": "cls", "encoder": "/models/bert", "epochs": 5}, "fc"],
            "sizes": [30_000, 100_000, "all"],
            "few_shot": [64],
            "seeds": [3, 4],
            "train": {"encoder": "use:/models/use", "max_length": 256},
        }
    )
    said = []
    small = small_transfer(config, say=said.append)
    corpora = {name: (domain.corpus, domain.corpus_config) for name, domain in small.domains.items()}
    assert corpora == {"cnn": ("sample:news", None), "patents": ("sample:patents", None)}
    assert small.target_names == ["cnn"]
    assert (small.sizes, small.few_shot, small.seeds) == ((4, 14, "all"), (4,), (3,))
    cls, fc = (small.config_of(head, small.mixes[0], 0) for head in small.labelled_heads)
    assert (cls.encoder, fc.encoder) == ("minilm", "use-multilingual")
    assert (cls.epochs, cls.max_length, fc.epochs) == (2, 64, 2)
    (line,) = said
    assert all(
        key in line for key in ("sources", "heads", "sizes [30000, 100000, all] → [4, 14, all]", "few_shot [64]")
    )
    assert small_transfer(small, say=said.append) == small
    assert len(said) == 1


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


LABELS = np.tile([1.0, 0.0], 10)
DOCUMENTS = np.arange(20) // 2
RIGHT, WRONG = np.where(LABELS == 1, 0.5, 0.4), np.where(LABELS == 1, 0.4, 0.5)  # 0.5 counts as good


def test_values_and_differences_worked_out_by_hand():
    half = np.where(DOCUMENTS < 9, 0.7, RIGHT)  # of nine documents the original, of the tenth both
    found = compare_on("accuracy", LABELS, DOCUMENTS, {"a": [RIGHT], "b": [half]}, {"b": {"delta": "a"}})
    # All resamples are alike.
    assert (found["a"]["value"], found["a"]["low"], found["a"]["reason"]) == (1, None, NO_INTERVAL)
    assert (found["b"]["value"], found["b"]["n"], found["b"]["documents"]) == (0.55, 20, 10)
    # A resample's difference is that of the nine and 0.05 for each time that the tenth is drawn, 0 to 3 times of 10.
    gap = found["b"]["delta"]
    assert (gap["value"], gap["low"], gap["high"]) == pytest.approx((-0.45, -0.5, -0.35))
    assert "delta" not in found["a"]


def test_a_difference_is_paired():
    # Right on five documents, and on six: each is uncertain by 0.6, their difference by 0 to 3 draws of one document.
    first, other = (np.where(right > DOCUMENTS, RIGHT, WRONG) for right in (5, 6))
    found = compare_on("accuracy", LABELS, DOCUMENTS, {"a": [first], "b": [other]}, {"b": {"delta": "a"}})
    assert (found["a"]["low"], found["a"]["high"]) == pytest.approx((0.2, 0.8))
    assert (found["b"]["delta"]["low"], found["b"]["delta"]["high"]) == pytest.approx((0, 0.3))


def test_a_model_is_the_mean_of_its_seeds():
    some = np.where(DOCUMENTS < 5, RIGHT, WRONG)
    found = compare_on("accuracy", LABELS, DOCUMENTS, {"a": [RIGHT, RIGHT, some]}, {})["a"]
    assert (found["value"], found["low"], found["high"]) == pytest.approx((2.5 / 3, 2.2 / 3, 2.8 / 3))


@pytest.mark.parametrize(("seed", "documents", "graded"), [(0, 2, False), (1, 19, True), (2, 15, False), (3, 13, True)])
def test_one_seed_has_the_figures_and_intervals_of_train(seed, documents, graded):
    rng = np.random.default_rng(seed)
    codes = rng.integers(documents, size=40)
    codes[:documents] = np.arange(documents)
    labels = rng.random(40) if graded else rng.integers(2, size=40).astype(float)
    scores = rng.random(40).astype(np.float32)
    name = "pearson" if graded else "accuracy"
    other = figures(labels, scores, codes, seed=seed)[name]
    own = compare_on(name, labels, codes, {"a": [scores]}, {}, seed=seed)["a"]
    assert own["value"] == pytest.approx(other["value"], abs=1e-9)
    assert own["low"] == pytest.approx(other["low"], abs=1e-9)
    assert own["high"] == pytest.approx(other["high"], abs=1e-9)


def test_what_is_not_defined_is_told():
    flat = np.full(20, 0.3)
    labels = np.linspace(0, 1, 20)
    found = compare_on(
        "pearson", labels, DOCUMENTS, {"flat": [flat], "good": [labels]}, {"good": {"delta": "flat"}, "flat": {}}
    )
    assert (found["flat"]["value"], found["flat"]["low"]) == (None, None)
    assert "all the same" in found["flat"]["reason"]
    assert found["good"]["value"] == pytest.approx(1)
    assert found["good"]["delta"] is None
    alone = compare_on("accuracy", LABELS[:2], np.array([7, 7]), {"a": [LABELS[:2]]}, {})["a"]
    assert (alone["value"], alone["low"]) == (1, None)
    assert alone["reason"] == NO_INTERVAL

"""The description of a transfer experiment: what it may say, and what it means."""

import json
from pathlib import Path

import pytest
import yaml

from negsample.errors import InputError
from negsample.papers.stand_ins import small_transfer
from negsample.papers.transfer_config import TransferConfig
from negsample.settings import make_settings

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

"""The description of a transfer experiment: what it may say, and what it means."""

from pathlib import Path

import pytest
import yaml

from negsample.errors import InputError
from negsample.papers.stand_ins import small_transfer
from negsample.papers.transfer_config import make_transfer, read_transfer

BASE = {"sources": {"a": "a.jsonl", "b": "b.jsonl", "c": "c.jsonl"}}


def test_defaults():
    config = make_transfer(BASE)
    assert list(config.targets) == ["a", "b", "c"]
    assert [str(recipe) for recipe in config.recipes] == ["crosspair"]
    assert [head.label for head in config.heads] == ["fc"]
    assert (config.sizes, config.seeds, config.few_shot) == ((None,), (0,), ())
    assert [source.name for source in config.all_sources()] == ["a", "b", "c"]


def test_mixture_and_leave_one_out():
    config = make_transfer({**BASE, "mixture": True, "leave_one_out": True, "targets": ["b", "c"]})
    found = {source.name: (source.domains, source.left_out) for source in config.all_sources()}
    assert found == {
        "a": (("a",), ""),
        "b": (("b",), ""),
        "c": (("c",), ""),
        "mixture": (("a", "b", "c"), ""),
        "all but b": (("a", "c"), "b"),
        "all but c": (("a", "b"), "c"),
    }


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
    assert config.seeds == (3,)


def test_a_head_has_settings_of_its_own():
    config = make_transfer(
        {
            **BASE,
            "recipes": ["crosspair", {"add": 1, "delete": 2}],
            "heads": ["fc", {"head": "cls", "label": "small", "encoder": "minilm", "epochs": 1, "sizes": [20, "all"]}],
            "train": {"encoder": "glove", "epochs": 4},
        }
    )
    fc, small = config.heads
    assert (small.label, small.sizes) == ("small", (20, None))
    first = config.config_of(fc, config.recipes[1], 5)
    assert (first.head, first.encoder, first.epochs, first.seed) == ("fc", "glove", 4, 5)
    assert first.recipe == {"add": 1.0, "delete": 2.0}
    second = config.config_of(small, config.recipes[0], 0)
    assert (second.head, second.encoder, second.epochs, second.learning_rate) == ("cls", "minilm", 1, 3e-5)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"source": {}}, r"unknown key 'source'; did you mean sources\?"),
        ({"sources": {}}, "no sources"),
        ({"sources": ["a"]}, "sources must be key: value lines, not"),
        ({"sources": {"a": {"corpus": "x.jsonl", "limt": 3}}}, r"sources: a: unknown key 'limt'; did you mean limit\?"),
        ({"sources": {"a": {"limit": 3}}}, "sources: a: no corpus"),
        ({"sources": {"a": ["x.jsonl", "x.jsonl"]}}, "corpus 'x.jsonl' is given twice"),
        ({"sources": {"a": "-"}}, "standard input can be read once only"),
        ({**BASE, "heads": [{"head": "fc", "encoder": "glov"}]}, r"no encoder is called 'glov'; did you mean glove\?"),
        ({**BASE, "targets": ["d"]}, "targets: 'd' is no source"),
        ({**BASE, "targets": {"a": "other.jsonl"}}, "targets: a is not what the source of this name is"),
        ({**BASE, "targets": []}, "no target"),
        ({**BASE, "recipes": ["crosspare"]}, r"crosspare.*did you mean crosspair"),
        ({**BASE, "recipes": ["add", {"add": 2}]}, "recipes: 'add' is given twice"),
        ({**BASE, "heads": ["fx"]}, "no head is called 'fx'"),
        ({**BASE, "heads": [{"encoder": "glove"}]}, "names no head"),
        ({**BASE, "heads": [{"head": "fc", "epoch": 3}]}, r"heads: fc: unknown key 'epoch'; did you mean epochs\?"),
        (
            {**BASE, "heads": [{"head": "fc", "redraws": 3}]},
            "redraws must be the same for all heads; train, a domain",
        ),
        (
            {**BASE, "heads": [{"head": "fc", "limit": 3}]},
            "limit must be the same for all heads; train, a domain",
        ),
        (
            {**BASE, "heads": ["fc", {"head": "fc", "epochs": 2}]},
            "the label 'fc' is given twice; give one of them",
        ),
        ({**BASE, "heads": [{"head": "align", "loss": "bce"}]}, "head align has a loss of its own"),
        ({**BASE, "sizes": [30, "many"]}, "sizes: 'many' is no whole number of 2 or more"),
        ({**BASE, "sizes": [30, 30]}, "sizes: 30 is given twice"),
        ({**BASE, "few_shot": [0]}, "few_shot: 0 is no whole number"),
        ({**BASE, "mixture": "yes"}, "mixture must be true or false, not 'yes'"),
        ({"sources": {"a": "x.jsonl"}, "leave_one_out": True}, "leave_one_out needs two sources"),
        ({"sources": {"mixture": "x.jsonl", "b": "y.jsonl"}, "mixture": True}, "choose another name"),
        ({**BASE, "train": {"corpus": "x"}}, "train: corpus is said in sources, targets"),
        ({**BASE, "train": {"head": "fc"}}, "train: head is said in sources, targets, recipes or heads"),
        ({**BASE, "train": {"learning_rat": 1}}, r"unknown key 'learning_rat'; did you mean learning_rate\?"),
    ],
)
def test_what_is_wrong_is_named(values, told):
    with pytest.raises(InputError, match=told):
        make_transfer(values)


def test_a_file_is_named_in_errors(tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text("sources: {a: x.jsonl}\nsize: [3]\n")
    with pytest.raises(InputError, match=r"t\.yaml: unknown key 'size'; did you mean sizes\?"):
        read_transfer(path)


def test_the_example_in_the_documentation_is_right():
    page = Path(__file__).parents[2] / "docs" / "transfer.md"
    if not page.is_file():
        pytest.skip("docs/transfer.md is not beside the tests")
    config = make_transfer(yaml.safe_load(page.read_text("utf-8").split("```yaml\n")[1].split("```")[0]))
    names = [source.name for source in config.all_sources()]
    assert names == ["news", "patents", "science", "mixture", "all but news"]
    assert list(config.targets) == ["news", "bills"]
    assert [(head.label, head.sizes) for head in config.heads] == [("fc", None), ("BERT", (None,))]
    assert config.targets["bills"]["limit"] == 30000


def test_plain_values_make_the_same_experiment_again():
    config = make_transfer({**BASE, "sizes": [5, "all"], "few_shot": [3], "heads": [{"head": "cls", "sizes": [9]}]})
    again = config.as_dict()
    for key in ("corpus_config", "document_field", "summary_field", "sample"):
        for domain in again["sources"].values():
            assert domain.pop(key) is None
    assert make_transfer({**again, "targets": list(again["targets"])}).as_dict() == config.as_dict()


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
    assert {name: domain["corpus"] for name, domain in small.sources.items()} == {
        "cnn": "sample:news",
        "patents": "sample:patents",
    }
    assert small.sources["cnn"]["corpus_config"] is None
    assert list(small.targets) == ["cnn"]
    assert len(set(small.sizes)) == 3
    assert small.sizes[-1] is None
    assert all(2 <= size < 16 for size in (*small.sizes[:2], *small.few_shot))
    cls, fc = (small.config_of(head, small.recipes[0], 0) for head in small.heads)
    assert (cls.encoder, fc.encoder) == ("minilm", "use-multilingual")
    assert cls.epochs <= 2
    assert len(said) == 1
    assert "cnn_dailymail → sample:news, big_patent → sample:patents; limit (unset) → 20; " in said[0]
    rest = "judge_steps 200 → 2; "
    text = "max_length 256 → 64, min_summary 128 → 32"
    assert f"cls: encoder /models/bert → minilm, {text}, epochs 5 → 2, {rest}" in said[0]
    assert f"fc: encoder use:/models/use → use-multilingual, {text}, epochs (unset) → 2, {rest}" in said[0]
    assert "sizes [30000, 100000, all] → [4, 14, all]; few_shot [64] → [4]; seeds [3, 4] → [3]" in said[0]
    again = []
    small_transfer(small, say=again.append)
    assert again == ["smoke run, figures mean nothing: all is small already"]

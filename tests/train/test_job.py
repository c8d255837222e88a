"""A training run: what it leaves, what it reports, and what it learns."""

import json
import shutil
from collections import Counter

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests_support import story, unlike_new

from negsample import Estimator
from negsample.errors import InputError
from negsample.io.read import read_examples
from negsample.models import folder
from negsample.negatives.recipe import parse_recipe
from negsample.train import job
from negsample.train.config import make_config
from negsample.train.data import make_examples
from negsample.train.job import make_accelerator, train


def test_percentiles_of_each_kind_of_text_that_the_corpus_tells(config_for, tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "_FEW", 3)
    known = {f"p{number}": ("news", "law", "")[number % 3] for number in range(60)}
    rows = [dict(zip(("document", "summary"), story(n), strict=True)) for n in range(60)]
    named = [{"id": name, "domain": domain, **row} for (name, domain), row in zip(known.items(), rows, strict=True)]
    (tmp_path / "named.jsonl").write_text("".join(json.dumps(row) + "\n" for row in named))
    config = config_for(corpus=str(tmp_path / "named.jsonl"))
    train(config, tmp_path / "m")
    made = json.loads((tmp_path / "m" / "percentiles.json").read_text())
    # The held-out examples, as `generate` makes them of the same settings.
    make_examples(config, parse_recipe("crosspair"), tmp_path / "examples")
    examples = [e for name in ("validation", "test") for e in read_examples(tmp_path / "examples" / f"{name}.jsonl.gz")]
    assert all(example.domain == known[example.document_id] for example in examples)
    held = [example for example in examples if example.kind == "original"]
    counts = Counter(example.domain for example in held)
    assert set(made["domains"]) == {name for name, count in counts.items() if name and count >= 3} != set()
    scores = Estimator.load(tmp_path / "m").score([e.document for e in held], [e.summary for e in held])
    for domain, part in made["domains"].items():
        own = sorted(score for score, example in zip(scores, held, strict=True) if example.domain == domain)
        assert part["summaries"] == {"score": len(own)}
        assert part["values"]["score"] == pytest.approx(own, abs=2e-5)


@pytest.fixture
def config_for(pairs_file, tiny_bert):
    """A way to make settings of a short run of head ``cls``."""
    values = {"corpus": str(pairs_file), "encoder": str(tiny_bert), "max_length": 64, "epochs": 1}
    return lambda **more: make_config({**values, "learning_rate": 1e-3, **more})


def about(folder):
    return json.loads((folder / "config.json").read_text())


def test_what_a_run_leaves(config_for, tiny_bert, tmp_path):
    out = tmp_path / "m"
    config = config_for(recipe="delete", negatives=2, loss="ranking", epochs=3, seed=7)
    found = train(config, out)
    names = "README.md config.json encoder figures.json model.safetensors percentiles.json run.json training.jsonl"
    assert sorted(p.name for p in out.iterdir()) == names.split()
    assert unlike_new(out) == []
    assert found["epochs"][-1]["train_loss"] < found["epochs"][0]["train_loss"]
    known, run = (json.loads((out / name).read_text()) for name in ("percentiles.json", "run.json"))
    # What nothing was learnt from: an original for each document of two splits.
    held = sum(run["data"]["splits"][name]["documents"] for name in ("validation", "test"))
    assert known["summaries"] == {"score": held}
    documents, summaries = zip(*map(story, range(60)), strict=True)
    scores = Estimator.load(out).score(documents, summaries)
    assert all(np.abs(scores - value).min() < 2e-5 for value in known["values"]["score"])
    told = about(out)
    assert (told["recipe"], told["loss"], told["head"], run["data"]["pairs"], run["seed"]) == (
        "delete", "ranking", "cls", 60, 7,
    )  # fmt: skip
    card = (out / "README.md").read_text()
    assert "`delete`" in card
    assert run["data"]["fingerprint"][:16] in card
    # The test figures are those of the saved model on the examples that `generate` makes of the same settings.
    make_examples(config, parse_recipe("delete"), tmp_path / "examples")
    examples = list(read_examples(tmp_path / "examples" / "test.jsonl.gz"))
    scores = Estimator.load(out).score([e.document for e in examples], [e.summary for e in examples])
    expected = np.corrcoef([e.label for e in examples], scores)[0, 1]
    assert found["test"]["pearson"]["n"] == len(examples) == found["by_kind"]["original"]["n"] * 3
    assert found["test"]["pearson"]["value"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("head", ["fc", "cnn", "lstm"])
def test_heads_over_rows_learn_what_can_be_learned(head, pairs_file, tmp_path):
    values = {"corpus": str(pairs_file), "head": head, "encoder": "glove(unit=sentence)", "batch_size": 16}
    found = train(make_config({**values, "recipe": "sentence-delete", "negatives": 2, "epochs": 12}), tmp_path / "m")
    assert found["test"]["pearson"]["value"] > 0.6
    losses = [epoch["train_loss"] for epoch in found["epochs"]]
    assert losses[-1] < 0.7 * losses[0]
    assert found["unit"] == "sentence"
    # Every document has four sentences and every summary two: nothing is cut at the 80th percentile.
    assert about(tmp_path / "m")["features"]["max_document"] == 4
    assert found["cut"]["train"]["cut"] == 0
    score = Estimator.load(tmp_path / "m").score(["The baker sold a lamp. It rained."], ["A baker sold a lamp."])
    assert 0 < score[0] < 1
    assert about(tmp_path / "m")["loss"] == "mse"


def test_the_seed_decides_and_a_frozen_encoder_stays_as_it_was(config_for, tiny_bert, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(config_for(seed=seed, freeze_encoder=True), tmp_path / name)
    assert about(tmp_path / "a")["loss"] == "bce"
    prints = [about(tmp_path / name)["weights_sha256"] for name in "abc"]
    assert prints[0] == prints[1] != prints[2]
    before, after = load_file(tiny_bert / "model.safetensors"), load_file(tmp_path / "a" / "model.safetensors")
    name = "encoder.layer.0.attention.self.query.weight"
    assert np.array_equal(before[name], after[f"encoder.{name}"])


def test_accumulation_changes_nothing_but_memory(config_for, tiny_bert, tmp_path):
    # Without dropout the mean over a batch does not depend on how many parts it is computed in.
    shutil.copytree(tiny_bert, tmp_path / "bert")
    plain = about(tmp_path / "bert") | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (tmp_path / "bert" / "config.json").write_text(json.dumps(plain))
    losses = []
    for parts in (1, 3):
        config = config_for(encoder=str(tmp_path / "bert"), gradient_accumulation=parts, epochs=2)
        losses.append([epoch["train_loss"] for epoch in train(config, tmp_path / f"m{parts}")["epochs"]])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"max_length": 256}, "at most 128 tokens"),
        ({"learning_rate": 1e12, "max_gradient_norm": 0.0, "recipe": "delete"}, "learning_rate"),
        ({"learning_rate": 1e12, "recipe": "delete"}, "learning_rate"),
        ({"head": "align", "encoder": None, "judges": False, "learning_rate": 1e12}, "learning_rate"),
        ({"head": "fc", "encoder": "glove", "lm": "gpt2"}, "head fc has no language model"),
    ],
)
def test_what_cannot_be_trained_is_told(values, told, config_for, tmp_path):
    with pytest.raises(InputError, match=told):
        train(config_for(**values), tmp_path / "m")
    # What head `align` has read is kept.
    assert [path.name for path in tmp_path.glob("m/*")] == (["work"] if values.get("head") == "align" else [])


def test_a_card_that_cannot_be_made_loses_nothing(config_for, tmp_path, monkeypatch):
    config = config_for(head="fc", encoder="glove(unit=sentence)")

    def fails(*_):
        raise RuntimeError("no such template")

    with monkeypatch.context() as patch:
        patch.setattr(job, "_model_card", fails)
        with pytest.raises(InputError, match=r"is whole, but README\.md can't be made \(no such template\)"):
            train(config, tmp_path / "m")
    before = about(tmp_path / "m")["weights_sha256"]
    assert 0 < Estimator.load(tmp_path / "m").score(["A baker sold a lamp."], ["A lamp."])[0] < 1
    train(config, tmp_path / "m", resume=True)
    assert about(tmp_path / "m")["weights_sha256"] == before
    assert (tmp_path / "m" / "README.md").read_text()
    assert train(config, tmp_path / "m", resume=True) is None


def test_one_process_may_train_at_several_precisions():
    for precision in ("no", "bf16", "no"):
        assert make_accelerator(make_config({"mixed_precision": precision})).mixed_precision == precision

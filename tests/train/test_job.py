"""A training run: what it leaves, what it reports, and what it learns."""

import json

import numpy as np
import pytest
from processes import launch
from tests_support import story, write_pairs

from negsample import Estimator
from negsample.errors import InputError
from negsample.io.read import read_examples
from negsample.negatives.recipe import parse_recipe
from negsample.train.config import make_config
from negsample.train.data import make_examples
from negsample.train.job import make_accelerator, train


def config_for(pairs_file, tiny_bert, **more):
    values = {
        "corpus": str(pairs_file),
        "encoder": str(tiny_bert),
        "max_length": 64,
        "epochs": 2,
        "learning_rate": 1e-3,
    }
    return make_config({**values, **more})


def test_what_a_run_leaves(pairs_file, tiny_bert, tmp_path):
    out = tmp_path / "m"
    config = config_for(pairs_file, tiny_bert, recipe="delete", negatives=2)
    found = train(config, out)
    assert sorted(p.name for p in out.iterdir()) == [
        "README.md",
        "config.json",
        "encoder",
        "figures.json",
        "model.safetensors",
        "percentiles.json",
        "run.json",
        "training.jsonl",
    ]
    known = json.loads((out / "percentiles.json").read_text())
    data = json.loads((out / "run.json").read_text())["data"]
    # What nothing was learnt from: an original for each document of two splits.
    assert known["summaries"] == {"score": sum(data["splits"][name]["documents"] for name in ("validation", "test"))}
    documents, summaries = zip(*map(story, range(60)), strict=True)
    scores = Estimator.load(out).score(documents, summaries)
    assert all(np.abs(scores - value).min() < 2e-5 for value in known["values"]["score"])
    about = json.loads((out / "config.json").read_text())
    assert (about["recipe"], about["loss"], about["head"]) == ("delete", "mse", "cls")
    run = json.loads((out / "run.json").read_text())
    assert run["data"]["pairs"] == 60
    assert run["seed"] == 0
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


def test_loss_follows_the_recipe(pairs_file, tiny_bert, tmp_path):
    train(config_for(pairs_file, tiny_bert, epochs=1), tmp_path / "a")
    train(config_for(pairs_file, tiny_bert, epochs=1, loss="mse"), tmp_path / "b")
    assert json.loads((tmp_path / "a" / "config.json").read_text())["loss"] == "bce"
    assert json.loads((tmp_path / "b" / "config.json").read_text())["loss"] == "mse"


def test_training_learns_what_can_be_learned(tmp_path, tiny_bert):
    # Every document and summary names its own object, so that a summary of another document can be told.
    write_pairs(tmp_path / "many.jsonl", 400)
    config = config_for(
        tmp_path / "many.jsonl",
        tiny_bert,
        head="lstm",
        encoder="glove:unit=sentence",
        recipe="delete",
        negatives=3,
        epochs=12,
    )
    found = train(config, tmp_path / "m")
    assert found["test"]["pearson"]["value"] > 0.6
    losses = [epoch["train_loss"] for epoch in found["epochs"]]
    assert losses[-1] < 0.7 * losses[0]


def test_same_seed_same_model_other_seed_other_model(pairs_file, tiny_bert, tmp_path):
    prints = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(config_for(pairs_file, tiny_bert, seed=seed, epochs=1), tmp_path / name)
        prints.append(json.loads((tmp_path / name / "config.json").read_text())["weights_sha256"])
    assert prints[0] == prints[1] != prints[2]


def test_accumulation_changes_nothing_but_memory(pairs_file, tiny_bert, tmp_path):
    # Without dropout the mean over a batch does not depend on how many parts it is computed in.
    about = json.loads((tiny_bert / "config.json").read_text())
    folder = tmp_path / "bert"
    folder.mkdir()
    for path in tiny_bert.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    about.update(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    (folder / "config.json").write_text(json.dumps(about))
    losses = []
    for parts in (1, 3):
        found = train(config_for(pairs_file, folder, gradient_accumulation=parts), tmp_path / f"m{parts}")
        losses.append([epoch["train_loss"] for epoch in found["epochs"]])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@pytest.mark.parametrize("head", ["cls", "fc"])
def test_ranking_loss_for_any_head(head, pairs_file, tiny_bert, tmp_path):
    values = {
        "corpus": str(pairs_file),
        "recipe": "delete",
        "negatives": 3,
        "loss": "ranking",
        "epochs": 4,
        "head": head,
    }
    values |= (
        {"encoder": str(tiny_bert), "max_length": 64, "learning_rate": 1e-3}
        if head == "cls"
        else {"encoder": "glove:unit=sentence"}
    )
    found = train(make_config(values), tmp_path / "m")
    losses = [epoch["train_loss"] for epoch in found["epochs"]]
    assert losses[-1] < losses[0]
    assert json.loads((tmp_path / "m" / "config.json").read_text())["loss"] == "ranking"


def test_frozen_encoder_stays_as_it_was(pairs_file, tiny_bert, tmp_path):
    from safetensors.numpy import load_file

    train(config_for(pairs_file, tiny_bert, freeze_encoder=True, epochs=1), tmp_path / "m")
    before, after = load_file(tiny_bert / "model.safetensors"), load_file(tmp_path / "m" / "model.safetensors")
    name = "encoder.layer.0.attention.self.query.weight"
    assert np.array_equal(before[name], after[f"encoder.{name}"])


def test_max_length_beyond_the_encoder(pairs_file, tiny_bert, tmp_path):
    with pytest.raises(InputError, match="at most 128 tokens"):
        train(config_for(pairs_file, tiny_bert, max_length=256), tmp_path / "m")


def test_diverging_run_is_told(pairs_file, tiny_bert, tmp_path):
    with pytest.raises(InputError, match="learning_rate"):
        train(
            config_for(pairs_file, tiny_bert, learning_rate=1e30, max_gradient_norm=0.0, recipe="delete"),
            tmp_path / "m",
        )


@pytest.mark.parametrize("head", ["fc", "cnn", "lstm"])
def test_heads_over_rows(head, pairs_file, tmp_path):
    config = make_config({"corpus": str(pairs_file), "head": head, "encoder": "glove:unit=sentence", "epochs": 2})
    found = train(config, tmp_path / "m")
    assert found["unit"] == "sentence"
    # Every document has four sentences and every summary two: nothing is cut at the 80th percentile.
    assert json.loads((tmp_path / "m" / "config.json").read_text())["features"]["max_document"] == 4
    assert found["cut"]["train"]["cut"] == 0
    score = Estimator.load(tmp_path / "m").score(["The baker sold a lamp. It rained."], ["A baker sold a lamp."])
    assert 0 < score[0] < 1


def test_two_processes_do_as_one(pairs_file, tiny_bert, tmp_path):
    config = config_for(pairs_file, tiny_bert, log_examples=True, batch_size=7, recipe="delete", negatives=2)
    one = train(config, tmp_path / "one")
    words = [f"{key}={value}" for key, value in config.as_dict().items() if value is not None]
    done = launch("-m", "negsample", "train", *words, "--out", tmp_path / "two")
    assert done.returncode == 0, done.stderr
    two = json.loads((tmp_path / "two" / "figures.json").read_text())
    assert json.loads((tmp_path / "two" / "run.json").read_text())["processes"] == 2

    def ids(folder):
        lines = [json.loads(line) for line in (folder / "training.jsonl").read_text().splitlines()]
        return [line["ids"] for line in lines if line["kind"] == "step"]

    # Which examples a step sees does not depend on the number of processes; only their dropout does.
    assert ids(tmp_path / "one") == ids(tmp_path / "two")
    for a, b in zip(one["epochs"], two["epochs"], strict=True):
        assert b["train_loss"] == pytest.approx(a["train_loss"], rel=0.15)
        assert b["validation_loss"] == pytest.approx(a["validation_loss"], rel=0.15)


def test_one_process_may_train_at_several_precisions():
    for precision in ("no", "bf16", "no"):
        assert make_accelerator(make_config({"mixed_precision": precision})).mixed_precision == precision

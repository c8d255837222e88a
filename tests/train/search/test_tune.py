"""``negsample tune`` as a command, with real training of small heads; its files, its page, and what it keeps to itself."""

import csv
import json
import os
import sys
import time
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import optuna
import pytest
from tune_support import SEARCH, missing_postgres, postgres

from negsample.commands.train import tune as tune_command
from negsample.errors import InputError
from negsample.eval.report.tune import tune_page
from negsample.train.config import read_config
from negsample.train.job import train
from negsample.train.search import tune, validation_figures
from negsample.train.search.settings import read_search
from negsample.train.search.study import hide, open_storage, safe_url, state_of

REAL = """
train:
  corpus: {pairs}
  limit: 20
  encoder: glove(unit=sentence)
  recipe: delete
  negatives: 2
space:
  head:
    choices: [fc, lstm]
  epochs:
    low: 1
    high: 2
  optimizer:
    choices: [adamw, rmsprop]
    when: {{head: fc}}
objective: {objective}
sampler: random
pruner: none
seed: 1
"""

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def searched(tmp_path_factory, pairs_file):
    """A search of three trials by the command line: its folder, and what it printed."""
    folder = tmp_path_factory.mktemp("tune")
    config = write(folder / "search.yaml", REAL.format(pairs=pairs_file, objective="pearson"))
    storage = f"journal:{folder}/journal"
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as printed:
        patch.setattr(sys, "argv", ["negsample", "tune", "--storage", storage])
        tune_command(str(config), "first", storage, 3, str(folder / "out"), keep_models=False)
    return folder / "out", printed.getvalue()


def test_what_is_left(searched):
    out, printed = searched
    names = "best.yaml trials.csv study.json report.html run.json tune.json trials".split()
    assert {path.name for path in out.iterdir()} == set(names)
    found = json.loads((out / "study.json").read_text())
    assert found["states"] == {"complete": 3}
    values = [trial["value"] for trial in found["trials"]]
    assert found["best"]["trial"] == int(np.argmax(values))
    with open(out / "trials.csv", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["value"]) for row in rows] == [float(row["validation.pearson"]) for row in rows] == values
    # Every epoch's validation loss was seen, and the lowest stands in the table.
    for trial in found["trials"]:
        assert len(trial["validation_losses"]) == trial["parameters"]["epochs"]
        assert min(trial["validation_losses"]) == trial["validation"]["validation_loss"]
    # The optimiser is drawn for one head alone.
    assert all(bool(row["parameters.optimizer"]) == (row["parameters.head"] == "fc") for row in rows)
    title = f"# study first, trial {found['best']['trial']}, best of 3 by validation Pearson r: "
    assert (out / "best.yaml").read_text().startswith(title)
    assert "3 of 3 finished" in printed
    assert f"best: trial {found['best']['trial']}, " in printed
    assert json.loads((out / "run.json").read_text())["states"] == {"complete": 3}


def test_the_best_configuration_gives_the_best_model_again(searched, tmp_path):
    out, _ = searched
    best = json.loads((out / "study.json").read_text())["best"]
    (model,) = (out / "trials").iterdir()
    assert model.name == str(best["trial"])
    train(read_config(out / "best.yaml"), tmp_path / "again")
    prints = [
        json.loads((folder / "config.json").read_text())["weights_sha256"] for folder in (model, tmp_path / "again")
    ]
    assert prints[0] == prints[1]
    # Its value is that of the validation split: the model's own test figure is another.
    figures = json.loads((model / "figures.json").read_text())
    assert figures["test"]["pearson"]["value"] != pytest.approx(best["value"], abs=1e-9)


def test_names_on_the_page_are_inert(searched):
    found = json.loads((searched[0] / "study.json").read_text())
    trial = {**found["trials"][0], "value": None, "parameters": {"head": "<u>"}, "reason": "<img src=x>"}
    found |= {"study": "<script>alert(1)</script>", "objective": "<b>", "notes": ["<i>"], "trials": [trial]}
    found |= {"best": None, "failures": {"<img src=x>": 1}}
    page = tune_page(found, [optuna.trial.create_trial(state=optuna.trial.TrialState.FAIL)])
    assert "No trial was completed." in page
    for tag in ("<script", "<b>", "<i>", "<u>", "<img"):
        assert tag not in page


def test_agreement_is_the_objective(tmp_path, pairs_file, negsample):
    records = []
    for d, line in enumerate(pairs_file.read_text().splitlines()[:6]):
        pair = json.loads(line)
        for s in range(3):
            text = " ".join(pair["summary"].split()[: 3 * (s + 1)])
            half = "tune" if d < 3 else "report"
            about = {"document_id": pair["id"], "document": pair["document"], "half": half, "system": f"s{s}"}
            records.append({**about, "summary": text, "scores": {"good": s + 0.1 * d}})
    judged = write(tmp_path / "judged.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    objective = f"{{agreement: {{judgments: [{judged}], human: good, level: summary}}}}"
    config = write(tmp_path / "search.yaml", REAL.format(pairs=pairs_file, objective=objective))
    study = ("--study", "a", "--storage", f"journal:{tmp_path}/j", "--trials", 1)
    negsample("tune", "--config", config, *study, "--out", tmp_path / "out")
    best = json.loads((tmp_path / "out" / "study.json").read_text())["best"]
    # The same number comes from `correlate` on the tune half.
    (model,) = (tmp_path / "out" / "trials").iterdir()
    of_half = ("--judgments", judged, "--half", "tune", "--level", "summary", "--bootstrap", 0)
    negsample("correlate", *of_half, "--model", model, "--out", tmp_path / "c")
    with open(tmp_path / "c" / "agreement.csv", encoding="utf-8") as stream:
        rows = {(row["metric"], row["coefficient"]): row["value"] for row in csv.DictReader(stream)}
    assert best["value"] == pytest.approx(float(rows[model.name, "spearman"]), abs=1e-9)


@pytest.mark.parametrize("corpus", ["nofile.jsonl", "other.jsonl", "-", "pipe"])
def test_what_is_wrong_is_one_line_and_leaves_nothing(tmp_path, negsample, corpus):
    write(tmp_path / "other.jsonl", '{"text": "no summary"}\n')
    os.mkfifo(tmp_path / "pipe")
    pairs = corpus if corpus == "-" else tmp_path / corpus
    config = write(tmp_path / "search.yaml", REAL.format(pairs=f"'{pairs}'", objective="pearson"))
    before = sorted(tmp_path.iterdir())
    done = negsample(
        "tune", "--config", config, "--study", "f", "--storage", f"sqlite:///{tmp_path}/s.db", "--trials", 2,
        "--out", tmp_path / "out", check=2,
    )  # fmt: skip
    assert ("read once only" if corpus in ("-", "pipe") else corpus) in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before


def test_a_trial_that_cannot_be_trained_fails_and_the_search_goes_on(tmp_path, negsample, pairs_file):
    text = REAL.format(pairs=pairs_file, objective="pearson").replace(f"  corpus: {pairs_file}\n", "")
    text = text.replace("space:\n", f"space:\n  corpus: {{choices: ['{pairs_file}', '{tmp_path}/nofile.jsonl']}}\n")
    config, out = write(tmp_path / "search.yaml", text), tmp_path / "out"
    study = ("--study", "f", "--storage", f"journal:{tmp_path}/j", "--trials", 3)
    done = negsample("tune", "--config", config, *study, "--out", out)
    found = json.loads((out / "study.json").read_text())
    assert set(found["states"]) == {"complete", "failed"}
    for trial in found["trials"]:
        assert ("no such file" in (trial["reason"] or "")) == ("nofile" in trial["parameters"]["corpus"])
    assert f"{found['states']['failed']} × failed: " in done.stdout


def test_a_maximised_objective_prunes_high_losses(tmp_path):
    """The pruner compares what the study prefers; losses are negated for it, and shown as they are."""
    config = write(
        tmp_path / "s.yaml",
        SEARCH.replace("validation_loss", "accuracy").replace("n_startup_trials: 3", "n_startup_trials: 1"),
    )
    losses = iter([0.5, 0.9, 0.1])

    def trainer(config, folder, *, callbacks, **options):
        loss = next(losses)
        folder.mkdir(parents=True)
        for epoch in range(3):
            callbacks.after_epoch(epoch, loss)
        callbacks.after_fit(np.array([0.0, 1.0], np.float32), np.array([0.2, 0.8], np.float32))
        return {"epochs": [{"validation_loss": loss}], "seconds": 0.0}

    done = tune(read_search(config), "s", f"journal:{tmp_path}/j", 3, tmp_path / "out", trainer=trainer)
    assert [state_of(trial) for trial in done] == ["complete", "pruned", "complete"]
    found = json.loads((tmp_path / "out" / "study.json").read_text())
    assert [trial["validation_losses"] for trial in found["trials"]] == [[0.5] * 3, [0.9], [0.1] * 3]
    # One that was pruned is never the best, however high its value would have been.
    assert found["trials"][1]["value"] is None
    assert found["best"]["trial"] == 0


def test_validation_figures_by_hand():
    labels, scores = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.1, 0.6, 0.7, 0.8])
    assert validation_figures(labels, scores) == {
        "accuracy": 0.75,
        "pearson": pytest.approx(np.corrcoef(labels, scores)[0, 1]),
    }
    assert list(validation_figures(np.array([0.0, 0.5, 1.0]), np.array([0.1, 0.2, 0.3]))) == ["pearson"]
    assert validation_figures(np.array([0.0, 1.0]), np.array([0.5, 0.5])) == {"accuracy": 0.5}


# --- storages


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:s3cret@db.example/x", "postgresql://me:***@db.example/x"),
        ("mysql+pymysql://me:s3cret@db.example/x?password=s3cret", "mysql+pymysql://me:***@db.example/x"),
        ("mysql+pymysql://db.example/x?passwd=s3cret", "mysql+pymysql://db.example/x"),
        ("sqlite:///study.db", "sqlite:///study.db"),
        ("journal:/a/b", "journal:/a/b"),
    ],
)
def test_shown_without_the_password(url, shown):
    assert safe_url(url) == shown
    assert "s3cret" not in hide(f"--storage={url} failed for s3cret" if "s3cret" in url else url, url)
    assert hide(f"--storage {url}", url) == f"--storage {shown}"


@pytest.mark.parametrize(
    "url",
    [
        "study.db",
        "sqlite://",
        "sqlite:////no/such/folder/s.db",
        "journal:/no/such/folder/j",
        "oracle7://me:s3cret@h/x",
        "postgresql+psycopg://me:s3cret@127.0.0.1:1/x",
    ],
)
def test_storages_that_are_refused(url, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with pytest.raises(InputError, match="--storage ") as caught:
        open_storage(url)
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_password_is_in_no_file_and_no_message(tmp_path, negsample, pairs_file):
    if (why := missing_postgres()) is not None:
        pytest.skip(why)
    text = REAL.format(pairs=pairs_file, objective="pearson").replace("choices: [fc, lstm]", "choices: [fc]")
    config, out = write(tmp_path / "search.yaml", text), tmp_path / "out"
    with postgres() as url:
        password = url.split(":")[2].split("@")[0]
        done = negsample(
            "tune", "--config", config, "--study", "p", f"--storage={url}", "--trials", 1, "--out", out, "--keep-models"
        )
        wrong = negsample(
            "tune", "--config", config, "--study", "p", "--storage", url.replace(password, "wr0ng-one"), "--trials", 1,
            "--out", out, check=2,
        )  # fmt: skip
    assert "can't be opened" in wrong.stderr
    assert "wr0ng-one" not in wrong.stderr + wrong.stdout
    assert password not in done.stdout + done.stderr
    for path in out.rglob("*"):
        if path.is_file():
            assert password.encode() not in path.read_bytes(), path
    run = json.loads((out / "run.json").read_text())
    assert run["storage"] == url.replace(password, "***")
    assert f"--storage={run['storage']}" in run["command"]

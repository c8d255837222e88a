"""The trainings of Tables 5 to 7 of Bao et al. 2021: which there are, found again by their folders, small ones for a try."""

import json

import pytest

from negsample.errors import InputError
from negsample.models import evaluation
from negsample.papers import stand_ins as smoke
from negsample.papers.tac2010_models import find_models, tac2010_cells


def test_the_trainings_are_those_of_the_paper():
    cells = tac2010_cells(
        ["epochs=2"], corpora=["cnn_dailymail:/copy", "billsum", "arxiv", "big_patent"], tiny="/bert/tiny"
    )
    assert len({cell.folder for cell in cells}) == 4 * 4 * 2
    for cell in cells:
        config = cell.config
        assert (config.negatives, config.max_length, config.min_summary, config.epochs) == (5, 512, 1, 2)
        assert config.recipe == {cell.recipe: 1.0}
        assert config.sample == (0.1 if cell.corpus == "big_patent" else None)
        assert config.encoder == ("/bert/tiny" if cell.model == "tiny" else "google-bert/bert-base-uncased")
    assert {cell.config.corpus for cell in cells if cell.corpus == "cnn_dailymail"} == {"cnn_dailymail:/copy"}


def test_models_are_told_apart_by_what_they_were_trained_on(tmp_path):
    needed = {"format": "negsample-estimator", "format_version": 1, "head": "cls", "features": {}, "loss": "mse"}
    for name, corpus, recipe, shape in (
        ("a", "abisee/cnn_dailymail", "add", (12, 768)),
        ("b", "cnn_dailymail:/copy", "add", (2, 128)),
        ("c", ["my.jsonl", "arxiv"], "mix(add=1,delete=1)", (6, 384)),
    ):
        (tmp_path / name / "encoder").mkdir(parents=True)
        about = {**needed, "encoder": {"name": "some/bert"}, "recipe": recipe, "weights_sha256": "0"}
        (tmp_path / name / "config.json").write_text(json.dumps({**about, "training": {"corpus": corpus}}))
        layers = {"num_hidden_layers": shape[0], "hidden_size": shape[1]}
        (tmp_path / name / "encoder" / "config.json").write_text(json.dumps(layers))
    (tmp_path / "empty").mkdir()
    found = find_models(f"{tmp_path}/*")
    assert [model[:3] for model in found] == [
        ("cnn_dailymail", "add", "base"),
        ("cnn_dailymail", "add", "tiny"),
        ("my.jsonl, arxiv", "mix(add=1,delete=1)", "some/bert"),
    ]
    (tmp_path / "a").rename(tmp_path / "d")
    (tmp_path / "d" / "encoder" / "config.json").write_text('{"num_hidden_layers": 2, "hidden_size": 128}')
    with pytest.raises(InputError, match=r"are both cnn_dailymail, add, tiny; leave one out"):
        find_models(f"{tmp_path}/*")


def test_a_smoke_run_trains_scores_and_goes_on(tiny_bert, negsample, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation, "RESAMPLES", 10)
    monkeypatch.setattr(smoke, "_BOUNDS", {"limit": 12, "epochs": 1})
    monkeypatch.setattr(smoke, "_WHOLE", {"tokens": str(tiny_bert)})
    run = ("tables", "p3-table5", "--smoke", "--corpus", "billsum", "--bootstrap", 10, "--out", tmp_path / "t")
    done = negsample(*run)
    assert "smoke run: of the corpora billsum alone, of the recipes crosspair, delete" in done.stdout
    table = json.loads((tmp_path / "t" / "table5.json").read_text())
    rows = [row for row in table["figures"] if row["source"] == "models" and row["level"] == "pooled"]
    assert {(row["corpus"], row["recipe"], row["model"]) for row in rows} == {
        ("billsum", recipe, model) for recipe in ("crosspair", "delete") for model in ("base", "tiny")
    }
    assert json.loads((tmp_path / "t" / "run.json").read_text())["smoke"] is True
    assert not (tmp_path / "t" / "models" / "work").exists()
    # Killed between training and table, it goes on: the same line once more trains and scores nothing.
    (tmp_path / "t" / "table5.json").unlink()
    again = negsample(*run)
    assert "4 of 4 trainings are finished already" in again.stdout
    assert json.loads((tmp_path / "t" / "table5.json").read_text())["figures"] == table["figures"]
    refused = negsample(*run, "patience=1", check=2).stderr
    assert "settings was [], is ['patience=1']" in refused

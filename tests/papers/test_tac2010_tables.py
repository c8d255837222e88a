"""Tables 5 to 7 of Bao et al. 2021: which trainings, models found again, correlations beside scipy, a small archive."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tac2010_maker as maker
from scipy.stats import pearsonr, spearmanr

from negsample import Estimator
from negsample.errors import InputError
from negsample.models import evaluation
from negsample.papers import stand_ins, tac2010
from negsample.papers.declared import declared
from negsample.papers.judged import Asked, measure
from negsample.papers.tac2010 import TacModel, find_models, load_tac2010, nist_columns, tac2010_cells, tac2010_table
from negsample.train.config import make_config
from negsample.train.job import train

SYSTEMS, TOPICS = ("1", "2", "7", "43"), ("D1001A", "D1002B", "D1003C")
# Rows are docset by docset, systems by number.
PEOPLE = np.array([maker.scores(topic, system) for topic in TOPICS for system in SYSTEMS])
HUMAN = declared("p3-table5").human
# Follows what people say of the language, but for every second summary.
LIKE = PEOPLE[:, 2] + np.resize([0.0, 0.3], 12)


@pytest.fixture(scope="module")
def tac(tmp_path_factory):
    return maker.make_tac2010(tmp_path_factory.mktemp("tac"), packed=True)


def measured(name, tac, out, bootstrap=0):
    """The archive scored by a table's ROUGE, and NIST's."""
    spec, (source, nist) = declared(name), load_tac2010(str(tac))
    return measure(spec, [source], Asked(bootstrap=bootstrap), out), nist_columns(spec, source.rows, nist)


def with_models(measured, scores):
    """The models of ``corpus recipe/size`` labels, and what was measured, with their scores in it."""
    models = [TacModel(*label.replace("/", " ").split(), Path(label)) for label in scores]
    scored = replace(measured.tables[0], metrics={**scores, **measured.tables[0].metrics})
    return replace(measured, tables=(scored,)), models


def figures(table, row, section="pooled"):
    """What was measured in a row, by column."""
    return {r.column: r.value for r in table.records if (r.row, r.section) == (row, section) and r.value is not None}


def by_hand(values, coefficients=("pearson", "spearman")):
    """Pooled correlations with the human scores."""
    tests = {"pearson": pearsonr, "spearman": spearmanr}
    return {
        f"{name}:{human}": pytest.approx(tests[name](values, PEOPLE[:, place])[0], abs=1e-9)
        for name in coefficients
        for place, human in enumerate(HUMAN)
    }


def test_the_trainings_are_those_of_the_paper():
    parts = {"base": "google-bert/bert-base-uncased", "tiny": "/bert/tiny"}
    cells = tac2010_cells(["epochs=2", "corpus=[cnn_dailymail:/copy, billsum, arxiv, big_patent]"], parts)
    assert len({cell.folder for cell in cells}) == 4 * 4 * 2
    for cell in cells:
        config = cell.config
        assert (config.negatives, config.max_length, config.min_summary, config.epochs) == (5, 512, 1, 2)
        assert config.recipe == {cell.recipe: 1.0}
        assert config.sample == (0.1 if cell.corpus == "big_patent" else None)
        assert config.encoder == parts[cell.model]
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
    found = ["cnn_dailymail add/base", "cnn_dailymail add/tiny", "my.jsonl, arxiv mix(add=1,delete=1)/some/bert"]
    assert list(map(str, find_models(f"{tmp_path}/*"))) == found
    (tmp_path / "a" / "encoder" / "config.json").write_text('{"num_hidden_layers": 2, "hidden_size": 128}')
    with pytest.raises(InputError, match="are both cnn_dailymail add/tiny; leave one out"):
        find_models(f"{tmp_path}/*")


def test_table_5_shows_both_sizes_and_marks_the_better_on_the_test_data(tac, tmp_path):
    # Base follows the pyramid, tiny its opposite; of "delete" tiny is the better one.
    scores = {
        "billsum crosspair/base": PEOPLE[:, 0],
        "billsum crosspair/tiny": -PEOPLE[:, 0],
        "billsum delete/base": np.resize([0.1, 0.9, 0.4], 12),
        "billsum delete/tiny": LIKE,
    }
    table = tac2010_table(*with_models(measured("p3-table5", tac, tmp_path, 20)[0], scores), {})
    for name, values in scores.items():
        assert figures(table, name) == by_hand(values)
    assert {record.row for record in table.records if record.mark} == {"billsum crosspair/base", "billsum delete/tiny"}
    # Summary level: the mean over three docsets of four systems each; system level: the means over docsets.
    own = [pearsonr(PEOPLE[start : start + 4, 2], LIKE[start : start + 4])[0] for start in (0, 4, 8)]
    column = "pearson:linguistic_quality"
    assert figures(table, "billsum delete/tiny", "summary")[column] == pytest.approx(np.mean(own))
    means = [values.reshape(3, 4).mean(axis=0) for values in (LIKE, PEOPLE[:, 2])]
    assert figures(table, "billsum delete/tiny", "system")[column] == pytest.approx(pearsonr(*means)[0])
    printed = {record.column: record.printed for record in table.records if record.row == "cnn_dailymail delete/tiny"}
    assert list(printed.values()) == ["0.3489", "0.3967", "0.3233", "0.2242", "0.3376", "0.273"]


@pytest.mark.parametrize(("number", "coefficient"), [(6, "pearson"), (7, "spearman")])
def test_tables_6_and_7_have_the_best_by_score_and_both_kinds_of_rouge(tac, number, coefficient, tmp_path):
    one = PEOPLE[:, 0]
    data, nist = measured(f"p3-table{number}", tac, tmp_path)
    table = tac2010_table(*with_models(data, {"arxiv add/base": one, "arxiv delete/base": LIKE}), nist)
    both = [by_hand(values, [coefficient]) for values in (one, LIKE)]
    assert figures(table, "best arxiv") == {
        key: pytest.approx(max(own[key].expected for own in both), abs=1e-9) for key in both[0]
    }
    for kind in ("ROUGE-1", "ROUGE-2", "ROUGE-4", "ROUGE-W-1.2"):
        for place, letter in enumerate("RPF"):
            values = [round(maker.rouge(topic, system, kind)[place], 5) for topic in TOPICS for system in SYSTEMS]
            assert figures(table, f"{kind} {letter}") == by_hand(values, [coefficient])
            assert sum((r.row, r.section) == (f"{kind} {letter} computed", "pooled") for r in table.records) == 4
            printed = [r.column for r in table.records if r.row == f"{kind} {letter}" and r.printed]
            assert printed == [f"{coefficient}:{human}" for human in tac2010.PRINTED]


def test_rouge_of_a_summary_by_hand(tac, tmp_path):
    columns = measured("p3-table6", tac, tmp_path)[0].tables[0].metrics
    # "The ferry was in the report." five more times with other nouns, stemmed: system 43 names the ferry alone. Each
    # reference has "The ferry and the harbour were in the report. Writer X adds the storm and the captain." (17 words).
    # Common: the (2 of 2), ferry, in, report: 5 of 6 words; was is not were.
    assert columns["ROUGE-1 P computed"][3] == pytest.approx(5 / 6)
    assert columns["ROUGE-1 R computed"][3] == pytest.approx(5 / 17)
    # Common pairs: the ferry, in the, the report: 3 of 5 and of 16.
    assert columns["ROUGE-2 F computed"][3] == pytest.approx(2 * (3 / 5) * (3 / 16) / (3 / 5 + 3 / 16))


@pytest.fixture(scope="module")
def model(tiny_bert, pairs_file, tmp_path_factory):
    """A trained model folder, in the place of two."""
    folder = tmp_path_factory.mktemp("models")
    own = {
        "corpus": str(pairs_file),
        "head": "cls",
        "encoder": str(tiny_bert),
        "max_length": 64,
        "epochs": 1,
        "limit": 20,
    }
    train(make_config({**own, "recipe": "delete"}), folder / "one")
    shutil.copytree(folder / "one", folder / "two")
    description = json.loads((folder / "two" / "config.json").read_text())
    description["training"]["corpus"] = "FiscalNote/billsum"
    (folder / "two" / "config.json").write_text(json.dumps(description))
    return folder


def test_the_command_over_trained_folders(tac, model, negsample, tmp_path, monkeypatch):
    run = ("--data", f"tac2010:{tac}", "--models", model / "*", "--bootstrap", 20, "--out", tmp_path / "t")
    negsample("tables", "p3-table5", *run)
    records = json.loads((tmp_path / "t" / "p3-table5.json").read_text())["records"]
    rows = load_tac2010(str(tac))[0].rows
    estimator = Estimator.load(model / "one")
    means = [np.mean(estimator.score(list(row.documents), [row.summary] * 10)) for row in rows]
    (own,) = (
        r["value"]
        for r in records
        if r.get("corpus") == "billsum" and r["column"] == "pearson:modified_pyramid" and r["section"] == "pooled"
    )
    assert own == pytest.approx(pearsonr(means, PEOPLE[:, 0])[0], abs=1e-4)
    # Scores are kept, and another table of the same folder needs none of the models' work.
    monkeypatch.setattr(Estimator, "score_pairs", None)
    negsample("tables", "p3-table7", *run)
    assert (tmp_path / "t" / "p3-table7.json").is_file()
    record = json.loads((tmp_path / "t" / "run.json").read_text())
    assert record["config"]["models"] == [str(model / "one"), str(model / "two")]


def test_a_smoke_run_trains_scores_and_goes_on(tiny_bert, negsample, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation, "RESAMPLES", 10)
    monkeypatch.setattr(stand_ins, "_BOUNDS", {"limit": 12, "epochs": 1})
    monkeypatch.setattr(stand_ins, "_WHOLE", {"tokens": str(tiny_bert)})
    run = ("tables", "p3-table5", "--smoke", "corpus=billsum", "--bootstrap", 10, "--out", tmp_path / "t")
    done = negsample(*run)
    assert "smoke run: of the corpora billsum alone, of the recipes crosspair, delete" in done.stdout
    table = json.loads((tmp_path / "t" / "p3-table5.json").read_text())
    rows = {r["row"] for r in table["records"] if r.get("section") == "pooled" and r["value"] is not None}
    assert rows == {f"billsum {recipe}/{size}" for recipe in ("crosspair", "delete") for size in ("base", "tiny")}
    assert json.loads((tmp_path / "t" / "run.json").read_text())["smoke"] is True
    assert not (tmp_path / "t" / "models" / "work").exists()
    # Killed between training and table, it goes on: the same line once more trains and scores nothing.
    (tmp_path / "t" / "p3-table5.json").unlink()
    assert "4 of 4 trainings are finished already" in negsample(*run).stdout
    assert json.loads((tmp_path / "t" / "p3-table5.json").read_text())["records"] == table["records"]
    assert "settings was" in negsample(*run, "patience=1", check=2).stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("p3-table5",), "give --data tac2010:DIR"),
        (("p3-table5", "--data", "tac2010:TAC", "--models", "none"), "Table 5 has no ROUGE"),
        (("p3-table6", "--data", "tac2010:TAC", "--models", "nowhere*"), "no model folder"),
        (("p3-table6", "epochs=3", "--data", "tac2010:TAC", "--models", "none"), "are for training"),
        (("p3-table6", "corpus=newsroom", "--data", "tac2010:TAC"), "known: cnn_dailymail, billsum, arxiv, big_patent"),
        (("p3-table6", "recipe=add", "--data", "tac2010:TAC"), "the table has its own"),
        (("p3-table6", "--data", "tac2010:.", "--models", "none"), "no manual/manual.peer.A in it"),
    ],
)
def test_what_is_asked_wrongly_is_told_in_one_line(tac, negsample, tmp_path, words, told):
    words = [str(word).replace("TAC", str(tac)) for word in words]
    refused = negsample("tables", *words, "--out", "t", check=2, cwd=tmp_path).stderr
    assert told in refused
    assert refused.count("\n") == 1
    assert not (tmp_path / "t").exists()

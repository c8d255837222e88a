"""Tables 5 to 7 of Bao et al. 2021 on a small archive in TAC 2010's layout, beside correlations of scipy."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tac2010_maker as maker
from scipy.stats import pearsonr, spearmanr

from negsample import Estimator
from negsample.eval.agreement.columns import ScoreColumn
from negsample.papers import tac2010_tables
from negsample.papers.published import published
from negsample.papers.tac2010_tables import HUMAN, TacModel, load_tac2010, markdown, rouge_columns, tac2010_table
from negsample.train.config import make_config
from negsample.train.job import train

SYSTEMS, TOPICS = ("1", "2", "7", "43"), ("D1001A", "D1002B", "D1003C")
# Rows are docset by docset, systems by number.
PEOPLE = np.array([maker.scores(topic, system) for topic in TOPICS for system in SYSTEMS])


@pytest.fixture(scope="module")
def tac(tmp_path_factory):
    return maker.make_tac2010(tmp_path_factory.mktemp("tac"), packed=True)


def figures(table, level="pooled", **wanted):
    """The figures of a table, by coefficient and human score, as they are."""
    rows = [row for row in table["figures"] if row["level"] == level]
    rows = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
    found = {(row["coefficient"], row["human"]): row["value"] for row in rows}
    assert len(found) == len(rows)
    return found


def by_hand(values):
    """Pooled correlations with the human scores."""
    pairs = [(name, test) for name, test in (("pearson", pearsonr), ("spearman", spearmanr))]
    return {
        (name, human): pytest.approx(test(values, PEOPLE[:, place])[0], abs=1e-9)
        for name, test in pairs
        for place, human in enumerate(HUMAN)
    }


def column(name, values):
    return ScoreColumn(name, "model", f"model:{name}", False, np.asarray(values, float), [None] * len(values))


def test_table_5_shows_both_sizes_and_marks_the_better_on_the_test_data(tac):
    data = load_tac2010(str(tac))
    # Base follows the pyramid, tiny its opposite; of "delete" tiny is the better one.
    scores = {
        ("crosspair", "base"): PEOPLE[:, 0],
        ("crosspair", "tiny"): -PEOPLE[:, 0],
        ("delete", "base"): np.resize([0.1, 0.9, 0.4], 12),
        ("delete", "tiny"): PEOPLE[:, 2] + np.resize([0.0, 0.3], 12),
    }
    models = [(TacModel("billsum", *key, Path(*key)), column(str(key), values)) for key, values in scores.items()]
    table = tac2010_table(5, data, models, published(5), bootstrap=20)
    for (recipe, model), values in scores.items():
        assert figures(table, source="models", recipe=recipe, model=model) == by_hand(values)
    chosen = {(row["recipe"], row["model"]) for row in table["figures"] if row.get("chosen")}
    assert chosen == {("crosspair", "base"), ("delete", "tiny")}
    # Summary level: the mean over three docsets of four systems each.
    own = [
        pearsonr(PEOPLE[start : start + 4, 2], scores["delete", "tiny"][start : start + 4])[0] for start in (0, 4, 8)
    ]
    told = figures(table, "summary", source="models", recipe="delete", model="tiny")
    assert told["pearson", "linguistic_quality"] == pytest.approx(np.mean(own))
    # System level: the means over docsets.
    means = [values.reshape(3, 4).mean(axis=0) for values in (scores["delete", "tiny"], PEOPLE[:, 2])]
    told = figures(table, "system", source="models", recipe="delete", model="tiny")
    assert told["pearson", "linguistic_quality"] == pytest.approx(pearsonr(*means)[0])
    printed = figures(table, source="published", corpus="cnn_dailymail", recipe="delete", model="tiny")
    assert list(printed.values()) == [0.3489, 0.3967, 0.3233, 0.2242, 0.3376, 0.273]
    text = markdown(table)
    lines = [line for line in text.splitlines() if line.startswith("| billsum") and "| crosspair" in line]
    assert [line.split("|")[3].strip() for line in lines[:3]] == ["base *", "tiny", "published (base)"]
    assert "1.0000" in lines[0]
    assert "0.4652" in lines[2]


@pytest.mark.parametrize(("number", "coefficient"), [(6, "pearson"), (7, "spearman")])
def test_tables_6_and_7_have_the_best_by_score_and_both_kinds_of_rouge(tac, number, coefficient):
    data = load_tac2010(str(tac))
    one, two = PEOPLE[:, 0], PEOPLE[:, 2] + np.resize([0.0, 0.3], 12)
    scores = {"add": one, "delete": two}
    models = [(TacModel("arxiv", key, "base", Path(key)), column(key, values)) for key, values in scores.items()]
    table = tac2010_table(number, data, models, published(number), bootstrap=0)
    first, second = by_hand(one), by_hand(two)
    best = figures(table, source="models", metric="best of arxiv")
    assert best == {
        (coefficient, human): pytest.approx(max(a[coefficient, human].expected for a in (first, second)), abs=1e-9)
        for human in HUMAN
    }
    names = [f"{kind} {letter}" for kind in ("ROUGE-1", "ROUGE-2", "ROUGE-4", "ROUGE-W-1.2") for letter in "PRF"]
    for name in names:
        kind, letter = name.split()
        place = "RPF".index(letter)
        values = [round(maker.rouge(topic, system, kind)[place], 5) for topic in TOPICS for system in SYSTEMS]
        told = figures(table, source="NIST", metric=name)
        assert told == {key: value for key, value in by_hand(values).items() if key[0] == coefficient}
        assert set(figures(table, source="computed", metric=name)) == set(told)
        printed = figures(table, source="published", metric=name)
        assert set(told) - set(printed) == {(coefficient, "modified_pyramid_jackknife")}
    assert len({row["metric"] for row in table["figures"]}) == 12 + 4
    assert "| ROUGE-4 F " in markdown(table)


def test_rouge_of_a_summary_by_hand(tac):
    columns = rouge_columns(load_tac2010(str(tac)))
    # "The ferry was in the report." five more times with other nouns, stemmed: system 43 names the ferry alone. Each
    # reference has "The ferry and the harbour were in the report. Writer X adds the storm and the captain." (17 words).
    # Common: the (2 of 2), ferry, in, report: 5 of 6 words; was is not were.
    assert columns["ROUGE-1 P", "computed"].values[3] == pytest.approx(5 / 6)
    assert columns["ROUGE-1 R", "computed"].values[3] == pytest.approx(5 / 17)
    # Common pairs: the ferry, in the, the report: 3 of 5 and of 16.
    assert columns["ROUGE-2 F", "computed"].values[3] == pytest.approx(2 * (3 / 5) * (3 / 16) / (3 / 5 + 3 / 16))


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
    run = ("tables", "p3-table5", "--tac", tac, "--models", model / "*", "--bootstrap", 20, "--out", tmp_path / "t")
    done = negsample(*run)
    table = json.loads((tmp_path / "t" / "table5.json").read_text())
    data = load_tac2010(str(tac))
    estimator = Estimator.load(model / "one")
    means = [np.mean(estimator.score(list(row.documents), [row.summary] * 10)) for row in data.rows]
    found = figures(table, source="models", corpus="billsum", recipe="delete")
    assert found["pearson", "modified_pyramid"] == pytest.approx(pearsonr(means, PEOPLE[:, 0])[0], abs=1e-4)
    assert "published (base)" in done.stdout
    # Scores are kept, and another table of the same folder needs none of the models' work.
    monkeypatch.setattr(tac2010_tables, "column_sources", None)
    negsample("tables", "p3-table7", *run[2:])
    assert json.loads((tmp_path / "t" / "table7.json").read_text())["table"] == "p3-table7"
    record = json.loads((tmp_path / "t" / "run.json").read_text())
    assert record["config"]["models"] == [str(model / "one"), str(model / "two")]
    assert record["data"]["tac2010"] == data.fingerprint


def test_what_is_asked_wrongly_is_told_in_one_line(tac, model, negsample, tmp_path):
    out = ("--out", tmp_path / "t")
    for words, told in (
        (("p3-table5",), "give --tac DIR"),
        (("p3-table5", "--tac", tac, "--rouge-only"), "Table 5 has no ROUGE"),
        (("p3-table6", "--tac", tac, "--models", tmp_path / "none*"), "no model folder"),
        (("p3-table6", "--tac", tac, "--models", model / "*", "epochs=3"), "are for training"),
        (("p3-table6", "--tac", tac, "--corpus", "newsroom"), "known: cnn_dailymail, billsum, arxiv, big_patent"),
        (("p3-table6", "--tac", tac, "recipe=add"), "the table has its own"),
        (("p3-table6", "--tac", tmp_path, "--rouge-only"), "no manual/manual.peer.A in it"),
    ):
        refused = negsample("tables", *words, *out, check=2).stderr
        assert told in refused
        assert refused.count("\n") == 1
    assert not (tmp_path / "t").exists()

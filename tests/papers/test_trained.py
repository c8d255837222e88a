"""Tables 1 and 2 of Bao et al. 2021 on one's own corpus; 5 to 7 on a small archive, correlations beside scipy."""

import importlib
import json
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tac2010_maker as maker
from plugin_files import write_plugin
from scipy.stats import pearsonr, spearmanr

from negsample import Estimator
from negsample.errors import InputError
from negsample.io.read import read_examples
from negsample.models import evaluation
from negsample.models.encoders import ENCODERS
from negsample.negatives.recipe import parse_recipe
from negsample.papers import stand_ins, transfer
from negsample.papers.declared import declared
from negsample.papers.judged import Asked, measure
from negsample.papers.run import (
    PRINTED,
    load_tac2010,
    nist_columns,
    read_grid,
    run_table,
    tac2010_experiment,
    tac2010_table,
)
from negsample.train.config import make_config
from negsample.train.data import make_examples

SYSTEMS, TOPICS = ("1", "2", "7", "43"), ("D1001A", "D1002B", "D1003C")
# Rows are docset by docset, systems by number.
PEOPLE = np.array([maker.scores(topic, system) for topic in TOPICS for system in SYSTEMS])
HUMAN = declared("p3-table5").human
# Follows what people say of the language, but for every second summary.
LIKE = PEOPLE[:, 2] + np.resize([0.0, 0.3], 12)


@pytest.fixture
def letters(tmp_path, monkeypatch):
    """The module of a small encoder, registered while the test runs, with a cache of its own."""
    write_plugin(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(ENCODERS, "_entries", dict(ENCODERS._entries))
    ENCODERS.register("letters", "letters_encoder:make")
    module = importlib.import_module("letters_encoder")
    module.SEEN.clear()
    return module


@pytest.fixture
def table(letters, pairs_file, tmp_path):
    """Run a table over the small encoder: ``table("p3-table1", "heads=[fc]", …) -> Table``, in the folder ``t``."""

    def run(name, *words, say=lambda line: None, **asked):
        own = {"corpus": str(pairs_file), "epochs": "1", "encoders": "[letters]", "heads": "[fc]"}
        own |= dict(word.split("=", 1) for word in words)
        asked = Asked(words=tuple(f"{key}={value}" for key, value in own.items()), **asked)
        return run_table(name, asked, tmp_path / "t", say)

    return run


def test_a_cell_is_what_its_model_scores_on_the_test_split(table, pairs_file, tmp_path, tiny_bert, monkeypatch):
    monkeypatch.setattr("negsample.resampling.MIN_UNITS", 2)
    said, out = [], tmp_path / "t"
    words = ("heads=[fc, cnn, lstm, cls]", f"encoder={tiny_bert}", "max_length=64", "units=5")
    found = table("p3-table1", *words, keep_models=True, say=said.append)
    measured = [record for record in found.records if record.value is not None]
    places = [(record.row, record.column) for record in measured]
    rows = [(f"crosspair {head}", "letters") for head in ("fc", "cnn", "lstm")]
    assert places == [*rows, ("crosspair cls", str(tiny_bert))]
    make_examples(make_config({"corpus": str(pairs_file)}), parse_recipe("crosspair"), tmp_path / "examples")
    examples = list(read_examples(tmp_path / "examples" / "test.jsonl.gz"))
    labels = np.array([example.label for example in examples])
    models = {json.loads(path.read_text())["head"]: path.parent for path in out.glob("cells/**/model/config.json")}
    for record in measured:
        model = Estimator.load(models[record.about["head"]])
        if record.about["head"] == "lstm":
            assert model.parts.network.recurrence.hidden_size == 5
        scores = model.score([e.document for e in examples], [e.summary for e in examples])
        value = np.mean((scores >= 0.5) == (labels == 1))
        assert record.value == pytest.approx(100 * value)
        figure = evaluation.figures(labels, scores, [e.document_id for e in examples])["accuracy"]
        ends = [figure[end] and pytest.approx(100 * figure[end]) for end in ("low", "high")]
        assert [record.n, record.low, record.high] == [len(labels), *ends]
    assert sum("epochs" in line for line in said) == 4
    files = "cells domains experiment.json locks p3-table1.csv p3-table1.json p3-table1.md run.json tests"
    assert sorted(path.name for path in out.iterdir()) == files.split()
    assert json.loads((out / "run.json").read_text())["data"]["corpora"] == [str(pairs_file)]


def test_examples_are_made_and_texts_encoded_once_for_the_whole_grid(table, letters, monkeypatch):
    monkeypatch.setattr(evaluation, "RESAMPLES", 10)
    made, real = [], transfer.training_examples
    monkeypatch.setattr(transfer, "training_examples", lambda *a: made.append(a[3]) or real(*a))
    found = table("p3-table2", "heads=[fc, cnn]")
    assert len(made) == 6
    assert [path.parents[2].name for path in dict.fromkeys(made)] == ["add", "delete", "replace"]
    assert Counter(dict.fromkeys(letters.SEEN, 1)) == letters.SEEN
    assert {record.about["figure"] for record in found.records if record.about} == {"pearson"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["corpus=nowhere.jsonl"], r"nowhere\.jsonl"),
        (["encoders=[glove:none.txt]"], r"none\.txt"),
        (["heads=[cls]", "encoder=no-bert"], "no-bert"),
        (["encoders=[glov]"], "did you mean glove"),
        (["heads=[lstn]"], "did you mean lstm"),
        (["heads=[fc, fc]"], "twice"),
        (["encoder=letters"], "encoder= is for cls"),
        (["recipe=add"], "leave them out"),
        (["heads=[fc, align]", "redraws=3"], "align reads all negatives in every epoch"),
    ],
)
def test_a_mistake_before_the_first_cell_leaves_the_folder_as_it_was(table, tmp_path, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=told):
        table("p3-table1", *words)
    assert not (tmp_path / "t").exists()


def test_what_is_read_with_and_without_a_file():
    # One negative a pair, texts cut in proportion (Bao et al. 2021 §4.1, §4.2); floor and sets are settings.
    for words, min_summary in (([], 128), (["heads=[fc, align]"], 128), (["heads=[fc, cls]"], 1)):
        common = read_grid("p3-table1", None, words).common
        assert (common.negatives, common.redraws, common.min_summary) == (1, 1, min_summary)
    (domain,) = read_grid("p3-table1", None, ["sample=0.5", "min_summary=7", "heads=cls"], seed=4).domains.values()
    assert domain.sample == 0.5
    packaged = read_grid("p3-table1", "p3_table1_newsroom", ["limit=9"], seed=4)
    heads = [head.settings["head"] for head in packaged.labelled_heads]
    assert (packaged.domains["newsroom:data/newsroom"].limit, packaged.common.seed) == (9, 4)
    assert heads == [*("fc", "cnn", "lstm") * 4, "cls"]
    with pytest.raises(InputError, match="is for table 'p3-table1', not 'p3-table2'"):
        read_grid("p3-table2", "p3_table1_newsroom")


# --- Tables 5 to 7


@pytest.fixture(scope="module")
def tac(tmp_path_factory):
    return maker.make_tac2010(tmp_path_factory.mktemp("tac"), packed=True)


def measured(name, tac, out, bootstrap=0):
    """The archive scored by a table's ROUGE, and NIST's."""
    spec, (source, nist) = declared(name), load_tac2010(str(tac))
    return measure(spec, [source], Asked(bootstrap=bootstrap), out, str), nist_columns(spec, source.rows, nist)


def with_models(measured, scores):
    """The models of ``corpus recipe/size`` labels, and what was measured, with their scores in it."""
    named = SimpleNamespace
    names = [name.replace("/", " ").split() for name in scores]
    models = [named(source=named(name=corpus), recipe=recipe, head=named(label=size)) for corpus, recipe, size in names]
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
    settings = tac2010_experiment(["epochs=2", "corpus=[cnn_dailymail:/copy, billsum, arxiv, big_patent]"], parts)
    assert [str(recipe) for recipe in settings.mixes] == ["crosspair", "add", "delete", "replace"]
    for head in settings.labelled_heads:
        config = settings.config_of(head, settings.mixes[0], 0)
        assert (config.negatives, config.max_length, config.min_summary, config.epochs) == (5, 512, 1, 2)
        assert (config.optimizer, config.learning_rate, config.encoder) == ("adamw", 3e-5, parts[head.label])
    assert {name: domain.sample for name, domain in settings.domains.items()} == {
        "cnn_dailymail": None, "billsum": None, "arxiv": None, "big_patent": 0.1,
    }  # fmt: skip
    assert settings.domains["cnn_dailymail"].corpus == "cnn_dailymail:/copy"


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
            assert printed == [f"{coefficient}:{human}" for human in PRINTED]


def test_rouge_of_a_summary_by_hand(tac, tmp_path):
    columns = measured("p3-table6", tac, tmp_path)[0].tables[0].metrics
    # "The ferry was in the report." five more times with other nouns, stemmed: system 43 names the ferry alone. Each
    # reference has "The ferry and the harbour were in the report. Writer X adds the storm and the captain." (17 words).
    # Common: the (2 of 2), ferry, in, report: 5 of 6 words; was is not were.
    assert columns["ROUGE-1 P computed"][3] == pytest.approx(5 / 6)
    assert columns["ROUGE-1 R computed"][3] == pytest.approx(5 / 17)
    # Common pairs: the ferry, in the, the report: 3 of 5 and of 16.
    assert columns["ROUGE-2 F computed"][3] == pytest.approx(2 * (3 / 5) * (3 / 16) / (3 / 5 + 3 / 16))


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
    # A figure is what its model says of the mean over a docset's articles.
    source = stand_ins.docsets(HUMAN)[0]
    estimator = Estimator.load(
        tmp_path / "t" / "models" / "cells" / "delete" / "tiny" / "billsum" / "all" / "seed-0" / "model"
    )
    means = [np.mean(estimator.score(list(row.documents), [row.summary] * 10)) for row in source.rows]
    (own,) = (
        r["value"]
        for r in table["records"]
        if (r["row"], r["column"], r.get("section")) == ("billsum delete/tiny", "pearson:modified_pyramid", "pooled")
    )
    assert own == pytest.approx(pearsonr(means, [row.scores["modified_pyramid"] for row in source.rows])[0], abs=2e-3)
    # Killed between training and table, it goes on: the same line once more trains and scores nothing.
    (tmp_path / "t" / "p3-table5.json").unlink()
    monkeypatch.setattr(Estimator, "score_pairs", None)
    assert "4 of 4 trainings are finished already" in negsample(*run).stdout
    assert json.loads((tmp_path / "t" / "p3-table5.json").read_text())["records"] == table["records"]
    assert "train was" in negsample(*run, "patience=1", check=2).stderr

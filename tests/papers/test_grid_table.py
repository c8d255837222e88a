"""Tables 1 and 2 of Bao et al. 2021, on one's own corpus."""

import csv
import importlib
import json
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plugin_files import write_plugin

from negsample import Estimator
from negsample.errors import InputError
from negsample.io.read import read_examples
from negsample.models.encoders import ENCODERS
from negsample.negatives.recipe import parse_recipe
from negsample.papers import grid_table as tables
from negsample.papers.grid_table import run_table, split_specs
from negsample.papers.published import published
from negsample.papers.tables_report import TABLES
from negsample.train.config import make_config
from negsample.train.data import make_examples


def quiet(line):
    """Where a test does not care what is said."""


@pytest.fixture
def letters(tmp_path, monkeypatch):
    """The module of a small encoder, registered while the test runs, with a cache of its own."""
    folder = tmp_path / "plugin"
    folder.mkdir()
    write_plugin(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(ENCODERS, "_entries", dict(ENCODERS._entries))
    ENCODERS.register("letters", "letters_encoder:make")
    module = importlib.import_module("letters_encoder")
    module.SEEN.clear()
    return module


def settings(pairs_file, **more):
    return make_config({"corpus": str(pairs_file), "epochs": 2, **more})


def test_a_cell_is_what_its_model_scores_on_the_test_split(letters, pairs_file, tmp_path):
    config = settings(pairs_file)
    said = []
    out = tmp_path / "t"
    found = run_table("p3-table1", config, out, encoders=["letters"], keep_models=True, say=said.append)
    assert [(cell["encoder"], cell["head"]) for cell in found["cells"]] == [
        ("letters", "fc"),
        ("letters", "cnn"),
        ("letters", "lstm"),
    ]
    make_examples(config, parse_recipe("crosspair"), tmp_path / "examples")
    examples = list(read_examples(tmp_path / "examples" / "test.jsonl.gz"))
    labels = np.array([example.label for example in examples])
    for cell in found["cells"]:
        model = Estimator.load(out / "cells" / "crosspair" / "letters" / cell["head"] / "model")
        scores = model.score([e.document for e in examples], [e.summary for e in examples])
        assert cell["value"] == pytest.approx(100 * np.mean((scores >= 0.5) == (labels == 1)))
        assert cell["n"] == len(examples)
        assert 0 <= cell["low"] <= cell["value"] <= cell["high"] <= 100
    assert len(said) == 3
    assert sorted(path.name for path in out.iterdir()) == [
        "cells",
        "encoders.json",
        "grid.json",
        "locks",
        "run.json",
        "table.csv",
        "table.json",
        "table.md",
    ]
    assert json.loads((out / "table.json").read_text()) == found
    run = json.loads((out / "run.json").read_text())
    assert run["config"]["corpus"] == str(pairs_file)
    assert run["data"]["crosspair"]["pairs"] == 60


def test_csv_and_markdown_hold_the_same_figures_and_the_published_table(letters, pairs_file, tmp_path):
    out = tmp_path / "t"
    found = run_table("p3-table2", settings(pairs_file), out, encoders=["letters"], heads=["fc"], say=quiet)
    assert [cell["recipe"] for cell in found["cells"]] == ["add", "delete", "replace"]
    assert found["unit"] == "Pearson × 100"
    rows = list(csv.DictReader((out / "table.csv").open(newline="")))
    measured = [row for row in rows if row["source"] == "measured"]
    for row, cell in zip(measured, found["cells"], strict=True):
        assert (row["group"], row["encoder"], row["head"]) == (cell["recipe"], "letters", "fc")
        assert float(row["value"]) == pytest.approx(cell["value"], abs=1e-3)
        assert int(row["n"]) == cell["n"]
    assert sum(row["source"] == "published" for row in rows) == 39
    text = (out / "table.md").read_text()
    for cell in found["cells"]:
        assert f"{cell['value']:.1f}" in text
    for values in _printed(2).values():
        assert all(f"{value:.1f}" in text for value in values if value is not None)
    for encoder in ("use", "use-large", "infersent", "bert"):
        assert re.search(rf"^- {encoder}: needs a download: ", text, re.MULTILINE)
        assert any(row["source"] == "not run" and row["encoder"] == encoder for row in rows)


def _printed(number):
    """(Group, head) → the values of a published table."""
    rows = [list(row.values()) for row in published(number)["rows"]]
    return {(group, head): values for group, head, *values in rows}


def test_published_tables_are_those_of_the_paper():
    # As printed in Bao et al. 2021: Table 1 by corpus, Table 2 as add/delete/replace.
    first = {
        "CNN/DailyMail": "62.0 83.2 93.5 96.2 98.5 72.2 83.8 90.6 91.1 NA 48.9 85.0 88.2 95.6 NA",
        "Newsroom": "55.2 87.5 87.7 70.0 89.8 61.4 89.8 82.8 74.4 NA 50.8 83.2 74.5 69.3 NA",
        "BigPatent": "50.1 86.7 88.0 73.2 92.1 63.3 80.7 82.2 76.7 NA 47.7 84.1 83.8 85.5 NA",
    }
    second = {
        "fc": "79.4/90.0/87.7 85.1/75.3/88.7 91.5/85.6/94.2 56.2/90.7/79.1 95.3/94.6/98.4",
        "cnn": "76.5/46.4/82.2 88.6/89.2/92.7 94.2/89.2/96.2 66.2/91.4/84.2 NA/NA/NA",
        "lstm": "90.7/93.7/95.9 91.2/85.1/93.7 95.5/93.0/96.9 69.8/93.6/87.4 NA/NA/NA",
    }
    for corpus, line in first.items():
        printed = [None if word == "NA" else float(word) for word in line.split()]
        for number, head in enumerate(("fc", "cnn", "lstm")):
            assert _printed(1)[corpus, head] == printed[5 * number : 5 * number + 5]
    for head, line in second.items():
        for column, triple in enumerate(line.split()):
            for kind, word in zip(("add", "delete", "replace"), triple.split("/"), strict=True):
                assert _printed(2)[kind, head][column] == (None if word == "NA" else float(word))
    assert len(_printed(1)) == len(_printed(2)) == 9
    for number in (1, 2):
        assert published(number)["columns"] == ["GloVe", "USE-DAN", "USE-Trans", "InferSent", "BERT"]


def test_examples_are_made_and_texts_encoded_once_for_the_whole_grid(letters, pairs_file, tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(tables, "make_examples", lambda *a, **k: made.append(str(a[1])) or make_examples(*a, **k))
    run_table("p3-table2", settings(pairs_file), tmp_path / "t", encoders=["letters"], heads=["fc", "cnn"], say=quiet)
    assert made == ["add", "delete", "replace"]
    assert Counter(dict.fromkeys(letters.SEEN, 1)) == letters.SEEN


def test_a_mistake_before_the_first_cell_leaves_the_folder_as_it_was(letters, pairs_file, tmp_path, monkeypatch):
    out = tmp_path / "t"
    wrong = [
        (settings(tmp_path / "nowhere.jsonl"), {"encoders": ["letters"]}, r"nowhere\.jsonl"),
        (settings(pairs_file), {"encoders": [f"glove:{tmp_path}/none.txt"]}, r"none\.txt"),
        (settings(pairs_file, encoder=str(tmp_path / "no-bert")), {"heads": ["cls"]}, "no-bert"),
    ]
    for config, more, told in wrong:
        with pytest.raises(InputError, match=told):
            run_table("p3-table1", config, out, say=quiet, **more)
        assert not out.exists()
    trained, real = [], tables.fit_and_test

    def fails_second(*args, **keywords):
        if trained:
            raise InputError("the second can't be trained")
        trained.append(args)
        return real(*args, **keywords)

    monkeypatch.setattr(tables, "fit_and_test", fails_second)
    config = settings(pairs_file, epochs=1)
    with pytest.raises(InputError, match="the second can't be trained"):
        run_table("p3-table1", config, out, encoders=["letters"], heads=["fc", "cnn"], say=quiet)
    assert (out / "grid.json").is_file()
    assert (out / "cells" / "crosspair" / "letters" / "fc" / "figures.json").is_file()


def test_an_encoder_that_no_head_has_is_not_told_of(letters, pairs_file, tmp_path, negsample):
    config = settings(pairs_file, epochs=1, encoder="minilm")
    found = run_table("p3-table1", config, tmp_path / "t", encoders=["letters"], heads=["fc"], say=quiet)
    assert any("epochs=1" in note for note in found["notes"])
    assert not any("encoder=" in note for note in found["notes"])
    words = ("tables", "p3-table1", "--corpus", pairs_file, "encoder=letters", "--out", tmp_path / "u")
    refused = negsample(*words, check=2).stderr
    assert refused == "negsample: encoder=letters: encoder= is for cls; name the rows' encoders with --encoders\n"
    assert not (tmp_path / "u").exists()


def test_what_the_command_takes_without_a_file(pairs_file, tmp_path, negsample, monkeypatch):
    asked = []
    monkeypatch.setattr(tables, "run_table", lambda name, config, out, **more: asked.append(config) or {})
    monkeypatch.setattr("negsample.papers.tables_report.markdown", lambda found: "")
    start = ("tables", "p3-table1", "--corpus", pairs_file, "--out", tmp_path / "t")
    negsample(*start)
    negsample(*start, "--heads", "fc,align")
    negsample(*start, "--heads", "fc,cls", "redraws=3", "sample=0.5")
    # One negative a pair, texts cut in proportion (Bao et al. 2021 §4.1, §4.2); floor and sets are settings.
    assert [(config.negatives, config.redraws, config.min_summary) for config in asked] == [
        (1, 1, 128),
        (1, 1, 128),
        (1, 3, 1),
    ]
    assert asked[-1].sample == 0.5
    with pytest.raises(InputError, match="align reads all negatives in every epoch"):
        run_table("p3-table1", asked[-1], tmp_path / "t", heads=["fc", "align"], say=quiet)
    assert not (tmp_path / "t").exists()


def test_goes_on_where_it_stopped(letters, pairs_file, tmp_path, monkeypatch):
    config = settings(pairs_file)
    whole = run_table("p3-table2", config, tmp_path / "whole", encoders=["letters"], heads=["fc", "lstm"], say=quiet)
    real, trained = tables.fit_and_test, []

    def stop_at(count):
        def fit_and_test(*args, **keywords):
            if len(trained) == count:
                raise KeyboardInterrupt
            trained.append(args)
            return real(*args, **keywords)

        return fit_and_test

    out = tmp_path / "t"
    monkeypatch.setattr(tables, "fit_and_test", stop_at(3))
    with pytest.raises(KeyboardInterrupt):
        run_table("p3-table2", config, out, encoders=["letters"], heads=["fc", "lstm"], say=quiet)
    assert not (out / "table.json").exists()
    monkeypatch.setattr(tables, "fit_and_test", stop_at(None))
    said = []
    found = run_table("p3-table2", config, out, encoders=["letters"], heads=["fc", "lstm"], say=said.append)
    assert len(trained) == 6
    assert said[0] == "3 of 6 trainings are finished already"
    assert [cell["value"] for cell in found["cells"]] == [cell["value"] for cell in whole["cells"]]
    # Finished: asked again it trains nothing and says the same.
    again = run_table("p3-table2", config, out, encoders=["letters"], heads=["fc", "lstm"], say=quiet)
    assert again == found
    assert len(trained) == 6


def test_other_arguments_are_refused_by_name(letters, pairs_file, tmp_path):
    out = tmp_path / "t"
    run_table("p3-table1", settings(pairs_file), out, encoders=["letters"], heads=["fc"], say=quiet)
    with pytest.raises(InputError, match=r"seed was 0, is 1\)") as caught:
        run_table("p3-table1", settings(pairs_file, seed=1), out, encoders=["letters"], heads=["fc"], say=quiet)
    assert "epochs" not in str(caught.value)
    with pytest.raises(InputError, match="heads was"):
        run_table("p3-table1", settings(pairs_file), out, encoders=["letters"], heads=["cnn"], say=quiet)
    with pytest.raises(InputError, match="table was"):
        run_table("p3-table2", settings(pairs_file), out, encoders=["letters"], heads=["fc"], say=quiet)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="something else"):
        run_table("p3-table1", settings(pairs_file), tmp_path / "full", encoders=["letters"], say=quiet)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["notes.txt"]


def test_a_changed_corpus_or_a_damaged_cell_is_noticed(letters, tmp_path, pairs_file):
    corpus = tmp_path / "pairs.jsonl"
    corpus.write_text(pairs_file.read_text())
    out = tmp_path / "t"
    config = settings(corpus, epochs=1)
    run_table("p3-table1", config, out, encoders=["letters"], heads=["fc", "cnn"], say=quiet)
    cell = out / "cells" / "crosspair" / "letters" / "cnn" / "figures.json"
    text = cell.read_text()
    cell.write_text(text[:100])
    with pytest.raises(InputError, match="damaged; delete it"):
        run_table("p3-table1", config, out, encoders=["letters"], heads=["fc", "cnn"], say=quiet)
    cell.unlink()
    corpus.write_text("".join(corpus.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(InputError, match="the corpus has changed"):
        run_table("p3-table1", config, out, encoders=["letters"], heads=["fc", "cnn"], say=quiet)


def test_what_can_not_be_run_is_listed_or_refused(letters, pairs_file, tmp_path, monkeypatch):
    def unreachable(model=""):
        raise InputError("the hub can't be reached")

    monkeypatch.setitem(ENCODERS._entries, "use", unreachable)
    config = settings(pairs_file, epochs=1)
    found = run_table("p3-table1", config, tmp_path / "a", encoders=["use", "letters"], heads=["fc"], say=quiet)
    assert [cell["encoder"] for cell in found["cells"]] == ["letters"]
    reasons = {entry["encoder"]: entry["reason"] for entry in found["not_run"]}
    assert "the hub can't be reached" in reasons["use"]
    assert all(reason.startswith("needs a download: ") for reason in reasons.values())
    assert set(reasons) == {"use", "use-large", "infersent", "word2vec", "bert"}
    with pytest.raises(InputError, match="none of the encoders can be run"):
        run_table("p3-table1", config, tmp_path / "b", encoders=["use"], heads=["fc"], say=quiet)
    with pytest.raises(InputError, match="did you mean glove"):
        run_table("p3-table1", config, tmp_path / "c", encoders=["glov"], say=quiet)
    with pytest.raises(InputError, match="nowhere"):
        run_table("p3-table1", config, tmp_path / "d", encoders=[f"glove:{tmp_path}/nowhere.txt"], say=quiet)
    with pytest.raises(InputError, match="did you mean lstm"):
        run_table("p3-table1", config, tmp_path / "e", encoders=["letters"], heads=["lstn"], say=quiet)
    assert not (tmp_path / "c").exists()
    assert not (tmp_path / "e").exists()


def test_cls_is_a_column_of_its_own(letters, pairs_file, tiny_bert, tmp_path):
    config = settings(pairs_file, epochs=1, encoder=str(tiny_bert), max_length=64)
    found = run_table("p3-table1", config, tmp_path / "t", encoders=["letters"], heads=["fc", "cls"], say=quiet)
    assert [(cell["encoder"], cell["head"]) for cell in found["cells"]] == [("letters", "fc"), (str(tiny_bert), "cls")]
    assert "bert" not in {entry["encoder"] for entry in found["not_run"]}
    assert any(f"encoder={tiny_bert}" in note for note in found["notes"])


def test_side_by_side_on_the_command_line(negsample, pairs_file, tmp_path):
    rows = "\n".join(f"{word} {n}.5 -{n}.0 0.25" for n, word in enumerate(("baker", "sold", "a", "boat", "the")))
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text(rows.replace("0.25", "0.5" if name == "two.txt" else "0.25") + "\n")
    specs = ",".join(f"glove:{tmp_path}/{name},unit=sentence" for name in ("one.txt", "two.txt"))
    out = tmp_path / "t"
    arguments = ("tables", "p3-table1", "--corpus", pairs_file, "--encoders", specs, "--heads", "fc", "epochs=1")
    done = negsample(*arguments, "--jobs", 2, "--out", out)
    found = json.loads((out / "table.json").read_text())
    assert [cell["encoder"] for cell in found["cells"]] == split_specs([specs])
    assert (out / "table.md").read_text() in done.stdout
    assert "2/2 crosspair" in done.stdout
    refused = negsample(*arguments, "--limit", 50, "--out", out, check=2)
    assert refused.stderr.count("\n") == 1
    assert "limit was None, is 50" in refused.stderr


def test_specs_are_told_from_their_options():
    assert split_specs(["glove,hf:pool=max,layer=-2", "use:/a/b"]) == ["glove", "hf:pool=max,layer=-2", "use:/a/b"]
    assert split_specs(["glove:unit=sentence,pool=max,glove"]) == ["glove:unit=sentence,pool=max", "glove"]
    with pytest.raises(InputError, match="'glove' is given twice"):
        split_specs(["glove", "glove"])


@given(st.lists(st.sampled_from(["glove", "hf:pool=max,layer=-2", "hf", "use:/x", "glove:unit=sentence"]), unique=True))
def test_joined_specs_come_apart_again(specs):
    assert split_specs([",".join(specs)]) == specs


def test_each_table_names_figures_that_exist():
    from negsample.models.evaluation import BINARY, GRADED

    assert TABLES["p3-table1"].figure in BINARY
    assert TABLES["p3-table2"].figure in GRADED

"""Tables 1 and 2 of Bao et al. 2021, on one's own corpus."""

import importlib
import json
from collections import Counter

import numpy as np
import pytest
from plugin_files import write_plugin

from negsample import Estimator
from negsample.errors import InputError
from negsample.io.read import read_examples
from negsample.models import evaluation
from negsample.models.encoders import ENCODERS
from negsample.negatives.recipe import parse_recipe
from negsample.papers import grid_table
from negsample.papers.declared import declared
from negsample.papers.grid_table import read_grid
from negsample.papers.judged import Asked
from negsample.train.config import make_config
from negsample.train.data import make_examples


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
def table(letters, pairs_file, tmp_path, monkeypatch):
    """Run a table over the small encoder: ``table("p3-table1", "heads=[fc]", …) -> Table``, in the folder ``t``."""

    monkeypatch.setattr(evaluation, "RESAMPLES", 10)

    def run(name, *words, say=lambda line: None, out=tmp_path / "t", corpus=pairs_file, **asked):
        own = {"corpus": str(corpus), "epochs": "1", "encoders": "[letters]", "heads": "[fc]"}
        own |= dict(word.split("=", 1) for word in words)
        asked = Asked(words=tuple(f"{key}={value}" for key, value in own.items()), **asked)
        return grid_table.run(declared(name), asked, out, say)

    return run


def test_a_cell_is_what_its_model_scores_on_the_test_split(table, pairs_file, tmp_path):
    said, out = [], tmp_path / "t"
    found = table("p3-table1", "heads=[fc, cnn, lstm]", keep_models=True, say=said.append)
    measured = [record for record in found.records if record.value is not None]
    assert [record.row for record in measured] == ["crosspair fc", "crosspair cnn", "crosspair lstm"]
    make_examples(make_config({"corpus": str(pairs_file)}), parse_recipe("crosspair"), tmp_path / "examples")
    examples = list(read_examples(tmp_path / "examples" / "test.jsonl.gz"))
    labels = np.array([example.label for example in examples])
    for record in measured:
        model = Estimator.load(out / "cells" / "crosspair" / "letters" / record.about["head"] / "model")
        scores = model.score([e.document for e in examples], [e.summary for e in examples])
        assert record.value == pytest.approx(100 * np.mean((scores >= 0.5) == (labels == 1)))
        assert record.n == len(examples)
        assert 0 <= record.low <= record.value <= record.high <= 100
    assert sum("epochs" in line for line in said) >= 3
    files = "cells grid.json locks p3-table1.csv p3-table1.json p3-table1.md run.json"
    assert sorted(path.name for path in out.iterdir()) == files.split()
    run = json.loads((out / "run.json").read_text())
    assert run["config"]["corpus"] == str(pairs_file)
    assert run["data"]["crosspair"]["pairs"] == 60


def test_examples_are_made_and_texts_encoded_once_for_the_whole_grid(table, letters, tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(grid_table, "make_examples", lambda *a, **k: made.append(str(a[1])) or make_examples(*a, **k))
    found = table("p3-table2", "heads=[fc, cnn]")
    assert made == ["add", "delete", "replace"]
    assert Counter(dict.fromkeys(letters.SEEN, 1)) == letters.SEEN
    assert {record.about["figure"] for record in found.records if record.about} == {"pearson"}


def test_a_mistake_before_the_first_cell_leaves_the_folder_as_it_was(table, tmp_path, monkeypatch):
    out = tmp_path / "t"
    for words, told in (
        ([f"corpus={tmp_path}/nowhere.jsonl"], r"nowhere\.jsonl"),
        ([f"encoders=[glove:{tmp_path}/none.txt]"], r"none\.txt"),
        (["heads=[cls]", f"encoder={tmp_path}/no-bert"], "no-bert"),
        (["encoders=[glov]"], "did you mean glove"),
        (["heads=[lstn]"], "did you mean lstm"),
        (["heads=[fc, fc]"], "twice"),
        (["encoder=letters"], "encoder= is for cls"),
        (["recipe=add"], "leave them out"),
        (["heads=[fc, align]", "redraws=3"], "align reads all negatives in every epoch"),
    ):
        with pytest.raises(InputError, match=told):
            table("p3-table1", *words)
        assert not out.exists()
    trained, real = [], grid_table.fit_and_test

    def fails_second(*args, **keywords):
        if trained:
            raise InputError("the second can't be trained")
        trained.append(args)
        return real(*args, **keywords)

    monkeypatch.setattr(grid_table, "fit_and_test", fails_second)
    with pytest.raises(InputError, match="the second can't be trained"):
        table("p3-table1", "heads=[fc, cnn]")
    assert (out / "grid.json").is_file()
    assert (out / "cells" / "crosspair" / "letters" / "fc" / "figures.json").is_file()


def test_what_is_read_with_and_without_a_file(tmp_path):
    # One negative a pair, texts cut in proportion (Bao et al. 2021 §4.1, §4.2); floor and sets are settings.
    for words, min_summary in (([], 128), (["heads=[fc, align]"], 128), (["heads=[fc, cls]"], 1)):
        grid = read_grid("p3-table1", None, words)
        assert (grid.negatives, grid.redraws, grid.min_summary) == (1, 1, min_summary)
    assert read_grid("p3-table1", None, ["sample=0.5", "min_summary=7", "heads=cls"], seed=4).sample == 0.5
    packaged = read_grid("p3-table1", "p3_table1_newsroom", ["limit=9"], seed=4)
    assert (packaged.limit, packaged.seed, len(packaged.encoders)) == (9, 4, 4)
    assert packaged.heads == ("fc", "cnn", "lstm", "cls")
    with pytest.raises(InputError, match="is for table 'p3-table1', not 'p3-table2'"):
        read_grid("p3-table2", "p3_table1_newsroom")


def test_goes_on_where_it_stopped(table, tmp_path, monkeypatch):
    words = ("p3-table2", "heads=[fc, lstm]")
    whole = table(*words, out=tmp_path / "whole")
    real, trained = grid_table.fit_and_test, []

    def stop_at(count):
        def fit_and_test(*args, **keywords):
            if len(trained) == count:
                raise KeyboardInterrupt
            trained.append(args)
            return real(*args, **keywords)

        return fit_and_test

    monkeypatch.setattr(grid_table, "fit_and_test", stop_at(3))
    with pytest.raises(KeyboardInterrupt):
        table(*words)
    assert not (tmp_path / "t" / "p3-table2.json").exists()
    monkeypatch.setattr(grid_table, "fit_and_test", stop_at(None))
    said = []
    found = table(*words, say=said.append)
    assert len(trained) == 6
    assert said[0] == "3 of 6 trainings are finished already"
    assert [record.value for record in found.records] == [record.value for record in whole.records]
    # Finished: asked again it trains nothing and says the same.
    assert table(*words).records == found.records
    assert len(trained) == 6
    # Other arguments are refused by name.
    for change, told in (("seed=1", r"seed was 0, is 1\)"), ("heads=[cnn]", "heads was")):
        with pytest.raises(InputError, match=told):
            table(*words, change)
    with pytest.raises(InputError, match="table was"):
        table("p3-table1", "heads=[fc, lstm]")


def test_a_changed_corpus_or_a_damaged_cell_is_noticed(table, tmp_path, pairs_file):
    corpus = tmp_path / "pairs.jsonl"
    corpus.write_text(pairs_file.read_text())
    words = ("p3-table1", "heads=[fc, cnn]")
    table(*words, corpus=corpus)
    cell = tmp_path / "t" / "cells" / "crosspair" / "letters" / "cnn" / "figures.json"
    cell.write_text(cell.read_text()[:100])
    with pytest.raises(InputError, match="damaged; delete it"):
        table(*words, corpus=corpus)
    cell.unlink()
    corpus.write_text("".join(corpus.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(InputError, match="the corpus has changed"):
        table(*words, corpus=corpus)


def test_a_head_that_takes_no_rows_has_a_column_of_its_own(table, tiny_bert):
    found = table("p3-table1", "heads=[fc, cls]", f"encoder={tiny_bert}", "max_length=64")
    measured = [(record.row, record.column) for record in found.records if record.value is not None]
    assert measured == [("crosspair fc", "letters"), ("crosspair cls", str(tiny_bert))]

"""``negsample tables``: every table on stand-ins, what is asked wrongly, going on."""

import csv
import json
import re
from collections import Counter
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest
from pages import check
from tests_support import story

from negsample.commands.tables import transfer
from negsample.io.read import SAMPLE_PATH
from negsample.models import evaluation
from negsample.papers import judged, stand_ins
from negsample.papers.declared import all_declared, declared
from negsample.resampling import NO_INTERVAL
from negsample.terminal import number

NAMED = [each.name for each in all_declared() if each.name]


@pytest.fixture(scope="session")
def vectors(tmp_path_factory):
    """A file of word vectors for all words of the sample, drawn at random."""
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    words = sorted(set(re.findall(r"\w+", SAMPLE_PATH.read_text("utf-8").lower())))
    rng = np.random.default_rng(0)
    path.write_text("".join(f"{word} {' '.join(f'{x:.3f}' for x in rng.normal(size=4))}\n" for word in words))
    return path


@pytest.fixture
def small(vectors, tiny_bert, monkeypatch):
    """Make stand-ins smaller; return the options of a table that keep it small."""
    monkeypatch.setattr(stand_ins, "JUDGED", 2)
    monkeypatch.setattr(judged, "SPLITS", 20)
    monkeypatch.setattr(evaluation, "RESAMPLES", 10)
    monkeypatch.setattr(stand_ins, "_BOUNDS", {"limit": 12, "epochs": 1})
    monkeypatch.setattr(stand_ins, "_WHOLE", {"tokens": str(tiny_bert)})

    def options(name):
        spec, found = declared(name), []
        if spec.kind == "grid":
            return ["encoders=[glove]", "heads=[fc]", "negatives=2"]
        if spec.kind == "tac2010":
            return ["corpus=billsum", "--bootstrap", 5]
        for part in spec.parts:
            if part not in ("InferSent", "BERT", "QA"):
                # Sentences by mean and by maximum, so that no two are the same; movers take words.
                pool = "max" if part in ("max", "enc-3") else "mean"
                more = "" if name.startswith("p0") else f", unit=sentence, pool={pool}"
                found += ["--part", f"{part}=glove({vectors}{more})"]
        return [*found, "--bootstrap", 5]

    return options


@pytest.mark.parametrize("name", NAMED)
def test_every_table_runs_small(name, small, negsample, tmp_path):
    out, smoke = tmp_path / "t", [] if name == "p0-table1" else ["--smoke"]
    printed = negsample("tables", name, *small(name), *smoke, "--out", out).stdout
    assert (out / f"{name}.md").read_text(encoding="utf-8") in printed
    found = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
    measured = [record for record in found["records"] if record["value"] is not None]
    assert measured
    # Nothing that is printed is lost.
    assert sum("printed" in record for record in found["records"]) >= len(declared(name).printed_records())
    assert (out / f"{name}.svg").exists() == ("figure" in name)
    assert json.loads((out / "run.json").read_text(encoding="utf-8"))["smoke"] is bool(smoke)
    if name == "p0-table1":
        value = {(record["row"], record["column"]): record["value"] for record in measured}
        for metric in ("WMS", "SMS", "S+WMS"):
            assert value["word-order", metric] == pytest.approx(value["human", metric], abs=1e-6)
            assert value["repetition", metric] != pytest.approx(value["human", metric], abs=1e-3)
        assert value["word-order", "ROUGE-L"] < value["human", "ROUGE-L"]
    if name == "p1-table4":
        # Two of eight encoders' rows are missing InferSent; the rest are ranked.
        assert sum(record["column"] == "P(ref)" for record in measured) == 9
    if name == "p2-table1":
        again = negsample("tables", name, *small(name)[:-1], 6, *smoke, "--out", out, check=2).stderr
        assert "was begun with another configuration (bootstrap was 5, is 6)" in again


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["p1-table5"], "or p1-table4"),
        (["p1-table4"], "give --data duc2001:DIR --data duc2002:DIR --data newsroom:DIR (the paper's)"),
        (["p1-table4", "--data", "x", "--smoke"], "leave --data out"),
        (["p1-table4", "--config", "x"], "--config"),
        (["p1-table4", "epochs=2"], "KEY=VALUE"),
        (["p1-table2", "--part", "GloVe=x"], "--part"),
        (["p3-table1", "--human", "x"], "--human"),
        (["p3-table1"], "give --config FILE or corpus=PATH"),
        (["p4-table3"], "no headlines; give --data FILE"),
        (["p3-table5"], "give --data tac2010:DIR"),
        (["p3-table5", "--data", "tac2010:.", "--rouge-alone"], "Table 5 has no ROUGE"),
        (["p3-table6", "epochs=3", "--data", "tac2010:.", "--rouge-alone"], "are for training"),
        (["p3-table6", "corpus=newsroom", "--data", "tac2010:."], "known: cnn_dailymail, billsum, arxiv, big_patent"),
        (["p3-table6", "recipe=add", "--data", "tac2010:."], "the table has its own"),
        (["p3-table6", "--data", "tac2010:.", "--rouge-alone"], "no manual/manual.peer.A in it"),
    ],
)
def test_a_command_says_what_it_needs(words, told, negsample, tmp_path):
    refused = negsample("tables", *words, "--out", "t", check=2, cwd=tmp_path).stderr
    assert told in refused
    assert refused.count("\n") == 1
    assert not (tmp_path / "t").exists()


def test_the_list_tells_everything(negsample):
    printed = negsample("tables", "--list").stdout
    for each in all_declared():
        assert all(cell in printed for cell in each.listed() if cell != "–")


def test_headlines_of_a_training_are_records(negsample, tmp_path):
    settings = ["corpus=sample:news", "headlines=true", "policy=abstract", "model=random-causal", "document_tokens=64"]
    settings += ["summary_tokens=8", "top_k=40", "samples=2", "ml_epochs=1", "epochs=0", "test_share=0.4"]
    negsample("reinforce", *settings, "metrics=[rouge1]", "--out", tmp_path / "run")
    records = tmp_path / "run" / "headlines.jsonl"
    rows = [json.loads(line) for line in records.read_text().splitlines()]
    # Of the eight test stories each system has a headline, and the trained one a second one of the first five.
    assert {(row["system"], row["draw"]) for row in rows} == {("start", 1), ("trained", 1), ("lead", 1), ("trained", 2)}
    assert len(rows) == 3 * 8 + 5
    # The random model's headlines may end before they begin.
    assert sum(bool(row["generated"]) for row in rows) > 20
    drawn = {(row["document_id"], row["draw"]): row["generated"] for row in rows if row["system"] == "trained"}
    assert sum(drawn[key] != drawn[key[0], 1] for key in drawn if key[1] == 2) >= 4
    lead = next(row for row in rows if row["system"] == "lead")
    assert lead["story"].startswith(lead["generated"])
    own = ["--data", records, "--part", "USE=glove(unit=sentence)", "--out", tmp_path / "t"]
    assert "| sample:news trained Gen-Ref" in negsample("tables", "p4-table2", *own).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two domains and an experiment on them, in a folder."""
    folder = tmp_path_factory.mktemp("transfer")
    for name, numbers in {"cnndm": range(40), "talk": range(100, 140)}.items():
        with (folder / f"{name}.jsonl").open("w") as stream:
            for number in numbers:
                document, summary = story(number)
                stream.write(json.dumps({"document": document, "summary": summary}) + "\n")
    experiment = {
        "sources": {"cnndm": str(folder / "cnndm.jsonl"), "talk <b>": str(folder / "talk.jsonl")},
        "sizes": [10, 30, 500],
        "few_shot": [5],
        "train": {"encoder": "glove(unit=sentence)", "epochs": 1},
    }
    (folder / "t.yaml").write_text(json.dumps(experiment))
    return folder


@pytest.fixture(scope="module")
def done(folder):
    """The experiment, run by the command: its folder, and what it printed."""
    out = folder / "out"
    with redirect_stdout(StringIO()) as printed:
        transfer(str(folder / "t.yaml"), str(out))
    return out, printed.getvalue()


def test_every_file_holds_the_same_figures(done):
    out, printed = done
    table = json.loads((out / "transfer.json").read_text())
    measured = [record for record in table["records"] if "told" in record]
    # 2 sizes × (2 sources × 2 targets + 2 × few-shot on the other); a Δ of each but the home ones, a gain of each few-shot.
    assert Counter(record["told"] for record in measured) == {"value": 12, "delta": 8, "gain": 4}
    rows = list(csv.DictReader((out / "transfer.csv").open(newline="")))
    assert len(rows) == len(table["records"])
    text, html = (out / "transfer.md").read_text(), (out / "transfer.html").read_text()
    page = check(html)
    shown = {word.strip() for word in page.words}
    assert text in printed
    for row, record in zip(rows, table["records"], strict=True):
        assert [row[key] for key in ("row", "column", "section")] == [
            record[key] for key in ("row", "column", "section")
        ]
        if record["value"] is not None:
            # Of each target four documents are tested.
            assert (float(row["value"]), row["low"], "low" in record) == (record["value"], "", False)
            assert number(record["value"], 1) in text
            assert any(number(record["value"], 1, sign=sign) in shown for sign in (False, True))
    # A size that no source has.
    assert len(table["not_run"]) == 2
    assert "crosspair, fc, cnndm, 500 pairs: cnndm has fewer than 500 training pairs" in shown
    run = json.loads((out / "run.json").read_text())
    assert run["config"]["few_shot"] == [5]
    assert run["data"]["cnndm"]["pairs"] == 40
    assert not (out / "work").exists()
    # Figures and Δ, at two sizes; a curve for each target, with one line a source.
    assert (page.count("class", "heat"), page.count("class", "plot")) == (4, 2)
    assert len(re.findall(r"stroke: var\(--c\d\)", html)) == 4
    assert sum((attributes.get("style") or "").startswith("--s:") for _, attributes in page.tags) == 16
    assert "talk <b>" in shown
    assert NO_INTERVAL in html
    assert "b" not in {tag for tag, _ in page.tags}

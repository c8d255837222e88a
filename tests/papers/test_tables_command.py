"""``negsample tables``: every table on stand-ins, what is asked wrongly, going on."""

import json
import re

import numpy as np
import pytest

from negsample.io.read import SAMPLE_PATH
from negsample.models import evaluation
from negsample.papers import judged, stand_ins
from negsample.papers.declared import all_declared, declared

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
    ],
)
def test_a_command_says_what_it_needs(words, told, negsample, tmp_path):
    refused = negsample("tables", *words, "--out", tmp_path / "t", check=2).stderr
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

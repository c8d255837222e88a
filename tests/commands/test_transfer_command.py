"""``negsample transfer``: the files it leaves, and what it says when something is wrong."""

import csv
import json
import re
from collections import Counter
from contextlib import redirect_stdout
from io import StringIO

import pytest
from pages import check
from tests_support import story

from negsample.commands.tables import transfer
from negsample.terminal import number


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
            assert [float(row[key]) for key in ("value", "low")] == [record["value"], record["low"]]
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
    assert "b" not in {tag for tag, _ in page.tags}


def test_what_is_wrong_is_told_in_one_line_and_leaves_nothing(negsample, folder, tmp_path):
    path, lone = tmp_path / "bad.yaml", tmp_path / "lone.jsonl"
    lone.write_text((folder / "cnndm.jsonl").read_text().splitlines()[0])
    for text, told in {
        "sources: {a: missing.jsonl}": "missing.jsonl: no such file",
        "source: {a: missing.jsonl}": "unknown key 'source'; did you mean sources?",
        "sources: [": "not valid YAML",
        f"sources: {{a: {folder / 'cnndm.jsonl'}}}\nsizes: [99999]": "nothing can be trained",
        f"sources: {{lone: {lone}}}": "lone.jsonl: the corpus has 1 document and 3 splits are wanted",
    }.items():
        path.write_text(text)
        done = negsample("transfer", "--config", path, "--out", tmp_path / "out", check=2)
        assert told in done.stderr
        assert done.stderr.count("\n") == 1
        assert not (tmp_path / "out" / "transfer.json").exists()
        assert not (tmp_path / "out").exists()

"""``negsample transfer``: the files it leaves, and what it says when something is wrong."""

import csv
import json
import re
from collections import Counter
from contextlib import redirect_stdout
from html.parser import HTMLParser
from io import StringIO

import pytest
from tests_support import story

from negsample.commands.tables import transfer
from negsample.number_text import number


class Page(HTMLParser):
    """The texts of a page's table cells and list entries, its tags and attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        if data.strip():
            self.texts.append(data.strip())


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
    text, page = (out / "transfer.md").read_text(), Page((out / "transfer.html").read_text())
    assert text in printed
    for row, record in zip(rows, table["records"], strict=True):
        assert [row[key] for key in ("row", "column", "section")] == [
            record[key] for key in ("row", "column", "section")
        ]
        if record["value"] is not None:
            assert [float(row[key]) for key in ("value", "low")] == [record["value"], record["low"]]
            assert number(record["value"], 1) in text
            assert any(number(record["value"], 1, sign=sign) in page.texts for sign in (False, True))
    # A size that no source has.
    assert len(table["not_run"]) == 2
    assert "crosspair, fc, cnndm, 500 pairs: cnndm has fewer than 500 training pairs" in page.texts
    run = json.loads((out / "run.json").read_text())
    assert run["config"]["few_shot"] == [5]
    assert run["data"]["cnndm"]["pairs"] == 40
    assert not (out / "work").exists()


def test_the_page_needs_no_network_and_shows_heat_maps_and_curves(done):
    text = (done[0] / "transfer.html").read_text()
    page = Page(text)
    assert "script" not in page.tags
    assert not [value for name, value in page.attributes if name in ("src", "href") and not value.startswith("data:")]
    assert "http" not in text.replace("http-equiv", "")
    assert "@import" not in text
    # Figures and Δ, at two sizes; a curve for each target, with one line a source.
    assert page.attributes.count(("class", "heat")) == 4
    assert page.attributes.count(("class", "plot")) == 2
    assert len(re.findall(r"stroke: var\(--c\d\)", text)) == 4
    shades = [value for name, value in page.attributes if name == "style"]
    assert len([shade for shade in shades if shade.startswith("--s:")]) == 16
    assert "talk <b>" in page.texts
    assert "b" not in page.tags


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

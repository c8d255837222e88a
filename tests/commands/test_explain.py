"""``negsample explain`` and ``negsample score --aspects`` on a small untrained model."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests_support import command_line, story

from negsample.train.config import make_config
from negsample.train.job import train


@pytest.fixture(scope="module")
def model(pairs_file: Path, tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("align") / "model"
    values = {"corpus": str(pairs_file), "recipe": "replace", "head": "align", "epochs": 0, "limit": 30}
    train(make_config({**values, "encoder": f"sentence-transformer:{tiny_bert}"}), folder)
    return folder


@pytest.fixture
def records(tmp_path: Path) -> Path:
    document, summary = story(3)
    rows = [{"n": 1, "document": document, "summary": summary}, {"n": 2, "document": document, "summary": "… !!"}]
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_aspects_in_scored_records(negsample, model: Path, records: Path, cls_model: Path, tmp_path: Path) -> None:
    score, out = ("score", "--model", model, records, "-o"), tmp_path / "out.jsonl"
    negsample(*score, out)
    good, wordless = read(out)
    assert list(good["aspects"]) == ["coverage", "support", "coherence", "form"]
    assert all(0 < value < 1 for value in good["aspects"].values())
    assert "reason" not in good
    assert set(wordless["aspects"].values()) == {None}
    assert wordless["reason"] == "the summary has no word, so no aspect can be judged"
    assert wordless["score"] < good["score"]
    negsample(*score, out, "--no-aspects")
    plain = read(out)[0]
    assert plain.keys() == {"n", "document", "summary", "score", "percentile"}
    # Of 30 pairs 3 are for validation and 3 for tests.
    assert good["percentile"] * 6 == pytest.approx(round(good["percentile"] * 6), abs=1e-3)
    assert (wordless["percentile"], wordless["aspect_percentiles"]["form"]) == (0, None)
    assert plain["score"] == pytest.approx(good["score"], abs=1e-5)
    negsample(*score, tmp_path / "out.csv", "--aspects")
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as stream:
        flat = next(csv.DictReader(stream))
    assert {name: float(flat[name]) for name in good["aspects"]} == pytest.approx(good["aspects"], abs=1e-5)
    told = negsample("explain", "--model", cls_model, records, check=2).stderr
    assert "head 'cls' has no aspects; train a model that has: negsample train --config align" in told
    negsample("score", "--model", cls_model, records, "-o", out, "--aspects", check=2)


def test_explanations_in_the_terminal_and_as_json(negsample, model: Path, records: Path, tmp_path: Path) -> None:
    explain = ("explain", "--model", model, records)
    told = negsample(*explain).stdout
    assert "summary: support, doubt (above .80 speaks against it), and the document sentence it rests on" in told
    assert "the summary has no word" in told
    negsample(*explain, "-o", tmp_path / "out.jsonl", "--limit", 1)
    (record,) = read(tmp_path / "out.jsonl")
    assert record["n"] == 1
    assert (len(record["explanation"]["document"]), len(record["explanation"]["summary"])) == (4, 2)
    assert "nested" in negsample(*explain, "-o", tmp_path / "out.csv", check=2).stderr


def explained(model: Path, folder: Path, document: str, summary: str) -> dict:
    path = folder / "given.jsonl"
    path.write_text(json.dumps({"document": document, "summary": summary}) + "\n", encoding="utf-8")
    return json.loads(command_line("explain", "--model", model, path, "-o", "-").stdout)["explanation"]


def test_a_short_whole_sentence_is_no_fragment(model: Path, tmp_path: Path) -> None:
    document = (
        "“Will you resign?” he was asked on Monday. He left the hall. Yahoo! shares fell. Repairs take two years."
    )
    summary = "“Will you resign?” he was asked. Repairs take two years. Yahoo! shares fell. An old broken"
    told = explained(model, tmp_path, document, summary)["summary"]
    assert [(one["sentence"], one["faults"]) for one in told] == [
        ("“Will you resign?” he was asked.", []),
        ("Repairs take two years.", ["short"]),
        ("Yahoo! shares fell.", ["short"]),
        ("An old broken", ["no end mark", "fragment"]),
    ]


def test_a_page_of_records(
    negsample, model: Path, records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page holds what the JSON lines have, and nothing of this machine; texts can't end the element they are in."""
    hostile = {"id": "x1", "document": "</script><!-- A boat sank. -->", "summary": "A <b>boat</b>."}
    records.write_text(records.read_text() + json.dumps(hostile) + "\n", encoding="utf-8")
    html, lines = tmp_path / "told.html", tmp_path / "told.jsonl"
    explain = ("explain", "--model", model, records, "--html")
    said = negsample(*explain, html, "-o", lines).stdout
    assert said.startswith(f"3 records explained: {lines}, {html}\nmodel:")
    text = html.read_text(encoding="utf-8")
    (embedded,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    data = json.loads(embedded)
    assert [one["explanation"] for one in data["records"]] == [one["explanation"] for one in read(lines)]
    assert [one["label"] for one in data["records"]] == ["record 1", "record 2", "x1"]
    assert data["records"][2]["document"] == hostile["document"]
    assert str(tmp_path.parent) not in text
    assert "encoder:sentence-transformer:tiny-bert" in data["signature"]
    monkeypatch.setattr("negsample.commands.explain._MOST_SHOWN", 2)
    told = negsample(*explain, tmp_path / "more.html", check=2).stderr
    assert "more than 2 records; choose some with --limit" in told
    assert not (tmp_path / "more.html").exists()
    negsample(*explain, tmp_path / "less.html", "--limit", 2)

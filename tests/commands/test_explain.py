"""``negsample explain`` and ``negsample score --aspects`` on a small untrained model."""

import csv
import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from tests_support import story

from negsample.cli import main
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


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return int(stop.value.code or 0)


def test_aspects_in_scored_records(model: Path, records: Path, tmp_path: Path) -> None:
    assert run("score", "--model", model, records, "-o", tmp_path / "out.jsonl") == 0
    good, wordless = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert list(good["aspects"]) == ["coverage", "support", "coherence", "form"]
    assert all(0 < value < 1 for value in good["aspects"].values())
    assert "reason" not in good
    assert set(wordless["aspects"].values()) == {None}
    assert wordless["reason"] == "the summary has no word, so no aspect can be judged"
    assert wordless["score"] < good["score"]
    assert run("score", "--model", model, records, "-o", tmp_path / "plain.jsonl", "--no-aspects") == 0
    plain = json.loads((tmp_path / "plain.jsonl").read_text().splitlines()[0])
    assert plain.keys() == {"n", "document", "summary", "score", "percentile"}
    # Of 30 pairs 3 are for validation and 3 for tests.
    assert good["percentile"] * 6 == pytest.approx(round(good["percentile"] * 6), abs=1e-3)
    assert wordless["percentile"] == 0
    assert wordless["aspect_percentiles"]["form"] is None
    assert plain["score"] == pytest.approx(good["score"], abs=1e-5)
    assert run("score", "--model", model, records, "-o", tmp_path / "out.csv", "--aspects") == 0
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as stream:
        flat = next(csv.DictReader(stream))
    assert {name: float(flat[name]) for name in good["aspects"]} == pytest.approx(good["aspects"], abs=1e-5)


def test_explanations_in_the_terminal_and_as_json(
    model: Path, records: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("explain", "--model", model, records) == 0
    told = capsys.readouterr().out
    assert "summary: support, and the document sentence it rests on" in told
    assert "the summary has no word" in told
    assert run("explain", "--model", model, records, "-o", tmp_path / "out.jsonl", "--limit", 1) == 0
    (line,) = (tmp_path / "out.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert record["n"] == 1
    assert len(record["explanation"]["document"]) == 4
    assert len(record["explanation"]["summary"]) == 2
    assert run("explain", "--model", model, records, "-o", tmp_path / "out.csv") == 2
    assert "nested" in capsys.readouterr().err


def test_a_model_without_aspects_says_so(
    cls_model: Path, tmp_path: Path, records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("explain", "--model", cls_model, records) == 2
    told = capsys.readouterr().err
    assert "head 'cls' has no aspects; train a model that has: negsample train --config align" in told
    assert run("score", "--model", cls_model, records, "-o", tmp_path / "o.jsonl", "--aspects") == 2


def explained(model: Path, folder: Path, document: str, summary: str) -> dict:
    path = folder / "given.jsonl"
    path.write_text(json.dumps({"document": document, "summary": summary}) + "\n", encoding="utf-8")
    assert run("explain", "--model", model, path, "-o", folder / "told.jsonl") == 0
    return json.loads((folder / "told.jsonl").read_text(encoding="utf-8"))["explanation"]


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


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_an_explanation_shows_the_text_as_it_was_written(model: Path, tmp_path: Path, form: Any) -> None:
    document = "Le café de Besançon a fermé lundi. Les élèves étaient déçus."
    summary = unicodedata.normalize(form, "Le café\u00a0a fermé\u200b lundi. Un théâtre oﬃciel a ouvert ici.")
    told = explained(model, tmp_path, unicodedata.normalize(form, document), summary)
    assert " ".join(one["sentence"] for one in told["document"]) == unicodedata.normalize(form, document)
    assert " ".join(one["sentence"] for one in told["summary"]) == summary.replace("\u00a0", " ")
    assert told["summary"][0]["unsupported"] == []
    assert set(told["summary"][1]["unsupported"]) & {unicodedata.normalize(form, "théâtre"), "oﬃciel"}
    assert all(word in summary for word in told["summary"][1]["unsupported"])


def test_a_page_of_records(
    model: Path, records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page holds what the JSON lines have, and nothing of this machine; texts can't end the element they are in."""
    hostile = {"id": "x1", "document": "</script><!-- A boat sank. -->", "summary": "A <b>boat</b>."}
    records.write_text(records.read_text() + json.dumps(hostile) + "\n", encoding="utf-8")
    html, lines = tmp_path / "told.html", tmp_path / "told.jsonl"
    assert run("explain", "--model", model, records, "--html", html, "-o", lines) == 0
    text = html.read_text(encoding="utf-8")
    (embedded,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    data = json.loads(embedded)
    told = [json.loads(line)["explanation"] for line in lines.read_text(encoding="utf-8").splitlines()]
    assert [one["explanation"] for one in data["records"]] == told
    assert [one["label"] for one in data["records"]] == ["record 1", "record 2", "x1"]
    assert data["records"][2]["document"] == hostile["document"]
    assert str(tmp_path.parent) not in text
    assert "encoder:sentence-transformer:tiny-bert" in data["signature"]
    assert capsys.readouterr().out.startswith(f"3 records explained: {lines}, {html}\nmodel:")
    monkeypatch.setattr("negsample.commands.explain._MOST_SHOWN", 2)
    assert run("explain", "--model", model, records, "--html", tmp_path / "more.html") == 2
    assert "more than 2 records; choose some with --limit" in capsys.readouterr().err
    assert not (tmp_path / "more.html").exists()
    assert run("explain", "--model", model, records, "--html", tmp_path / "less.html", "--limit", 2) == 0

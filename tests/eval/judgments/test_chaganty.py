"""Chaganty et al. 2018 in the layout of the release: judges, shared summaries, references, what is missing."""

import json
from pathlib import Path
from typing import Any

import pytest
from tac2010_maker import archive

from negsample.errors import InputError
from negsample.eval.judgments import Unusable, load_judgments

ARTICLES = [{"id": "0001", "text": "The mill closed. Forty people left."}, {"id": "0002", "text": "Rain fell."}]


def judged(name: str, system: str, text: str, *overall: float | None, **more: Any) -> dict[str, Any]:
    """A record of ``lqual.jsonl`` with one answer a worker."""
    answers = {"worker_ids": [f"w{k}" for k in range(len(overall))], "overall": list(overall)}
    answers |= {"grammar": [1] * len(overall), "redundancy": [0] * len(overall), "hter": [0.2] * len(overall)}
    contents = {"id": name, "system": system, "text": text, "reference": "The mill shut."}
    return {"input": {"contents": contents | more}, "output": {"overall": 9, "_responses": answers if overall else {}}}


def write(folder: Path, records: list[dict[str, Any]], *, packed: bool = True) -> Path:
    """The release: the articles, and the judgments in an archive."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["".join(json.dumps(record) + "\n" for record in part) for part in (ARTICLES, records)]
    (folder / "articles.jsonl").write_text(lines[0], encoding="utf-8")
    if packed:
        (folder / "data.tar.gz").write_bytes(archive({"./lqual.jsonl": lines[1].encode()}))
        # The release's other file of this name: metrics in the place of texts.
        (folder / "lqual.jsonl").write_text('{"id": "0001", "system": "ml", "prompts": {}}\n', encoding="utf-8")
    else:
        (folder / "lqual.jsonl").write_text(lines[1], encoding="utf-8")
    return folder


@pytest.mark.parametrize("packed", [False, True])
def test_rows(packed: bool, tmp_path: Path) -> None:
    records = [
        judged("0001", "pointer", "The mill closed.", 1, 0, -0.5),
        judged("0001", "ml;ml+rl", "It closed.", 0, 1),
        judged("0001", "reference", "The mill shut on Monday.", 1, 1, 1),
        judged("0001", "seq2seq", "Mill mill.", -1),
        judged("0002", "seq2seq", "Rain.", None, 0.5, reference=None),
        judged("0003", "seq2seq", "Snow.", 1, 1),
        judged("0002", "pointer", "  ", 1, 1),
        judged("0001", "other", "Closed."),
    ]
    unusable = Unusable()
    rows = load_judgments(f"chaganty:{write(tmp_path, records, packed=packed)}", unusable)
    assert [(row.document_id, row.system) for row in rows] == [
        ("0001", "pointer"),
        ("0001", "ml"),
        ("0001", "ml+rl"),
    ]
    assert rows[0].scores == {"overall": pytest.approx(0.5 / 3), "grammar": 1.0, "redundancy": 0.0}
    assert rows[0].documents == ("The mill closed. Forty people left.",)
    assert rows[0].references == ("The mill shut.",)
    assert rows[1].summary == rows[2].summary == "It closed."
    assert unusable == {
        "a summary of fewer than 2 judges": 2,
        "no reference: neither a field 'reference' nor a record of system 'reference'": 1,
        "no article of this id in articles.jsonl": 1,
        "field 'text' is blank": 1,
    }
    assert "1 judged summaries were written by several systems alike: a row for each" in unusable.lines()


def test_the_judged_human_summary_stands_in_for_a_missing_reference(tmp_path: Path) -> None:
    records = [
        judged("0002", "seq2seq", "Rain.", None, 0.5, reference=""),
        judged("0002", "reference", "It rained.", 1, 1),
    ]
    unusable = Unusable()
    (row,) = load_judgments(f"chaganty:{write(tmp_path, records)}", unusable)
    assert row.references == ("It rained.",)
    assert row.scores["overall"] == 0.5
    assert unusable == {"a rating of 'overall' is missing or not a number": 1}


def test_a_folder_without_the_release(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(InputError, match=r"no articles\.jsonl in it, packed"):
        load_judgments(f"chaganty:{tmp_path / 'a'}")
    write(tmp_path / "b", [{"id": "0001", "system": "ml", "prompts": {}}], packed=False)
    with pytest.raises(InputError, match=r"no lqual\.jsonl whose records have 'input' and 'output' in it"):
        load_judgments(f"chaganty:{tmp_path / 'b'}")

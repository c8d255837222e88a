"""Commands on files as people have them: what is refused, what is counted, which exit code."""

import json
from pathlib import Path

import pytest
from tests_support import story

from negsample.cli import main
from negsample.errors import InputError
from negsample.eval.judgments import Unusable, load_judgments

HUMAN = {"a": 4.5, "b": 3, "c": 2, "d": 1.5}  # by system, less 0.1 for each document before


def judged() -> list[dict]:
    rows = []
    for number in range(4):
        document, summary = story(number)
        for place, (system, value) in enumerate(HUMAN.items()):
            texts = {"document": document, "summary": " ".join(summary.split()[: 9 - place])}
            rows.append({"doc_id": f"d{number}", "system": system, **texts, "coh": value - number / 10, "year": "2020"})
    return rows


def write(path: Path, rows: list[dict]) -> str:
    if path.suffix == ".csv":
        lines = [";".join(rows[0]), *(";".join(map(str, row.values())) for row in rows)]
        path.write_text("\r\n".join(lines) + "\r\n", encoding="utf-8")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def ends(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    told = capsys.readouterr()
    return int(end.value.code or 0), told.out, told.err


# --- score


def test_scores_of_the_users_own_are_told_or_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"document": "a b c", "summary": "a", "score": 0.9, "reason": "mine"}, {"document": "a", "summary": "a b"}]
    source, out = write(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    code, shown, _ = ends(capsys, "score", "--metric", "words", source, "-o", str(out))
    assert code == 0
    assert f"{source}: 1 records had their own 'score', replaced; keep it with --output-field" in shown
    assert f"{source}: 1 records had their own 'reason', replaced; keep it with --output-field" in shown
    assert [json.loads(line).get("score") for line in out.read_text().splitlines()] == [1.0, 2.0]
    kept = tmp_path / "kept.jsonl"
    code, shown, _ = ends(capsys, "score", "--metric", "words", source, "-o", str(kept), "--output-field", "length")
    assert (code, "replaced" in shown) == (0, False)
    assert [json.loads(line) for line in kept.read_text().splitlines()] == [
        {**rows[0], "length": 1.0},
        {**rows[1], "length": 2.0},
    ]
    code, _, err = ends(capsys, "score", "--metric", "words", source, "-o", "x.csv", "--output-field", "summary")
    assert (code, "--output-field 'summary': give a name of its own" in err) == (2, True)


def test_a_reason_goes_by_the_name_of_its_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"document": "a b", "summary": " ", "reason": "mine"}, {"document": "a b", "summary": "a", "reason": ""}]
    source, out = write(tmp_path / "in.jsonl", rows), tmp_path / "out.csv"
    more = ["--output-field", "n", "--on-bad", "skip"]
    assert ends(capsys, "score", "--metric", "words", source, "-o", str(out), *more)[0] == 0
    assert out.read_text().splitlines() == [
        "document,summary,reason,n,n_reason",
        f"a b, ,mine,,\"{source}, line 1: field 'summary' is blank\"",
        "a b,a,,1.0,",
    ]


def test_where_nothing_could_be_scored_the_exit_code_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "in.jsonl", [{"text": "a", "sum": "b"}] * 3)
    code, _, err = ends(
        capsys, "score", "--metric", "words", source, "-o", str(tmp_path / "o.jsonl"), "--on-bad", "skip"
    )
    assert (code, "not one record could be scored" in err) == (2, True)
    # What there is in place of the field is said where it stops.
    code, _, err = ends(capsys, "score", "--metric", "words", source, "-o", str(tmp_path / "p.jsonl"))
    assert (code, "it has: 'text', 'sum'" in err, "--on-bad skip" in err) == (2, True, True)
    rows = judged()
    path = write(tmp_path / "judged.jsonl", rows)
    code, _, err = ends(capsys, "correlate", "--judgments", path, "--out", str(tmp_path / "c"), "--scores", f"x={path}")
    assert (code, "no usable score" in err) == (2, True)
    for row in rows:
        row["document"] = row["summary"] = "...!!!"
    code, _, err = ends(
        capsys, "correlate", "--judgments", write(tmp_path / "none.jsonl", rows), "--out", str(tmp_path / "d"),
        "--metric", "novelty2",
    )  # fmt: skip
    assert (code, "not one judged summary could be scored: novelty2: 16 × " in err) == (2, True)
    assert not (tmp_path / "d").exists()


# --- judgments


@pytest.mark.parametrize("name", ["j.jsonl", "j.csv"])
def test_flat_judgments(tmp_path: Path, name: str) -> None:
    rows = judged()
    rows[3]["coh"] = ""
    rows[7]["coh"] = "n/a"
    path = write(tmp_path / name, rows)
    unusable = Unusable()
    found = load_judgments(path, unusable)
    assert (sorted({score for row in found for score in row.scores}), len(found)) == (["coh", "year"], 16)
    assert unusable.told == ["human scores are the fields with numbers: coh, year (--scores-columns names others)"]
    assert dict(unusable) == {"score 'coh' is not a finite number": 1}
    unusable = Unusable()
    assert len(load_judgments(path, unusable, ["coh"])) == 14
    assert dict(unusable) == {"no usable human score": 2, "score 'coh' is not a finite number": 1}
    with pytest.raises(InputError, match=r"--scores-columns cohh: .*did you mean coh\?"):
        load_judgments(path, columns=["cohh"])


def test_lists_of_summaries_are_told_for_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    record = {"text": "Cats.", "machine_summaries": ["a", "b"], "relevance": [1.0, 2.0], "id": "d"}
    with pytest.raises(
        InputError, match=r"the fields machine_summaries, relevance are lists .*write one record a summary"
    ):
        load_judgments(write(path, [record]))


def test_one_id_with_two_texts_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = judged()
    rows[5]["document"] = "Another text."
    rows[6]["document"] = rows[6]["document"].upper()  # the same to a reader
    rows.append(rows[0])  # the same document and system again
    path = write(tmp_path / "j.jsonl", rows)
    words = ["--judgments", path, "--out", str(tmp_path / "o"), "--scores-columns", "coh", "--metric", "words"]
    code, shown, err = ends(capsys, "correlate", *words, "--bootstrap", "0")
    assert code == 0, err
    found = json.loads((tmp_path / "o" / "agreement.json").read_text())
    data = found["datasets"][0]
    assert data["summaries"] == 15
    assert sorted(line.split(" (")[0] for line in data["missing_judgments"]) == [
        "1 × the document has another text than in an earlier row of its id",
        "1 × the same document and system again",
    ]
    # System b has no row on d1 now.
    (note,) = [note for note in found["notes"] if "system level" in note]
    assert note.startswith("j: system level: 1 of 4 systems lack documents that others have")
    assert note in " ".join(shown.split())
    assert {figure["uneven"] for figure in data["figures"] if figure["level"] == "system"} == {1}


def test_data_sets_in_one_file_may_have_the_same_ids(tmp_path: Path) -> None:
    rows = [{**row, "dataset": "one"} for row in judged()]
    rows += [{**row, "dataset": "two", "document": "Other: " + row["document"]} for row in judged()]
    unusable = Unusable()
    found = load_judgments(write(tmp_path / "j.jsonl", rows), unusable, ["coh"])
    assert [row.dataset for row in found] == ["one"] * 16 + ["two"] * 16
    assert not unusable

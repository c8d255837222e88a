"""Commands on files as people have them: what is refused, what is counted, which exit code; metrics and corpora."""

import json
from pathlib import Path

import pytest
from tests_support import story

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


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# --- score


def test_scores_of_the_users_own_are_told_or_kept(negsample, tmp_path: Path) -> None:
    rows = [{"document": "a b c", "summary": "a", "score": 0.9, "reason": "mine"}, {"document": "a", "summary": "a b"}]
    source, out = write(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    shown = negsample("score", "--metric", "words", source, "-o", out).stdout
    for name in ("score", "reason"):
        assert f"{source}: 1 records had their own {name!r}, replaced; keep it with --output-field" in shown
    assert [row.get("score") for row in read(out)] == [1.0, 2.0]
    shown = negsample("score", "--metric", "words", source, "-o", out, "--output-field", "length").stdout
    assert "replaced" not in shown
    assert read(out) == [{**rows[0], "length": 1.0}, {**rows[1], "length": 2.0}]


def test_a_reason_goes_by_the_name_of_its_score(negsample, tmp_path: Path) -> None:
    rows = [{"document": "a b", "summary": " ", "reason": "mine"}, {"document": "a b", "summary": "a", "reason": ""}]
    source, out = write(tmp_path / "in.jsonl", rows), tmp_path / "out.csv"
    negsample("score", "--metric", "words", source, "-o", out, "--output-field", "n", "--on-bad", "skip")
    assert out.read_text().splitlines() == [
        "document,summary,reason,n,n_reason",
        f"a b, ,mine,,\"{source}, line 1: field 'summary' is blank\"",
        "a b,a,,1.0,",
    ]


def test_where_nothing_could_be_scored_the_exit_code_says_so(negsample, tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", [{"text": "a", "sum": "b"}] * 3)
    score = ("score", "--metric", "words", source, "-o", tmp_path / "o.jsonl")
    assert "not one record could be scored" in negsample(*score, "--on-bad", "skip", check=2).stderr
    best = ("select", "--metric", "words", source, "-o", tmp_path / "best.jsonl", "--on-bad", "skip")
    assert "can be used (skipped 3 records: 3 no field 'document')" in negsample(*best, check=2).stderr
    assert not (tmp_path / "best.jsonl").exists()
    # What there is in place of the field is said where it stops.
    told = negsample(*score, check=2).stderr
    assert ("it has: 'text', 'sum'" in told, "--on-bad skip" in told) == (True, True)
    rows = judged()
    path = write(tmp_path / "judged.jsonl", rows)
    correlate = ("correlate", "--out", tmp_path / "c", "--judgments")
    assert "no usable score" in negsample(*correlate, path, "--scores", f"x={path}", check=2).stderr
    for row in rows:
        row["document"] = row["summary"] = "...!!!"
    none = write(tmp_path / "none.jsonl", rows)
    told = negsample(*correlate, none, "--metric", "novelty2", check=2).stderr
    assert "not one judged summary could be scored: novelty2: 16 × " in told
    assert not (tmp_path / "c").exists()


RECORDS = [
    {"document": "The cat sat on the mat.", "summary": "the cat", "references": ["a cat sat", "the cat"]},
    {"summary": "dogs ran", "references": ["dogs run"]},
    {"document": "Birds sing. They sing well.", "summary": "birds sing"},
]


def test_a_metric_reads_references_where_there_are_any(negsample, tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", RECORDS)
    score = ("score", "in.jsonl", "-o", "out.jsonl", "--metric")
    done = negsample(*score, "rouge1(value=recall)", cwd=tmp_path)
    # The reference "the cat" is recalled whole; one of two words of "dogs run"; two of five of the document.
    assert [row["score"] for row in read(tmp_path / "out.jsonl")] == pytest.approx([1.0, 0.5, 0.4])
    assert "metric:rouge1" in done.stdout
    against = negsample(*score, "rouge1(value=recall,against=document)", cwd=tmp_path, check=2)
    assert "in.jsonl, line 2" in against.stderr
    for name, lines in {"s": "a b c\nd e f\n", "r": "a b\nd\n", "t": "a b\nx\n"}.items():
        (tmp_path / name).write_text(lines)
    texts = ("-s", "s", "-r", "r", "-t", "t")
    assert "mean 0.5000" in negsample("score", "--metric", "rouge1(value=recall)", *texts, cwd=tmp_path).stdout


def test_undefined_scores_are_null_with_a_reason(negsample, tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", [RECORDS[0], {"document": "the of and", "summary": "cats"}])
    done = negsample("score", "--metric", "tf-recall", "in.jsonl", "-o", "out.jsonl", cwd=tmp_path)
    assert "1 records without a score" in done.stdout
    first, second = read(tmp_path / "out.jsonl")
    # Content words cat, sat, mat: one of three is in the summary.
    assert first["score"] == pytest.approx(1 / 3)
    assert (second["score"], bool(second["reason"])) == (None, True)


def test_corpus_distance_and_map(negsample, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("The cat sat.\nDogs run far.\nBirds sing.\n")
    (tmp_path / "c.txt").write_text("Interest rates rose.\nThe bank closed.\nBonds fell.\n")
    options = ["--metric", "fed(encoder=glove(unit=sentence))", "--json", "found.json"]
    negsample("corpus", *options, "a.txt", "b.txt", cwd=tmp_path)
    same = json.loads((tmp_path / "found.json").read_text())
    assert same["value"] == pytest.approx(0, abs=1e-6)
    assert (same["generated"], same["higher_is_better"]) == (3, False)
    more = ["--map", "map.svg", "--encoder", "glove(unit=sentence)"]
    negsample("corpus", *options, "a.txt", "c.txt", *more, cwd=tmp_path)
    assert json.loads((tmp_path / "found.json").read_text())["value"] > 1
    assert (tmp_path / "map.svg").read_text().lstrip().startswith("<?xml")


# --- judgments


@pytest.mark.parametrize("name", ["j.jsonl", "j.csv"])
def test_flat_judgments(tmp_path: Path, name: str) -> None:
    rows = judged()
    rows[3]["coh"] = ""
    rows[7]["coh"], rows[11]["coh"] = "n/a", -1e31
    path = write(tmp_path / name, rows)
    unusable = Unusable()
    found = load_judgments(path, unusable)
    assert (sorted({score for row in found for score in row.scores}), len(found)) == (["coh", "year"], 16)
    assert unusable.told == ["human scores are the fields with numbers: coh, year (--scores-columns names others)"]
    assert dict(unusable) == {"score 'coh' is not a finite number": 2}
    unusable = Unusable()
    assert len(load_judgments(path, unusable, ["coh"])) == 13
    assert dict(unusable) == {"no usable human score": 3, "score 'coh' is not a finite number": 2}
    with pytest.raises(InputError, match=r"--scores-columns cohh: .*did you mean coh\?"):
        load_judgments(path, columns=["cohh"])


def test_judgments_that_name_neither_document_nor_system(tmp_path: Path) -> None:
    rows = [{name: value for name, value in row.items() if name not in ("doc_id", "system")} for row in judged()]
    unusable = Unusable()
    found = load_judgments(write(tmp_path / "j.jsonl", [*rows, rows[0]]), unusable, ["coh"])
    assert [row.scores["coh"] for row in found] == [row["coh"] for row in rows]
    assert [row.document_id for row in found[::4]] == list(dict.fromkeys(row.document_id for row in found))
    assert {row.system for row in found} == {""}
    assert unusable.told == ["no row has a 'document_id': those of one text are of one document"]
    assert dict(unusable) == {"the same document and summary again (the first row is kept)": 1}
    # Where some have it, the others lack it.
    rows[0]["system"], unusable = "a", Unusable()
    assert len(load_judgments(write(tmp_path / "j.jsonl", rows), unusable, ["coh"])) == 1
    assert dict(unusable) == {"no field 'system'": 15}


def test_lists_of_summaries_are_told_for_what_they_are(tmp_path: Path) -> None:
    record = {"text": "Cats.", "machine_summaries": ["a", "b"], "relevance": [1.0, 2.0], "id": "d"}
    told = r"the fields machine_summaries, relevance are lists .*write one record a summary"
    with pytest.raises(InputError, match=told):
        load_judgments(write(tmp_path / "s.jsonl", [record]))


def test_one_id_with_two_texts_is_counted(negsample, tmp_path: Path) -> None:
    rows = judged()
    rows[5]["document"] = "Another text."
    rows[6]["document"] = rows[6]["document"].upper()  # the same to a reader
    rows.append(rows[0])  # the same document and system again
    words = ["--judgments", write(tmp_path / "j.jsonl", rows), "--out", tmp_path / "o", "--scores-columns", "coh"]
    shown = negsample("correlate", *words, "--metric", "words", "--bootstrap", "0").stdout
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

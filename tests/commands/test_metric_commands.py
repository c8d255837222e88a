"""Metrics from the command line: pair metrics with references, corpus metrics, the map."""

import json

import pytest

RECORDS = [
    {"document": "The cat sat on the mat.", "summary": "the cat", "references": ["a cat sat", "the cat"]},
    {"summary": "dogs ran", "references": ["dogs run"]},
    {"document": "Birds sing. They sing well.", "summary": "birds sing"},
]


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_metric_reads_references_where_there_are_any(negsample, tmp_path):
    write(tmp_path / "in.jsonl", RECORDS)
    done = negsample("score", "--metric", "rouge1(value=recall)", "in.jsonl", "-o", "out.jsonl", cwd=tmp_path)
    scores = [json.loads(line)["score"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    # The reference "the cat" is recalled whole; one of two words of "dogs run"; two of five of the document.
    assert scores == pytest.approx([1.0, 0.5, 0.4])
    assert "metric:rouge1" in done.stdout
    against = negsample(
        "score", "--metric", "rouge1(value=recall,against=document)", "in.jsonl", "-o", "-", cwd=tmp_path, check=2
    )
    assert "in.jsonl, line 2" in against.stderr


def test_undefined_scores_are_null_with_a_reason(negsample, tmp_path):
    write(tmp_path / "in.jsonl", [RECORDS[0], {"document": "the of and", "summary": "cats"}])
    done = negsample("score", "--metric", "tf-recall", "in.jsonl", "-o", "out.jsonl", cwd=tmp_path)
    assert "1 records without a score" in done.stdout
    first, second = (json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines())
    # Content words cat, sat, mat: one of three is in the summary.
    assert first["score"] == pytest.approx(1 / 3)
    assert second["score"] is None
    assert second["reason"]


def test_text_files_with_references(negsample, tmp_path):
    for name, lines in {"s": "a b c\nd e f\n", "r": "a b\nd\n", "t": "a b\nx\n"}.items():
        (tmp_path / name).write_text(lines)
    done = negsample("score", "--metric", "rouge1(value=recall)", "-s", "s", "-r", "r", "-t", "t", cwd=tmp_path)
    assert "mean 0.5000" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["score", "--model", "m", "--metric", "words", "in.jsonl", "-o", "-"], "one of them"),
        (["score", "--metric", "rogue1", "in.jsonl", "-o", "-"], "rouge1"),
        (["score", "--metric", "words", "--aspects", "in.jsonl", "-o", "-"], "--aspects"),
        (["corpus", "--metric", "wms", "in.jsonl", "in.jsonl"], "score --metric wms"),
        (["corpus", "in.jsonl", "in.jsonl", "--map", "m.gif"], ".svg or .png"),
        (["corpus", "in.jsonl", "in.jsonl", "--encoder", "glove"], "is for the map; give --map FILE"),
        # What is to be written is looked at before what is to be read.
        (["corpus", "none.txt", "none.txt", "--json", "missing/f.json"], "missing/f.json: there is no folder"),
        (["corpus", "none.txt", "none.txt", "--map", "missing/m.svg"], "missing/m.svg: there is no folder"),
        (["corpus", "none.txt", "none.txt", "--map", "m.svg", "--encoder", "glov"], "did you mean glove"),
    ],
)
def test_wrong_arguments(negsample, tmp_path, arguments, told):
    write(tmp_path / "in.jsonl", RECORDS)
    done = negsample(*arguments, check=2, cwd=tmp_path)
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_corpus_distance_and_map(negsample, tmp_path):
    (tmp_path / "a.txt").write_text("The cat sat.\nDogs run far.\nBirds sing.\n")
    (tmp_path / "b.txt").write_text("The cat sat.\nDogs run far.\nBirds sing.\n")
    (tmp_path / "c.txt").write_text("Interest rates rose.\nThe bank closed.\nBonds fell.\n")
    options = ["--metric", "fed(encoder=glove(unit=sentence))"]
    negsample("corpus", *options, "a.txt", "b.txt", "--json", "same.json", cwd=tmp_path)
    same = json.loads((tmp_path / "same.json").read_text())
    assert same["value"] == pytest.approx(0, abs=1e-6)
    assert (same["generated"], same["higher_is_better"]) == (3, False)
    more = ["--json", "other.json", "--map", "map.svg", "--encoder", "glove(unit=sentence)"]
    negsample("corpus", *options, "a.txt", "c.txt", *more, cwd=tmp_path)
    assert json.loads((tmp_path / "other.json").read_text())["value"] > 1
    assert (tmp_path / "map.svg").read_text().lstrip().startswith("<?xml")

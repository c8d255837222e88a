"""Files as people have them: JSON arrays, quotes in TSV, other delimiters and encodings, folders of ``save_to_disk``."""

import gzip
import json
from pathlib import Path

import pytest

from negsample.corpora import CorpusOptions, load_pairs
from negsample.errors import InputError, RecordError
from negsample.io import csv_rows
from negsample.io.lines import open_text
from negsample.io.read import Row, read_rows, text_field, texts_field

RECORDS = [{"document": "Cats sleep.", "summary": "Cats."}, {"document": "Dogs [run], {fast}.", "summary": "Dogs."}]


@pytest.fixture(autouse=True)
def nothing_told() -> None:
    csv_rows._tell.cache_clear()


def write(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def fields(path: Path) -> list[dict]:
    return [row.fields for row in read_rows(path)]


# --- JSON


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.json.gz"])
def test_an_array_of_objects(tmp_path: Path, name: str, indent: int | None) -> None:
    data = b"\xef\xbb\xbf\r\n " + json.dumps(RECORDS, indent=indent).encode() + b"\r\n"
    path = write(tmp_path / name, gzip.compress(data) if name.endswith("gz") else data)
    rows = list(read_rows(path))
    assert [row.fields for row in rows] == RECORDS
    assert [row.where for row in rows] == [f"{path}, record 1", f"{path}, record 2"]


def test_indented_objects_one_after_another(tmp_path: Path) -> None:
    assert fields(write(tmp_path / "a.json", "\n".join(json.dumps(r, indent=1) for r in RECORDS))) == RECORDS
    assert fields(write(tmp_path / "b.json", json.dumps(RECORDS[0], indent=1))) == RECORDS[:1]


def test_what_is_wrong_in_an_array_is_said_with_its_place(tmp_path: Path) -> None:
    good, number = read_rows(write(tmp_path / "a.json", '[{"a": "x"}, 3]'))
    assert good.fields == {"a": "x"}
    with pytest.raises(RecordError, match=r"record 2: not a JSON object \(a number\)"):
        text_field(number, "a")
    with pytest.raises(InputError, match=r"b\.json: not JSON \(Expecting ',' delimiter at line 3\)"):
        fields(write(tmp_path / "b.json", '\n[{"a": 1}\n{"a": 2}]'))
    with pytest.raises(InputError, match="no records"):
        fields(write(tmp_path / "c.json", "[]"))


# --- TSV


def told(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "cells",
    [
        ['"Stop" she cried.', '"Open', "Fine.", 'said "bye.'],  # nothing pairs up
        ["First.", '"Open', "Fine.", 'said bye".', "Fifth."],  # a quote closes in the middle of a cell
        ['"Whole."', '"Half', "x", 'a ""doubled"" one'],  # never closes
        ['5" nails', '"', "x"],
        ["One.", '"Two.', "Three.", 'Four."', "Five."],  # whole rows in quotes that are none
    ],
)
def test_tsv_whose_quotes_enclose_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str], cells: list[str]) -> None:
    data = "id\tdocument\tsummary\n" + "".join(f"{i}\t{cell}\tShort.\n" for i, cell in enumerate(cells))
    path = write(tmp_path / "a.tsv", data)
    assert [row["document"] for row in fields(path)] == cells
    assert fields(path)  # told once, however often it is read
    assert told(capsys) == f"note: {path}: its quotes don't enclose cells, so that each line is read as one record\n"


def test_tsv_that_is_quoted_stays_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = 'id\tdocument\n1\t"two\nlines"\n2\t"a\tb"\n3\tsaid "no"\n'
    assert [row["document"] for row in fields(write(tmp_path / "a.tsv", data))] == ["two\nlines", "a\tb", 'said "no"']
    # One broken record among cells of several lines is an error of its own, with the lines that it takes.
    data = 'id\tdocument\n1\t"two\nlines\nmore"\n2\t"open\nand" shut\n3\tx\n'
    one, broken, three = read_rows(write(tmp_path / "b.tsv", data))
    assert (one.fields["document"], three.fields["document"]) == ("two\nlines\nmore", "x")
    assert broken.error is not None
    assert broken.where.endswith("line 5")
    assert "lines 5 to 6" in broken.error.reason
    assert told(capsys) == ""


# --- delimiters and encodings


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", 'document;summary\r\n"Cats; 3,5 of them";Cats.\r\n'),
        ("a.csv", 'sep=;\r\ndocument;summary\r\n"Cats; 3,5 of them";Cats.\r\n'),
        ("a.csv", "document\tsummary\nCats; 3,5 of them\tCats.\n"),
        ("a.tsv", 'document,summary\n"Cats; 3,5 of them",Cats.\n'),
        ("a.csv", '\n\ndocument|summary\n"Cats; 3,5 of them"|Cats.'),
    ],
)
def test_delimiters_are_told_from_the_header(tmp_path: Path, name: str, data: str) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"):
        path = write(tmp_path / name, data.encode(encoding))
        assert fields(path) == [{"document": "Cats; 3,5 of them", "summary": "Cats."}]


def test_a_header_of_one_field_is_left_alone(tmp_path: Path) -> None:
    assert fields(write(tmp_path / "a.csv", "summary\nCats; dogs\n")) == [{"summary": "Cats; dogs"}]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf16_json_and_text(tmp_path: Path, encoding: str) -> None:
    record = {"document": "Zoë ate\u2028😀", "summary": "Zoë."}
    line = json.dumps(record, ensure_ascii=False) + "\r\n"
    assert fields(write(tmp_path / "a.jsonl", (line * 2).encode(encoding))) == [record, record]
    assert fields(write(tmp_path / "b.jsonl.gz", gzip.compress(line.encode(encoding)))) == [record]
    assert list(open_text(write(tmp_path / "c.txt", "Zoë\nate\n".encode(encoding)))) == ["Zoë", "ate"]
    long = "x" * 200_000
    assert list(open_text(write(tmp_path / "d.txt", long.encode(encoding)))) == [long]
    with pytest.raises(InputError, match="not sound UTF-16"):
        fields(write(tmp_path / "e.jsonl", line.encode(encoding)[:-1]))


def test_latin1_is_one_line(tmp_path: Path) -> None:
    (row,) = read_rows(write(tmp_path / "a.csv", "document;summary\nCaf\xe9;x\n".encode("latin-1")))
    with pytest.raises(RecordError, match="line 2: field 'document' is not UTF-8; save the file as UTF-8"):
        text_field(row, "document")


# --- lists of texts


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"references": ["a", "b"]}, ["a", "b"]),
        ({"references": '["a", "b"]'}, ["a", "b"]),
        ({"references": "[sic] a"}, ["[sic] a"]),
        ({"references": [], "reference": "a"}, ["a"]),
        ({"references": None}, []),
        ({"references": ""}, []),
        ({}, []),
    ],
)
def test_texts(record: dict, expected: list[str]) -> None:
    assert texts_field(Row("f", record), "references", "reference") == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (["", "a"], "'references: text 1' is blank"),
        (["a", "\u200b"], "'references: text 2' is blank"),
        (["a", None], r"'references: text 2' is not text \(null\)"),
        ({"a": "b"}, r"'references' is not a list of texts \(an object\)"),
        ("  ", "'references: text 1' is blank"),
        (["a\ud800"], "'references: text 1' has a lone surrogate"),
    ],
)
def test_texts_that_are_refused_by_place(value: object, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        texts_field(Row("f, line 2", {"references": value}), "references")


# --- save_to_disk


def test_saved_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import Dataset, DatasetDict

    one = Dataset.from_list(RECORDS)
    one.save_to_disk(tmp_path / "one")
    DatasetDict({"test": one, "train": one.select([1])}).save_to_disk(tmp_path / "two")
    DatasetDict({"train": one}).save_to_disk(tmp_path / "data" / "single")
    monkeypatch.chdir(tmp_path)
    for folder in ("one", "./one/", "data/single", str(tmp_path / "two" / "test")):
        assert [row.fields for row in read_rows(folder)] == RECORDS
        assert [pair.summary for pair in load_pairs(folder)] == ["Cats.", "Dogs."]
    assert [row.where for row in read_rows("one")] == ["one, record 1", "one, record 2"]
    assert [pair.summary for pair in load_pairs("two")] == ["Dogs.", "Cats.", "Dogs."]  # train, then test
    assert [pair.summary for pair in load_pairs("two", CorpusOptions(split="train"))] == ["Dogs."]
    with pytest.raises(InputError, match=r"two: holds 2 splits; name one of two/test, two/train"):
        list(read_rows("two"))
    with pytest.raises(InputError, match="no split 'tests'; did you mean test"):
        list(load_pairs("two", CorpusOptions(split="tests")))
    (tmp_path / "one" / "state.json").write_text("{")
    with pytest.raises(InputError, match="one: can't be read as a folder of save_to_disk"):
        list(read_rows("one"))

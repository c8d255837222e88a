"""Reading records: every format, files as people have them, every kind of damage, flat memory. Values are by hand."""

import gzip
import io
import json
import os
import threading
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from negsample.corpora import CorpusOptions, load_pairs
from negsample.errors import InputError, RecordError
from negsample.io import csv_rows
from negsample.io.files import format_of
from negsample.io.lines import open_text
from negsample.io.read import number_field, read_rows, text_field, texts_field
from negsample.records import Row

RECORDS = [{"document": "Cats sleep.", "summary": "Cats."}, {"document": "Dogs [run], {fast}.", "summary": "Dogs."}]


@pytest.fixture(autouse=True)
def nothing_told() -> None:
    csv_rows._tell.cache_clear()


def write(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def fields(path: Path) -> list[dict]:
    return [row.fields for row in read_rows(path)]


def test_format_from_name() -> None:
    names = ["a.jsonl", "dir.csv/a.JSONL.GZ", "a.json", "-", "a.csv.gz", "a.tsv.gz", "a.parquet"]
    assert [format_of(name) for name in names] == [*["jsonl"] * 4, "csv", "tsv", "parquet"]
    for name in ("a.txt", "jsonl", "a.jsonl.bz2", "a.parquet.gz", "folder.csv/a"):
        with pytest.raises(InputError, match=r"\.jsonl\[\.gz\].*\.parquet"):
            format_of(name)


def test_the_word_sample_is_a_name_of_any_input_unless_a_file_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(list(read_rows("sample"))) == 80
    write(tmp_path / "sample", "mine")
    with pytest.raises(InputError, match="known endings"):
        read_rows("sample")


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        *((name, b"", "no records") for name in ("a.jsonl", "a.csv", "a.tsv", "a.parquet")),
        ("a.jsonl.gz", gzip.compress(b"", mtime=0), "no records"),
        ("a.jsonl", b"\n \n\r\n", "no records"),
        ("a.json", b"[]", "no records"),
        ("a.csv", b"document,summary\n", "no records"),
        ("a.csv", b"a,b,a\n1,2,3\n", "'a' more than once"),
        ("a.csv", b"a,\xff\n1,2\n", "the header is not UTF-8"),
        ("a.csv", b'a,b\n1,2\n3,"open\n5,6\n', "line 3: a quoted field begins here and never ends"),
        ("a.json", b'\n[{"a": 1}\n{"a": 2}]', r"not JSON \(Expecting ',' delimiter at line 3\)"),
        ("a.json", b'[{"a": "\xff"}]', "not UTF-8"),
        ("a.jsonl.gz", b'{"a": "1"}\n', "not a sound gzip"),
        ("a.parquet", b"not parquet at all", "not a sound Parquet file"),
    ],
)
def test_a_file_that_is_wrong_as_a_whole(tmp_path: Path, name: str, data: bytes, told: str) -> None:
    with pytest.raises(InputError, match=rf"{name}.*{told}") as caught:
        list(read_rows(write(tmp_path / name, data)))
    assert "\n" not in str(caught.value)


def test_damage_in_the_middle(tmp_path: Path) -> None:
    whole = gzip.compress("".join(json.dumps({"a": f"{i * i}"}) + "\n" for i in range(3000)).encode())
    spoilt = bytearray(whole)
    spoilt[len(whole) // 2] ^= 0xFF
    pq.write_table(pa.table({"a": ["x" * 50] * 100}), tmp_path / "t.parquet")
    table = (tmp_path / "t.parquet").read_bytes()
    for name, data, told in [
        ("a.jsonl.gz", whole[: len(whole) // 2], "cut short"),
        ("b.csv.gz", whole[:-6], "cut short"),
        ("c.jsonl.gz", bytes(spoilt), "gzip"),
        ("d.parquet", table[:-20], "not a sound Parquet"),
        ("e.parquet", table[20:], "not a sound Parquet"),
    ]:
        with pytest.raises(InputError, match=f"{name}.*{told}"):
            list(read_rows(write(tmp_path / name, data)))


def test_missing_file_and_folder_are_refused_at_the_call(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file"):
        read_rows(tmp_path / "a.jsonl")
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        read_rows(tmp_path / "b.csv")
    with pytest.raises(InputError, match="Parquet can't be read"):
        read_rows("-", "parquet")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(b'{"a": "1"}\n\n{"a": "2"}\n')))
    monkeypatch.setattr("sys.stdin", stdin)
    assert [(row.where, row.fields) for row in read_rows("-")] == [
        ("standard input, line 1", {"a": "1"}),
        ("standard input, line 3", {"a": "2"}),
    ]
    assert not stdin.buffer.closed


def test_pipes_are_read_once(tmp_path: Path) -> None:
    for name, data in (
        ("a.tsv", 'document\tsummary\n"Cats\tsleep\n'),
        ("b", '{"document": "\\"Cats", "summary": "sleep"}'),
    ):
        pipe = tmp_path / name
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_text, args=(data,))
        writer.start()
        if name == "a.tsv":  # whether its quotes are letters can't be told beforehand
            with pytest.raises(InputError, match="never ends"):
                fields(pipe)
        else:
            assert [(p.document, p.summary) for p in load_pairs(str(pipe))] == [('"Cats', "sleep")]
        writer.join()
    os.mkfifo(tmp_path / "c.parquet")
    with pytest.raises(InputError, match="Parquet can't be read from a pipe"):
        read_rows(tmp_path / "c.parquet")


# --- JSON


def test_json_lines_bom_crlf_blank_lines_and_places(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '\ufeff{"a": "x\u2028y\x85z"}\r\n\r\n  \n{"a": "é😀"}')
    rows = list(read_rows(path))
    assert [row.fields for row in rows] == [{"a": "x\u2028y\x85z"}, {"a": "é😀"}]
    assert [row.where for row in rows] == [f"{path}, line 1", f"{path}, line 4"]
    assert fields(write(tmp_path / "b.jsonl", gzip.compress(b'{"a": "1"}\n'))) == [{"a": "1"}]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{'a': 1}", "not JSON"),
        (b'{"a": 1', "not JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"a": ' + b"1" * 5000 + b"}", "too long"),
        (b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested too deeply"),
    ],
)
def test_a_broken_line_is_an_error_of_its_own_record(tmp_path: Path, line: bytes, reason: str) -> None:
    path = write(tmp_path / "a.jsonl", b'{"a": "1"}\n' + line + b'\n{"a": "3"}\n')
    first, broken, last = read_rows(path)
    assert (first.fields, broken.fields, last.fields) == ({"a": "1"}, {}, {"a": "3"})
    with pytest.raises(RecordError, match=rf"a\.jsonl, line 2: .*{reason}"):
        text_field(broken, "a")


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.json.gz"])
def test_an_array_of_objects(tmp_path: Path, name: str, indent: int | None) -> None:
    data = b"\xef\xbb\xbf\r\n " + json.dumps(RECORDS, indent=indent).encode() + b"\r\n"
    path = write(tmp_path / name, gzip.compress(data) if name.endswith("gz") else data)
    assert [(row.where, row.fields) for row in read_rows(path)] == [
        (f"{path}, record {number}", record) for number, record in enumerate(RECORDS, 1)
    ]


def test_indented_objects_and_what_is_none_in_an_array(tmp_path: Path) -> None:
    assert fields(write(tmp_path / "a.json", "\n".join(json.dumps(r, indent=1) for r in RECORDS))) == RECORDS
    good, number = read_rows(write(tmp_path / "b.json", '[{"a": "x"}, 3]'))
    assert good.fields == {"a": "x"}
    with pytest.raises(RecordError, match=r"record 2: not a JSON object \(a number\)"):
        text_field(number, "a")


def test_surrogates_and_nan_in_json(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b'{"a": "\\ud83d\\ude00"}\n{"a": "\\ud83d"}\n{"a": NaN}\n')
    good, lone, number = read_rows(path)
    assert text_field(good, "a") == "😀"
    with pytest.raises(RecordError, match="lone surrogate"):
        text_field(lone, "a")
    with pytest.raises(RecordError, match="line 3: field 'a' is not a finite number"):
        number_field(number, "a")


# --- CSV and TSV


def test_csv_quotes_newlines_bom_crlf_nul_and_places(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbfid,document\r\n1,"two\r\nlines, and ""quotes"""\r\n\r\n2,nul\x00here\r\n'
    path = write(tmp_path / "a.csv", data)
    assert [(row.where, row.fields) for row in read_rows(path)] == [
        (f"{path}, line 2", {"id": "1", "document": 'two\r\nlines, and "quotes"'}),
        (f"{path}, line 5", {"id": "2", "document": "nul\x00here"}),
    ]
    assert len(fields(write(tmp_path / "b.csv", b"a\n" + b"x" * 1_000_000 + b"\n"))[0]["a"]) == 1_000_000
    assert fields(write(tmp_path / "c.csv", b"a,b\r1,2\r3,4\r")) == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]


def test_csv_records_that_are_broken_on_their_own(tmp_path: Path) -> None:
    data = b'a,b\n1\n1,2,3\n"x"y,2\n\xff,2\n5,6\n'
    short, long, quotes, encoding, good = read_rows(write(tmp_path / "a.csv", data))
    assert short.fields == {"a": "1", "b": None}
    for row, reason in [(short, "cells"), (long, "cells"), (quotes, "not a CSV record"), (encoding, "not UTF-8")]:
        assert row.error is not None
        assert reason in row.error.reason
        assert set(row.fields) == {"a", "b"}
    assert (good.fields, good.error) == ({"a": "5", "b": "6"}, None)


@pytest.mark.parametrize(
    "cells",
    [
        ['"Stop" she cried.', '"Open', "Fine.", 'said "bye.'],  # nothing pairs up
        ["First.", '"Open', "Fine.", 'said bye".', "Fifth."],  # a quote closes in the middle of a cell
        ['"Whole."', '"Half', "x", 'a ""doubled"" one'],  # never closes
        ['5" nails', '"', "x"],
        ["One.", '"Two.', "Three.", 'Four."', "Five."],  # whole rows between two stray quotes
    ],
)
def test_tsv_whose_quotes_enclose_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str], cells: list[str]) -> None:
    data = "id\tdocument\tsummary\n" + "".join(f"{i}\t{cell}\tShort.\n" for i, cell in enumerate(cells))
    path = write(tmp_path / "a.tsv", data)
    assert [row["document"] for row in fields(path)] == cells
    assert fields(path)  # told once, however often it is read
    told = capsys.readouterr().err
    assert told == f"note: {path}: its quotes don't enclose cells, so that each line is read as one record\n"


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
    assert capsys.readouterr().err == ""


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
    assert fields(write(tmp_path / "one.csv", "summary\nCats; dogs\n")) == [{"summary": "Cats; dogs"}]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf16_json_and_text(tmp_path: Path, encoding: str) -> None:
    record = {"document": "Zoë ate\u2028😀", "summary": "Zoë."}
    line = json.dumps(record, ensure_ascii=False) + "\r\n"
    assert fields(write(tmp_path / "a.jsonl", (line * 2).encode(encoding))) == [record, record]
    assert fields(write(tmp_path / "b.jsonl.gz", gzip.compress(line.encode(encoding)))) == [record]
    long = "x" * 200_000
    assert list(open_text(write(tmp_path / "c.txt", f"Zoë\n{long}".encode(encoding)))) == ["Zoë", long]
    with pytest.raises(InputError, match="not sound UTF-16"):
        fields(write(tmp_path / "e.jsonl", line.encode(encoding)[:-1]))


# --- Parquet and folders of save_to_disk


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    records = [{"a": "x", "n": 1, "r": ["p"]}, {"a": None, "n": 2, "r": []}, {"a": "é", "n": 3, "r": ["q", "r"]}]
    pq.write_table(pa.Table.from_pylist(records), path)
    assert [(row.where, row.fields) for row in read_rows(path)] == [
        (f"{path}, row {number}", record) for number, record in enumerate(records, 1)
    ]


def test_parquet_text_that_is_not_utf8_spoils_its_own_row(tmp_path: Path) -> None:
    raw = pa.array([b"good", b"\xff\xfe", b"fine"]).cast(pa.binary())
    pq.write_table(pa.table({"a": pa.Array.from_buffers(pa.string(), 3, raw.buffers())}), tmp_path / "a.parquet")
    first, broken, last = read_rows(tmp_path / "a.parquet")
    assert (first.fields, last.fields) == ({"a": "good"}, {"a": "fine"})
    with pytest.raises(RecordError, match="row 2: field 'a' can't be read"):
        text_field(broken, "a")


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


# --- fields


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "blank"),
        (" \t\n\u00a0\u3000", "blank"),
        ("\x00\u200b\ufeff", "blank"),
        (None, "missing"),
        (float("nan"), "missing"),
        (3, r"not text \(a number\)"),
        (["a"], r"not text \(a list\)"),
        ({"a": 1}, r"not text \(an object\)"),
        (True, "not text"),
        (b"bytes", "not text"),
        ("a\ud800b", r"lone surrogate \(character 2\)"),
    ],
)
def test_text_that_is_refused(value: object, reason: str) -> None:
    with pytest.raises(RecordError, match=f"f, line 9: .*{reason}"):
        text_field(Row("f, line 9", {"summary": value}), "summary")


def test_text_is_taken_unchanged_and_a_missing_field_names_those_there_are() -> None:
    for value in ("x", " x ", "\x00a", "שלום עולם", "مرحبا", "👩‍👩‍👧", "w " * 100_000):
        assert text_field(Row("f", {"a": value}), "a") == value
    with pytest.raises(RecordError, match=r"no field 'document'; it has: 'text', 'sum'"):
        text_field(Row("f", {"text": "x", "sum": "y"}), "document")
    assert text_field(Row("f", {"text": "x"}), "document", other="text") == "x"
    with pytest.raises(RecordError, match=r"no field 'a' or 'b'"):
        text_field(Row("f", {"c": "x"}), "a", other="b")


def test_numbers() -> None:
    found = [number_field(Row("f", {"label": value}), "label") for value in (1, 0.5, "0.25", " 1e-3 ", "-2")]
    assert found == [1.0, 0.5, 0.25, 0.001, -2.0]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        *((value, "not a finite number") for value in (float("nan"), float("inf"), "nan", "-Infinity", 10**400)),
        *((value, "not a number") for value in ("", "1_000", "high", None, True, [1])),
    ],
)
def test_numbers_that_are_refused(value: object, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        number_field(Row("f, line 2", {"label": value}), "label")


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
        (["a", "\u200b"], "'references: text 2' is blank"),
        (["a", None], "'references: text 2' is missing"),
        ({"a": "b"}, r"'references' is not a list of texts \(an object\)"),
        (5, r"'references' is not a list of texts \(a number\)"),
        (["a\ud800"], "'references: text 1' has a lone surrogate"),
    ],
)
def test_texts_that_are_refused_by_place(value: Any, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        texts_field(Row("f, line 2", {"references": value}), "references")


# --- line-aligned text


def test_open_text_splits_at_line_feeds_only(tmp_path: Path) -> None:
    inner = "form\x0cfeed\u2028same\x85line\rhere"
    path = write(tmp_path / "a.txt", f"\ufefffirst\r\n\r\n{inner}\nlast")
    assert list(open_text(path)) == ["first", "", inner, "last"]
    assert list(open_text(write(tmp_path / "b.txt.gz", gzip.compress(b"one\n\n")))) == ["one", ""]
    with pytest.raises(InputError, match="no such file"):
        open_text(tmp_path / "missing.txt")
    for data, told in ((b"", "no lines"), (b"ok\n\xe9t\xe9\n", "line 2: not UTF-8")):
        with pytest.raises(InputError, match=told):
            list(open_text(write(tmp_path / "a.txt", data)))


# --- memory


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, kind: str) -> None:
    def peak(count: int) -> int:
        path = tmp_path / f"{count}.{kind}"
        texts = [f"{i} " + "word " * 40 for i in range(count)]
        if kind == "jsonl":
            path.write_text("".join(json.dumps({"a": text}) + "\n" for text in texts))
        elif kind == "csv":
            path.write_text("a\n" + "".join(text + "\n" for text in texts))
        else:
            pq.write_table(pa.table({"a": texts}), path, row_group_size=1000)
        del texts
        next(read_rows(path))  # imports and caches
        tracemalloc.start()
        assert sum(1 for _ in read_rows(path)) == count
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result

    # 18,000 more records hold over 4 MB of text; a reader that kept them would show it.
    assert peak(20_000) < peak(2_000) + 300_000

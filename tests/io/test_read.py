"""Reading records: every format, every kind of damage, flat memory. Expected values are written out by hand."""

import gzip
import io
import json
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from negsample.errors import InputError, RecordError
from negsample.io.files import format_of
from negsample.io.lines import open_text
from negsample.io.read import Row, number_field, read_rows, text_field


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def fields(path: Path) -> list[dict]:
    return [row.fields for row in read_rows(path)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.jsonl", "jsonl"),
        ("dir.csv/a.JSONL.GZ", "jsonl"),
        ("a.json", "jsonl"),
        ("a.csv", "csv"),
        ("a.csv.gz", "csv"),
        ("a.tsv.gz", "tsv"),
        ("a.parquet", "parquet"),
        ("-", "jsonl"),
    ],
)
def test_format_from_name(name: str, expected: str) -> None:
    assert format_of(name) == expected


@pytest.mark.parametrize("name", ["a.txt", "jsonl", "a.jsonl.bz2", "a.parquet.gz", "folder.csv/a"])
def test_unknown_ending_names_the_known_ones(name: str) -> None:
    with pytest.raises(InputError, match=r"\.jsonl\[\.gz\].*\.parquet"):
        format_of(name)


def test_json_lines_bom_crlf_blank_lines_and_places(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b'\xef\xbb\xbf{"a": "x"}\r\n\r\n  \n{"a": "\xc3\xa9\xf0\x9f\x98\x80"}')
    rows = list(read_rows(path))
    assert [row.fields for row in rows] == [{"a": "x"}, {"a": "é😀"}]
    assert [row.where for row in rows] == [f"{path}, line 1", f"{path}, line 4"]


def test_line_separators_inside_a_string_do_not_end_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"a": "x\u2028y\x85z"}\n'.encode())
    assert fields(path) == [{"a": "x\u2028y\x85z"}]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{'a': 1}", "not JSON"),
        (b'{"a": 1', "not JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"a": ' + b"1" * 5000 + b"}", "too long"),
        (b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested too deeply"),
    ],
)
def test_a_broken_line_is_an_error_of_its_own_record(tmp_path: Path, line: bytes, reason: str) -> None:
    path = write(tmp_path / "a.jsonl", b'{"a": "1"}\n' + line + b'\n{"a": "3"}\n')
    first, broken, last = read_rows(path)
    assert first.fields == {"a": "1"}
    assert last.fields == {"a": "3"}
    assert broken.fields == {}
    assert broken.error is not None
    assert broken.error.where == f"{path}, line 2"
    assert reason in broken.error.reason
    with pytest.raises(RecordError, match="line 2"):
        text_field(broken, "a")


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv", "a.tsv", "a.parquet"])
def test_empty_file(tmp_path: Path, name: str) -> None:
    data = gzip.compress(b"") if name.endswith(".gz") else b""
    with pytest.raises(InputError, match=f"{name}: no records"):
        list(read_rows(write(tmp_path / name, data)))


def test_files_with_nothing_but_blank_lines_or_a_header_are_empty(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no records"):
        list(read_rows(write(tmp_path / "a.jsonl", b"\n \n\r\n")))
    with pytest.raises(InputError, match="no records"):
        list(read_rows(write(tmp_path / "a.csv", b"document,summary\n")))


def test_missing_file_and_folder_are_refused_at_the_call(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file"):
        read_rows(tmp_path / "a.jsonl")
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        read_rows(tmp_path / "b.csv")


def test_truncated_and_damaged_gzip(tmp_path: Path) -> None:
    whole = gzip.compress("".join(json.dumps({"a": f"{i * i}"}) + "\n" for i in range(3000)).encode())
    with pytest.raises(InputError, match="cut short"):
        list(read_rows(write(tmp_path / "a.jsonl.gz", whole[: len(whole) // 2])))
    with pytest.raises(InputError, match="cut short"):
        list(read_rows(write(tmp_path / "b.csv.gz", whole[:-6])))
    spoilt = bytearray(whole)
    spoilt[len(whole) // 2] ^= 0xFF
    with pytest.raises(InputError, match="gzip"):
        list(read_rows(write(tmp_path / "c.jsonl.gz", bytes(spoilt))))
    with pytest.raises(InputError, match="not a sound gzip"):
        list(read_rows(write(tmp_path / "d.jsonl.gz", b'{"a": "1"}\n')))


def test_gzip_is_seen_without_its_ending(tmp_path: Path) -> None:
    assert fields(write(tmp_path / "a.jsonl", gzip.compress(b'{"a": "1"}\n'))) == [{"a": "1"}]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(b'{"a": "1"}\n\n{"a": "2"}\n')))
    monkeypatch.setattr("sys.stdin", stdin)
    rows = list(read_rows("-"))
    assert [(row.where, row.fields) for row in rows] == [
        ("standard input, line 1", {"a": "1"}),
        ("standard input, line 3", {"a": "2"}),
    ]
    with pytest.raises(InputError, match="Parquet can't be read"):
        read_rows("-", "parquet")


# --- CSV


def test_csv_quotes_newlines_bom_crlf_nul_and_places(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbfid,document\r\n1,"two\r\nlines, and ""quotes"""\r\n\r\n2,nul\x00here\r\n'
    path = write(tmp_path / "a.csv", data)
    rows = list(read_rows(path))
    assert [row.fields for row in rows] == [
        {"id": "1", "document": 'two\r\nlines, and "quotes"'},
        {"id": "2", "document": "nul\x00here"},
    ]
    assert [row.where for row in rows] == [f"{path}, line 2", f"{path}, line 5"]


def test_tsv(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", b'id\tdocument\n1\tsaid "no", twice\n2\t"a\tb"\n')
    assert fields(path) == [{"id": "1", "document": 'said "no", twice'}, {"id": "2", "document": "a\tb"}]


def test_csv_records_that_are_broken_on_their_own(tmp_path: Path) -> None:
    data = b'a,b\n1\n1,2,3\n"x"y,2\n\xff,2\n5,6\n'
    short, long, quotes, encoding, good = read_rows(write(tmp_path / "a.csv", data))
    assert short.fields == {"a": "1", "b": None}
    for row, reason in [(short, "cells"), (long, "cells"), (quotes, "not a CSV record"), (encoding, "not UTF-8")]:
        assert row.error is not None
        assert reason in row.error.reason
        assert set(row.fields) == {"a", "b"}
    assert (good.fields, good.error) == ({"a": "5", "b": "6"}, None)


def test_a_quote_that_never_closes_is_said_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", b'a,b\n1,2\n3,"open\n5,6\n')
    with pytest.raises(InputError, match=r"line 3: a quoted field begins here and never ends"):
        list(read_rows(path))


def test_csv_header_named_twice(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'a' more than once"):
        list(read_rows(write(tmp_path / "a.csv", b"a,b,a\n1,2,3\n")))


def test_csv_field_of_a_million_letters(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", b"a\n" + b"x" * 1_000_000 + b"\n")
    assert len(fields(path)[0]["a"]) == 1_000_000


# --- Parquet


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": ["x", None, "é"], "n": [1, 2, 3], "r": [["p"], [], ["q", "r"]]}), path)
    rows = list(read_rows(path))
    assert rows[0].where == f"{path}, row 1"
    assert [row.fields for row in rows] == [
        {"a": "x", "n": 1, "r": ["p"]},
        {"a": None, "n": 2, "r": []},
        {"a": "é", "n": 3, "r": ["q", "r"]},
    ]


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": ["x" * 50] * 100}), path)
    data = path.read_bytes()
    for broken in (data[:-20], data[20:], b"not parquet at all"):
        with pytest.raises(InputError, match=r"a\.parquet: not a sound Parquet file") as caught:
            list(read_rows(write(path, broken)))
        assert "\n" not in str(caught.value)


def test_parquet_text_that_is_not_utf8_spoils_its_own_row(tmp_path: Path) -> None:
    raw = pa.array([b"good", b"\xff\xfe", b"fine"]).cast(pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": text}), path)
    first, broken, last = read_rows(path)
    assert (first.fields, last.fields) == ({"a": "good"}, {"a": "fine"})
    with pytest.raises(RecordError, match="row 2: field 'a' can't be read"):
        text_field(broken, "a")


# --- fields


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "blank"),
        (" \t\n\u00a0\u3000", "blank"),
        ("\x00\x00", "blank"),
        ("\u200b\ufeff", "blank"),
        (None, r"not text \(null\)"),
        (3, r"not text \(a number\)"),
        (["a"], r"not text \(a list\)"),
        ({"a": 1}, r"not text \(an object\)"),
        (True, "not text"),
        (b"bytes", "not text"),
        ("a\ud800b", r"lone surrogate \(character 2\)"),
        ("\udc80", "lone surrogate"),
    ],
)
def test_text_that_is_refused(value: object, reason: str) -> None:
    with pytest.raises(RecordError, match=reason) as caught:
        text_field(Row("f, line 9", {"summary": value}), "summary")
    assert str(caught.value).startswith("f, line 9: ")


@pytest.mark.parametrize(
    "value", ["x", " x ", "\x00a", "שלום עולם", "مرحبا", "😀", "👩‍👩‍👧", "x" * 100_000, "w " * 100_000]
)
def test_text_that_is_taken_unchanged(value: str) -> None:
    assert text_field(Row("f", {"a": value}), "a") == value


def test_missing_field_names_those_there_are() -> None:
    with pytest.raises(RecordError, match=r"no field 'document'; it has: 'text', 'sum'"):
        text_field(Row("f", {"text": "x", "sum": "y"}), "document")
    assert text_field(Row("f", {"text": "x"}), "document", other="text") == "x"
    with pytest.raises(RecordError, match=r"no field 'a' or 'b'"):
        text_field(Row("f", {"c": "x"}), "a", other="b")


def test_surrogate_pair_escapes_in_json_are_one_character(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b'{"a": "\\ud83d\\ude00"}\n{"a": "\\ud83d"}\n')
    good, lone = read_rows(path)
    assert text_field(good, "a") == "😀"
    with pytest.raises(RecordError, match="lone surrogate"):
        text_field(lone, "a")


@pytest.mark.parametrize(("value", "expected"), [(1, 1.0), (0.5, 0.5), ("0.25", 0.25), (" 1e-3 ", 0.001), ("-2", -2.0)])
def test_numbers(value: object, expected: float) -> None:
    assert number_field(Row("f", {"label": value}), "label") == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "not a finite number"),
        (float("inf"), "not a finite number"),
        ("nan", "not a finite number"),
        ("-Infinity", "not a finite number"),
        (10**400, "not a finite number"),
        ("", "not a number"),
        ("1_000", "not a number"),
        ("high", "not a number"),
        (None, "not a number"),
        (True, "not a number"),
        ([1], "not a number"),
    ],
)
def test_numbers_that_are_refused(value: object, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        number_field(Row("f, line 2", {"label": value}), "label")


def test_nan_in_json_is_refused_where_a_number_is_asked_for(tmp_path: Path) -> None:
    (row,) = read_rows(write(tmp_path / "a.jsonl", b'{"label": NaN}\n'))
    with pytest.raises(RecordError, match="line 1: field 'label' is not a finite number"):
        number_field(row, "label")


# --- line-aligned text


def test_open_text_splits_at_line_feeds_only(tmp_path: Path) -> None:
    data = "\ufefffirst\r\n\r\nform\x0cfeed\u2028same\x85line\rhere\nlast".encode()
    assert list(open_text(write(tmp_path / "a.txt", data))) == [
        "first",
        "",
        "form\x0cfeed\u2028same\x85line\rhere",
        "last",
    ]
    assert list(open_text(write(tmp_path / "b.txt", b"one\n\n"))) == ["one", ""]
    assert list(open_text(write(tmp_path / "c.txt.gz", gzip.compress(b"one\ntwo\n")))) == ["one", "two"]


def test_open_text_refuses(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        open_text(tmp_path / "missing.txt")
    with pytest.raises(InputError, match="no lines"):
        list(open_text(write(tmp_path / "a.txt", b"")))
    with pytest.raises(InputError, match="line 2: not UTF-8"):
        list(open_text(write(tmp_path / "b.txt", b"ok\n\xe9t\xe9\n")))


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
        for _ in read_rows(path):  # first pass: imports and caches
            break
        tracemalloc.start()
        assert sum(1 for _ in read_rows(path)) == count
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result

    # 18,000 more records hold over 4 MB of text; a reader that kept them would show it.
    assert peak(20_000) < peak(2_000) + 300_000

"""Reading records: every format, files as people have them, every kind of damage, flat memory. Values are by hand."""

import gzip
import io
import json
import os
import threading
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from negsample.corpora import CorpusOptions, load_pairs
from negsample.errors import InputError, RecordError
from negsample.io import lines as module
from negsample.io.files import format_of
from negsample.io.lines import open_text
from negsample.io.read import document_field, number_field, read_rows, text_field, texts_field
from negsample.records import Row, documents_of

RECORDS = [{"document": "Cats sleep.", "summary": "Cats."}, {"document": "Dogs [run], {fast}.", "summary": "Dogs."}]


@pytest.fixture(autouse=True)
def nothing_told() -> None:
    module._tell.cache_clear()


def write(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def fields(path: Path | str) -> list[dict]:
    return [row.fields for row in read_rows(path)]


def places(path: Path) -> list[tuple[str, dict]]:
    return [(row.where.removeprefix(f"{path}, "), row.fields) for row in read_rows(path)]


def test_format_from_name() -> None:
    names = ["a.jsonl", "dir.csv/a.JSONL.GZ", "a.json", "-", "a.csv.gz", "a.tsv.gz", "a.parquet"]
    assert [format_of(name) for name in names] == [*["jsonl"] * 4, "csv", "tsv", "parquet"]
    for name in ("a.txt", "jsonl", "a.jsonl.bz2", "a.parquet.gz", "folder.csv/a"):
        with pytest.raises(InputError, match=r"\.jsonl\[\.gz\].*\.parquet"):
            format_of(name)


LONG = gzip.compress("".join(json.dumps({"a": f"{i * i}"}) + "\n" for i in range(3000)).encode(), mtime=0)


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
        ("a.csv", b'"a"b,c\n1,2\n', "line 1: not a CSV record"),
        ("a.csv", b'a,b\n1,2\n3,"open\n5,6\n', "line 3: a quoted field begins here and never ends"),
        ("a.json", b'\n[{"a": 1}\n{"a": 2}]', r"not JSON \(Expecting ',' delimiter at line 3\)"),
        ("a.json", b'[{"a": "\xff"}]', "not UTF-8"),
        ("a.jsonl", "{}\n".encode("utf-16")[:-1], "not sound UTF-16"),
        ("a.jsonl.gz", b'{"a": "1"}\n', "not a sound gzip"),
        ("a.jsonl.gz", LONG[: len(LONG) // 2], "cut short"),
        ("a.csv.gz", LONG[:-6], "cut short"),
        ("a.jsonl.gz", LONG[:9000] + bytes([LONG[9000] ^ 0xFF]) + LONG[9001:], "gzip"),
        ("a.parquet", b"not parquet at all", "not a sound Parquet file"),
        ("a.parquet", b"PAR1" + b"\0" * 50 + b"PAR1", "not a sound Parquet file"),
    ],
)
def test_a_file_that_is_wrong_as_a_whole(tmp_path: Path, name: str, data: bytes, told: str) -> None:
    with pytest.raises(InputError, match=rf"{name}.*{told}") as caught:
        list(read_rows(write(tmp_path / name, data)))
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value, RecordError)


def test_what_can_not_be_read_is_refused_at_the_call(tmp_path: Path) -> None:
    (tmp_path / "b.csv").mkdir()
    os.mkfifo(tmp_path / "c.parquet")
    write(tmp_path / "d.txt", "mine")
    for name, told in (
        ("a.jsonl", "no such file"),
        ("none", "no such file"),
        ("b.csv", "is a folder"),
        ("c.parquet", "from a pipe"),
        ("d.txt", ".csv"),
    ):
        with pytest.raises(InputError, match=told):
            read_rows(tmp_path / name)


def test_the_word_sample_means_the_corpus_unless_a_file_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(fields("sample")) == 80
    write(tmp_path / "sample", "mine")
    with pytest.raises(InputError, match="known endings"):
        read_rows("sample")


def test_standard_input_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(b'{"a": "1"}\n\n{"a": "2"}\n')))
    monkeypatch.setattr("sys.stdin", stdin)
    assert [(row.where, row.fields) for row in read_rows("-")] == [
        ("standard input, line 1", {"a": "1"}),
        ("standard input, line 3", {"a": "2"}),
    ]
    assert not stdin.buffer.closed


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.tsv", 'document\tsummary\n"Cats"\tsleep\n'),
        ("a", '{"document": "Cats", "summary": "sleep"}'),
        ("a.csv.gz", gzip.compress(b"document,summary\nCats,sleep\n", mtime=0)),
    ],
)
def test_a_pipe_is_opened_once(tmp_path: Path, name: str, data: str | bytes) -> None:
    os.mkfifo(tmp_path / name)
    writer = threading.Thread(target=write, args=(tmp_path / name, data))
    writer.start()
    assert [(pair.document, pair.summary) for pair in load_pairs(str(tmp_path / name))] == [("Cats", "sleep")]
    writer.join()


# --- JSON


def test_json_lines_bom_crlf_blank_lines_and_places(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '\ufeff{"a": "x\u2028y\x85z"}\r\n\r\n  \n{"a": "é😀\\ud83d\\ude00"}')
    assert places(path) == [("line 1", {"a": "x\u2028y\x85z"}), ("line 4", {"a": "é😀😀"})]
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
    data = b"\xef\xbb\xbf\r\n " + json.dumps([*RECORDS, 3], indent=indent).encode() + b"\r\n"
    path = write(tmp_path / name, gzip.compress(data) if name.endswith("gz") else data)
    *found, number = read_rows(path)
    assert [(row.where, row.fields) for row in found] == [
        (f"{path}, record {place}", record) for place, record in enumerate(RECORDS, 1)
    ]
    with pytest.raises(RecordError, match=r"record 3: not a JSON object \(a number\)"):
        text_field(number, "a")
    assert fields(write(tmp_path / "b.json", "\n".join(json.dumps(r, indent=1) for r in RECORDS))) == RECORDS


# --- CSV and TSV


def test_csv_quotes_newlines_bom_crlf_nul_and_places(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbfid,document\r\n1,"two\r\nlines, and ""quotes"""\r\n\r\n2,nul\x00here\r\n'
    assert places(write(tmp_path / "a.csv", data)) == [
        ("line 2", {"id": "1", "document": 'two\r\nlines, and "quotes"'}),
        ("line 5", {"id": "2", "document": "nul\x00here"}),
    ]
    assert len(fields(write(tmp_path / "b.csv", b"a\n" + b"x" * 1_000_000 + b"\n"))[0]["a"]) == 1_000_000
    assert fields(write(tmp_path / "c.csv", b"a,b\r1,2\r3,4\r")) == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]


def test_csv_records_that_are_broken_on_their_own(tmp_path: Path) -> None:
    data = b'a,b\n1\n1,2,3\n"x"y,2\n\xff,2\n5,6\n'
    *broken, good = read_rows(write(tmp_path / "a.csv", data))
    assert broken[0].fields == {"a": "1", "b": None}
    for row, reason in zip(broken, ["cells", "cells", "not a CSV record", "not UTF-8"], strict=True):
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
    assert (broken.where[-6:], "lines 5 to 6" in broken.error.reason) == ("line 5", True)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", 'document;summary\r\n"Cats; 3,5 of them";Cats.\r\n'),
        ("a.csv", 'sep=;\r\ndocument;summary\r\n"Cats; 3,5 of them";Cats.\r\n'),
        ("a.csv", "document\tsummary\nCats; 3,5 of them\tCats.\n"),
        ("a.tsv", 'document,summary\n"Cats; 3,5 of them",Cats.\n'),
        ("a.csv", '\n\ndocument|summary\n"Cats; 3,5 of them"|Cats.'),
        ("a.jsonl", '{"document": "Cats; 3,5 of them", "summary": "Cats."}\r\n'),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_delimiters_and_encodings_are_told_from_the_beginning(
    tmp_path: Path, name: str, data: str, encoding: str
) -> None:
    assert fields(write(tmp_path / name, data.encode(encoding))) == [
        {"document": "Cats; 3,5 of them", "summary": "Cats."}
    ]
    assert fields(write(tmp_path / "one.csv", "summary\nCats; dogs\n".encode(encoding))) == [{"summary": "Cats; dogs"}]
    long = "x" * 200_000
    assert list(open_text(write(tmp_path / "c.txt", f"Zoë\n{long}".encode(encoding)))) == ["Zoë", long]


# --- Parquet and folders of save_to_disk


def test_parquet_and_text_in_it_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    records = [{"a": "x", "n": 1, "r": ["p"]}, {"a": None, "n": 2, "r": []}, {"a": "é", "n": 3, "r": ["q", "r"]}]
    pq.write_table(pa.Table.from_pylist(records), path)
    assert places(path) == [(f"row {number}", record) for number, record in enumerate(records, 1)]
    raw = pa.array([b"good", b"\xff\xfe", b"fine"]).cast(pa.binary())
    pq.write_table(pa.table({"a": pa.Array.from_buffers(pa.string(), 3, raw.buffers())}), path)
    first, broken, last = read_rows(path)
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
        assert fields(folder) == RECORDS
        assert [pair.summary for pair in load_pairs(folder)] == ["Cats.", "Dogs."]
    assert [row.where for row in read_rows("one")] == ["one, record 1", "one, record 2"]
    assert [pair.summary for pair in load_pairs("two")] == ["Dogs.", "Cats.", "Dogs."]  # train, then test
    assert [pair.summary for pair in load_pairs("two", CorpusOptions(split="train"))] == ["Dogs."]
    with pytest.raises(InputError, match=r"two: holds 2 splits; name one of two/test, two/train"):
        fields("two")
    with pytest.raises(InputError, match="no split 'tests'; did you mean test"):
        list(load_pairs("two", CorpusOptions(split="tests")))
    (tmp_path / "one" / "state.json").write_text("{")
    with pytest.raises(InputError, match="one: can't be read as a folder of save_to_disk"):
        fields("one")


# --- fields; what is missing, blank or no text: tests/test_records.py

GOOD = ["x", " x ", "\x00a", "שלום עולם", "👩‍👩‍👧", 1, 0.5, "0.25", " 1e-3 ", "-2"]


@pytest.mark.parametrize(
    ("read", "value", "reason"),
    [
        (text_field, " \u200b", "field 'x' is blank"),
        (text_field, None, "field 'x' is missing"),
        (text_field, float("nan"), "field 'x' is missing"),
        (text_field, 3, r"field 'x' is not text \(a number\)"),
        (text_field, {"a": 1}, r"not text \(an object\)"),
        (text_field, b"bytes", "not text"),
        (text_field, "a\ud800b", r"lone surrogate \(character 2\)"),
        *((number_field, value, "not a finite number") for value in (float("nan"), "-Infinity", 10**400)),
        *((number_field, value, "not a number") for value in ("", "1_000", "high", None, True, [1])),
        (texts_field, ["a", "\u200b"], "field 'x: text 2' is blank"),
        (texts_field, ["a", None], "field 'x: text 2' is missing"),
        (texts_field, ["a\ud800"], "field 'x: text 1' has a lone surrogate"),
        (texts_field, {"a": "b"}, r"'x' is not a list of texts \(an object\)"),
    ],
)
def test_values_that_are_refused(read, value: object, reason: str) -> None:
    with pytest.raises(RecordError, match=f"f, line 9: .*{reason}"):
        read(Row("f, line 9", {"x": value}), "x")


def test_values_are_taken_unchanged_and_a_missing_field_names_those_there_are() -> None:
    assert [text_field(Row("f", {"a": value}), "a") for value in GOOD[:5]] == GOOD[:5]
    assert [number_field(Row("f", {"a": value}), "a") for value in GOOD[5:]] == [1.0, 0.5, 0.25, 0.001, -2.0]
    assert texts_field(Row("f", {"references": [], "reference": "a"}), "references", "reference") == ["a"]
    assert texts_field(Row("f"), "references") == []
    assert text_field(Row("f", {"text": "x"}), "document", other="text") == "x"
    for fields_of, told in (
        ({"text": "x", "sum": "y"}, r"no field 'a' or 'b'; it has: 'text', 'sum'"),
        ({}, "it is empty"),
    ):
        with pytest.raises(RecordError, match=told):
            text_field(Row("f", fields_of), "a", other="b")


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
        if kind == "parquet":
            pq.write_table(pa.table({"a": texts}), path, row_group_size=1000)
        else:
            lines = [json.dumps({"a": text}) for text in texts] if kind == "jsonl" else ["a", *texts]
            path.write_text("\n".join(lines))
        texts = lines = []
        next(read_rows(path))  # imports and caches
        tracemalloc.start()
        assert sum(1 for _ in read_rows(path)) == count
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result

    # 18,000 more records hold over 4 MB of text; a reader that kept them would show it.
    assert peak(20_000) < peak(2_000) + 300_000


@pytest.mark.parametrize(
    ("record", "documents"),
    [
        ({"document": "a"}, ["a"]),
        ({"document": ["a", "b c"]}, ["a", "b c"]),
        ({"documents": ["a", "b"]}, ["a", "b"]),
        ({"document": "", "documents": '["a", "b"]'}, ["a", "b"]),
        ({"document": None, "documents": ["a"]}, ["a"]),
        # The document goes before what stands beside it.
        ({"document": "a", "documents": ["b", "c"]}, ["a"]),
        ({"text": ["a", "b"], "document": "c"}, ["a", "b"]),
    ],
)
def test_a_record_of_several_documents(record, documents):
    assert documents_of(document_field(Row("here", record), "text" if "text" in record else "document")) == documents


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({}, "here: no field 'document'; it is empty"),
        ({"documents": ["a", " "]}, "here: field 'documents: text 2' is blank"),
        *(({"documents": text}, "here: field 'documents' is no JSON list") for text in ("[broken", " {}", "[]")),
        ({"documents": []}, "here: no field 'document'; it has: 'documents'"),
        ({"document": [], "documents": ["a"]}, "field 'document' is not text"),
        ({"document": ["a", 3]}, "here: field 'document: text 2' is not text"),
    ],
)
def test_what_is_wrong_with_several_documents(record, told):
    with pytest.raises(RecordError) as found:
        document_field(Row("here", record))
    assert told in str(found.value)

"""Writing records: round trips, nothing half-written, failing disks. Expected bytes are written out by hand."""

import errno
import gzip
import io
import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negsample.errors import InputError
from negsample.io import files as fileio
from negsample.io.files import atomic_json, atomic_text
from negsample.io.read import read_rows
from negsample.io.write import open_writer

NAMES = ["a.jsonl", "a.jsonl.gz", "a.csv", "a.csv.gz", "a.tsv", "a.parquet"]
HARD_TEXTS = [
    'commas, "quotes" and\ttabs',
    "lines\nand\r\nreturns\ralone",
    "nul\x00inside",
    "שלום مرحبا",
    "😀 👩‍👩‍👧 é",
    "\u2028\u2029\x85\x0c",
    " spaces ",
    '"',
    "-",
    "x" * 100_000,
]


def write_all(path: Path, records: list[dict[str, Any]], **options: Any) -> None:
    with open_writer(path, **options) as writer:
        for record in records:
            writer.write(record)


def read_all(path: Path) -> list[dict[str, Any]]:
    rows = list(read_rows(path))
    assert all(row.error is None for row in rows)
    return [row.fields for row in rows]


@pytest.mark.parametrize("name", NAMES)
def test_hard_texts_come_back_unchanged(tmp_path: Path, name: str) -> None:
    records = [{"id": str(i), "document": text} for i, text in enumerate(HARD_TEXTS)]
    write_all(tmp_path / name, records)
    assert read_all(tmp_path / name) == records
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
def test_any_text_comes_back_unchanged(tmp_path_factory: pytest.TempPathFactory, name: str, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("any") / name
    records = [{"id": "1", "document": text} for text in texts]
    write_all(path, records)
    assert read_all(path) == records


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_types_come_back(tmp_path: Path, name: str) -> None:
    records = [
        {"n": 3, "score": 0.1, "r": ["a", "b"], "change": {"kind": "add", "words": [1, 2]}, "ok": True, "none": None},
        {"n": -4, "score": None, "r": [], "change": {"kind": "cut", "words": []}, "ok": False, "none": None},
    ]
    write_all(tmp_path / name, records)
    assert read_all(tmp_path / name) == records


def test_exact_bytes(tmp_path: Path) -> None:
    record = {"b": "é", "a": None, "n": 1, "l": ["x", 2], "t": True}
    write_all(tmp_path / "a.jsonl", [record])
    assert (tmp_path / "a.jsonl").read_bytes() == '{"b": "é", "a": null, "n": 1, "l": ["x", 2], "t": true}\n'.encode()
    write_all(tmp_path / "a.csv", [record])
    assert (tmp_path / "a.csv").read_bytes() == 'b,a,n,l,t\né,,1,"[""x"", 2]",true\n'.encode()


def test_gzip_depends_on_the_records_only(tmp_path: Path) -> None:
    write_all(tmp_path / "one.jsonl.gz", [{"a": "x"}])
    write_all(tmp_path / "two.jsonl.gz", [{"a": "x"}])
    data = (tmp_path / "one.jsonl.gz").read_bytes()
    assert data == (tmp_path / "two.jsonl.gz").read_bytes()
    # RFC 1952: byte 3 holds the flags (no name), bytes 4 to 7 the time.
    assert (data[3], data[4:8]) == (0, b"\0\0\0\0")
    assert gzip.decompress(data) == b'{"a": "x"}\n'


def test_numbers_that_are_not_finite_become_null(tmp_path: Path) -> None:
    for name, empty in [("a.jsonl", None), ("a.csv", ""), ("a.parquet", None)]:
        with open_writer(tmp_path / name) as writer:
            writer.write({"score": float("nan"), "x": np.float32("inf"), "y": 1.5})
            writer.write({"score": 0.5, "x": 1.0, "y": 2.5})
        first = read_all(tmp_path / name)[0]
        assert (first["score"], first["x"]) == (empty, empty)
    assert "NaN" not in (tmp_path / "a.jsonl").read_text()


def test_numpy_and_decimal_values(tmp_path: Path) -> None:
    write_all(
        tmp_path / "a.jsonl", [{"f": np.float32(0.5), "i": np.int64(7), "a": np.array([1, 2]), "d": Decimal("1.20")}]
    )
    assert read_all(tmp_path / "a.jsonl") == [{"f": 0.5, "i": 7, "a": [1, 2], "d": "1.20"}]


def test_lone_surrogates_pass_through_json(tmp_path: Path) -> None:
    write_all(tmp_path / "a.jsonl", [{"a": "x\ud800", "b": "é"}])
    assert (tmp_path / "a.jsonl").read_bytes() == b'{"a": "x\\ud800", "b": "\\u00e9"}\n'
    for name in ("a.csv", "a.parquet"):
        write_all(tmp_path / name, [{"a": "x\ud800"}])
        assert read_all(tmp_path / name) == [{"a": "x\\ud800"}]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet"])
def test_a_later_field_without_a_column_is_named(tmp_path: Path, name: str) -> None:
    columns = ["a"]
    with pytest.raises(InputError, match="'reason'"):
        write_all(tmp_path / name, [{"a": "1"}, {"a": "2", "reason": "x"}], columns=columns)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_columns_fix_order_and_gaps(tmp_path: Path, name: str) -> None:
    write_all(tmp_path / name, [{"b": "1"}, {"a": "2"}], columns=["a", "b"])
    rows = read_all(tmp_path / name)
    assert [list(row) for row in rows] == [["a", "b"], ["a", "b"]]
    assert [[value or None for value in row.values()] for row in rows] == [[None, "1"], ["2", None]]


# --- Parquet types


def test_parquet_columns_that_are_empty_at_first(tmp_path: Path) -> None:
    empty = {"score": None, "reason": None, "refs": [], "change": {}}
    late = {"score": 0.5, "reason": "blank", "refs": ["a"], "change": {"k": 1}}
    write_all(tmp_path / "a.parquet", [empty] * 1500 + [late])
    rows = read_all(tmp_path / "a.parquet")
    assert len(rows) == 1501
    assert rows[0] == {"score": None, "reason": None, "refs": "[]", "change": "{}"}
    assert rows[-1] == {"score": 0.5, "reason": "blank", "refs": '["a"]', "change": '{"k": 1}'}


def test_parquet_whole_labels_first_then_graded(tmp_path: Path) -> None:
    write_all(tmp_path / "a.parquet", [{"label": 1}] * 1000 + [{"label": 0.25}])
    assert read_all(tmp_path / "a.parquet")[-1] == {"label": 0.25}
    assert str(pq.read_schema(tmp_path / "a.parquet").field("label").type) == "double"


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({"n": 1}, {"n": "text"}),
        ({"n": 1}, {"n": 0.5}),
        ({"n": {"a": 1}}, {"n": {"a": 1, "b": 2}}),
        ({"n": [{"a": 1}]}, {"n": [{"c": 1}]}),
    ],
)
def test_parquet_values_that_do_not_fit_are_refused_and_none_is_dropped(
    tmp_path: Path, first: dict, later: dict
) -> None:
    with pytest.raises(InputError, match=r"a\.parquet: the column 'n'"):
        write_all(tmp_path / "a.parquet", [first] * 1000 + [later])
    assert os.listdir(tmp_path) == []


def test_parquet_mixed_types_in_the_first_chunk(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the column 'n'"):
        write_all(tmp_path / "a.parquet", [{"n": 1}, {"n": "x"}])


# --- whole or not at all


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, InputError, SystemExit])
def test_an_exception_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, name: str, error: type[BaseException]
) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")

    def write_and_fail() -> None:
        with open_writer(path) as writer:
            for i in range(1200):
                writer.write({"a": str(i)})
            raise error

    with pytest.raises(error):
        write_and_fail()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [name]


def test_the_target_appears_only_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with open_writer(path) as writer:
        writer.write({"a": 1})
        assert not path.exists()
    assert path.exists()


class _FullDisk(io.FileIO):
    room = 0

    def write(self, data: Any) -> int:
        if self.room < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(data)
        return super().write(data) or 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("room", [0, 20_000])
def test_a_full_disk_is_told_and_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, room: int
) -> None:
    def open_on_full_disk(target: str) -> tuple[str, Any]:
        path = os.path.join(os.path.dirname(target), ".negsample-test.part")
        raw = _FullDisk(path, "w+")
        raw.room = room
        return path, io.BufferedRandom(raw)

    monkeypatch.setattr(fileio, "_open_beside", open_on_full_disk)
    rng = np.random.Generator(np.random.PCG64(0))
    # Random text, so that gzip and Parquet can't make it fit.
    records = [{"a": rng.bytes(20).hex()} for _ in range(3000)]
    with pytest.raises(InputError, match=f"{name}: the disk is full"):
        write_all(tmp_path / name, records)
    assert os.listdir(tmp_path) == []


def test_a_full_disk_when_a_small_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(fileio.os, "fsync", fail)
    with pytest.raises(InputError, match=r"run\.json: the disk is full"):
        atomic_json(tmp_path / "run.json", {"a": 1})
    assert os.listdir(tmp_path) == []


def test_places_that_can_not_be_written(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match=r"there is no folder .*missing; make it first"),
        open_writer(tmp_path / "missing" / "a.jsonl"),
    ):
        pass
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(InputError, match="is a folder"), open_writer(tmp_path / "folder.jsonl"):
        pass
    with pytest.raises(InputError, match="known endings"), open_writer(tmp_path / "a.txt"):
        pass
    with pytest.raises(InputError, match="not an ordinary file"):
        atomic_text("/dev/null", "x")


def test_a_folder_without_write_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        # Root may write anywhere, so the refusal is played.
        def refuse(_: str) -> tuple[str, Any]:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr(fileio, "_open_beside", refuse)
    else:
        tmp_path.chmod(0o500)
    with pytest.raises(InputError, match=r"a\.jsonl: permission denied"), open_writer(tmp_path / "a.jsonl"):
        pass
    tmp_path.chmod(0o700)


def test_a_link_is_written_through_and_the_mode_is_kept(tmp_path: Path) -> None:
    real = tmp_path / "real.jsonl"
    real.write_text("old")
    real.chmod(0o640)
    link = tmp_path / "link.jsonl"
    link.symlink_to(real)
    write_all(link, [{"a": 1}])
    assert link.is_symlink()
    assert real.read_text() == '{"a": 1}\n'
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_file_can_be_rewritten_from_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_all(path, [{"a": str(i)} for i in range(5000)])
    with open_writer(path) as writer:
        for row in read_rows(path):
            writer.write({**row.fields, "score": 1})
    assert len(read_all(path)) == 5000


# --- small files


def test_atomic_json(tmp_path: Path) -> None:
    atomic_json(tmp_path / "a.json", {"z": "é", "a": [1]})
    assert (tmp_path / "a.json").read_text("utf-8") == '{\n  "z": "é",\n  "a": [\n    1\n  ]\n}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        atomic_json(tmp_path / "b.json", {"x": float("nan")})
    atomic_json(tmp_path / "c.json", {"x": "\ud800"})
    assert json.loads((tmp_path / "c.json").read_bytes()) == {"x": "\ud800"}
    assert sorted(os.listdir(tmp_path)) == ["a.json", "c.json"]


# --- standard output

SCRIPT = """
import os
from negsample.io.write import open_writer
try:
    with open_writer("-") as writer:
        for i in range({count}):
            writer.write({{"a": "é" * 50, "i": i}})
except BrokenPipeError:
    os._exit(7)
"""


def test_standard_output_and_a_reader_that_leaves() -> None:
    whole = subprocess.run([sys.executable, "-c", SCRIPT.format(count=40)], capture_output=True, check=True)
    lines = whole.stdout.decode("utf-8").splitlines()
    assert [json.loads(line)["i"] for line in lines] == list(range(40))
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(count=100_000)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=30) == 7


def test_what_came_before_an_error_is_on_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    def write_and_fail() -> None:
        with open_writer("-") as writer:
            writer.write({"a": 1})
            raise InputError("line 2: bad")

    with pytest.raises(InputError, match="line 2"):
        write_and_fail()
    assert capfdbinary.readouterr().out == b'{"a": 1}\n'

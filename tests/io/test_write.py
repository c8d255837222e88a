"""Writing records: round trips, nothing half-written, failing disks. Expected bytes are written out by hand."""

import errno
import gzip
import io
import json
import os
import resource
import shutil
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from negsample.errors import InputError
from negsample.io import files as fileio
from negsample.io.files import atomic_json, check_new, check_outputs, copy_file, new_folder
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
@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
@example(texts=HARD_TEXTS)
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


@pytest.mark.parametrize(
    ("record", "line", "cells"),
    [
        ({"b": "é", "a": None}, '{"b": "é", "a": null}', "b,a\né,"),
        ({"n": 1, "l": ["x", 2], "t": True}, '{"n": 1, "l": ["x", 2], "t": true}', 'n,l,t\n1,"[""x"", 2]",true'),
        ({"a": float("nan"), "b": np.float32("inf")}, '{"a": null, "b": null}', "a,b\n,"),
        ({"f": np.float32(0.5), "a": np.array([1, 2])}, '{"f": 0.5, "a": [1, 2]}', 'f,a\n0.5,"[1, 2]"'),
        ({"d": Decimal("1.20"), "t": date(2020, 1, 2)}, '{"d": "1.20", "t": "2020-01-02"}', "d,t\n1.20,2020-01-02"),
        # Half of a surrogate pair, which UTF-8 can't hold, becomes its escape.
        ({"a": "x\ud800"}, '{"a": "x\\ud800"}', "a\nx\\ud800"),
    ],
)
def test_exact_bytes(tmp_path: Path, record: dict, line: str, cells: str) -> None:
    for name, expected in (("a.jsonl", line), ("a.csv", cells)):
        write_all(tmp_path / name, [record])
        assert (tmp_path / name).read_text("utf-8") == expected + "\n"


def test_gzip_depends_on_the_records_only(tmp_path: Path) -> None:
    for name in ("one.jsonl.gz", "two.jsonl.gz"):
        write_all(tmp_path / name, [{"a": "x"}])
    data = (tmp_path / "one.jsonl.gz").read_bytes()
    assert data == (tmp_path / "two.jsonl.gz").read_bytes()
    # RFC 1952: byte 3 holds the flags (no name), bytes 4 to 7 the time.
    assert (data[3], data[4:8]) == (0, b"\0\0\0\0")
    assert gzip.decompress(data) == b'{"a": "x"}\n'


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet"])
def test_columns_fix_order_and_gaps_and_another_field_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="'reason'"):
        write_all(tmp_path / name, [{"a": "1"}, {"a": "2", "reason": "x"}], columns=["a"])
    assert os.listdir(tmp_path) == []
    write_all(tmp_path / name, [{"b": "1"}, {"a": "2"}], columns=["a", "b"])
    found = [[(key, value or None) for key, value in row.items()] for row in read_all(tmp_path / name)]
    assert found == [[("a", None), ("b", "1")], [("a", "2"), ("b", None)]]


# --- Parquet types


def test_parquet_columns_that_are_empty_at_first(tmp_path: Path) -> None:
    empty = {"score": None, "reason": None, "refs": [], "change": {}}
    late = {"score": 0.5, "reason": "blank", "refs": ["a"], "change": {"k": 1}}
    write_all(tmp_path / "a.parquet", [empty] * 1500 + [late])
    rows = read_all(tmp_path / "a.parquet")
    assert len(rows) == 1501
    assert rows[0] == {"score": None, "reason": None, "refs": "[]", "change": "{}"}
    assert rows[-1] == {"score": 0.5, "reason": "blank", "refs": '["a"]', "change": '{"k": 1}'}
    write_all(tmp_path / "b.parquet", [{"label": 1}] * 1000 + [{"label": 0.25}])
    assert read_all(tmp_path / "b.parquet")[-1] == {"label": 0.25}
    assert str(pq.read_schema(tmp_path / "b.parquet").field("label").type) == "double"


@pytest.mark.parametrize(
    ("first", "later", "counts"),
    [
        (1, 0.5, (1000,)),
        ({"a": 1}, {"a": 1, "b": 2}, (1000,)),
        ([{"a": 1}], [{"c": 1}], (1000,)),
        (1, "text", (1, 1000)),
        (True, [1], (1, 1000)),
        ([1], [1, "a"], (1, 1000)),
    ],
)
def test_parquet_values_that_do_not_fit_are_refused_and_none_is_dropped(
    tmp_path: Path, first: Any, later: Any, counts: tuple[int, ...]
) -> None:
    for count in counts:
        with pytest.raises(InputError, match=r"a\.parquet: the column 'n'"):
            write_all(tmp_path / "a.parquet", [{"n": first}] * count + [{"n": later}])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("first", [1, 0.5])
def test_a_number_that_parquet_cannot_hold_is_told(tmp_path: Path, first: float) -> None:
    with pytest.raises(InputError, match="'n' has a number that is too large for Parquet"):
        write_all(tmp_path / "a.parquet", [{"n": first}, {"n": 2**70}])


# --- whole or not at all


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("error", [KeyboardInterrupt(), InputError("mine"), OSError(errno.ENOSPC, "full")])
def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path: Path, name: str, error: BaseException) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")

    def write_and_fail() -> None:
        with open_writer(path) as writer:
            for i in range(1200):
                writer.write({"a": str(i)})
            assert path.read_bytes() == b"old"
            raise error

    with pytest.raises(InputError if isinstance(error, OSError) else type(error)) as caught:
        write_and_fail()
    if isinstance(error, OSError):  # whoever met it
        assert str(caught.value).startswith(f"{path}: the disk is full")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [name]


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


def test_outputs_are_checked_at_the_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder.jsonl").mkdir()
    Path("in.jsonl").write_text("mine")
    Path("link.jsonl").symlink_to("in.jsonl")
    os.link("in.jsonl", "hard.jsonl")
    names = sorted(os.listdir())
    for targets, told in (
        (["missing/a.jsonl"], "missing/a.jsonl: there is no folder"),
        (["folder.jsonl"], "is a folder"),
        (["in.jsonl/a"], "there is no folder"),
        (["/dev/null"], "not an ordinary file"),
        *((["b", name], "is an input too") for name in ("in.jsonl", "./in.jsonl", "link.jsonl", "hard.jsonl")),
        (["b", None, "./b"], "is another output too"),
    ):
        with pytest.raises(InputError, match=told):
            check_outputs(targets, [None, "-", "folder.jsonl", "in.jsonl"])
    check_outputs([None, "-", "-", "b", "c", "in.jsonl"], ["sample"])
    assert sorted(os.listdir()) == names

    # Played, for root may write anywhere.
    def refuse(_: str) -> tuple[str, Any]:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(fileio, "_open_beside", refuse)
    with pytest.raises(InputError, match=r"a\.jsonl: permission denied"):
        check_outputs(["a.jsonl"])


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


# --- small files and folders


def test_a_copy_is_whole_or_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "source", tmp_path / "folder" / "file"
    source.write_text("new")
    copy_file(source, target)
    (tmp_path / "large").write_bytes(b"x" * 9000)
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, most[1]))
    try:
        with pytest.raises(InputError, match=f"^{target}: the file would be larger than allowed here"):
            copy_file(tmp_path / "large", target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)

    def stop_half_way(source: Path, name: str) -> None:
        Path(name).write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "copyfile", stop_half_way)
    with pytest.raises(KeyboardInterrupt):
        copy_file(source, target)
    assert [(path.name, path.read_text()) for path in target.parent.iterdir()] == [("file", "new")]


def test_a_folder_is_new_or_refused_and_whole_or_absent(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def fill_with(fault: BaseException | None) -> None:
        with new_folder(str(out)) as draft:
            (draft / "mine").write_text("1")
            if fault:
                raise fault
            out.mkdir()
            (out / "theirs").write_text("2")

    with pytest.raises(ZeroDivisionError):
        fill_with(ZeroDivisionError())
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="has been filled meanwhile, by another process"):
        fill_with(None)
    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*"))] == ["out", "out/theirs"]
    for taken, told in ((out, "is not empty"), (out / "theirs", "is not a folder")):
        with pytest.raises(InputError, match=told):
            check_new(str(taken))


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
        assert process.wait(timeout=120) == 7


def test_what_came_before_an_error_is_on_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    def write_and_fail() -> None:
        with open_writer("-") as writer:
            writer.write({"a": 1})
            raise InputError("line 2: bad")

    with pytest.raises(InputError, match="line 2"):
        write_and_fail()
    assert capfdbinary.readouterr().out == b'{"a": 1}\n'

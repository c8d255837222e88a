"""Rows of different lengths on disk."""

import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negsample.errors import InputError
from negsample.models.store.ragged_rows import Ragged, RaggedWriter

ROWS = [[5, 6, 7], [], [8], [9, 10]]


def stored(folder: Path, dtype: str = "int32") -> Path:
    with RaggedWriter(folder, dtype) as writer:
        writer.append(ROWS[:2])
        writer.append([])
        writer.append(ROWS[2:])
    return folder


def test_the_layout_is_what_the_docstring_says(tmp_path: Path) -> None:
    folder = stored(tmp_path / "s")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s"]
    assert (folder / "data.bin").read_bytes() == b"".join(n.to_bytes(4, "little") for n in [5, 6, 7, 8, 9, 10])
    assert np.load(folder / "offsets.npy").tolist() == [0, 3, 3, 4, 6]
    index = json.loads((folder / "index.json").read_text())
    assert (index["count"], index["dtype"], index["size"]) == (4, "<i4", 6)


def test_reading(tmp_path: Path) -> None:
    store = Ragged.open(stored(tmp_path / "s"))
    assert len(store) == 4
    assert store.dtype == np.int32
    assert [row.tolist() for row in store] == ROWS  # type: ignore[attr-defined]
    assert store[-1].tolist() == [9, 10]
    assert store.lengths().tolist() == [3, 0, 1, 2]
    assert store.lengths().dtype == np.int64
    for wrong in (4, -5):
        with pytest.raises(IndexError):
            store[wrong]
    with pytest.raises(ValueError, match="read-only"):
        store[0][0] = 1


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5), max_size=4), max_size=4),
    st.sampled_from(["int32", "int64"]),
)
def test_what_goes_in_comes_out(batches: list[list[list[int]]], dtype: str) -> None:
    with tempfile.TemporaryDirectory() as parent:
        with RaggedWriter(Path(parent) / "s", dtype) as writer:
            for batch in batches:
                writer.append(batch)
        store = Ragged.open(Path(parent) / "s")
        rows = [row for batch in batches for row in batch]
        assert [store[i].tolist() for i in range(len(store))] == rows
        assert store.lengths().tolist() == [len(row) for row in rows]


@pytest.mark.parametrize("row", [[2**31], [1.5], [float("nan")], [[1, 2]], 3])
def test_rows_the_type_can_not_hold_are_refused(tmp_path: Path, row: object) -> None:
    with pytest.raises(ValueError), RaggedWriter(tmp_path / "s", "int32") as writer:  # noqa: PT012
        writer.append([[1, 2]])
        writer.append([row])  # type: ignore[list-item]
    assert list(tmp_path.iterdir()) == []


def test_floats_may_be_rounded(tmp_path: Path) -> None:
    with RaggedWriter(tmp_path / "s", np.float32) as writer:
        writer.append([np.array([0.1, np.nan])])
    np.testing.assert_array_equal(Ragged.open(tmp_path / "s")[0], np.array([0.1, np.nan], dtype=np.float32))
    with pytest.raises(ValueError, match="numbers"):
        RaggedWriter(tmp_path / "t", "O")


def test_a_folder_that_holds_something_is_not_overwritten(tmp_path: Path) -> None:
    folder = stored(tmp_path / "s")
    with pytest.raises(InputError, match="exists already"):
        RaggedWriter(folder, "int32")
    (tmp_path / "empty").mkdir()
    assert len(Ragged.open(stored(tmp_path / "empty"))) == 4


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)


DAMAGE = {
    "shorter data": lambda folder: os.truncate(folder / "data.bin", 20),
    "longer data": lambda folder: (folder / "data.bin").write_bytes(bytes(28)),
    "no data": lambda folder: (folder / "data.bin").unlink(),
    "changed data": lambda folder: flip(folder / "data.bin"),
    "changed offsets": lambda folder: flip(folder / "offsets.npy"),
    "shorter offsets": lambda folder: os.truncate(folder / "offsets.npy", 140),
    "pickled offsets": lambda folder: np.save(folder / "offsets.npy", np.array([None] * 5), allow_pickle=True),
    "no offsets": lambda folder: (folder / "offsets.npy").unlink(),
    "broken index": lambda folder: (folder / "index.json").write_text("{"),
    "odd index": lambda folder: (folder / "index.json").write_text("[]"),
    "lacking index": lambda folder: (folder / "index.json").write_text('{"format": 1, "count": 4}'),
    "unfinished": lambda folder: (folder / "index.json").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_store_is_refused(tmp_path: Path, damage: str) -> None:
    folder = stored(tmp_path / "s")
    DAMAGE[damage](folder)
    with pytest.raises(InputError, match="build it again"):
        Ragged.open(folder)


def test_the_data_checksum_can_be_left_out(tmp_path: Path) -> None:
    folder = stored(tmp_path / "s")
    flip(folder / "data.bin")
    assert len(Ragged.open(folder, check=False)) == 4
    with pytest.raises(InputError):
        Ragged.open(tmp_path / "nowhere", check=False)

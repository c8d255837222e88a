"""Arrays of different lengths on disk."""

import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from negsample.errors import InputError
from negsample.train.data.array_store import ArrayStore, new_store

ROWS = [[5, 6, 7], [], [8], [9, 10]]


def arrays(rows: list[list[int]], dtype: str = "int32") -> list[np.ndarray]:
    return [np.array(row, dtype) for row in rows]


def stored(folder: Path, dtype: str = "int32") -> Path:
    with new_store(folder, dtype) as writer:
        writer.append(arrays(ROWS[:2], dtype))
        writer.append([])
        writer.append(arrays(ROWS[2:], dtype))
    return folder


def test_the_layout_is_what_the_docstring_says(tmp_path: Path) -> None:
    folder = stored(tmp_path / "s")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s"]
    assert (folder / "data.bin").read_bytes() == b"".join(n.to_bytes(4, "little") for n in [5, 6, 7, 8, 9, 10])
    assert np.load(folder / "offsets.npy").tolist() == [0, 3, 3, 4, 6]
    index = json.loads((folder / "index.json").read_text())
    assert (index["count"], index["dtype"], index["size"]) == (4, "<i4", 6)


def test_reading(tmp_path: Path) -> None:
    store = ArrayStore(stored(tmp_path / "s"))
    assert len(store) == 4
    assert store.dtype == np.int32
    assert [row.tolist() for row in store] == ROWS  # type: ignore[attr-defined]
    assert store[-1].tolist() == [9, 10]
    assert store.lengths(np.arange(4)).tolist() == [3, 0, 1, 2]
    assert store.lengths(np.arange(4)).dtype == np.int64
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
        with new_store(Path(parent) / "s", dtype) as writer:
            for batch in batches:
                writer.append(arrays(batch, dtype))
        store = ArrayStore(Path(parent) / "s")
        rows = [row for batch in batches for row in batch]
        assert [store[i].tolist() for i in range(len(store))] == rows
        assert store.lengths(np.arange(len(store))).tolist() == [len(row) for row in rows]


@pytest.mark.parametrize("array", [np.array([1]), np.array([1.5]), np.array([[1, 2]], np.int32), np.int32(3)])
def test_arrays_that_may_not_fit_are_refused(tmp_path: Path, array: np.ndarray) -> None:
    with pytest.raises((TypeError, ValueError)), new_store(tmp_path / "s", "int32") as writer:  # noqa: PT012
        writer.append(arrays([[1, 2]]))
        writer.append([array])
    assert list(tmp_path.iterdir()) == []


def test_a_smaller_type_fits(tmp_path: Path) -> None:
    with new_store(tmp_path / "s", "float32") as writer:
        writer.append([np.array([0.5, np.nan], np.float16), np.array([7], np.uint8)])
    np.testing.assert_array_equal(ArrayStore(tmp_path / "s")[0], np.array([0.5, np.nan], dtype=np.float32))
    assert ArrayStore(tmp_path / "s")[1].tolist() == [7]


def test_a_folder_that_holds_something_is_not_overwritten(tmp_path: Path) -> None:
    folder = stored(tmp_path / "s")
    with pytest.raises(InputError, match="not empty"), new_store(folder, "int32"):
        pass
    assert ArrayStore(folder)[0].tolist() == ROWS[0]
    (tmp_path / "empty").mkdir()
    assert len(ArrayStore(stored(tmp_path / "empty"))) == 4


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
        ArrayStore(folder)


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        ArrayStore(tmp_path / "nowhere")

"""Rows of different lengths on disk: token ids, numbers of sentences.

A folder with ``data.bin`` (all rows end to end, little-endian), ``offsets.npy`` (int64 [n + 1]: row i is
``data[offsets[i]:offsets[i + 1]]``) and ``index.json`` (count, type, size, checksums), written last.
"""

import json
import os
import shutil
import uuid
import zlib
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.models.store.memory_map import MappedFile

_FORMAT = 1
_BLOCK = 1 << 22


class RaggedWriter:
    """Writes a store row by row; the folder appears, whole, at ``close``.

    As a context manager it closes at the end and leaves nothing behind after an exception. Only one number a row stays
    in memory. Raises InputError where ``folder`` holds something already.
    """

    def __init__(self, folder: Path, dtype: str | np.dtype | type) -> None:
        self.folder = Path(folder)
        self.dtype = np.dtype(dtype).newbyteorder("<")
        if self.dtype.kind not in "biuf":
            raise ValueError(f"a ragged store keeps numbers, not {self.dtype}")
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise InputError(f"{self.folder}: exists already; delete it or choose another folder")
        self._temporary = self.folder.with_name(f".{self.folder.name}-{uuid.uuid4().hex}.tmp")
        self._temporary.mkdir(parents=True)
        self._file = (self._temporary / "data.bin").open("wb")
        self._offsets = array("q", [0])
        self._crc = 0

    def append(self, rows: Iterable[Sequence[int] | Sequence[float] | np.ndarray]) -> None:
        """Add rows, each one-dimensional.

        Raises ValueError where a row has another shape or a value that the store's type can't hold.
        """
        arrays = [self._converted(row) for row in rows]
        if not arrays:
            return
        data = np.concatenate(arrays)
        end = self._offsets[-1]
        for row in arrays:
            end += len(row)
            self._offsets.append(end)
        self._file.write(data.data)
        self._crc = zlib.crc32(data.data, self._crc)

    def close(self) -> None:
        """Finish the store and give the folder its name."""
        self._file.close()
        offsets = np.frombuffer(self._offsets, dtype=np.int64).astype("<i8")
        np.save(self._temporary / "offsets.npy", offsets, allow_pickle=False)
        index = {
            "format": _FORMAT,
            "count": len(offsets) - 1,
            "dtype": self.dtype.str,
            "size": int(offsets[-1]),
            "lengths_crc": _lengths_crc(offsets),
            "data_crc": self._crc,
        }
        (self._temporary / "index.json").write_text(json.dumps(index) + "\n", encoding="utf-8")
        os.replace(self._temporary, self.folder)

    def discard(self) -> None:
        """Forget everything that was appended."""
        self._file.close()
        shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> "RaggedWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def _converted(self, row: Sequence[int] | Sequence[float] | np.ndarray) -> np.ndarray:
        given = np.asarray(row)
        if given.ndim != 1:
            raise ValueError(f"a row has one dimension, not {given.ndim}")
        with np.errstate(invalid="ignore", over="ignore"):
            kept = given.astype(self.dtype)
        # Rounding a float64 to float32 is expected; a token id that wraps around is a mistake.
        if (
            given.size
            and (self.dtype.kind != "f" or given.dtype.kind not in "biuf")
            and not np.array_equal(kept, given)
        ):
            raise ValueError(f"a row holds values that {self.dtype} can't hold")
        return kept


class Ragged:
    """A store opened for reading: ``store[i]`` is row i, a read-only view of the mapped file."""

    def __init__(self, file: MappedFile, dtype: np.dtype, offsets: np.ndarray) -> None:
        self._file = file
        self._data = file.data.view(dtype)
        self._offsets = offsets

    @classmethod
    def open(cls, folder: Path, *, check: bool = True) -> "Ragged":
        """Open the store in ``folder``.

        Sizes and row lengths are always checked; ``check=False`` spares reading the data once to compare its checksum
        (a second for each gigabyte or two). Raises InputError where the store is missing, unfinished or damaged.
        """
        folder = Path(folder)
        index = _read_index(folder)
        try:
            dtype, count, size = np.dtype(index["dtype"]), int(index["count"]), int(index["size"])
            offsets = np.load(folder / "offsets.npy", mmap_mode="r", allow_pickle=False).view(np.ndarray)
            found = (folder / "data.bin").stat().st_size
            sound = (
                index["format"] == _FORMAT
                and offsets.shape == (count + 1,)
                and offsets.dtype == np.int64
                and found == size * dtype.itemsize
                and _lengths_crc(offsets) == index["lengths_crc"]
                and offsets[0] == 0
                and offsets[-1] == size
                and (not check or _file_crc(folder / "data.bin") == index["data_crc"])
            )
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise _damaged(folder) from error
        if not sound:
            raise _damaged(folder)
        return cls(MappedFile(folder / "data.bin"), dtype, offsets)

    @property
    def dtype(self) -> np.dtype:
        """The type of the rows."""
        return self._data.dtype

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> np.ndarray:
        if not -len(self) <= number < len(self):
            raise IndexError(f"row {number} of {len(self)}")
        place = number % len(self)
        row = self._data[self._offsets[place] : self._offsets[place + 1]]
        self._file.touched(1, row.nbytes)
        return row

    def lengths(self, rows: np.ndarray | None = None) -> np.ndarray:
        """The length of every row, or of those with the numbers ``rows``; int64 [n]."""
        return np.diff(self._offsets) if rows is None else self._offsets[rows + 1] - self._offsets[rows]


def _lengths_crc(offsets: np.ndarray) -> int:
    """CRC-32 of the offsets, which fix the lengths."""
    crc = 0
    for start in range(0, len(offsets), _BLOCK):
        crc = zlib.crc32(np.ascontiguousarray(offsets[start : start + _BLOCK], dtype="<i8").data, crc)
    return crc


def _file_crc(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            crc = zlib.crc32(block, crc)
    return crc


def _read_index(folder: Path) -> dict[str, Any]:
    try:
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{folder}: no finished store of rows (index.json is missing); build it again") from error
    except (OSError, ValueError) as error:
        raise _damaged(folder) from error
    if not isinstance(index, dict):
        raise _damaged(folder)
    return index


def _damaged(folder: Path) -> InputError:
    return InputError(f"{folder}: the store of rows is damaged; delete the folder and build it again")

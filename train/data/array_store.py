"""Arrays of different lengths on disk, one a text: token ids, keys of sentences, bytes.

A folder with ``data.bin`` (all arrays end to end, little-endian), ``offsets.npy`` (int64 [n + 1]: array i is
``data[offsets[i]:offsets[i + 1]]``) and ``index.json`` (count, type, size, checksums). Arrow's lists were tried: to read
one array takes three times as long, and there are no checksums.
"""

import json
import os
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from negsample.errors import InputError
from negsample.io.files import new_folder

_FORMAT = 1
_BLOCK = 1 << 22


class ArrayWriter:
    """Writes arrays of type ``dtype`` to ``file``, end to end. Only one number an array stays in memory."""

    def __init__(self, file: BinaryIO, dtype: np.dtype) -> None:
        self.dtype = dtype
        self.offsets = array("q", [0])
        self.crc = 0
        self._file = file

    def append(self, arrays: Sequence[np.ndarray]) -> None:
        """Add arrays, each one-dimensional.

        Raises ValueError where one has another shape, TypeError where its type holds more than the store's.
        """
        if not len(arrays):
            return
        data = np.concatenate(arrays, dtype=self.dtype, casting="safe")
        if data.ndim != 1:
            raise ValueError(f"an array has one dimension, not {data.ndim}")
        end = self.offsets[-1]
        for each in arrays:
            end += len(each)
            self.offsets.append(end)
        self._file.write(data.data)
        self.crc = zlib.crc32(data.data, self.crc)


@contextmanager
def new_store(folder: Path, dtype: str) -> Iterator[ArrayWriter]:
    """A writer of arrays of type ``dtype``; the folder appears, whole, when the block ends well.

    Raises InputError where ``folder`` holds something already.
    """
    with new_folder(str(folder)) as draft:
        with (draft / "data.bin").open("wb") as file:
            writer = ArrayWriter(file, np.dtype(dtype).newbyteorder("<"))
            yield writer
        offsets = np.frombuffer(writer.offsets, dtype=np.int64).astype("<i8")
        np.save(draft / "offsets.npy", offsets, allow_pickle=False)
        index = {
            "format": _FORMAT,
            "count": len(offsets) - 1,
            "dtype": writer.dtype.str,
            "size": int(offsets[-1]),
            "lengths_crc": zlib.crc32(offsets.data),
            "data_crc": writer.crc,
        }
        (draft / "index.json").write_text(json.dumps(index) + "\n", encoding="utf-8")


class ArrayStore:
    """The store in ``folder``, opened for reading: ``store[i]`` is array i, read-only.

    The data is read once to compare its checksum, and is not held in memory. Raises InputError where the store is
    missing, unfinished or damaged.
    """

    def __init__(self, folder: Path) -> None:
        try:
            index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
            self.dtype = np.dtype(index["dtype"])
            self._file = (folder / "data.bin").open("rb", buffering=0)
            self._offsets = np.load(folder / "offsets.npy", mmap_mode="r", allow_pickle=False).view(np.ndarray)
            crc = size = 0
            while block := self._file.read(_BLOCK):
                crc, size = zlib.crc32(block, crc), size + len(block)
            sound = (
                index["format"] == _FORMAT
                and self._offsets.dtype == np.int64
                and self._offsets.shape == (index["count"] + 1,)
                and size == index["size"] * self.dtype.itemsize
                and zlib.crc32(self._offsets.data) == index["lengths_crc"]
                and crc == index["data_crc"]
            )
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise _damaged(folder) from error
        if not sound:
            raise _damaged(folder)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> np.ndarray:
        if not -len(self) <= number < len(self):
            raise IndexError(f"array {number} of {len(self)}")
        place = number % len(self)
        begin, end = (int(offset) * self.dtype.itemsize for offset in self._offsets[place : place + 2])
        return np.frombuffer(os.pread(self._file.fileno(), end - begin, begin), self.dtype)

    def lengths(self, numbers: np.ndarray) -> np.ndarray:
        """Return the lengths of the arrays with the ``numbers``; int64 [n]."""
        return self._offsets[numbers + 1] - self._offsets[numbers]


def _damaged(folder: Path) -> InputError:
    return InputError(f"{folder}: the store of texts is unfinished or damaged; delete the folder and build it again")

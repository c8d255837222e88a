"""The files of the embedding cache, each with the vectors of some texts and never changed once it has its name.

A file is ``seg-<random>.bin``, little-endian: a 64-byte header (magic, owner, number of rows, width, type, three
CRC-32s), then the index (the first and second 8 bytes of every key, sorted, and the row each key stands for), then the
rows in the order in which they were written, so that the sentences of one document lie together.

A file is written under a temporary name and renamed, so a reader sees a whole file or none, and processes that write
at the same time need no lock. SQLite and Arrow were tried: SQLite finds and reads vectors four to five times as slowly
and its writers wait for each other; Arrow reads rows here and there nine times as slowly and has no checksums.
"""

import contextlib
import os
import struct
import time
import uuid
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from negsample.models.store.memory_map import MappedFile
from negsample.models.store.text_keys import halves

PATTERN = "seg-*.bin"
_TEMPORARY = "tmp-*"
_STALE_SECONDS = 3600.0
_MAGIC = b"NEGSEG01"
_HEADER = struct.Struct("<8s16sQI4sIII")  # magic, owner, count, dim, dtype, CRCs of index, rows and the header itself
_HEADER_BYTES = 64
_INDEX_BYTES = 24  # a row's share of the index: two halves of the key and its row number
_COPY_ROWS = 8192


class Damaged(Exception):
    """A file is not what its header says; the message gives the reason."""


@dataclass(frozen=True, eq=False)
class VectorFile:
    """One open file; all arrays are read-only views of its memory map.

    ``owner``: whose vectors it holds (16 bytes); ``high``, ``low``: uint64 [n], the halves of the keys in ascending order;
    ``order``: int64 [n], the row each key stands for; ``rows``: [n, dim] in the order of writing; ``checksums`` of the
    index and of the rows.
    """

    path: Path
    owner: bytes
    high: np.ndarray
    low: np.ndarray
    order: np.ndarray
    rows: np.ndarray
    checksums: tuple[int, int]
    file: MappedFile

    def __len__(self) -> int:
        return len(self.high)

    @property
    def size(self) -> int:
        """The length in bytes of the whole file."""
        return len(self.file.data)

    def check(self) -> None:
        """Read the file whole. Raises Damaged where its index or its rows have changed since they were written."""
        start = _HEADER_BYTES + len(self) * _INDEX_BYTES
        if self.file.crc(_HEADER_BYTES, start) != self.checksums[0]:
            raise Damaged("its index has changed since it was written")
        if self.file.crc(start, self.size) != self.checksums[1]:
            raise Damaged("its rows have changed since they were written")

    def find(self, high: np.ndarray, low: np.ndarray) -> np.ndarray:
        """Return the row of each key (uint64 [q] halves), -1 where the file does not have it; int64 [q]."""
        found = np.full(len(high), -1, dtype=np.int64)
        place = np.searchsorted(self.high, high)
        open_ = np.flatnonzero(place < len(self))
        # Keys that share their first half stand side by side; one step is all there is in practice.
        while open_.size:
            at = place[open_]
            near = self.high[at] == high[open_]
            open_, at = open_[near], at[near]
            hit = self.low[at] == low[open_]
            found[open_[hit]] = self.order[at[hit]]
            open_ = open_[~hit]
            place[open_] += 1
            open_ = open_[place[open_] < len(self)]
        self.file.touched(len(high))
        return found

    def take(self, numbers: np.ndarray) -> np.ndarray:
        """Return the rows ``numbers`` (int [q]), copied; [q, dim]."""
        found = self.rows[numbers]
        self.file.touched(len(numbers), found.nbytes)
        return found

    def keys(self) -> np.ndarray:
        """Return the keys in the order of the rows; uint8 [n, 16]."""
        keys = np.empty((len(self), 2), dtype=">u8")
        keys[self.order, 0] = self.high
        keys[self.order, 1] = self.low
        return keys.view(np.uint8)


def open_vectors(path: Path) -> VectorFile:
    """Map a file, its header and length checked; ``VectorFile.check`` does the rest.

    Raises Damaged where the header is none or the length another than it says, FileNotFoundError where the file is gone.
    """
    file = MappedFile(path)
    if len(file.data) < _HEADER_BYTES or file.data[: len(_MAGIC)].tobytes() != _MAGIC:
        raise Damaged("it does not begin like a file of vectors")
    *fields, crc = _HEADER.unpack_from(file.data.data)
    if zlib.crc32(_HEADER.pack(*fields, 0)) != crc:
        raise Damaged("its header has changed since it was written")
    _, owner, count, dim, name, *checksums = fields
    dtype = np.dtype(name.rstrip(b"\0").decode("ascii"))
    start = _HEADER_BYTES + count * _INDEX_BYTES
    size = start + count * dim * dtype.itemsize
    if not count:
        raise Damaged("it has no rows")
    if len(file.data) != size:
        raise Damaged(f"it has {len(file.data)} bytes, not {size}")
    high, low, order = file.data[_HEADER_BYTES:start].view("<u8").reshape(3, count)
    rows = file.data[start:].view(dtype).reshape(count, dim)
    return VectorFile(path, owner, high, low, order.view("<i8"), rows, (checksums[0], checksums[1]), file)


def write_vectors(
    folder: Path, owner: bytes, keys: np.ndarray, blocks: Iterable[np.ndarray], dim: int, dtype: str
) -> VectorFile:
    """Write one file and map it: ``keys`` uint8 [n, 16], all different; ``blocks`` the n rows in order, [.., dim].

    Raises OSError where the disk refuses; nothing is left behind then.
    """
    high, low = halves(keys)
    order = np.lexsort((low, high)).astype("<i8")
    index = b"".join(array.tobytes() for array in (high[order].astype("<u8"), low[order].astype("<u8"), order))
    name = uuid.uuid4().hex
    temporary, path = folder / f"tmp-{name}", folder / f"seg-{name}.bin"
    try:
        with temporary.open("wb") as file:
            file.write(b"\0" * _HEADER_BYTES)
            file.write(index)
            rows_crc = 0
            for block in blocks:
                data = np.ascontiguousarray(block, dtype=dtype)
                file.write(data.data)
                rows_crc = zlib.crc32(data.data, rows_crc)
            fields = (_MAGIC, owner, len(keys), dim, dtype.encode(), zlib.crc32(index), rows_crc)
            file.seek(0)
            file.write(_HEADER.pack(*fields, zlib.crc32(_HEADER.pack(*fields, 0))))
        # Mapped before it gets its name: once named, another process may merge it into a larger one and delete it.
        written = open_vectors(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return replace(written, path=path)


def merge(folder: Path, owner: bytes, files: Sequence[VectorFile]) -> tuple[VectorFile, list[int | None]]:
    """Write ``files`` as one; the old files stay.

    Returns the new file and, for each old one, the number its first row has in the new one. It is None where some of
    its keys stood in an earlier file as well (two processes had encoded the same text), so that its rows do not
    follow one another in the new one. Holds the keys in memory, 48 bytes or so a row, never the rows.
    """
    keys: list[np.ndarray] = []
    chosen: list[np.ndarray] = []
    bases: list[int | None] = []
    for position, file in enumerate(files):
        own = file.keys()
        seen = np.zeros(len(own), dtype=bool)
        for earlier in files[:position]:
            seen |= earlier.find(*halves(own)) >= 0
        bases.append(None if seen.any() else sum(map(len, keys)))
        chosen.append(np.flatnonzero(~seen))
        keys.append(own[chosen[-1]])
    blocks = (
        # Where nothing is left out, straight from the mapped file, without a copy.
        file.rows[start : start + _COPY_ROWS] if base is not None else file.rows[rows[start : start + _COPY_ROWS]]
        for file, rows, base in zip(files, chosen, bases, strict=True)
        for start in range(0, len(rows), _COPY_ROWS)
    )
    rows = files[0].rows
    return write_vectors(folder, owner, np.concatenate(keys), blocks, rows.shape[1], rows.dtype.str), bases


def remove_leftovers(folder: Path) -> None:
    """Delete the temporary files of writers that died: those nobody has written to for an hour."""
    for path in folder.glob(_TEMPORARY):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                path.unlink()


def all_files(folder: Path) -> list[Path]:
    """Return every file in ``folder`` that this module made."""
    return sorted([*folder.glob(PATTERN), *folder.glob(_TEMPORARY)])

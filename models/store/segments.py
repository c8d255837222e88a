"""The file format of the embedding cache: append-only segments, each a file that is never changed once it has its name.

One segment is ``seg-<random>.bin``, little-endian: a 64-byte header (magic, owner, number of rows, width, type, three
CRC-32s), then the index (the first and second 8 bytes of every key, sorted, and the row each key stands for), then the
rows in the order in which they were written, so that the sentences of one document lie together.

A segment is written under a temporary name and renamed, so a reader sees a whole file or none, and processes that
write at the same time need no lock.
"""

import contextlib
import fcntl
import os
import struct
import time
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from negsample.models.store.memory_map import MappedFile

KEY_BYTES = 16
PATTERN = "seg-*.bin"
_TEMPORARY = "tmp-*"
_STALE_SECONDS = 3600.0
_MAGIC = b"NEGSEG01"
_HEADER = struct.Struct("<8s16sQI4sIII")  # magic, owner, count, dim, dtype, CRCs of index, rows and the header itself
_HEADER_BYTES = 64
_INDEX_BYTES = 24  # a row's share of the index: two halves of the key and its row number
_BLOCK = 1 << 22
_COPY_ROWS = 8192


class Damaged(Exception):
    """A segment is not what its header says; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a segment holds: ``owner`` says whose vectors (16 bytes), ``dtype`` is numpy's name, e.g. ``"<f4"``."""

    owner: bytes
    count: int
    dim: int
    dtype: str
    index_crc: int
    rows_crc: int

    @property
    def size(self) -> int:
        """The length in bytes of the whole file."""
        return _HEADER_BYTES + self.count * (_INDEX_BYTES + self.dim * np.dtype(self.dtype).itemsize)

    def pack(self) -> bytes:
        """The header as it stands in the file."""
        fields = (_MAGIC, self.owner, self.count, self.dim, self.dtype.encode(), self.index_crc, self.rows_crc)
        crc = zlib.crc32(_HEADER.pack(*fields, 0))
        return _HEADER.pack(*fields, crc).ljust(_HEADER_BYTES, b"\0")


@dataclass(frozen=True, eq=False)
class Segment:
    """One open segment; all arrays are read-only views of the mapped file.

    ``high``, ``low``: uint64 [n], the halves of the keys in ascending order; ``order``: int64 [n], the row each key
    stands for; ``rows``: [n, dim] in the order of writing.
    """

    path: Path
    high: np.ndarray
    low: np.ndarray
    order: np.ndarray
    rows: np.ndarray
    file: MappedFile

    def __len__(self) -> int:
        return len(self.high)

    @property
    def size(self) -> int:
        """The length in bytes of the whole file."""
        return _HEADER_BYTES + len(self) * _INDEX_BYTES + self.rows.nbytes

    def find(self, high: np.ndarray, low: np.ndarray) -> np.ndarray:
        """The row of each key (uint64 [q] halves), -1 where the segment does not have it; int64 [q]."""
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
        """The rows ``numbers`` (int [q]), copied; [q, dim]."""
        found = self.rows[numbers]
        self.file.touched(len(numbers), found.nbytes)
        return found

    def keys(self) -> np.ndarray:
        """The keys in the order of the rows; uint8 [n, 16]."""
        keys = np.empty((len(self), 2), dtype=">u8")
        keys[self.order, 0] = self.high
        keys[self.order, 1] = self.low
        return keys.view(np.uint8)


def halves(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keys uint8 [n, 16] as two uint64 [n] whose lexicographic order is that of the bytes."""
    pairs = np.ascontiguousarray(keys, dtype=np.uint8).view(">u8").astype(np.uint64)
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def read_header(path: Path) -> Header:
    """The header of a segment. Raises Damaged where it is none, or where the file has another length than it says."""
    with path.open("rb") as file:
        raw = file.read(_HEADER_BYTES)
        size = os.fstat(file.fileno()).st_size
    if len(raw) < _HEADER_BYTES or not raw.startswith(_MAGIC):
        raise Damaged("it does not begin like a segment")
    *fields, crc = _HEADER.unpack_from(raw)
    if zlib.crc32(_HEADER.pack(*fields, 0)) != crc:
        raise Damaged("its header has changed since it was written")
    _, owner, count, dim, dtype, index_crc, rows_crc = fields
    header = Header(owner, count, dim, dtype.rstrip(b"\0").decode("ascii"), index_crc, rows_crc)
    if not header.count:
        raise Damaged("it has no rows")
    if size != header.size:
        raise Damaged(f"it has {size} bytes, not {header.size}")
    return header


def open_segment(path: Path) -> Segment:
    """Check a segment whole (length, index, rows: about a second for each gigabyte or two) and map it.

    Raises Damaged where anything has changed since it was written, FileNotFoundError where it is gone.
    """
    header = read_header(path)
    with path.open("rb") as file:
        file.seek(_HEADER_BYTES)
        if _crc_of(file, header.count * _INDEX_BYTES) != header.index_crc:
            raise Damaged("its index has changed since it was written")
        if _crc_of(file, header.size - _HEADER_BYTES - header.count * _INDEX_BYTES) != header.rows_crc:
            raise Damaged("its rows have changed since they were written")
    return _mapped(path, header)


def write_segment(
    folder: Path, owner: bytes, keys: np.ndarray, blocks: Iterable[np.ndarray], dim: int, dtype: str
) -> Segment:
    """Write one segment and map it: ``keys`` uint8 [n, 16], all different; ``blocks`` the n rows in order, [.., dim].

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
            written, rows_crc = 0, 0
            for block in blocks:
                data = np.ascontiguousarray(block, dtype=dtype)
                file.write(data.data)
                rows_crc = zlib.crc32(data.data, rows_crc)
                written += len(data)
            if written != len(keys):
                raise ValueError(f"{len(keys)} keys but {written} rows")
            header = Header(owner, written, dim, dtype, zlib.crc32(index), rows_crc)
            file.seek(0)
            file.write(header.pack())
        # Mapped before it gets its name: once named, another process may merge it into a larger one and delete it.
        segment = _mapped(temporary, header)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return replace(segment, path=path)


def merge(folder: Path, owner: bytes, segments: Sequence[Segment]) -> tuple[Segment, list[int | None]]:
    """Write ``segments`` as one; the old files stay.

    Returns the new segment and, for each old one, the number its first row has in the new one. It is None where some of
    its keys stood in an earlier segment as well (two processes had encoded the same text), so that its rows do not
    follow one another in the new one. Holds the keys in memory, 40 bytes or so a row, never the rows.
    """
    places: list[tuple[Segment, np.ndarray | None]] = []
    keys: list[np.ndarray] = []
    bases: list[int | None] = []
    count = 0
    for position, segment in enumerate(segments):
        own = segment.keys()
        seen = np.zeros(len(own), dtype=bool)
        for earlier in segments[:position]:
            seen |= earlier.find(*halves(own)) >= 0
        chosen = np.flatnonzero(~seen) if seen.any() else None
        bases.append(count if chosen is None else None)
        keys.append(own if chosen is None else own[chosen])
        places.append((segment, chosen))
        count += len(keys[-1])

    def blocks() -> Iterator[np.ndarray]:
        for segment, chosen in places:
            for start in range(0, len(segment) if chosen is None else len(chosen), _COPY_ROWS):
                stop = start + _COPY_ROWS
                yield segment.rows[start:stop] if chosen is None else segment.rows[chosen[start:stop]]

    rows = segments[0].rows
    return write_segment(folder, owner, np.concatenate(keys), blocks(), rows.shape[1], rows.dtype.str), bases


@contextlib.contextmanager
def lock(path: Path) -> Iterator[bool]:
    """Whether this process now holds the lock file; never waits. The kernel frees the lock of a process that dies."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield _is_still(path, file.fileno())


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether ``path`` is the file that is open: its last holder may have deleted it before it let it go."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def remove_leftovers(folder: Path) -> None:
    """Delete the temporary files of writers that died: those nobody has written to for an hour."""
    for path in folder.glob(_TEMPORARY):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                path.unlink()


def files(folder: Path) -> list[Path]:
    """Every file in ``folder`` that this module made."""
    return sorted([*folder.glob(PATTERN), *folder.glob(_TEMPORARY)])


def _mapped(path: Path, header: Header) -> Segment:
    """The segment's arrays over one memory map (one file descriptor)."""
    count, dtype = header.count, np.dtype(header.dtype)
    file = MappedFile(path)
    high, low, order = (
        np.frombuffer(file.data, dtype=kind, count=count, offset=_HEADER_BYTES + part * 8 * count)
        for part, kind in enumerate(("<u8", "<u8", "<i8"))
    )
    start = _HEADER_BYTES + count * _INDEX_BYTES
    rows = np.frombuffer(file.data, dtype=dtype, count=count * header.dim, offset=start)
    return Segment(path, high, low, order, rows.reshape(count, header.dim), file)


def _crc_of(file: BinaryIO, length: int) -> int:
    """CRC-32 of the next ``length`` bytes."""
    crc = 0
    while length > 0:
        block = file.read(min(_BLOCK, length))
        if not block:
            raise Damaged("it ends too early")
        crc = zlib.crc32(block, crc)
        length -= len(block)
    return crc

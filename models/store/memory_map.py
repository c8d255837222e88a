"""Files mapped into memory, whose pages are given back now and then.

The kernel counts every page of a mapped file that a process has touched as its memory, until it needs the room. A pass
over a large store would so seem to hold all of it, and a job scheduler that limits memory may end the process.
"""

import mmap
import zlib
from pathlib import Path

import numpy as np

# Reading one byte maps the 64 kB around it (Linux's fault-around).
_AROUND = 1 << 16
_MOST = 1 << 25
_BLOCK = 1 << 22


class MappedFile:
    """The bytes of ``path``, read-only: ``data`` uint8 [size]. Views of it stay good whatever is given back."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            # An empty file can't be mapped.
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else None
        self.data = np.frombuffer(self._map, np.uint8) if self._map is not None else np.empty(0, np.uint8)
        self._touched = 0

    def touched(self, places: int, size: int = 0) -> None:
        """Tell that ``places`` places and ``size`` bytes in all were read; some 32 MB of them and the pages are given back."""
        self._touched += places * _AROUND + size
        if self._touched > _MOST and len(self.data) > _MOST:
            self._give_back()

    def _give_back(self) -> None:
        if self._map is not None:
            self._map.madvise(mmap.MADV_DONTNEED)
        self._touched = 0

    def crc(self, start: int, stop: int) -> int:
        """Return the CRC-32 of the bytes from ``start`` to ``stop``; about a second for each gigabyte or two."""
        crc = 0
        for begin in range(start, stop, _BLOCK):
            block = self.data[begin : min(begin + _BLOCK, stop)]
            crc = zlib.crc32(block.data, crc)
            self.touched(1, len(block))
        self._give_back()
        return crc

"""Pairs kept in a temporary file and read back by number, so that memory does not grow with their texts."""

import json
import os
import tempfile
from array import array
from pathlib import Path
from types import TracebackType

from negsample.errors import InputError
from negsample.io.files import failure
from negsample.records import Pair

_FLUSH_BYTES = 1 << 20


class Spool:
    """A nameless temporary file in ``folder``, gone when closed or when the process ends, however it ends.

    Each pair is a head (id, corpus, summary) and the document after it, so that a summary is read without its document.
    All methods raise InputError where the disk fails or is full.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Begin of each pair, and the length of its head; 12 bytes a pair.
        self._begins = array("Q")
        self._heads = array("I")
        self._end = 0
        self._pending = bytearray()
        try:
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise failure(str(folder), error) from error

    def __len__(self) -> int:
        return len(self._begins)

    def append(self, pair: Pair) -> None:
        """Store ``pair``; its number is the length before."""
        head = json.dumps([pair.id, pair.corpus, pair.summary]).encode("ascii")
        body = pair.document.encode("utf-8", "surrogatepass")
        self._begins.append(self._end)
        self._heads.append(len(head))
        self._pending += head
        self._pending += body
        self._end += len(head) + len(body)
        if len(self._pending) > _FLUSH_BYTES:
            self._flush()

    def _flush(self) -> None:
        try:
            view = memoryview(bytes(self._pending))
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            raise failure(str(self._folder), error) from error
        self._pending.clear()

    def _read(self, begin: int, stop: int) -> bytes:
        if self._pending:
            self._flush()
        try:
            data = os.pread(self._file.fileno(), stop - begin, begin)
        except OSError as error:
            raise failure(str(self._folder), error) from error
        if len(data) != stop - begin:
            raise InputError(f"{self._folder}: a temporary file in it was cut short; run this again")
        return data

    def head(self, number: int) -> tuple[str, str, str]:
        """Id, corpus and summary of pair ``number``."""
        begin = self._begins[number]
        identifier, corpus, summary = json.loads(self._read(begin, begin + self._heads[number]))
        return identifier, corpus, summary

    def pair(self, number: int) -> Pair:
        """Pair ``number``, as it was stored."""
        begin, head = self._begins[number], self._heads[number]
        stop = self._begins[number + 1] if number + 1 < len(self) else self._end
        data = self._read(begin, stop)
        identifier, corpus, summary = json.loads(data[:head])
        return Pair(identifier, data[head:].decode("utf-8", "surrogatepass"), summary, corpus)

    def close(self) -> None:
        """Give the disk space back."""
        self._file.close()

    def __enter__(self) -> "Spool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

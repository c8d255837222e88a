"""Pairs kept in a temporary file and read back by number, so that memory does not grow with their texts."""

import json
import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from negsample.errors import InputError
from negsample.io.files import failure
from negsample.records import Pair


class PairStore:
    """A nameless temporary file in ``folder``, gone when closed or when the process ends, however it ends.

    A summary can be read without its document. All methods raise InputError where the disk fails or is full.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Where each pair's head (id, corpus, summary) begins, where its document does, and where the last one ends.
        self._bounds = array("Q", [0])
        with self._explained():
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise failure(str(self._folder), error) from error

    def __len__(self) -> int:
        return len(self._bounds) // 2

    def append(self, pair: Pair) -> None:
        """Store ``pair``; its number is the length before. All pairs are stored before the first is read."""
        for text in (json.dumps([pair.id, pair.corpus, pair.summary]), pair.document):
            data = text.encode("utf-8", "surrogatepass")
            with self._explained():
                self._file.write(data)
            self._bounds.append(self._bounds[-1] + len(data))

    def _read(self, place: int) -> str:
        begin, stop = self._bounds[place : place + 2]
        with self._explained():
            self._file.seek(begin)
            data = self._file.read(stop - begin)
        if len(data) != stop - begin:
            raise InputError(f"{self._folder}: a temporary file in it was cut short; run this again")
        return data.decode("utf-8", "surrogatepass")

    def summary(self, number: int) -> Pair:
        """Return pair ``number`` without its document (``""``)."""
        identifier, corpus, summary = json.loads(self._read(2 * number))
        return Pair(identifier, "", summary, corpus)

    def pair(self, number: int) -> Pair:
        """Return pair ``number``, as it was stored."""
        return replace(self.summary(number), document=self._read(2 * number + 1))

    def close(self) -> None:
        """Give the disk space back."""
        # A full disk may fail once more here, in writing what nobody will read.
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> "PairStore":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

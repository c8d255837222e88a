"""The pairs of a corpus of any length: their texts in a temporary file, of each some 60 bytes of hashes in memory."""

import hashlib
import json
import tempfile
from array import array
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from negsample.errors import InputError
from negsample.io.files import explained
from negsample.negatives.split import link
from negsample.records import Pair, document_key
from negsample.seeds import digest
from negsample.sentences import normalise

_DTYPE = np.dtype([("key", "S16"), ("summary", "S16"), ("self", "S8"), ("id", "S8"), ("full_id", "S8")])


def summary_digest(text: str) -> bytes:
    """Hash of a summary, equal for texts that ``normalise`` holds to be the same. 16 bytes."""
    return digest(normalise(text))


def padded(value: bytes) -> bytes:
    """A 16-byte hash taken out of an array: numpy's byte strings lose the zero bytes at their end."""
    return bytes(value).ljust(16, b"\0")


@dataclass(frozen=True, slots=True)
class PairIndex:
    """The distinct pairs, sorted by (document key, summary hash), whatever order they came in.

    All arrays but ``first`` and ``group`` have one entry a pair; a *position* is a place in them.

    - ``number``: the place of the pair in the input, from 0.
    - ``key``, ``summary``: 16-byte hashes of the normalised texts.
    - ``document``: the number of its document, 0 … documents − 1, ascending.
    - ``id_state``: 0 where its id is unique, 1 where it is within its corpus only, 2 where it is not even that.
    - ``first`` [documents + 1]: position of each document's first pair (and the number of pairs, last).
    - ``group`` [documents]: documents linked by a common summary text have the same number.
    - ``duplicates``: pairs left out because document and summary agree with another's.
    """

    number: np.ndarray
    key: np.ndarray
    summary: np.ndarray
    document: np.ndarray
    id_state: np.ndarray
    first: np.ndarray
    group: np.ndarray
    duplicates: int

    def positions_of(self, pair: Pair) -> range:
        """Positions of the pairs that have the document of ``pair``; empty where there is none."""
        key = np.array(bytes.fromhex(document_key(pair.document)), dtype="S16")
        return range(int(np.searchsorted(self.key, key)), int(np.searchsorted(self.key, key, side="right")))


def index_of(pairs: Iterable[Pair]) -> PairIndex:
    """Index ``pairs``, read once. Of pairs that agree the one with the smallest hash of everything is kept."""
    hashes = bytearray()
    for pair in pairs:
        hashes += bytes.fromhex(document_key(pair.document)) + summary_digest(pair.summary)
        hashes += digest(pair.id, pair.corpus, pair.document, pair.summary, size=8)
        hashes += digest(pair.id, size=8) + digest(pair.corpus, pair.id, size=8)
    table = np.frombuffer(hashes, dtype=_DTYPE)
    order = np.lexsort((table["self"], table["summary"], table["key"]))
    # One column at a time: a sorted copy of the whole table would double what is in memory.
    fresh = _opens(table["key"][order]) | _opens(table["summary"][order])
    order = order[fresh]
    key, summary = table["key"][order], table["summary"][order]
    opens = _opens(key)
    document = (np.cumsum(opens) - 1).astype(np.int32)
    return PairIndex(
        number=order.astype(np.int64),
        key=key,
        summary=summary,
        document=document,
        id_state=np.where(_repeated(table["full_id"][order]), 2, _repeated(table["id"][order])).astype(np.uint8),
        first=np.append(np.flatnonzero(opens), len(order)),
        group=link(document, np.unique(summary, return_inverse=True)[1].astype(np.int32)),
        duplicates=len(fresh) - len(order),
    )


def _opens(values: np.ndarray) -> np.ndarray:
    """Whether each value differs from the one before it, as the first one does; bool [n]."""
    return np.append(np.ones(min(len(values), 1), dtype=bool), values[1:] != values[:-1])


def fingerprint(index: PairIndex, positions: np.ndarray | slice = slice(None)) -> str:
    """SHA-256 of the hashes of the pairs at ``positions`` (default: all), as 64 hex digits, whatever order they came in."""
    hasher = hashlib.sha256(np.ascontiguousarray(index.key[positions]).tobytes())
    hasher.update(np.ascontiguousarray(index.summary[positions]).tobytes())
    return hasher.hexdigest()


def _repeated(values: np.ndarray) -> np.ndarray:
    """Whether each value comes more than once; bool [n]."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return counts[place] > 1


class PairStore:
    """A nameless temporary file in ``folder``, gone when closed or when the process ends, however it ends.

    All methods raise InputError where the disk fails or is full.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        # Where each pair begins, and where the last one ends.
        self._bounds = array("Q", [0])
        with explained(self._folder):
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by __exit__

    def append(self, pair: Pair) -> None:
        """Store ``pair``; its number is how many were stored before. All are stored before the first is read."""
        data = json.dumps([pair.id, pair.document, pair.summary, pair.corpus, pair.domain]).encode("ascii")
        with explained(self._folder):
            self._file.write(data)
        self._bounds.append(self._bounds[-1] + len(data))

    def pair(self, number: int) -> Pair:
        """Return pair ``number``, as it was stored."""
        begin, stop = self._bounds[number : number + 2]
        with explained(self._folder):
            self._file.seek(begin)
            data = self._file.read(stop - begin)
        if len(data) != stop - begin:
            raise InputError(f"{self._folder}: a temporary file in it was cut short; run this again")
        return Pair(*json.loads(data))

    def __enter__(self) -> "PairStore":
        return self

    def __exit__(self, *error: object) -> None:
        # A full disk may fail once more here, in writing what nobody will read.
        with suppress(OSError):
            self._file.close()

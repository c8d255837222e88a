"""What is kept in memory of each pair: hashes and numbers, some 60 bytes, so that corpora of any length go through."""

import hashlib
from dataclasses import dataclass

import numpy as np

from negsample.negatives.split import link
from negsample.records import Pair, document_key
from negsample.seeds import digest
from negsample.sentences import normalise

_DTYPE = np.dtype([("key", "S16"), ("summary", "S16"), ("self", "S8"), ("id", "S8"), ("full_id", "S8")])


def summary_digest(text: str) -> bytes:
    """Hash of a summary, equal for texts that differ only in case and white space. 16 bytes."""
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
        key = np.array([bytes.fromhex(document_key(pair.document))], dtype="S16")
        begin = int(np.searchsorted(self.key, key, side="left")[0])
        stop = int(np.searchsorted(self.key, key, side="right")[0])
        return range(begin, stop)


class IndexBuilder:
    """Collects the hashes of pairs as they stream by."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def __len__(self) -> int:
        return len(self._bytes) // _DTYPE.itemsize

    def add(self, pair: Pair) -> None:
        """Take in one pair; its number is how many came before."""
        self._bytes += bytes.fromhex(document_key(pair.document))
        self._bytes += summary_digest(pair.summary)
        self._bytes += digest(pair.id, pair.corpus, pair.document, pair.summary, size=8)
        self._bytes += digest(pair.id, size=8)
        self._bytes += digest(pair.corpus, pair.id, size=8)

    def finish(self) -> PairIndex:
        """The index of all pairs so far. Of pairs that agree the one with the smallest hash of everything is kept."""
        table = np.frombuffer(self._bytes, dtype=_DTYPE)
        order = np.lexsort((table["self"], table["summary"], table["key"]))
        # One column at a time: a sorted copy of the whole table would double what is in memory.
        fresh = np.ones(len(order), dtype=bool)
        fresh[1:] = _changes(table["key"][order]) | _changes(table["summary"][order])
        duplicates = len(order) - int(fresh.sum())
        order = order[fresh]
        key, summary = table["key"][order], table["summary"][order]
        opens = np.ones(len(order), dtype=bool)
        opens[1:] = _changes(key)
        document = (np.cumsum(opens) - 1).astype(np.int32)
        return PairIndex(
            number=order.astype(np.int64),
            key=key,
            summary=summary,
            document=document,
            id_state=np.where(_repeated(table["full_id"][order]), 2, _repeated(table["id"][order])).astype(np.uint8),
            first=np.append(np.flatnonzero(opens), len(order)),
            group=link(document, np.unique(summary, return_inverse=True)[1].astype(np.int32)),
            duplicates=duplicates,
        )


def _changes(values: np.ndarray) -> np.ndarray:
    """Whether each value but the first differs from the one before it; bool [n − 1]."""
    return values[1:] != values[:-1]


def fingerprint(index: PairIndex, positions: np.ndarray | slice = slice(None)) -> str:
    """SHA-256 of the hashes of the pairs at ``positions`` (default: all), as 64 hex digits, whatever order they came in."""
    hasher = hashlib.sha256(np.ascontiguousarray(index.key[positions]).tobytes())
    hasher.update(np.ascontiguousarray(index.summary[positions]).tobytes())
    return hasher.hexdigest()


def _repeated(values: np.ndarray) -> np.ndarray:
    """Whether each value comes more than once; bool [n]."""
    order = np.argsort(values, kind="stable")
    same = ~_changes(values[order])
    repeated = np.zeros(len(values), dtype=bool)
    repeated[order[1:]] = same
    repeated[order[:-1]] |= same
    return repeated

"""What is kept in memory of each pair: hashes and numbers, some 60 bytes, so that corpora of any length go through."""

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
        table = table[order]
        fresh = np.ones(len(table), dtype=bool)
        fresh[1:] = (table["key"][1:] != table["key"][:-1]) | (table["summary"][1:] != table["summary"][:-1])
        order, table = order[fresh], table[fresh]
        opens = np.ones(len(table), dtype=bool)
        opens[1:] = table["key"][1:] != table["key"][:-1]
        document = (np.cumsum(opens) - 1).astype(np.int32)
        _, summaries = np.unique(table["summary"], return_inverse=True)
        return PairIndex(
            number=order.astype(np.int64),
            key=table["key"].copy(),
            summary=table["summary"].copy(),
            document=document,
            id_state=np.where(_repeated(table["full_id"]), 2, _repeated(table["id"])).astype(np.uint8),
            first=np.append(np.flatnonzero(opens), len(table)),
            group=link(document, summaries.astype(np.int32)),
            duplicates=len(fresh) - int(fresh.sum()),
        )


def _repeated(values: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return counts[inverse] > 1

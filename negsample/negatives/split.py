"""Training, validation and test: cut by document, the same whatever order the pairs come in."""

import math
from dataclasses import dataclass

import numpy as np

from negsample.errors import InputError
from negsample.seeds import digest

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of the documents, which add up to 1 (Bao et al. 2021 §4.1); validation or test may be 0, training may not.

    Raises InputError for anything else.
    """

    train: float = 0.8
    validation: float = 0.1
    test: float = 0.1

    def __post_init__(self) -> None:
        shares = (self.train, self.validation, self.test)
        if not all(math.isfinite(share) and share >= 0 for share in shares) or self.train == 0:
            raise InputError(f"shares {shares}: each must be a number from 0 to 1, and training above 0")
        if abs(sum(shares) - 1) > 1e-6:
            raise InputError(f"shares {shares}: they add up to {sum(shares):g}; make them add up to 1")


def link(document: np.ndarray, summary: np.ndarray) -> np.ndarray:
    """Groups of documents that are linked by common summaries, directly or through others.

    ``document`` and ``summary`` [pairs] are numbers from 0 without gaps. Returns int32 [documents], numbers from 0.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not len(document):
        return np.zeros(0, dtype=np.int32)
    documents = int(document.max()) + 1
    size = documents + int(summary.max()) + 1
    edges = coo_array((np.ones(len(document), dtype=np.int8), (document, summary + documents)), shape=(size, size))
    _, labels = connected_components(edges, directed=False)
    _, groups = np.unique(labels[:documents], return_inverse=True)
    return groups.astype(np.int32)


def assign(keys: np.ndarray, groups: np.ndarray, seed: int, shares: Shares | None = None) -> np.ndarray:
    """The split of each document: uint8 [documents], an index into ``SPLITS``.

    ``keys`` [documents], sorted and distinct, are hashes of the documents (``document_key``); ``groups`` [documents]
    are those of ``link``: documents that share a summary text go to the same split, so that no text is learned as a
    good summary in one split and met again in another. Everything follows from seed and keys.

    Groups are put in the order of a hash of seed and first key, and validation and test are filled evenly up to their
    share of the documents, rounded. A group larger than half of that goes to training. Validation and test get at
    least two groups each where there are six or more (a negative may need another document), else at least one.

    Raises InputError: fewer documents than splits, or so many shared summaries that there are fewer groups than splits.
    """
    shares = shares or Shares()
    documents = len(keys)
    parts = [number for number, name in enumerate(SPLITS) if getattr(shares, name) > 0]
    # Place of the first document of each group, and the number of its documents.
    _, first, sizes = np.unique(groups, return_index=True, return_counts=True)
    if documents < len(parts):
        raise InputError(
            f"the corpus has {documents} document{'' if documents == 1 else 's'} and {len(parts)} splits are wanted; "
            f"give at least {len(parts)} documents (6 for cross pairing)"
        )
    if len(sizes) < len(parts):
        raise InputError(
            f"the summaries repeat so much that the {documents} documents can't be split; give at least {len(parts)} "
            "documents whose summaries differ"
        )
    least = 2 if len(sizes) >= 2 * len(SPLITS) else 1
    quota = _quotas(documents, shares, parts, least)
    names = np.fromiter((digest(seed, "split", bytes(key)) for key in keys[first]), "S16", len(first))
    order = np.argsort(names, kind="stable").astype(np.int32)
    chosen = np.zeros(len(sizes), dtype=np.uint8)
    room = dict(quota)
    for group in order:
        size = int(sizes[group])
        fits = [part for part in room if size <= room[part] and size <= max(1, quota[part] // 2)]
        if fits:
            part = max(fits, key=lambda part: (room[part] / quota[part], part))
            chosen[group] = part
            room[part] -= size
        if not any(room.values()):
            break
    # Where no small groups were found to fill a split it gets the smallest of training.
    for part in quota:
        while np.count_nonzero(chosen == part) < least and np.count_nonzero(chosen == 0) > least:
            chosen[min((group for group in order if chosen[group] == 0), key=lambda group: int(sizes[group]))] = part
    return chosen[groups]


def _quotas(documents: int, shares: Shares, parts: list[int], least: int) -> dict[int, int]:
    quota = {part: max(least, math.floor(getattr(shares, SPLITS[part]) * documents + 0.5)) for part in parts if part}
    while quota and documents - sum(quota.values()) < least:
        largest = max(quota, key=quota.__getitem__)
        quota[largest] -= 1
    return quota

"""Which examples each step sees: a function of (lengths, seed, epoch, batch size) and of nothing else.

The batches are worked out here and not left to a data loader's state, so that a resumed run starts at the next step by
counting, and so that the number of processes changes only who computes a step's examples, not which they are.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from negsample.models.features import Features
from negsample.seeds import generator
from negsample.train.data.prepare import Split

# Batches whose examples are sorted by length together: long enough to waste little padding, short against an epoch.
_GROUP = 50


class Batches:
    """The batches of every epoch of ``split``, of about ``batch_size`` examples each.

    ``together``: a batch holds whole documents. Epoch e sees the originals and set e mod ``redraws`` of the negatives,
    of which a set holds ``negatives`` of each pair, in the order in which they stand: a network with many weights learns
    one fixed set by heart; with another one each epoch it has to look at the document.
    """

    def __init__(
        self, split: Split, features: Features, batch_size: int, *, together: bool, negatives: int, redraws: int
    ) -> None:
        costs = split.costs(features)
        sets = [None] if redraws == 1 else redrawn(split.is_original, negatives, redraws)
        documents = split.document_of if together else None
        self._sets = [BatchOrder(costs, batch_size, documents, rows) for rows in sets]

    def steps(self, epochs: int) -> int:
        """Optimiser steps of ``epochs`` epochs."""
        return sum(self._sets[epoch % len(self._sets)].per_epoch for epoch in range(epochs))

    def epoch(self, seed: int, epoch: int, start: int = 0) -> Iterator[list[np.ndarray]]:
        """The batches of one epoch from the ``start``-th on; see ``BatchOrder.epoch``."""
        return self._sets[epoch % len(self._sets)].epoch(seed, epoch, start)


def redrawn(original: np.ndarray, negatives: int, redraws: int) -> list[np.ndarray]:
    """The examples of each set, int64 [n] each, ascending: all originals, and every pair's next ``negatives``.

    ``original`` bool [n]; a pair's examples stand together, its original first. Where a pair has fewer negatives than
    ``negatives * redraws``, the later sets lack them.
    """
    places = np.arange(len(original))
    number = places - np.maximum.accumulate(np.where(original, places, 0))
    drawn = (number - 1) // negatives
    return [np.flatnonzero(original | (drawn == each)) for each in range(redraws)]


class BatchOrder:
    """The order of examples of ``lengths`` (int [n]) in batches of ``batch_size``; every epoch has ``per_epoch`` batches.

    ``documents`` (int [n]), where given, says which examples must stay together: a batch then holds whole documents,
    about ``batch_size`` examples of them. ``rows`` (int [m]): the examples that are seen at all (default: every one).

    It holds 4 bytes an example (12 with ``documents``), 8 more with ``rows``, and 8 more while an epoch is under way.
    """

    def __init__(
        self,
        lengths: np.ndarray,
        batch_size: int,
        documents: np.ndarray | None = None,
        rows: np.ndarray | None = None,
    ) -> None:
        if rows is not None:
            lengths, documents = lengths[rows], None if documents is None else documents[rows]
        self._rows = rows
        self._by_unit: np.ndarray | None = None
        if documents is None:
            self._lengths = np.asarray(lengths, np.int32)
            mean = 1.0
        else:
            codes = np.unique(documents, return_inverse=True)[1]
            counts = np.bincount(codes)
            self._by_unit = np.argsort(codes, kind="stable").astype(np.int32)
            self._ends = np.cumsum(counts, dtype=np.int32)
            self._lengths = np.zeros(len(counts), np.int32)
            np.maximum.at(self._lengths, codes, lengths)
            mean = counts.mean()
        self._units = max(1, round(batch_size / mean))
        self.per_epoch = -(-len(self._lengths) // self._units)

    def epoch(self, seed: int, epoch: int, start: int = 0) -> Iterator[list[np.ndarray]]:
        """The batches of one epoch from the ``start``-th on, each a list of units (an example, or a document's examples).

        Units are shuffled, sorted by length within groups of 50 batches, cut into batches, and the batches shuffled, so
        that units of like length are computed together. Over all batches each example stands exactly once.
        """
        rng = generator(seed, "order", epoch)
        order = rng.permutation(len(self._lengths))
        for first in range(0, len(order), _GROUP * self._units):
            group = order[first : first + _GROUP * self._units]
            group[:] = group[np.argsort(self._lengths[group], kind="stable")]
        for number in rng.permutation(self.per_epoch)[start:]:
            yield [self._examples(int(unit)) for unit in order[number * self._units : (number + 1) * self._units]]

    def _examples(self, unit: int) -> np.ndarray:
        if self._by_unit is None:
            examples = np.array([unit])
        else:
            examples = self._by_unit[self._ends[unit - 1] if unit else 0 : self._ends[unit]].astype(np.int64)
        return examples if self._rows is None else self._rows[examples]


def share(batch: list[np.ndarray], parts: int, processes: int, rank: int) -> list[np.ndarray]:
    """What process ``rank`` of ``processes`` computes of one batch, in ``parts`` pieces (gradient accumulation).

    Over all ranks and parts each example stands exactly once, units whole; a piece may be empty.
    """
    bounds = np.linspace(0, len(batch), parts * processes + 1).round().astype(int)
    pieces = [batch[a:b] for a, b in itertools.pairwise(bounds)]
    mine = [pieces[part * processes + rank] for part in range(parts)]
    return [np.concatenate(piece) if piece else np.zeros(0, np.int64) for piece in mine]

"""Epochs that take turns with the sets of negatives that a training split holds."""

from collections.abc import Iterator

import numpy as np

from negsample.models.features import Features
from negsample.train.data.order import Order
from negsample.train.data.prepare import Split


class Turns:
    """The batches of every epoch of ``split``; epoch e sees the originals and set e mod ``redraws`` of the negatives.

    A set holds ``negatives`` negatives of each pair, in the order in which they stand. A network with many weights
    learns one fixed set by heart; with another one each epoch it has to look at the document. ``batch_size`` and
    ``together`` as ``Order`` takes them.
    """

    def __init__(
        self, split: Split, features: Features, batch_size: int, *, together: bool, negatives: int, redraws: int
    ) -> None:
        costs = split.costs(features)
        self._members = [None] if redraws == 1 else members(split.kinds, split.kind_names, negatives, redraws)
        self._orders = [
            Order(
                costs if chosen is None else costs[chosen],
                batch_size,
                None if not together else split.document_of if chosen is None else split.document_of[chosen],
            )
            for chosen in self._members
        ]

    def steps(self, epochs: int) -> int:
        """Optimiser steps of ``epochs`` epochs."""
        return sum(self._orders[epoch % len(self._orders)].per_epoch for epoch in range(epochs))

    def batches(self, seed: int, epoch: int, start: int = 0) -> Iterator[list[np.ndarray]]:
        """The batches of one epoch from the ``start``-th on; see ``Order.batches``."""
        turn = epoch % len(self._orders)
        chosen = self._members[turn]
        for batch in self._orders[turn].batches(seed, epoch, start):
            yield batch if chosen is None else [chosen[unit] for unit in batch]


def members(kinds: np.ndarray, kind_names: list[str], negatives: int, redraws: int) -> list[np.ndarray]:
    """The examples of each turn, int64 [n] each, ascending: all originals, and every pair's next ``negatives``.

    ``kinds`` int [n] are numbers into ``kind_names``; a pair's examples stand together, its original first. Where a
    pair has fewer negatives than ``negatives * redraws``, the later turns lack them.
    """
    original = np.array([name == "original" for name in kind_names])[kinds]
    places = np.arange(len(kinds))
    number = places - np.maximum.accumulate(np.where(original, places, 0))
    turn = np.where(original, -1, (number - 1) // negatives)
    return [np.flatnonzero(original | (turn == each)) for each in range(redraws)]

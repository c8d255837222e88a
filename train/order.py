"""Which examples each step sees: a function of (lengths, seed, epoch, batch size) and of nothing else.

The order is computed here and not left to a data loader's state, so that a resumed run starts at the next step by
counting, and so that the number of processes changes only who computes a step's examples, not which they are.
"""

import numpy as np

from negsample.seeds import generator

# Batches whose examples are sorted by length together: long enough to waste little padding, short against an epoch.
_GROUP = 50


def epoch_batches(lengths: np.ndarray, seed: int, epoch: int, batch_size: int) -> list[np.ndarray]:
    """The batches of one epoch: each example exactly once, examples of like length together.

    ``lengths`` int [n]. Returns int64 arrays of at most ``batch_size`` indexes. Examples are shuffled, sorted by length
    within groups of 50 batches, cut into batches, and the batches shuffled.
    """
    rng = generator(seed, "order", epoch)
    order = rng.permutation(len(lengths))
    batches: list[np.ndarray] = []
    for start in range(0, len(order), _GROUP * batch_size):
        group = order[start : start + _GROUP * batch_size]
        group = group[np.argsort(lengths[group], kind="stable")]
        batches.extend(group[i : i + batch_size] for i in range(0, len(group), batch_size))
    return [batches[i] for i in rng.permutation(len(batches))]


def share(batch: np.ndarray, parts: int, processes: int, rank: int) -> list[np.ndarray]:
    """What process ``rank`` of ``processes`` computes of one batch, in ``parts`` pieces (gradient accumulation).

    Over all ranks and parts each example stands exactly once; a piece may be empty.
    """
    pieces = np.array_split(batch, parts * processes)
    return [pieces[part * processes + rank] for part in range(parts)]

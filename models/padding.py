"""Rows of different lengths brought to one, and how long the texts of a network with a fixed frame may be."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np


def pad(rows: Sequence[np.ndarray], fill: float = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows [n_i, ...] as one array [B, longest, ...], ``fill`` after the end of each, and the mask of what is real.

    The array has the rows' type and is one place wide at least; the mask is bool [B, longest]. Row numbers of the
    embedding cache are padded with -1, which it reads as a row of zeros. Raises ValueError where there is no row.
    """
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(max(1, lengths.max())) < lengths[:, None]
    padded = np.full((*mask.shape, *rows[0].shape[1:]), fill, dtype=rows[0].dtype)
    padded[mask] = np.concatenate(rows)
    return padded, mask


def percentile_length(lengths: Sequence[int] | np.ndarray, q: float = 80) -> int:
    """Return the smallest whole number that is not below the ``q``-th percentile of ``lengths``, and at least 1.

    The rule by which Bao et al. 2021 (§4.2) set the lengths of the frame; the percentile interpolates between
    neighbours in order, as numpy's does. ``lengths`` are those of the training split.

    Raises ValueError where ``lengths`` is empty or ``q`` not in [0, 100].
    """
    ordered = np.sort(np.asarray(lengths, dtype=np.int64))
    if not len(ordered):
        raise ValueError("no lengths to take a percentile of")
    if not 0 <= q <= 100:
        raise ValueError(f"a percentile lies in [0, 100], not {q}")
    # In fractions: a rounding error just above a whole number would add a row.
    position = Fraction(q) * (len(ordered) - 1) / 100
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    value = int(ordered[below]) + (position - below) * int(ordered[above] - ordered[below])
    return max(1, math.ceil(value))

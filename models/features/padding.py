"""How long a document or summary may be in the fixed frame of a network, and making batches of one length."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

Row = TypeVar("Row", bound=Sequence[Any] | np.ndarray)


def percentile_length(lengths: Sequence[int] | np.ndarray, q: float = 80) -> int:
    """The smallest whole number that is not below the ``q``-th percentile of ``lengths``, and at least 1.

    The rule by which the paper (P3 §4.2, SPEC §3) sets the lengths of the frame; the percentile interpolates between
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


def cut(rows: Sequence[Row], maximum: int) -> tuple[list[Row], int]:
    """The first ``maximum`` items of every row, and how many rows were longer."""
    if maximum < 1:
        raise ValueError(f"the maximum length must be at least 1, not {maximum}")
    return [row[:maximum] for row in rows], sum(len(row) > maximum for row in rows)  # type: ignore[misc]


def pad(rows: Sequence[np.ndarray], fill: float = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows [n_i, ...] as one array [B, longest, ...], ``fill`` after the end of each, and the mask of what is real.

    Returns (array of the rows' type, mask bool [B, longest]). Row numbers of the embedding cache are padded with -1,
    which it reads as a row of zeros.
    """
    if not len(rows):
        raise ValueError("no rows to pad")
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(lengths.max())[None, :] < lengths[:, None]
    padded = np.full((*mask.shape, *rows[0].shape[1:]), fill, dtype=rows[0].dtype)
    padded[mask] = np.concatenate(rows)
    return padded, mask

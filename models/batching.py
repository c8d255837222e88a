"""Rows of different lengths: which go together in a batch, and filling them up."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

_MOST_ROWS = 64
_MOST_TOKENS = 16384


def like_lengths(
    lengths: Sequence[int],
    device: str,
    most_tokens: int = _MOST_TOKENS,
    most_rows: int = _MOST_ROWS,
    padding: int | None = None,
) -> Iterator[list[int]]:
    """Yield the numbers of rows in batches of like length, the longest first; rows of no length are left out.

    At most ``most_rows`` rows (four times as many on a GPU) and ``most_tokens`` tokens, of which on a CPU ``padding`` are
    padded (None: any number), but one row at least.
    """
    most_rows = most_rows if device == "cpu" else 4 * most_rows
    there = [row for row in range(len(lengths)) if lengths[row]]
    own = [lengths[row] for row in there]
    padding = padding if device == "cpu" else None
    for batch in longest_first(own, lambda longest: min(most_rows, most_tokens // longest), padding):
        yield [there[place] for place in batch]


def longest_first(
    lengths: Sequence[int] | np.ndarray, room: Callable[[int], int], padding: int | None = None
) -> Iterator[list[int]]:
    """Yield the numbers of rows in batches of like length, the longest first.

    A batch has at most ``room(length of its longest)`` rows, but one at least; its rows are filled up by at most ``padding``
    in all (None: by any number).
    """
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    start = 0
    while start < len(order):
        longest = int(lengths[order[start]])
        batch = order[start : start + max(1, room(longest))]
        if padding is not None:
            filled = np.cumsum([longest - int(lengths[row]) for row in batch])
            batch = batch[: int(np.searchsorted(filled, padding, side="right"))]
        start += len(batch)
        yield batch


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

"""The keys under which texts are kept: 16-byte hashes, the same for every encoder, on every machine."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from negsample.text import readable

KEY_BYTES = 16


def key(text: str) -> bytes:
    """Return the key of what encoders read of a text."""
    return blake2b(readable(text).encode(), digest_size=KEY_BYTES).digest()


def keys(texts: Sequence[str]) -> np.ndarray:
    """Return the keys of ``texts``; uint8 [n, 16]."""
    return np.frombuffer(b"".join(map(key, texts)), dtype=np.uint8).reshape(len(texts), KEY_BYTES)


def halves(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return keys uint8 [n, 16] as two uint64 [n] whose lexicographic order is that of the bytes."""
    pairs = np.ascontiguousarray(keys, dtype=np.uint8).view(">u8").astype(np.uint64)
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def first_of_each(keys: np.ndarray) -> np.ndarray:
    """Return the places of the first of each distinct key (uint8 [n, 16]), ascending."""
    whole = np.ascontiguousarray(keys).view(f"S{KEY_BYTES}").ravel()
    return np.sort(np.unique(whole, return_index=True)[1])

"""Random generators that depend only on what they are for, never on who asked first."""

import hashlib

import numpy as np


def digest(*parts: object, size: int = 16) -> bytes:
    """Hash of the parts (their ``str``), ``size`` bytes, the same on every machine and in every process."""
    hasher = hashlib.blake2b(digest_size=size)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.digest()


def seed_from(*parts: object) -> int:
    """An integer in [0, 2**63) made from the parts; for libraries that want one number."""
    return int.from_bytes(digest(*parts, size=8), "little") >> 1


def generator(*parts: object) -> np.random.Generator:
    """A numpy generator for one job, e.g. ``generator(seed, document_key, draw)``.

    Two calls with equal parts give the same stream, whatever ran before, in whatever process.
    """
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest(*parts), "little")))

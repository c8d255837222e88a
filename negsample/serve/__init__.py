"""A page and a service that score and explain."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What a service takes at most: bytes of a ``body``, ``pairs`` of a request, ``characters`` of a text, ``work`` of a pair
    (words and sentences of its document times those of its summary), pairs ``waiting``."""

    body: int = 8 << 20
    pairs: int = 64
    characters: int = 200_000
    work: int = 100_000_000
    waiting: int = 1024

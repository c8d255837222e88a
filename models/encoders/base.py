"""What every encoder has in common: the protocol, and the check of what it is given."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from negsample.errors import InputError
from negsample.text import readable


class Encoder(Protocol):
    """Texts in, vectors out.

    ``name``: its name in the registry. ``dim``: length of a vector. ``unit``: ``"sentence"`` where ``encode`` takes
    sentences, ``"word"`` where it takes white-space tokens (a document's features are then one row a word).
    ``fingerprint``: 64 hex digits that change with the weights or with an option that changes a vector, and with
    nothing else: equal on every machine, device and library version, before saving and after loading.
    ``counts``: what ``encode`` has met so far, e.g. ``truncated``, ``unknown_words``, ``zero_vectors``.

    One over a transformers network has a method ``in_bf16``: a copy that computes in bfloat16, with a fingerprint of its
    own, so that no cache mixes the vectors of both. It is for scoring, and is not saved.
    """

    name: str
    dim: int
    unit: str
    fingerprint: str
    counts: Counter[str]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [len(texts), dim], finite; the same text gets the same row (1e-5) whatever else is in the batch."""
        ...

    def save(self, folder: Path) -> dict[str, Any]:
        """Write into ``folder`` (the encoder's own) all that ``load_encoder`` needs, and return the spec it takes.

        Weights that an installed package brings are referred to, not copied. No pickles are written.
        """
        ...


def as_texts(texts: Sequence[str]) -> list[str]:
    """Return ``texts`` as a list, each as encoders read it (``readable``).

    Raises InputError for a single string or anything that is not a string.
    """
    if isinstance(texts, str):
        raise InputError("encode() takes a list of texts, not one string; put it in a list")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"text {number} is {type(text).__name__}, not a string; encode() takes a list of strings")
    return [readable(text) for text in texts]

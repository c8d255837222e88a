"""A sentence encoder without a model: a vector drawn by the text's hash."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from negsample.seeds import generator


class Hashed:
    """Eight numbers for a sentence."""

    name, dim, unit, fingerprint = "hashed", 8, "sentence", "5" * 64

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([generator("hashed", text).normal(size=self.dim) for text in texts]).astype(np.float32)

    def save(self, folder: Path) -> dict[str, Any]:
        raise NotImplementedError

"""How texts become tensors: one file for each thing a head takes (``head.takes``)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from torch import Tensor


class Features(Protocol):
    """What a text is to a network: a flat array of numbers that can be kept on disk, and batches made of such arrays.

    ``dtype`` is the arrays' type and ``width`` how many numbers one ``unit`` (token, sentence, word) takes, so that a text
    of n units is an array of n · width numbers. By default nothing is learned and nothing cut.
    """

    dtype: str
    width: int
    unit: str

    def read(self, texts: Sequence[str]) -> list[np.ndarray]:
        """One flat array for each text, independent of every other text; none is cut."""

    def fit(self, document_lengths: np.ndarray, summary_lengths: np.ndarray) -> None:
        """Learn from the training split's lengths (units; int [n] each) what has to be learned (padding)."""
        return

    def lengths(self, documents: np.ndarray, summaries: np.ndarray) -> np.ndarray:
        """Units of each pair after cutting, from the units of its texts (int [n] each): int64 [n]; the cost of a pair."""

    def was_cut(self, documents: np.ndarray, summaries: np.ndarray) -> np.ndarray:
        """Whether each pair is cut, from the units of its texts: bool [n]."""
        return np.zeros(len(documents), bool)

    def collate(self, documents: Sequence[np.ndarray], summaries: Sequence[np.ndarray]) -> dict[str, Tensor]:
        """The network's arguments for pairs of arrays as ``read`` gives them: tensors [B, …], cut and padded."""

    def save(self, folder: Path) -> dict[str, Any]:
        """Write what is needed to load it without network; return plain values for ``load``."""

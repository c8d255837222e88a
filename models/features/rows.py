"""Vectors of sentences (or words) from a frozen encoder, for the ``fc``, ``cnn`` and ``lstm`` heads (Bao et al. 2021 §3.1, §4.2).

A text is kept as the 16-byte keys of its sentences; the vectors stay in the embedding cache and are fetched batch by
batch, so that memory does not grow with the corpus.
"""

import math
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from negsample.models.batching import pad
from negsample.models.embedding_cache import KEY_BYTES, EmbeddingCache, keys
from negsample.models.features import Features
from negsample.sentences import split_sentences, words
from negsample.text import readable

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder


def percentile_length(lengths: Sequence[int] | np.ndarray) -> int:
    """The least whole number, from 1 on, not below the 80th percentile of ``lengths``: the frame of Bao et al. (2021 §4.2)."""
    # A rounding error just above a whole number would add a row.
    return max(1, math.ceil(np.percentile(lengths, 80) - 1e-9))


class RowFeatures(Features):
    """Rows of ``encoder``: one a sentence, or one a word where the encoder's unit is the word.

    ``max_document``, ``max_summary``: rows that are kept of each text; ``None`` until ``fit`` sets the 80th percentile of
    the training split. What is beyond is cut.
    """

    dtype, width = "uint8", KEY_BYTES

    def __init__(
        self,
        encoder: "Encoder",
        max_document: int | None = None,
        max_summary: int | None = None,
        cache: EmbeddingCache | None = None,
    ) -> None:
        self.encoder, self.unit = encoder, encoder.unit
        self.max_document, self.max_summary = max_document, max_summary
        self.cache = cache if cache is not None else EmbeddingCache(encoder)

    def read(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The keys of each text's sentences (or words), flat uint8 [16 · n]; what the cache lacks is encoded."""
        units = [(split_sentences if self.unit == "sentence" else words)(readable(text)) for text in texts]
        flat = [unit for each in units for unit in each]
        wanted = keys(flat)
        self.cache.add(flat, wanted)
        stops = accumulate(map(len, units))
        return [wanted[stop - len(each) : stop].reshape(-1) for each, stop in zip(units, stops, strict=True)]

    def fit(self, document_lengths: np.ndarray, summary_lengths: np.ndarray) -> None:
        """Set the maxima that were not given to the 80th percentile of these lengths."""
        self.max_document = self.max_document or percentile_length(document_lengths)
        self.max_summary = self.max_summary or percentile_length(summary_lengths)

    @property
    def limits(self) -> tuple[int, int]:
        """(max_document, max_summary), once known."""
        if self.max_document is None or self.max_summary is None:
            raise RuntimeError("fit the features on the training split first")
        return self.max_document, self.max_summary

    def lengths(self, documents: np.ndarray, summaries: np.ndarray) -> np.ndarray:
        most_document, most_summary = self.limits
        return np.minimum(documents, most_document) + np.minimum(summaries, most_summary)

    def was_cut(self, documents: np.ndarray, summaries: np.ndarray) -> np.ndarray:
        most_document, most_summary = self.limits
        return (np.asarray(documents) > most_document) | (np.asarray(summaries) > most_summary)

    def collate(self, documents: Sequence[np.ndarray], summaries: Sequence[np.ndarray]) -> dict[str, Tensor]:
        """``document`` [B, N, d], ``summary`` [B, M, d] float32 and their masks bool [B, N], [B, M]."""
        document, document_mask = self._pad(documents, self.limits[0])
        summary, mask = self._pad(summaries, self.limits[1])
        return {"document": document, "summary": summary, "document_mask": document_mask, "summary_mask": mask}

    def _pad(self, texts: Sequence[np.ndarray], most: int) -> tuple[Tensor, Tensor]:
        kept = [text.reshape(-1, KEY_BYTES)[:most] for text in texts]
        stops = np.cumsum([len(text) for text in kept])
        padded, mask = pad(np.split(self.cache.vectors(np.concatenate(kept)), stops[:-1]))
        return torch.from_numpy(padded), torch.from_numpy(mask)

    def save(self, folder: Path) -> dict[str, Any]:
        saved = self.encoder.save(folder / "encoder")
        return {"max_document": self.max_document, "max_summary": self.max_summary, "encoder": saved}

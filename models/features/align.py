"""Alignment features of pairs, for the ``align`` head; texts of any length, a document read once for all its summaries."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from negsample.models.align.alignment import Alignment, DocumentView, align, view
from negsample.models.align.aspects import ASPECTS, MATCHES, SOURCES, feature_set, matches, row, values
from negsample.models.align.evidence import Evidence
from negsample.models.align.judge import Judge
from negsample.models.align.reader import Reader, Text, shared_reader
from negsample.models.align.support import SupportJudge
from negsample.models.batching import pad
from negsample.models.embedding_cache import key
from negsample.models.features import Features
from negsample.models.kernels import pack

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

# In a service, whose documents are new ones: bytes of word vectors of sentences, and words of documents.
_SERVED = (64 << 20, 50_000)
# Where the same documents come again and again, as they do to a reward: bytes of word vectors of sentences, for which two
# thousand articles take 650 MB. One fewer than come round, and every one is read anew. Words of documents as ever.
_COMING_AGAIN = (1 << 30, 400_000)
# Bytes of text that count as one unit of a batch.
_BYTES = 64
# What reads a summary alone marks one without a word like this: lower than any other.
_LOWEST = -1e4


@dataclass(frozen=True, eq=False)
class Compared:
    """A pair, compared: ``features`` float32 [F], ``salience`` [N, 6], ``matches`` [N, 3], ``present`` bool [4]."""

    features: np.ndarray
    salience: np.ndarray
    matches: np.ndarray
    present: np.ndarray


@dataclass(frozen=True, eq=False)
class PairView:
    """All that an explanation needs of a pair: both texts, their alignment (None where a text has no word)."""

    document: DocumentView
    summary: Text
    alignment: Alignment | None


class AlignFeatures(Features):
    """Features of ``negsample.models.align`` from ``encoder``'s sentence and word vectors.

    ``judge``, ``evidence``, ``support``: None where a head goes without (the frozen variant has no judge). A text is kept as its
    UTF-8 bytes and read when a batch asks for it; a document's view is remembered while its summaries go by.
    """

    dtype, width, unit = "uint8", 1, "byte"

    def __init__(
        self,
        encoder: "Encoder",
        judge: Judge | None = None,
        evidence: Evidence | None = None,
        support: SupportJudge | None = None,
        *,
        copy_lm: bool = False,
    ) -> None:
        self.encoder, self.judge, self.evidence, self.support = encoder, judge, evidence, support
        self._copy_lm, self.reader = copy_lm, shared_reader(encoder)

    @property
    def sources(self) -> list[str]:
        """What gives features beside the alignment (``SOURCES``)."""
        models = {"judge": self.judge, "support": self.support, "evidence": self.evidence}
        return [name for name, there in models.items() if there is not None]

    def untouched(self) -> "AlignFeatures":
        """A copy for a training of its own, over the same reader: a judge or scales that it learns stay in the copy."""
        made = copy.copy(self)
        made.evidence = copy.copy(self.evidence)
        return made

    def to(self, device: torch.device | None) -> None:
        """Let the judges read on ``device``, where one is given; the encoder and the language model chose their own."""
        for judge in (self.judge, self.support):
            if judge is not None and device is not None:
                pack(judge.network.to(device))

    def stay_in_memory(self) -> None:
        """Keep what is read in memory alone, within closer bounds, and nothing of it in the embedding cache on disk."""
        self.reader = Reader(self.encoder, kept=_SERVED, on_disk=False)

    def expect_again(self) -> None:
        """Keep more of what is read, for documents that come again."""
        self.reader = shared_reader(self.encoder, _COMING_AGAIN)

    def read(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8) for text in texts]

    def lengths(self, documents: np.ndarray, summaries: np.ndarray) -> np.ndarray:
        # Summaries of one document go together: it is read once.
        return np.asarray(documents, np.int64) // _BYTES + 1

    def view_pairs(self, documents: Sequence[str], summaries: Sequence[str]) -> list[PairView]:
        """The views and alignments of pairs."""
        names = [key(text) for text in documents]
        texts = dict(zip(names, documents, strict=True))
        with self.reader.alone:
            views = self.reader.views
            new = views.missing(names)
            read = self.reader.read([*(texts[name] for name in new), *summaries])
            views.add(new, map(view, read[: len(new)]))
            found = views.find(names)
            views.trim(least=1)
        return [
            PairView(document, summary, align(document, summary) if document.text.forms and summary.forms else None)
            for document, summary in zip(found, read[len(new) :], strict=True)
        ]

    def read_in_part(self, documents: Sequence[np.ndarray]) -> np.ndarray:
        """Whether a language model reads only a part of each document, as ``read`` gives them: bool [n]."""
        if self.evidence is None:
            return np.zeros(len(documents), bool)
        # Systems share documents.
        partly = cache(self.evidence.read_in_part)
        return np.array([partly(text) for text in texts_of(documents)], bool)

    def compare(self, documents: Sequence[str], summaries: Sequence[str]) -> list[Compared]:
        """The features of pairs of texts."""
        pairs = self.view_pairs(documents, summaries)
        return [self._compared(pair, told) for pair, told in zip(pairs, self._told(pairs, summaries), strict=True)]

    def _told(self, pairs: Sequence[PairView], summaries: Sequence[str]) -> list[dict[str, float]]:
        """For each pair, by name, what the judges and the language model say of it."""
        found: dict[str, np.ndarray] = {}
        if self.judge is not None:
            found["judge"] = self.judge.readings(summaries)
        if self.support is not None:
            found["support"] = self.support.readings(pairs)
        if self.evidence is not None:
            found["evidence"] = self.evidence.marks(pairs)
        names = [name for source in found for name in SOURCES[source]]
        rows = np.concatenate(list(found.values()), axis=1).tolist() if found else [[] for _ in pairs]
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _compared(self, pair: PairView, told: dict[str, float]) -> Compared:
        document, summary = pair.document, pair.summary
        if pair.alignment is None:
            return self._unworded(document, summary, told)
        found = values(document, summary, pair.alignment)
        matched = matches(document, summary, pair.alignment)
        return Compared(row({**found, **told}, self.sources), document.salience, matched, np.ones(len(ASPECTS), bool))

    def _unworded(self, document: DocumentView, summary: Text, told: dict[str, float]) -> Compared:
        """A summary without a word has the lowest value of every feature; beside a document without one all are at their
        centres but those of the summary alone. Neither has an aspect."""
        features = feature_set(self.sources)
        if summary.forms:
            found = {f.name: f.centre for f in features} | told
        else:
            found = {f.name: _LOWEST if f.source else float(f.direction < 0) for f in features}
        zeros = np.zeros((len(document.text.pieces), len(MATCHES)), np.float32)
        return Compared(row(found, self.sources), document.salience, zeros, np.zeros(len(ASPECTS), bool))

    def collate(self, documents: Sequence[np.ndarray], summaries: Sequence[np.ndarray]) -> dict[str, Tensor]:
        """``features`` [B, F], ``salience`` [B, N, 6], ``matches`` [B, N, 3], ``mask`` [B, N], ``present`` [B, 4]."""
        return stack(self.compare(texts_of(documents), texts_of(summaries)))

    def reason(self, document: str, summary: str) -> str | None:
        """Why a pair has no aspects; None where it has."""
        for name, text in zip(("document", "summary"), self.reader.read([document, summary]), strict=True):
            if not text.forms:
                return f"the {name} has no word, so no aspect can be judged"
        return None

    def save(self, folder: Path) -> dict[str, Any]:
        return {
            "encoder": self.encoder.save(folder / "encoder"),
            "judge": self.judge and self.judge.save(folder / "judge"),
            "support": self.support and self.support.save(folder / "support"),
            "evidence": self.evidence and self.evidence.save(folder / "evidence", self._copy_lm),
        }


def stack(compared: Sequence[Compared]) -> dict[str, Tensor]:
    """The network's arguments for compared pairs, padded to the longest document."""
    salience, mask = pad([item.salience for item in compared])
    found, _ = pad([item.matches for item in compared])
    return {
        "features": torch.from_numpy(np.stack([item.features for item in compared])),
        "salience": torch.from_numpy(salience),
        "matches": torch.from_numpy(found),
        "mask": torch.from_numpy(mask),
        "present": torch.from_numpy(np.stack([item.present for item in compared])),
    }


def texts_of(read: Sequence[np.ndarray]) -> list[str]:
    """The texts that ``AlignFeatures.read`` keeps so."""
    return [bytes(data).decode("utf-8", "surrogatepass") for data in read]

"""What is trained: the interface of a policy, and the extractor as one."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from negsample.models.summarizers.budget import best_choices
from negsample.models.summarizers.extractor import Extractor, ExtractorNetwork, ReadDocument
from negsample.seeds import generator

# Rewards float64 [n] of summaries: (documents, summaries, references) → numbers.
Score = Callable[[Sequence[str], Sequence[str], Sequence[Sequence[str]]], np.ndarray]

# Documents whose sentence vectors are in memory: some 150 MB.
_KEPT = 4000


@dataclass(frozen=True)
class Source:
    """A document to summarize; ``references`` may be empty."""

    id: str
    document: str
    references: tuple[str, ...] = ()


class Policy(Protocol):
    """A summarizer that can be trained by a reward.

    ``network(inputs, sequences)`` gives the log probability [B] of sequences int64 [B, T] (negative after their end) for
    the documents in ``inputs``.
    """

    network: nn.Module

    def inputs(self, sources: Sequence[Source]) -> dict[str, Tensor]:
        """What the network takes of the documents."""
        ...

    def targets(self, sources: Sequence[Source]) -> Tensor:
        """The sequences that maximum likelihood learns, int64 [B, T]; nothing but negative ones without references."""
        ...

    def sample(self, inputs: Mapping[str, Tensor], sources: Sequence[Source], draw: tuple[object, ...]) -> Tensor:
        """Sequences drawn from the policy; ``draw`` decides the random numbers."""
        ...

    def greedy(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The most probable choice at each step."""
        ...

    def texts(self, sources: Sequence[Source], sequences: Tensor) -> list[str]:
        """The summaries that sequences mean."""
        ...

    def summarize(self, documents: Sequence[str]) -> list[str]:
        """Summaries as they are made after training (a language model: by beam search)."""
        ...

    def save(self, folder: Path, facts: Mapping[str, Any]) -> None:
        """Write a model folder, its ``config.json`` last."""
        ...


class ExtractPolicy:
    """An extractor. Its targets are the best extracts by ``oracle``, found greedily (Nallapati et al. 2017 §2.2)."""

    def __init__(self, extractor: Extractor, oracle: Score) -> None:
        self.extractor, self._oracle = extractor, oracle
        self.network: nn.Module = extractor.network
        self._read: OrderedDict[str, ReadDocument] = OrderedDict()
        self._targets: dict[str, list[int]] = {}

    def prepare(self, sources: Sequence[Source]) -> None:
        """Look for the best extracts of the documents, once for all epochs."""
        lacking = [source for source in sources if source.references and source.id not in self._targets]
        self._targets.update(zip((s.id for s in lacking), self._best(lacking), strict=True))

    def _documents(self, sources: Sequence[Source]) -> list[ReadDocument]:
        """The documents, read; the last ones are kept (others are read again from the embedding cache)."""
        new = [source for source in sources if source.id not in self._read]
        read = self.extractor.read([source.document for source in new])
        self._read.update(zip((source.id for source in new), read, strict=True))
        found = [self._read[source.id] for source in sources]
        while len(self._read) > max(_KEPT, len(sources)):
            self._read.popitem(last=False)
        return found

    def _best(self, sources: Sequence[Source]) -> list[list[int]]:
        def score(which: Sequence[int], summaries: Sequence[str]) -> np.ndarray:
            own = [sources[i] for i in which]
            return self._oracle([s.document for s in own], summaries, [s.references for s in own])

        read = self._documents(sources)
        return best_choices([(one.sentences, one.counts) for one in read], self.extractor.budget, score)

    def best_texts(self, sources: Sequence[Source]) -> list[str]:
        """The best extract of each source by the oracle."""
        self.prepare(sources)
        best = [self._targets[source.id] for source in sources]
        return self.texts(sources, _rows(best))

    def inputs(self, sources: Sequence[Source]) -> dict[str, Tensor]:
        """As ``Policy.inputs``."""
        return self.extractor.collate(self._documents(sources))

    def targets(self, sources: Sequence[Source]) -> Tensor:
        """As ``Policy.targets``."""
        self.prepare(sources)
        return _rows([self._targets.get(source.id, []) for source in sources])

    def sample(self, inputs: Mapping[str, Tensor], sources: Sequence[Source], draw: tuple[object, ...]) -> Tensor:
        """As ``Policy.sample``; a document's draw does not depend on the others (Gumbel's trick)."""
        size = inputs["mask"].shape[1]
        rngs = [generator(*draw, source.id) for source in sources]

        def choose(logits: Tensor, _: int) -> Tensor:
            own = inputs["mask"].sum(1).tolist()
            noise = np.zeros((len(rngs), size), np.float32)
            for row, rng, n in zip(noise, rngs, own, strict=True):
                row[:n] = rng.gumbel(size=n)
            return (logits + torch.from_numpy(noise).to(logits.device)).argmax(1)

        assert isinstance(self.extractor.network, ExtractorNetwork)
        return self.extractor.decode(self.extractor.network, inputs, choose)

    def greedy(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """As ``Policy.greedy``."""
        return self.extractor.decode(self.extractor.network, inputs)

    def texts(self, sources: Sequence[Source], sequences: Tensor) -> list[str]:
        """As ``Policy.texts``."""
        return Extractor.texts(self._documents(sources), sequences)

    def summarize(self, documents: Sequence[str]) -> list[str]:
        """As ``Policy.summarize``."""
        return self.extractor.summarize(documents)

    def save(self, folder: Path, facts: Mapping[str, Any]) -> None:
        """As ``Policy.save``."""
        self.extractor.save(folder, facts)


def _rows(lists: Sequence[Sequence[int]]) -> Tensor:
    """Lists of numbers as int64 [n, longest], −1 after the end of each; one place wide at least."""
    width = max([1, *map(len, lists)])
    return torch.tensor([[*own, *[-1] * (width - len(own))] for own in lists]).reshape(len(lists), width)

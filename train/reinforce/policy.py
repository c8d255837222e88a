"""What is trained: the interface of a policy, which ``LanguageSummarizer`` has, and the extractor as one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from negsample.models.summarizers import Summarizer
from negsample.models.summarizers.budget import best_choices
from negsample.models.summarizers.extractor import Extractor, ReadDocument
from negsample.recent import Recent
from negsample.records import Source
from negsample.seeds import generator

# Rewards float64 [n] of summaries: (documents, summaries, references) → numbers.
Score = Callable[[Sequence[str], Sequence[str], Sequence[Sequence[str]]], np.ndarray]

# Documents whose sentence vectors are in memory: some 150 MB.
_KEPT = 4000


class Policy(Protocol):
    """A summarizer that can be trained by a reward.

    ``network(inputs, sequences)`` gives the log probability [B] of sequences int64 [B, T] (negative after their end) for
    the documents in ``inputs``.
    """

    @property
    def network(self) -> nn.Module:
        """What is trained."""
        ...

    @property
    def summarizer(self) -> Summarizer:
        """The same, as it is used and saved afterwards."""
        ...

    def inputs(self, sources: Sequence[Source]) -> dict[str, Tensor]:
        """What the network takes of the documents."""
        ...

    def targets(self, sources: Sequence[Source]) -> Tensor:
        """The sequences that maximum likelihood learns, int64 [B, T]; nothing but negative ones without references."""
        ...

    def decode(
        self, inputs: Mapping[str, Tensor], sources: Sequence[Source], draw: tuple[object, ...] | None = None
    ) -> Tensor:
        """Sequences drawn from the policy, by the random numbers that ``draw`` and a document's id decide; without, the most
        probable choice at each step."""
        ...

    def texts(self, sources: Sequence[Source], sequences: Tensor) -> list[str]:
        """The summaries that sequences mean."""
        ...


class ExtractPolicy:
    """An extractor. Its targets are the best extracts by ``oracle``, found greedily (Nallapati et al. 2017 §2.2)."""

    def __init__(self, extractor: Extractor, oracle: Score) -> None:
        self.summarizer, self._oracle = extractor, oracle
        self.network: nn.Module = extractor.network
        self._read: Recent[str, ReadDocument] = Recent(_KEPT)
        self._targets: dict[str, list[int]] = {}

    def prepare(self, sources: Sequence[Source]) -> None:
        """Look for the best extracts of the documents, once for all epochs."""
        lacking = [source for source in sources if source.references and source.id not in self._targets]
        self._targets.update(zip((s.id for s in lacking), self._best(lacking), strict=True))

    def _documents(self, sources: Sequence[Source]) -> list[ReadDocument]:
        """The documents, read; the last ones are kept (others are read again from the embedding cache)."""
        by_id = {source.id: source.document for source in sources}
        new = self._read.missing(by_id)
        self._read.add(new, self.summarizer.read([by_id[name] for name in new]))
        found = self._read.find([source.id for source in sources])
        self._read.trim()
        return found

    def _best(self, sources: Sequence[Source]) -> list[list[int]]:
        def score(which: Sequence[int], summaries: Sequence[str]) -> np.ndarray:
            own = [sources[i] for i in which]
            return self._oracle([s.document for s in own], summaries, [s.references for s in own])

        read = self._documents(sources)
        return best_choices([(one.sentences, one.counts) for one in read], self.summarizer.budget, score)

    def best_texts(self, sources: Sequence[Source]) -> list[str]:
        """The best extract of each source by the oracle."""
        self.prepare(sources)
        best = [self._targets[source.id] for source in sources]
        return self.texts(sources, _rows(best))

    def inputs(self, sources: Sequence[Source]) -> dict[str, Tensor]:
        """As ``Policy.inputs``."""
        return self.summarizer.collate(self._documents(sources))

    def targets(self, sources: Sequence[Source]) -> Tensor:
        """As ``Policy.targets``."""
        self.prepare(sources)
        return _rows([self._targets.get(source.id, []) for source in sources])

    def decode(
        self, inputs: Mapping[str, Tensor], sources: Sequence[Source], draw: tuple[object, ...] | None = None
    ) -> Tensor:
        """As ``Policy.decode``; drawn by Gumbel's trick."""
        network = self.summarizer.network
        if draw is None:
            return self.summarizer.decode(network, inputs)
        size, own = inputs["mask"].shape[1], inputs["mask"].sum(1).tolist()
        rngs = [generator(*draw, source.id) for source in sources]

        def choose(logits: Tensor, _: int) -> Tensor:
            noise = np.zeros((len(rngs), size), np.float32)
            for row, rng, n in zip(noise, rngs, own, strict=True):
                row[:n] = rng.gumbel(size=n)
            return (logits + torch.from_numpy(noise).to(logits.device)).argmax(1)

        return self.summarizer.decode(network, inputs, choose)

    def texts(self, sources: Sequence[Source], sequences: Tensor) -> list[str]:
        """As ``Policy.texts``."""
        return Extractor.texts(self._documents(sources), sequences)


def _rows(lists: Sequence[Sequence[int]]) -> Tensor:
    """Lists of numbers as int64 [n, longest], −1 after the end of each; one place wide at least."""
    width = max([1, *map(len, lists)])
    return torch.tensor([[*own, *[-1] * (width - len(own))] for own in lists]).reshape(len(lists), width)

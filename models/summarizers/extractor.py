"""An extractor: it chooses sentences one after another, by what they say, where they stand, and what is chosen already."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from negsample.errors import InputError
from negsample.io.files import atomic_json, file_digest, share_weights
from negsample.models.batching import pad
from negsample.models.embedding_cache import EmbeddingCache
from negsample.models.encoders import Encoder, load_encoder
from negsample.models.language.model_files import DAMAGED, load_weights, telling
from negsample.models.language.networks import padded
from negsample.models.summarizers import Budget, best_choices, extract, sentences_of, summaries_of
from negsample.recent import Recent
from negsample.records import Source
from negsample.seeds import generator

KIND = "negsample-extractor"
# What is known of a sentence beside its vector (``_places``).
_PLACES = 5
_BATCH = 64
# Documents whose sentence vectors are in memory: some 150 MB.
_KEPT = 4000
# Picks an action of each row of logits [B, N] at step t: int64 [B].
Choose = Callable[[Tensor, int], Tensor]
# Rewards float64 [n] of summaries: (documents, summaries, references) → numbers.
Score = Callable[[Sequence[str], Sequence[str], Sequence[Sequence[str]]], np.ndarray]


@dataclass(frozen=True, eq=False)
class ReadDocument:
    """A document's sentences, the words of each int [n], and their vectors float32 [n, d], unit length."""

    sentences: list[str]
    counts: list[int]
    vectors: np.ndarray


class ExtractorNetwork(nn.Module):
    """Logits of a sentence: vᵀ tanh(K x + P place + D mean + S state) − r · (its largest cosine with a chosen one).

    The state is a GRU's over the chosen sentences; r ≥ 0 is learned.
    """

    def __init__(self, dim: int, hidden: int = 64) -> None:
        super().__init__()
        self.key = nn.Linear(dim, hidden)
        self.place = nn.Linear(_PLACES, hidden, bias=False)
        self.mean = nn.Linear(dim, hidden, bias=False)
        self.state = nn.Linear(hidden, hidden, bias=False)
        self.step = nn.GRUCell(hidden, hidden)
        self.out = nn.Linear(hidden, 1, bias=False)
        self.repeat = nn.Parameter(torch.zeros(()))

    def forward(self, inputs: Mapping[str, Tensor], sequences: Tensor) -> Tensor:
        """Log probability float32 [B] of the choices ``sequences`` int64 [B, T], −1 after the last one of each."""
        found = self.walk(inputs, lambda logits, t: sequences[:, t], sequences.shape[1])[1]
        # Several processes exchange the gradient of every weight, also where summaries of one sentence leave some unused.
        return found + sum(weight.sum() * 0 for weight in self.parameters())

    def walk(self, inputs: Mapping[str, Tensor], choose: Choose, steps: int) -> tuple[Tensor, Tensor]:
        """Choose sentences until the budget is full (or ``choose`` says −1): choices int64 [B, T], log probability [B].

        ``inputs``: ``vectors`` [B, N, d], ``places`` [B, N, 5], ``counts`` and ``mask`` [B, N], ``words`` [B], the words
        that a summary may have. At most ``steps`` sentences.
        """
        vectors, counts, mask = inputs["vectors"], inputs["counts"], inputs["mask"]
        mean = vectors.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        keys = self.key(vectors)
        fixed = keys + self.place(inputs["places"]) + self.mean(mean).unsqueeze(1)
        rows = torch.arange(len(vectors), device=vectors.device)
        state = torch.zeros_like(keys[:, 0])
        nearest = torch.zeros_like(counts, dtype=vectors.dtype)
        free, room = mask.clone(), inputs["words"].clone()
        total = vectors.new_zeros(len(vectors))
        # Where nothing fits the shortest sentence is taken.
        shortest = torch.where(mask, counts, counts.max() + 1).argmin(1)
        room = torch.maximum(room, counts[rows, shortest])
        choices: list[Tensor] = []
        for t in range(steps):
            allowed = free & (counts <= room.unsqueeze(1))
            logits = self.out(torch.tanh(fixed + self.state(state).unsqueeze(1))).squeeze(-1)
            logits = logits - nn.functional.softplus(self.repeat) * nearest
            going = allowed.any(1)
            # A row that has ended still needs a logit that is a number.
            logits = logits.masked_fill(~torch.where(going.unsqueeze(1), allowed, mask), -torch.inf)
            picked = choose(logits, t)
            going = going & (picked >= 0)
            picked = picked.clamp(min=0)
            log_probs = torch.log_softmax(logits, 1)[rows, picked]
            total = total + torch.where(going, log_probs, 0.0)
            choices.append(torch.where(going, picked, -1))
            if not going.any():
                break
            taken = nn.functional.one_hot(picked, mask.shape[1]).bool() & going.unsqueeze(1)
            free = free & ~taken
            room = torch.where(going, room - counts[rows, picked], -1)
            state = torch.where(going.unsqueeze(1), self.step(keys[rows, picked], state), state)
            cosines = torch.einsum("bnd,bd->bn", vectors, vectors[rows, picked])
            nearest = torch.where(going.unsqueeze(1), torch.maximum(nearest, cosines), nearest)
        return torch.stack(choices, 1), total


class Extractor:
    """The network with the encoder of its sentences and its budget; ``summarize(documents)``.

    A policy as it is (``negsample.train.reinforce``). Maximum likelihood learns the best extracts by ``oracle``, found
    greedily (Nallapati et al. 2017 §2.2).
    """

    def __init__(
        self, encoder: Encoder, network: ExtractorNetwork, budget: Budget, oracle: Score | None = None
    ) -> None:
        self.encoder, self.network, self.budget = encoder, network, budget
        self._oracle, self._cache = oracle, EmbeddingCache(encoder)
        self._read: Recent[str, ReadDocument] = Recent(_KEPT)
        self._best: dict[str, list[int]] = {}

    @classmethod
    def new(cls, encoder: Encoder, budget: Budget, seed: int, oracle: Score | None = None) -> "Extractor":
        """An untrained one; its weights come from ``seed``."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(encoder, ExtractorNetwork(encoder.dim), budget, oracle)

    def read(self, documents: Sequence[str]) -> list[ReadDocument]:
        """The documents' sentences with their vectors. Raises InputError for a document without a sentence."""
        return self._read.values(documents, self._read_new)

    def _read_new(self, new: list[str]) -> list[ReadDocument]:
        split = [sentences_of(document) for document in new]
        if empty := [document for document, (found, _) in zip(new, split, strict=True) if not found]:
            raise InputError(f"a document has no sentence ({empty[0][:40]!r}); leave it out")
        vectors = self._cache.rows([sentence for found, _ in split for sentence in found])
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        parts = np.split(vectors, np.cumsum([len(found) for found, _ in split])[:-1])
        # Copies, for one that is kept must not keep the vectors of all that were read with it.
        return [ReadDocument(*texts, own.copy()) for texts, own in zip(split, parts, strict=True)]

    def inputs(self, sources: Sequence[Source]) -> dict[str, Tensor]:
        """What the network takes of documents, padded to the one with most sentences."""
        documents = self.read([source.document for source in sources])
        vectors, mask = pad([document.vectors.astype(np.float32) for document in documents])
        places, _ = pad([_places(document) for document in documents])
        counts, _ = padded([document.counts for document in documents], 0, "cpu")
        most = self.budget.words if self.budget.words is not None else int(counts.sum()) + 1
        arrays = {"vectors": vectors, "places": places, "mask": mask}
        found = {name: torch.from_numpy(array) for name, array in arrays.items()}
        return found | {"counts": counts, "words": torch.full((len(documents),), most)}

    def best(self, sources: Sequence[Source]) -> list[list[int]]:
        """The best extract of each source by the oracle, looked for once; none without references."""
        lacking = [source for source in sources if source.references and source.id not in self._best]

        def score(which: Sequence[int], summaries: Sequence[str]) -> np.ndarray:
            own = [lacking[i] for i in which]
            assert self._oracle is not None
            return self._oracle([s.document for s in own], summaries, [s.references for s in own])

        read = [(one.sentences, one.counts) for one in self.read([source.document for source in lacking])]
        self._best.update(zip((s.id for s in lacking), best_choices(read, self.budget, score), strict=True))
        return [self._best.get(source.id, []) for source in sources]

    def targets(self, sources: Sequence[Source]) -> Tensor:
        """The best extracts int64 [B, T], −1 after the end of each."""
        return cast("Tensor", padded(self.best(sources), -1, "cpu")[0])

    def decode(
        self, inputs: Mapping[str, Tensor], sources: Sequence[Source], draw: tuple[object, ...] | None = None
    ) -> Tensor:
        """Choices int64 [B, T]: the most probable sentence each time, or drawn (by Gumbel's trick) by the random numbers
        that ``draw`` and a source's id decide."""
        rngs = [] if draw is None else [generator(*draw, source.id) for source in sources]
        own = inputs["mask"].sum(1).tolist()

        def choose(logits: Tensor, _: int) -> Tensor:
            noise = np.zeros(logits.shape, np.float32)
            for row, rng, n in zip(noise, rngs, own, strict=False):
                row[:n] = rng.gumbel(size=n)
            return (logits + torch.from_numpy(noise).to(logits.device)).argmax(1)

        most = inputs["mask"].shape[1]
        with torch.no_grad():
            return self.network.walk(inputs, choose, min(most, self.budget.sentences or most))[0]

    def texts(self, sources: Sequence[Source], sequences: Tensor) -> list[str]:
        """The summaries that choices [B, T] mean."""
        read = self.read([source.document for source in sources])
        chosen = [[place for place in row if place >= 0] for row in sequences.tolist()]
        return [extract(document.sentences, own) for document, own in zip(read, chosen, strict=True)]

    def summarize(self, documents: Sequence[str]) -> list[str]:
        """A summary of each document, by greedy choice."""
        return summaries_of(self, documents, _BATCH)

    def save(self, folder: Path, facts: Mapping[str, Any]) -> None:
        """Write weights, encoder and, last, ``config.json`` with ``facts``, into ``folder``."""
        from safetensors.torch import save_model

        folder.mkdir(parents=True, exist_ok=True)
        save_model(self.network, str(folder / "model.safetensors"))
        about = {"model_type": KIND, "encoder": self.encoder.save(folder / "encoder"), "budget": asdict(self.budget)}
        digest = file_digest(folder / "model.safetensors").hex()
        atomic_json(folder / "config.json", {**about, "weights_sha256": digest, **facts})
        share_weights(folder)

    @classmethod
    def load(cls, folder: Path) -> "Extractor":
        """The extractor that ``save`` wrote. Raises InputError where a file is missing or damaged."""
        with telling(folder / "config.json", *DAMAGED, KeyError, TypeError, ValueError, OSError):
            about = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            encoder = load_encoder(about["encoder"], folder / "encoder")
            made = cls.new(encoder, Budget(**about["budget"]), seed=0)
            load_weights(made.network, folder, about["weights_sha256"])
        return made


def _places(document: ReadDocument) -> np.ndarray:
    """Where each sentence stands and how it lies in the document, float32 [n, 5]."""
    n = len(document.sentences)
    order = np.arange(n)
    centre = document.vectors.mean(axis=0)
    rows = [
        order / max(1, n - 1),
        1 / (1 + order),
        order == 0,
        np.log1p(document.counts) / 3,
        document.vectors @ (centre / max(1e-9, float(np.linalg.norm(centre)))),
    ]
    return np.stack(rows, axis=1).astype(np.float32)

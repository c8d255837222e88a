"""The estimator: pairs in, scores out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import torch

import negsample
from negsample.errors import InputError
from negsample.models.align.explain import explain
from negsample.models.batching import longest_first
from negsample.models.build import Parts, load_parts
from negsample.models.features.align import AlignFeatures
from negsample.models.folder import read_description
from negsample.models.language.model_files import load_weights
from negsample.scoring import Scored
from negsample.seeds import digest

# Pairs read and sorted by length together.
_CHUNK = 1024
# Units (tokens, rows) that one batch holds at most, as a multiple of the batch size.
_UNITS = 512


class Estimator:
    """A trained, reference-free estimator of summary quality.

    ``Estimator.load(folder)`` reads a model folder; ``score(documents, summaries)`` answers with one number a pair.
    """

    def __init__(self, parts: Parts, description: dict[str, Any], device: str | torch.device | None = None) -> None:
        assert parts.network is not None
        self.description = description
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._features = parts.features
        self._network = parts.network.to(self.device).eval()
        if hasattr(parts.features, "to"):
            parts.features.to(self.device)

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device | None = None) -> "Estimator":
        """The estimator in ``folder``, on ``device`` (a GPU where there is one). No network access, no pickle.

        Raises InputError where the folder is damaged, newer than this code, or of another kind.
        """
        folder = Path(folder).expanduser()
        description = read_description(folder)
        try:
            parts = load_parts(description, folder)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"{folder / 'config.json'}: damaged ({error!r}); copy the model again") from None
        assert parts.network is not None
        load_weights(parts.network, folder, description["weights_sha256"])
        return cls(parts, description, device)

    def stay_in_memory(self) -> None:
        """Keep nothing of the texts to come on disk, as a service should; heads over rows keep vectors in the cache still."""
        if isinstance(self._features, AlignFeatures):
            self._features.stay_in_memory()

    @property
    def fingerprint(self) -> str:
        """12 hex digits that change with anything that changes a score."""
        about = self.description
        parts = (about["weights_sha256"], about["head"], about.get("head_options"), sorted(about["features"].items()))
        return digest(*parts).hex()[:12]

    @property
    def signature(self) -> str:
        """One line from which another person gets the same numbers: model, encoder, head, recipe, loss, version."""
        about = self.description
        values = {
            "model": self.fingerprint,
            "encoder": about["encoder"]["name"],
            "head": about["head"],
            "recipe": about["recipe"],
            "loss": about["loss"],
            "version": negsample.__version__,
        }
        return "|".join(f"{key}:{value}" for key, value in values.items())

    @property
    def aspects(self) -> tuple[str, ...]:
        """The aspects that this estimator tells apart; () for a head that has the overall score alone."""
        return tuple(getattr(type(self._network), "outputs", ("score",))[1:])

    @overload
    def score(
        self,
        documents: Sequence[str],
        summaries: Sequence[str],
        *,
        batch_size: int = 32,
        aspects: Literal[False] = False,
    ) -> np.ndarray: ...

    @overload
    def score(
        self, documents: Sequence[str], summaries: Sequence[str], *, batch_size: int = 32, aspects: Literal[True]
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]: ...

    def score(
        self, documents: Sequence[str], summaries: Sequence[str], *, batch_size: int = 32, aspects: bool = False
    ) -> np.ndarray | tuple[np.ndarray, dict[str, np.ndarray]]:
        """Scores of ``summaries[i]`` for ``documents[i]``: float32 [n] in [0, 1], higher is better.

        With ``aspects``: (scores, {aspect: float32 [n] in [0, 1]}), NaN where an aspect can't be judged (``score_pairs``
        says why). A pair's score does not depend on the other pairs (to 1e-5). Raises InputError where the lengths
        differ, a text is not a string or blank, or the model has no aspects.
        """
        if aspects:
            self.need_aspects()
        scored = self.score_pairs(documents, summaries, batch_size=batch_size)
        return (scored.scores, scored.aspects or {}) if aspects else scored.scores

    def need_aspects(self) -> None:
        """Raises InputError where the model has no aspects."""
        if not self.aspects:
            raise InputError(
                f"head {self.description['head']!r} has no aspects; "
                "train a model that has: negsample train --config align corpus=PATH --out DIR"
            )

    def explain(self, document: str, summary: str) -> dict[str, Any]:
        """Why the pair scores as it does, in plain values (see ``negsample.models.align.explain``).

        Raises InputError as ``score`` does, and where the model has no aspects.
        """
        return self.explain_pairs([document], [summary])[0]

    def explain_pairs(self, documents: Sequence[str], summaries: Sequence[str]) -> list[dict[str, Any]]:
        """As ``explain``, for pairs that are computed together."""
        self.need_aspects()
        scored = self.score_pairs(documents, summaries)
        assert isinstance(self._features, AlignFeatures)
        return [
            explain(self._features, self._network, document, summary, scored, place)
            for place, (document, summary) in enumerate(zip(documents, summaries, strict=True))
        ]

    def score_pairs(self, documents: Sequence[str], summaries: Sequence[str], *, batch_size: int = 32) -> Scored:
        """As ``score``, with what was cut, and the aspects where the head has them."""
        if isinstance(documents, str) or isinstance(summaries, str):
            raise InputError("score takes a list of documents and a list of summaries; put a single text into a list")
        if len(documents) != len(summaries):
            raise InputError(f"{len(documents)} documents but {len(summaries)} summaries; give one document a summary")
        for name, texts in (("document", documents), ("summary", summaries)):
            for number, text in enumerate(texts):
                if not isinstance(text, str) or not text.strip():
                    fault = "blank" if isinstance(text, str) else f"{type(text).__name__}, not text"
                    raise InputError(f"{name} {number} is {fault}; leave the pair out")
        outputs = np.empty((len(documents), 1 + len(self.aspects)), np.float32)
        cut = np.zeros(len(documents), bool)
        for start in range(0, len(documents), _CHUNK):
            part = slice(start, start + _CHUNK)
            outputs[part], cut[part] = self._score_chunk(documents[part], summaries[part], batch_size)
        if not self.aspects:
            return Scored(outputs[:, 0], cut)
        missing = np.any(np.isnan(outputs[:, 1:]), axis=1).tolist()
        reason = self._features.reason  # type: ignore[attr-defined]
        return Scored(
            outputs[:, 0],
            cut,
            {name: outputs[:, number] for number, name in enumerate(self.aspects, start=1)},
            [reason(documents[i], summaries[i]) if missing[i] else None for i in range(len(documents))],
        )

    def _score_chunk(
        self, documents: Sequence[str], summaries: Sequence[str], batch_size: int
    ) -> tuple[np.ndarray, np.ndarray]:
        # Systems share documents: each text is read once.
        unique = list(dict.fromkeys([*documents, *summaries]))
        units = dict(zip(unique, self._features.read(unique), strict=True))
        width = self._features.width
        sizes = np.array([[len(units[d]), len(units[s])] for d, s in zip(documents, summaries, strict=True)]) // width
        lengths = self._features.lengths(sizes[:, 0], sizes[:, 1])
        outputs = np.empty((len(documents), 1 + len(self.aspects)), np.float32)
        # At most ``batch_size`` · 512 units a batch, padding counted.
        room = batch_size * _UNITS
        for batch in longest_first(lengths, lambda longest: min(room // max(1, longest), 8 * batch_size)):
            tensors = self._features.collate([units[documents[i]] for i in batch], [units[summaries[i]] for i in batch])
            with torch.inference_mode():
                logits = self._network(**{name: tensor.to(self.device) for name, tensor in tensors.items()})
                outputs[batch] = torch.sigmoid(logits.float()).cpu().numpy().reshape(len(batch), -1)
        if not np.isfinite(outputs[:, 0]).all():
            raise InputError(f"the model answers with a number that is not finite for document {documents[0][:60]!r}…")
        return outputs, self._features.was_cut(sizes[:, 0], sizes[:, 1])

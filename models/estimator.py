"""The estimator: pairs in, scores out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

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
from negsample.models.percentiles import FILE, read_percentiles, share_below
from negsample.models.precision import check_precision, to_bf16
from negsample.scoring.scorer import Columns, Item, Scorer, fault_of, values_at
from negsample.seeds import digest

if TYPE_CHECKING:
    import pandas as pd

Ask = Callable[..., torch.Tensor]

# Pairs read and sorted by length together.
_CHUNK = 1024
# Units (tokens, rows) that one batch holds at most, as a multiple of the batch size.
_UNITS = 512


class Estimator:
    """A reference-free estimator of summary quality.

    ``Estimator.load()`` is the ready one, ``Estimator.load(folder)`` reads a model folder; ``score(documents, summaries)``
    answers with one number a pair.
    """

    def __init__(
        self,
        parts: Parts,
        description: dict[str, Any],
        device: str | torch.device | None = None,
        precision: str = "float32",
        percentiles: dict[str, np.ndarray] | None = None,
    ) -> None:
        assert parts.network is not None
        self.description = description
        self.precision = precision
        self._percentiles = percentiles
        # What it was loaded from.
        self._source: str | None = None
        self.device = _device(device)
        self._features = parts.features
        self._network = parts.network.to(self.device).eval()
        if hasattr(parts.features, "to"):
            parts.features.to(self.device)

    @classmethod
    def load(
        cls,
        model: str | Path | None = None,
        device: str | torch.device | None = None,
        precision: str = "float32",
    ) -> "Estimator":
        """The estimator in the folder ``model``, or ``org/name[@revision]`` of the hub, on ``device`` (a GPU where there
        is one). No network access for a folder; no pickle.

        Without ``model``, or for ``"ready"``, it is the ready one (``negsample.models.ready``). ``precision``: ``"bf16"``
        lets the pretrained networks (encoder, judge, the network of ``cls``) compute in bfloat16, which moves scores a
        little; a language model stays at its own. Raises InputError where the folder is damaged, newer than this code,
        or of another kind, where the hub has no such model, and for ``"bf16"`` where the device has no instructions for it.
        """
        check_precision(precision, _device(device))
        if model is None or (str(model) == "ready" and not Path(model).exists()):
            from negsample.models.ready import PERCENTILES, ready_parts

            made = cls(*ready_parts(precision), device, precision, read_percentiles(PERCENTILES))
            made._source = "ready"
            return made
        from negsample.models.hub import model_path

        folder = model_path(model)
        description = read_description(folder)
        try:
            parts = load_parts(description, folder, precision=precision)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"{folder / 'config.json'}: damaged ({error!r}); copy the model again") from None
        assert parts.network is not None
        load_weights(parts.network, folder, description["weights_sha256"])
        fine_tuned = getattr(parts.network, "encoder", None)
        if precision == "bf16" and fine_tuned is not None:
            to_bf16(fine_tuned)
        if "fitted" in description:
            from negsample.models.fitted import FittedEstimator

            cls = FittedEstimator if cls is Estimator else cls
        made = cls(parts, description, device, precision, read_percentiles(folder / FILE))
        made._source = str(folder.resolve())
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Where it lies stands for the estimator when it goes to another process, and when ``datasets`` hashes it."""
        if self._source is None:
            return super().__reduce_ex__(protocol)
        return _load_again, (self._source, str(self.device), self.precision, self.fingerprint)

    def stay_in_memory(self) -> None:
        """Keep nothing of the texts to come on disk, as a service should; heads over rows keep vectors in the cache still."""
        if isinstance(self._features, AlignFeatures):
            self._features.stay_in_memory()

    def expect_again(self) -> None:
        """Keep more (a gigabyte of word vectors, head ``align``) of documents that will come again, as they do to a reward."""
        if isinstance(self._features, AlignFeatures):
            self._features.expect_again()

    @property
    def fingerprint(self) -> str:
        """12 hex digits that change with anything that changes a score."""
        about = self.description
        parts = (about["weights_sha256"], about["head"], about.get("head_options"), sorted(about["features"].items()))
        return digest(*parts).hex()[:12]

    @property
    def signature(self) -> str:
        """One line from which another person gets the same numbers: model, encoder, head, recipe, loss, version, and the
        precision where it is not float32. That of the ready estimator begins with ``ready`` and its own version.
        """
        about = self.description
        values = {
            **({"ready": about["ready"]} if "ready" in about else {}),
            "model": self.fingerprint,
            "encoder": about["encoder"]["name"],
            "head": about["head"],
            "recipe": about["recipe"],
            "loss": about["loss"],
            "version": negsample.__version__,
        }
        if self.precision != "float32":
            values["precision"] = self.precision
        return "|".join(f"{key}:{value}" for key, value in values.items())

    @property
    def aspects(self) -> tuple[str, ...]:
        """The aspects that this estimator tells apart; () for a head that has the overall score alone."""
        return self._own_aspects

    @property
    def _own_aspects(self) -> tuple[str, ...]:
        """The aspects of the head itself."""
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
        return (scored.scores, scored.aspects) if aspects else scored.scores

    def need_aspects(self) -> None:
        """Raises InputError where the model has no aspects."""
        if not self.aspects:
            raise InputError(
                f"head {self.description['head']!r} has no aspects; "
                "train a model that has: negsample train --config align corpus=PATH --out DIR"
            )

    @property
    def has_percentiles(self) -> bool:
        """Whether it knows what real summaries score; folders of earlier versions don't."""
        return self._percentiles is not None

    def _ranked(self, scored: Columns) -> Columns:
        """``scored`` with its percentiles, where the estimator knows what real summaries of its own corpus score."""
        named = scored.named()
        shares = {
            name: share_below(known, named[name]) for name, known in (self._percentiles or {}).items() if name in named
        }
        return replace(scored, percentiles=shares)

    def scorer(self, name: str = "", batch_size: int = 32) -> Scorer:
        """The estimator as one of the things that score, called ``name``; a pair without text is answered by NaN and why."""

        def score(items: Sequence[Item]) -> Columns:
            reasons = [self._item_fault(item) for item in items]
            good = [place for place, reason in enumerate(reasons) if reason is None]
            return self._score_items([items[place] for place in good], batch_size).spread(good, reasons)

        about = self.aspects, self.fitted_on, self.has_percentiles
        return Scorer(name or "model", self.signature, True, self.needs, score, *about)

    needs: frozenset[str] = frozenset({"document"})
    fitted_on: frozenset[str] = frozenset()

    def _item_fault(self, item: Item) -> str | None:
        return fault_of(item.document, item.summary)

    def _score_items(self, items: Sequence[Item], batch_size: int) -> Columns:
        return self.score_pairs([i.document for i in items], [i.summary for i in items], batch_size=batch_size)

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
        explained = []
        for place, (document, summary) in enumerate(zip(documents, summaries, strict=True)):
            told = explain(self._features, self._network, document, summary, scored, place)
            told.update({"percentile": values_at(scored.percentiles, place)} if scored.percentiles else {})
            explained.append(told)
        return explained

    def score_frame(
        self,
        frame: "pd.DataFrame",
        *,
        document: str = "document",
        summary: str = "summary",
        prefix: str = "",
        batch_size: int = 32,
    ) -> "pd.DataFrame":
        """A copy of ``frame`` with ``score``, ``percentile``, the aspects, their ``…_percentile`` and ``reason``.

        ``document`` and ``summary`` name its columns of texts; ``prefix`` stands before the names of the new ones. A row
        whose texts are missing or blank has NaN and a reason. Raises InputError for a column that is not there, and a new
        one that is there already.
        """
        from negsample.models.frames import score_frame

        return score_frame(self, frame, document, summary, prefix, batch_size)

    def batch(
        self,
        columns: Mapping[str, Sequence[Any]],
        document: str = "document",
        summary: str = "summary",
        prefix: str = "",
    ) -> dict[str, Any]:
        """For ``datasets``: ``dataset.map(estimator.batch, batched=True)`` adds the columns of ``score_frame``.

        Other names of columns go into ``fn_kwargs``. Works with ``num_proc``, and ``datasets`` finds again what it cached.
        """
        from negsample.models.frames import score_batch

        return score_batch(self, columns, document, summary, prefix)

    def score_pairs(self, documents: Sequence[str], summaries: Sequence[str], *, batch_size: int = 32) -> Columns:
        """As ``score``, with what was cut, and the aspects where the head has them."""
        logits, cut, reasons = self._answers(
            documents, summaries, batch_size, self._network, 1 + len(self._own_aspects)
        )
        outputs = torch.sigmoid(torch.from_numpy(logits)).numpy()
        aspects = dict(zip(self._own_aspects, outputs.T[1:], strict=True))
        return self._ranked(Columns(outputs[:, 0], reasons, cut, aspects))

    @property
    def evidence_directions(self) -> dict[str, int]:
        """The columns of ``evidence``: name → −1 where more of what it is called is worse, else +1."""
        named: dict[str, int] = getattr(self._network, "evidence_directions", {})
        return dict.fromkeys(("score", *self._own_aspects), 1) | named

    def evidence(
        self, documents: Sequence[str], summaries: Sequence[str], *, batch_size: int = 32
    ) -> tuple[np.ndarray, np.ndarray, list[str | None]]:
        """What a fit to people's scores can weigh, turned so that more is better: (float32 [n, K], cut bool [n], reasons).

        Columns: the logits of the score and of the aspects, then what the head names (``evidence_directions``). NaN, with
        the reason, where an aspect can't be judged. Raises InputError as ``score`` does.
        """
        ask = getattr(self._network, "evidence", self._network)
        return self._answers(documents, summaries, batch_size, ask, len(self.evidence_directions))

    def _answers(
        self, documents: Sequence[str], summaries: Sequence[str], batch_size: int, ask: Ask, width: int
    ) -> tuple[np.ndarray, np.ndarray, list[str | None]]:
        """What ``ask`` (the network, or a method of it) says of each pair: float32 [n, width], cut bool [n], and why an aspect
        is missing.
        """
        if isinstance(documents, str) or isinstance(summaries, str):
            raise InputError("score takes a list of documents and a list of summaries; put a single text into a list")
        if len(documents) != len(summaries):
            raise InputError(f"{len(documents)} documents but {len(summaries)} summaries; give one document a summary")
        for name, texts in (("document", documents), ("summary", summaries)):
            for number, text in enumerate(texts):
                if not isinstance(text, str) or not text.strip():
                    fault = "blank" if isinstance(text, str) else f"{type(text).__name__}, not text"
                    raise InputError(f"{name} {number} is {fault}; leave the pair out")
        outputs = np.empty((len(documents), width), np.float32)
        cut = np.zeros(len(documents), bool)
        for start in range(0, len(documents), _CHUNK):
            part = slice(start, start + _CHUNK)
            outputs[part], cut[part] = self._answer_chunk(documents[part], summaries[part], batch_size, ask, width)
        missing = np.any(np.isnan(outputs), axis=1).tolist()
        reason = getattr(self._features, "reason", lambda document, summary: None)
        return outputs, cut, [reason(documents[i], summaries[i]) if missing[i] else None for i in range(len(documents))]

    def _answer_chunk(
        self, documents: Sequence[str], summaries: Sequence[str], batch_size: int, ask: Ask, width: int
    ) -> tuple[np.ndarray, np.ndarray]:
        # Systems share documents: each text is read once.
        unique = list(dict.fromkeys([*documents, *summaries]))
        units = dict(zip(unique, self._features.read(unique), strict=True))
        unit = self._features.width
        sizes = np.array([[len(units[d]), len(units[s])] for d, s in zip(documents, summaries, strict=True)]) // unit
        lengths = self._features.lengths(sizes[:, 0], sizes[:, 1])
        outputs = np.empty((len(documents), width), np.float32)
        # At most ``batch_size`` · 512 units a batch, padding counted.
        room = batch_size * _UNITS
        for batch in longest_first(lengths, lambda longest: min(room // max(1, longest), 8 * batch_size)):
            tensors = self._features.collate([units[documents[i]] for i in batch], [units[summaries[i]] for i in batch])
            with torch.inference_mode():
                logits = ask(**{name: tensor.to(self.device) for name, tensor in tensors.items()})
                outputs[batch] = logits.float().cpu().numpy().reshape(len(batch), -1)
        if not np.isfinite(outputs[:, 0]).all():
            raise InputError(f"the model answers with a number that is not finite for document {documents[0][:60]!r}…")
        cut = self._features.was_cut(sizes[:, 0], sizes[:, 1])
        if isinstance(self._features, AlignFeatures):
            cut |= self._features.read_in_part([units[text] for text in documents])
        return outputs, cut


def _device(device: str | torch.device | None) -> torch.device:
    """``device``, or a GPU where there is one."""
    return torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))


def _load_again(source: str, device: str, precision: str, fingerprint: str) -> Estimator:
    """The estimator that was sent here as the place it was loaded from. Raises InputError where another lies there now."""
    made = Estimator.load(source, device, precision)
    if made.fingerprint != fingerprint:
        raise InputError(f"{source}: another model than the one that was loaded lies here now; load it again")
    return made

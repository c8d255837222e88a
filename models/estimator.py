"""The estimator: pairs in, scores out."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import negsample
from negsample.errors import InputError
from negsample.models.align.explain import explain
from negsample.models.batching import longest_first
from negsample.models.build import Parts
from negsample.models.dataframe import score_columns
from negsample.models.features.align import AlignFeatures
from negsample.models.folder import scaled, share_below
from negsample.models.kernels import pack
from negsample.models.language.networks import pick_device
from negsample.scoring.scorer import Columns, Item, Scorer, fault_of, items_of, values_at
from negsample.seeds import digest

if TYPE_CHECKING:
    import pandas as pd

Ask = Callable[..., torch.Tensor]
# A document, or several, of each pair; and its references.
Documents = Sequence[str | Sequence[str]]
References = Sequence[Sequence[str]]
Percentiles = Mapping[str, Mapping[str, np.ndarray]]

if hasattr(os, "register_at_fork"):  # not on Windows
    # The threads that torch has begun here are not in a forked process (num_proc= of datasets), which waits for them for ever.
    os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))

# Pairs read and sorted by length together.
_CHUNK = 1024
# Units (tokens, rows) that one batch holds at most, as a multiple of the batch size.
_UNITS = 512


@dataclass(frozen=True)
class Answers:
    """What is computed of n pairs: ``values`` float [n, K], NaN where one is missing and ``reasons`` [n] says why; ``cut``
    bool [n]: longer than the model reads."""

    values: np.ndarray
    cut: np.ndarray
    reasons: list[str | None]


class Estimator:
    """A reference-free estimator of summary quality.

    ``Estimator.load()`` is the ready one, ``Estimator.load(folder)`` reads a model folder; ``score(documents, summaries)``
    answers with one number a pair. Threads may share one: it computes for one of them at a time.
    """

    needs: frozenset[str] = frozenset({"document"})
    # Keys of the documents whose judgments it was fitted to, or whose labels it was trained on.
    fitted_on: frozenset[str] = frozenset()

    def __init__(
        self,
        parts: Parts,
        description: dict[str, Any],
        device: str | torch.device | None = None,
        precision: str = "float32",
        percentiles: Percentiles | None = None,
        place: str | None = None,
    ) -> None:
        """``percentiles``: as `negsample.models.folder.read_percentiles` has them; ``place``: where it was loaded from."""
        assert parts.network is not None
        self.description, self.parts, self.precision, self._place = description, parts, precision, place
        self.device = torch.device(pick_device(device))
        labels = (description.get("data") or {}).get("labels") or {}
        self.fitted_on = frozenset(labels.get("keys", ()))
        # Tokenizers, stores of what was read, and caches are not made for threads; products use all cores in any case.
        self._alone = threading.RLock()
        self._percentiles = percentiles or {}
        self._scale = {name: np.array(knots, np.float64) for name, knots in description.get("scale", {}).items()}
        self._features = parts.features
        self._network = pack(parts.network.to(self.device).eval())
        if hasattr(parts.features, "to"):
            parts.features.to(self.device)
        # Those of the head itself.
        self._own_aspects: tuple[str, ...] = tuple(getattr(type(self._network), "outputs", ("score",))[1:])

    @classmethod
    def load(
        cls, model: str | Path | None = None, device: str | None = None, precision: str = "float32"
    ) -> "Estimator":
        """As `negsample.models.load`, which loads every kind of estimator."""
        from negsample.models import load

        return load(model, device, precision)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Where it lies stands for the estimator when it goes to another process, and when ``datasets`` hashes it."""
        if self._place is None:
            return super().__reduce_ex__(protocol)
        return _load_again, (self._place, str(self.device), self.precision, self.fingerprint)

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
        return digest(*parts, *sorted(about.get("scale", {}).items())).hex()[:12]

    @property
    def signature(self) -> str:
        """One line from which another person gets the same numbers: model, encoder, head, recipe, loss, version, and the
        precision where it is not float32. That of the ready estimator begins with ``ready`` and its own version.
        """
        about = self.description
        values = {"ready": about.get("ready"), "model": self.fingerprint, "encoder": about["encoder"]["name"]}
        values |= {name: about[name] for name in ("head", "recipe", "loss")} | {"version": negsample.__version__}
        values["precision"] = None if self.precision == "float32" else self.precision
        return "|".join(f"{key}:{value}" for key, value in values.items() if value is not None)

    @property
    def aspects(self) -> tuple[str, ...]:
        """The aspects that this estimator tells apart; () for a head that has the overall score alone."""
        return self._own_aspects

    def score(self, documents: Documents, summaries: Sequence[str], *, batch_size: int = 32) -> np.ndarray:
        """Scores of ``summaries[i]`` for ``documents[i]``: float32 [n] in [0, 1], higher is better.

        Either may be any column: a list, a Series, an array, a generator; a list in place of a document is several.
        A pair's score does not depend on the other pairs (to 1e-5). Raises InputError where the lengths differ, and where a
        text is missing, not a string or blank.
        """
        return self.score_pairs(documents, summaries, batch_size=batch_size).scores

    def score_pairs(
        self,
        documents: Documents,
        summaries: Sequence[str],
        references: References = (),
        domains: Sequence[str] = (),
        *,
        batch_size: int = 32,
    ) -> Columns:
        """As ``score``, with the aspects where the head has them, the percentiles of both, why one is missing, and what was
        cut; ``references`` [n] for a model that was fitted with them. ``domains`` [n]: the kind of text ("news"), of which the
        percentiles are where the model knows it, else of all."""
        return self._scored(self._sound(items_of(documents, summaries, references, domains), self.needs), batch_size)[1]

    def scorer(self, name: str = "model", batch_size: int = 32, aspects: bool = True) -> Scorer:
        """The estimator as one of the things that score, called ``name``, its aspects left out unless ``aspects``.

        An item without a text that it needs is answered by NaN and a reason.
        """

        def score(items: Sequence[Item]) -> Columns:
            reasons = [fault_of(item, self.needs) for item in items]
            good = [place for place, reason in enumerate(reasons) if reason is None]
            found = self._scored([items[place] for place in good], batch_size)[1].spread(good, reasons)
            return found if aspects else found.overall()

        about = self.aspects if aspects else (), self.fitted_on, tuple(score([]).flat()), ("score", *self._own_aspects)
        several, domains = isinstance(self._features, AlignFeatures), frozenset(self._percentiles) - {""}
        return Scorer(name, self.signature, True, self.needs, score, *about, several, domains)

    def explain(self, document: str | Sequence[str], summary: str) -> dict[str, Any]:
        """Why the pair scores as it does, in plain values (see ``negsample.models.align.explain``); ``percentile`` has the
        share of real summaries that score lower, for the score and each aspect; ``targets`` of a fitted model, for each,
        its value, interval, and what each input adds.

        Raises InputError as ``score`` does, and where the model has no aspects to explain a score by.
        """
        return self.explain_pairs([document], [summary])[0]

    def explain_pairs(
        self, documents: Documents, summaries: Sequence[str], references: References = (), domains: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """As ``explain``, for pairs that are computed together; ``references`` and ``domains`` [n] as of ``score_pairs``."""
        features = self._features
        if not isinstance(features, AlignFeatures):
            self.need_aspects()
            raise InputError(f"head {self.description['head']!r} has no aspects to explain a score by")
        items = self._sound(items_of(documents, summaries, references, domains), self.needs)
        with self._alone:
            answers, columns = self._scored(items, 32)
            return [
                explain(features, self._network, item.document, item.summary, columns, place)
                | self._explained(answers, columns, place)
                for place, item in enumerate(items)
            ]

    def _explained(self, answers: Answers, columns: Columns, place: int) -> dict[str, Any]:
        """What an explanation of one pair says of the scores themselves."""
        return {"percentile": values_at(columns.percentiles, place)} if columns.percentiles else {}

    def need_aspects(self) -> None:
        """Raises InputError where the model has no aspects."""
        if not self.aspects:
            advice = "train a model that has: negsample train --config align corpus=PATH --out DIR"
            raise InputError(f"head {self.description['head']!r} has no aspects; {advice}")

    def score_frame(
        self, frame: "pd.DataFrame", *, document: str = "document", summary: str = "summary", prefix: str = ""
    ) -> "pd.DataFrame":
        """A copy of ``frame`` with ``score``, ``percentile``, the aspects, their ``…_percentile``, and ``reason``: the
        columns of `negsample.scoring.scorer.Columns.flat`.

        ``document`` and ``summary`` name its columns of texts; ``prefix`` stands before the names of the new ones. A row
        whose texts are missing or blank has NaN and a reason. Raises InputError for a column that is not there, and a new
        one that is there already.
        """
        if not hasattr(frame, "assign"):
            told = f"score_frame takes a pandas DataFrame, not a {type(frame).__name__}"
            raise InputError(f"{told}; give score() two columns of it")
        return frame.assign(**score_columns(self, frame, document, summary, prefix))

    def batch(
        self, columns: Mapping[str, Any], document: str = "document", summary: str = "summary", prefix: str = ""
    ) -> dict[str, Any]:
        """For ``datasets``: ``dataset.map(estimator.batch, batched=True)`` adds the columns of ``score_frame``; other names
        of columns go into ``fn_kwargs``. What ``datasets`` has cached is found again while the model is the same.
        """
        return score_columns(self, columns, document, summary, prefix)

    @property
    def input_directions(self) -> dict[str, int]:
        """The columns of ``inputs``: name → −1 where more of what it is called is worse, else +1."""
        named: dict[str, int] = getattr(self._network, "input_directions", {})
        return dict.fromkeys(("score", *self._own_aspects), 1) | named

    def inputs(self, documents: Documents, summaries: Sequence[str], *, batch_size: int = 32) -> Answers:
        """What a fit to people's scores can weigh, turned so that more is better: ``values`` float32 [n, K].

        Columns: the logits of the score and of the aspects, then what the head names (``input_directions``). NaN, with
        the reason, where an aspect can't be judged. Raises InputError as ``score`` does.
        """
        ask = getattr(self._network, "inputs", self._network)
        items = self._sound(items_of(documents, summaries), frozenset({"document"}))
        return self._asked(items, batch_size, ask, len(self.input_directions))

    def _sound(self, items: list[Item], needs: frozenset[str]) -> list[Item]:
        """``items``. Raises InputError where one can't be scored, or has not what it ``needs``."""
        for place, item in enumerate(items):
            if fault := fault_of(item, needs):
                raise InputError(f"pair {place}: {fault}; leave the pair out")
        return items

    def _scored(self, items: Sequence[Item], batch_size: int) -> tuple[Answers, Columns]:
        """What is computed of the items, and what it means, with percentiles."""
        answers = self._answers(items, batch_size)
        return answers, self._ranked(self._columns(answers), items)

    def _answers(self, items: Sequence[Item], batch_size: int) -> Answers:
        """Logits of the score and of the aspects, float32 [n, K]."""
        return self._asked(items, batch_size, self._network, 1 + len(self._own_aspects))

    def _columns(self, answers: Answers) -> Columns:
        """What the answers mean."""
        outputs = torch.sigmoid(torch.from_numpy(answers.values[:, : 1 + len(self._own_aspects)])).numpy()
        for column, name in enumerate(("score", *self._own_aspects)):
            if name in self._scale:
                outputs[:, column] = scaled(self._scale[name], answers.values[:, column].astype(np.float64))
        aspects = dict(zip(self._own_aspects, outputs.T[1:], strict=True))
        return Columns(outputs[:, 0], answers.reasons, answers.cut, aspects)

    def _ranked(self, scored: Columns, items: Sequence[Item]) -> Columns:
        """``scored`` with the share of real summaries that score lower, of the item's domain where they are known, else of all
        of the estimator's own corpus."""
        shares: dict[str, np.ndarray] = {}
        for domain, known in self._percentiles.items():  # all come first
            own = np.array([domain in ("", item.domain) for item in items], bool)
            for name, column in scored.named().items():
                if name in known:
                    shares.setdefault(name, np.full(len(items), np.nan))[own] = share_below(known[name], column[own])
        return replace(scored, percentiles=shares)

    def _asked(self, items: Sequence[Item], batch_size: int, ask: Ask, width: int) -> Answers:
        """What ``ask`` (the network, or a method of it) says of each pair: float32 [n, width]."""
        values, cut = np.empty((len(items), width), np.float32), np.zeros(len(items), bool)
        reason = getattr(self._features, "reason", lambda document, summary: None)
        with self._alone:
            for start in range(0, len(items), _CHUNK):
                part = slice(start, start + _CHUNK)
                values[part], cut[part] = self._ask_chunk(items[part], batch_size, ask, width)
            lacking = np.asarray(np.isnan(values).any(axis=1))
            reasons = [
                reason(item.document, item.summary) if gone else None for item, gone in zip(items, lacking, strict=True)
            ]
        return Answers(values, cut, reasons)

    def _ask_chunk(self, items: Sequence[Item], batch_size: int, ask: Ask, width: int) -> tuple[np.ndarray, np.ndarray]:
        features = self._features
        # Systems share documents: each text is read once.
        unique = list(dict.fromkeys([*(item.document for item in items), *(item.summary for item in items)]))
        units = dict(zip(unique, features.read(unique), strict=True))
        documents, summaries = ([units[getattr(item, text)] for item in items] for text in ("document", "summary"))
        sizes = [np.array(list(map(len, texts))) // features.width for texts in (documents, summaries)]
        outputs = np.empty((len(items), width), np.float32)
        # At most ``batch_size`` · 512 units a batch, padding counted.
        room = batch_size * _UNITS
        for batch in longest_first(features.lengths(*sizes), lambda most: min(room // max(1, most), 8 * batch_size)):
            tensors = features.collate([documents[i] for i in batch], [summaries[i] for i in batch])
            with torch.inference_mode():
                logits = ask(**{name: tensor.to(self.device) for name, tensor in tensors.items()})
                outputs[batch] = logits.float().cpu().numpy().reshape(len(batch), -1)
        if not np.isfinite(outputs[:, 0]).all():
            raise InputError(f"the model's answer is not a finite number for document {items[0].document[:60]!r}…")
        cut = features.was_cut(*sizes)
        if isinstance(features, AlignFeatures):
            cut |= features.read_in_part(documents)
        return outputs, cut


def _load_again(place: str, device: str, precision: str, fingerprint: str) -> Estimator:
    """The estimator that was sent here as the place it was loaded from. Raises InputError where another lies there now."""
    made = Estimator.load(place, device, precision)
    if made.fingerprint != fingerprint:
        raise InputError(f"{place}: another model than the one that was loaded lies here now; load it again")
    return made

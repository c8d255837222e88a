"""The project's scores as a reward for training summarizers: with TRL's signature, for TRL and for ``negsample reinforce``.

from negsample.rewards import reward
GRPOTrainer(model, reward_funcs=reward("align.support=1,align.coverage=1", length="partial"), …)
"""

import logging
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.rewards.length import Band, Partial, within_spread
from negsample.rewards.terms import Source, Term, make_terms
from negsample.rewards.watch import Watch
from negsample.scoring.scorer import Item
from negsample.seeds import digest
from negsample.text import word_count

__all__ = ["Reward", "Source", "Term", "reward"]

_LENGTHS = ("free", "partial", "band")
# Scored outputs that are kept: greedy decoding gives the same ones again and again.
_KNOWN = 1 << 16
_log = logging.getLogger("negsample.rewards")


class Reward:
    """Made by ``reward``; a function of completions with TRL's signature, and ``score`` for plain texts.

    Not to be shared by threads. ``signature``: one line from which another person gets the same numbers.
    """

    def __init__(
        self,
        name: str,
        terms: Sequence[Term],
        *,
        scaled: bool,
        document: str = "document",
        references: str = "references",
        length: Band | Partial | None = None,
        undefined: str = "none",
        unsupervised: float = 0.0,
        report_every: int = 1000,
    ) -> None:
        self.__name__ = name
        self._terms = list(terms)
        self._columns = (document, references)
        self._length = length
        self._undefined = undefined
        self._unsupervised = unsupervised
        self._report_every = report_every
        self._spreads = None if scaled and len(self._terms) > 1 else [1.0] * len(self._terms)
        self._lowest = math.inf
        self._known: OrderedDict[bytes, np.ndarray] = OrderedDict()
        self._watch = Watch()
        parts = "+".join(f"{term.weight:g}*{term.name}" for term in self._terms)
        self.signature = f"reward:{parts}|" + "|".join(dict.fromkeys(t.source.signature for t in self._terms))

    @property
    def needs_references(self) -> bool:
        """Whether nothing of it can be had without references."""
        return all(term.supervised for term in self._terms)

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], completion_ids: Any = None, **columns: Any
    ) -> list[float | None]:
        """TRL's reward function: one number for each completion, None where the reward is undefined.

        ``completions``: texts, or lists of messages, of which the last one's content counts. ``columns`` has the
        data set's columns, each [n]. Raises InputError where a column that is needed is not there.
        """
        document, references = self._columns
        if document not in columns and any("document" in term.source.needs for term in self._terms):
            there = ", ".join(sorted(key for key, value in columns.items() if isinstance(value, list)))
            raise InputError(f"the data set has no column {document!r} ({there}); name it: reward(…, document=NAME)")
        if references not in columns and self.needs_references:
            raise InputError(f"this reward compares with references, and there is no column {references!r}; name it")
        texts = [_text(completion) for completion in completions]
        found = self.score(
            [_text(value) for value in columns.get(document, [""] * len(texts))],
            texts,
            [_texts(value) for value in columns.get(references, [None] * len(texts))],
        )
        if callable(tell := columns.get("log_metric")):
            for name, value in self.report().items():
                if value is not None:
                    tell(f"{self.__name__}/{name}", value)
        return [None if math.isnan(value) else value for value in found.tolist()]

    def score(
        self, documents: Sequence[str], summaries: Sequence[str], references: Sequence[Sequence[str]]
    ) -> np.ndarray:
        """Rewards float64 [n], NaN where undefined (with ``undefined="lowest"`` never).

        A single estimator or metric that is left free of length gives its own score. Summaries of a document that
        stand in one call are compared with each other where ``length="partial"``.
        """
        items = [Item(d, s, tuple(r)) for d, s, r in zip(documents, summaries, references, strict=True)]
        values = self._values(items)
        if self._spreads is None:
            self._spreads = self._measure(values, documents)
        total = self._sum(values, items)
        words = np.array([word_count(summary) for summary in summaries], np.float64)
        if self._length is not None:
            total = self._length.adjust(total, words, documents)
        undefined = np.isnan(total)
        self._lowest = min(self._lowest, *total[~undefined].tolist(), math.inf)
        # Whoever writes nothing, or no word, must not get away with no reward at all.
        filled = undefined if self._undefined == "lowest" else undefined & (words == 0)
        total[filled] = self._lowest if math.isfinite(self._lowest) else 0.0
        before = self._watch.outputs // self._report_every
        self._watch.add(documents, summaries, total, words, int(undefined.sum()))
        if self._watch.outputs // self._report_every > before:
            _log.info("%s after %d outputs: %s", self.__name__, self._watch.outputs, self.report())
        return total

    def report(self) -> dict[str, float | None]:
        """What the last 2,000 outputs were like: see ``negsample.rewards.watch``."""
        return self._watch.report()

    def calibrate(
        self, documents: Sequence[str], summaries: Sequence[str], references: Sequence[Sequence[str]]
    ) -> None:
        """Settle the scales of several parts on these summaries (several of each document, best of all) instead of the
        first call's."""
        if self._spreads is None:
            items = [Item(d, s, tuple(r)) for d, s, r in zip(documents, summaries, references, strict=True)]
            self._spreads = self._measure(self._values(items), documents)

    def state(self) -> dict[str, Any]:
        """What later rewards depend on, in plain values: for a checkpoint."""
        lowest = self._lowest if math.isfinite(self._lowest) else None
        return {"spreads": self._spreads, "lowest": lowest, "length": self._length.state() if self._length else []}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from ``state``."""
        self._spreads = state["spreads"]
        self._lowest = math.inf if state["lowest"] is None else state["lowest"]
        if isinstance(self._length, Partial):
            self._length = Partial(state["length"])

    def _measure(self, values: np.ndarray, documents: Sequence[str]) -> list[float]:
        spreads = [within_spread(column, documents) for column in values.T]
        # A part that does not vary here tells nothing of its scale.
        return [spread if spread > 1e-9 else 1.0 for spread in spreads]

    def _sum(self, values: np.ndarray, items: Sequence[Item]) -> np.ndarray:
        """Weighted sum float64 [n] of ``values`` [n, terms]; what needs references is left out where there are none.

        Scialom et al. (2019 §4.2.2): to keep the reward consistent, its weight grows where there are some.
        """
        assert self._spreads is not None
        weights = np.array([term.weight for term in self._terms]) / self._spreads
        supervised = np.array([term.supervised for term in self._terms])
        has = np.array([bool(item.references) for item in items], bool)
        counted = np.where(supervised[None, :], has[:, None] / (1 - self._unsupervised), 1.0)
        found = (np.where(counted > 0, values, 0.0) * weights * counted).sum(axis=1)
        return np.where(counted.any(axis=1), found, np.nan)

    def _values(self, items: Sequence[Item]) -> np.ndarray:
        """The terms' own scores float64 [n, terms]; each distinct record is scored once."""
        keys = [digest(item.document, item.summary, *item.references) for item in items]
        new = {key: item for key, item in zip(keys, items, strict=True) if key not in self._known}
        if new:
            found = self._score_new(list(new.values()))
            self._known.update(zip(new, found, strict=True))
        result = np.stack([self._known[key] for key in keys]) if keys else np.zeros((0, len(self._terms)))
        while len(self._known) > _KNOWN:
            self._known.popitem(last=False)
        return result

    def _score_new(self, items: Sequence[Item]) -> np.ndarray:
        columns: dict[int, dict[str, np.ndarray]] = {}
        values = np.full((len(items), len(self._terms)), np.nan)
        for place, term in enumerate(self._terms):
            # Aspects of one estimator are read at once.
            rows = [
                i
                for i, item in enumerate(items)
                if item.summary.strip()
                and (item.document.strip() or "document" not in term.source.needs)
                and (item.references or not term.supervised)
            ]
            if id(term.source) not in columns:
                columns[id(term.source)] = term.source.score([items[i] for i in rows]) if rows else {}
            found = columns[id(term.source)].get(term.aspect)
            if found is not None:
                values[rows, place] = found
        return values


def reward(
    name: str,
    weights: Sequence[float] | None = None,
    *,
    document: str = "document",
    references: str = "references",
    length: str = "free",
    band: tuple[int, int] | None = None,
    undefined: str = "none",
    unsupervised: float = 0.0,
    report_every: int = 1000,
) -> Reward:
    """A reward function for TRL's trainers (``reward_funcs=``), and for ``negsample reinforce``.

    ``name``: an estimator's folder, an aspect of it, a metric, or a weighted sum of several (see ``terms.make_terms``).
    The parts of a sum are divided by their spread among the summaries of one document, as ``calibrate`` or the first call
    finds it; a single part gives its own score. ``document``, ``references``: the data set's columns.

    ``length``: ``free``; ``partial``, what is left of the reward given the number of words among the summaries of the same
    document; ``band``, less outside ``band`` = (fewest, most) words (``negsample.rewards.length``).

    ``undefined``: what becomes of an output that can't be scored: ``none`` (None, which TRL leaves out), or ``lowest``, the
    lowest reward seen; an output without a word always gets that. ``unsupervised``: the share of documents without
    references: what compares with references then weighs 1/(1 − share) as much where there are some (Scialom et al. 2019
    §4.2.2). Every ``report_every`` outputs, ``report()`` goes to the logger ``negsample.rewards``, at level INFO, and with
    each call to TRL's log.

    Raises InputError for an unknown name or option, and a model that can't be read.
    """
    if length not in _LENGTHS:
        raise InputError(f"length={length!r}: give one of {', '.join(_LENGTHS)}")
    if (length == "band") != (band is not None):
        raise InputError("length='band' and band=(fewest, most) go together")
    if band is not None and not 0 < band[0] <= band[1]:
        raise InputError(f"band={band}: give the fewest and the most words, such as (30, 80)")
    if undefined not in ("none", "lowest"):
        raise InputError(f"undefined={undefined!r}: give none or lowest")
    if not 0 <= unsupervised < 1:
        raise InputError(f"unsupervised={unsupervised}: give the share of documents without references, below 1")
    terms, scaled = make_terms(name, weights)
    held = Band(*band) if band else Partial() if length == "partial" else None
    return Reward(
        name,
        terms,
        scaled=scaled,
        document=document,
        references=references,
        length=held,
        undefined=undefined,
        unsupervised=unsupervised,
        report_every=report_every,
    )


def _text(value: Any) -> str:
    """The text of a completion or a column: itself, or the content of the last message (TRL's conversational format)."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and isinstance(value[-1], Mapping):
        content = value[-1].get("content")
        if isinstance(content, list):
            return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
        return content or ""
    raise InputError(f"{str(value)[:60]!r} is neither a text nor a list of messages")


def _texts(value: Any) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    return (value,) if isinstance(value, str) else tuple(_text(one) for one in value)

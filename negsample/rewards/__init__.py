"""The project's scores as a reward for training summarizers: with TRL's signature, for TRL and for ``negsample reinforce``.

from negsample.rewards import Reward
GRPOTrainer(model, reward_funcs=Reward("ready.support=1, ready.coverage=1", length="partial"), …)
"""

import logging
import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.recent import Recent
from negsample.records import as_list, is_missing, texts_of
from negsample.rewards.length import Band, Partial, within_spread
from negsample.rewards.terms import make_terms
from negsample.scoring.scorer import Item, fault_of, items_of
from negsample.seeds import digest
from negsample.text import is_blank, word_count, word_tokens

_LENGTHS = ("free", "partial", "band")
# So many outputs from one report in the log to the next.
_REPORT_EVERY = 1000
# Outputs that the report looks back on.
_WINDOW = 2000
# Scored outputs that are kept: greedy decoding gives the same ones again and again.
_KNOWN = 1 << 16
_log = logging.getLogger("negsample.rewards")


class Reward:
    """A reward function for TRL's trainers (``reward_funcs=``); ``score`` is that of plain texts, for ``negsample reinforce``.

    ``name``: a model, an aspect of it, a metric, or a weighted sum of several (see ``terms.make_terms``). The parts of a
    sum are divided by their spread among the summaries of one document, as ``calibrate`` or the first call finds it; a
    single part gives its own score. ``document``, ``references``: the data set's columns.

    ``length``: ``free``; ``partial``, what is left of the reward given the number of words among the summaries of the same
    document; ``band``, less outside ``band`` = (fewest, most) words (``negsample.rewards.length``).

    ``undefined``: what becomes of an output that can't be scored: ``none`` (None, which TRL leaves out), or ``lowest``, the
    lowest reward seen; an output without a word always gets that. ``unsupervised``: the share of documents without
    references: what compares with references then weighs 1/(1 − share) as much where there are some (Scialom et al. 2019
    §4.2.2). Every 1,000 outputs, ``report()`` goes to the logger ``negsample.rewards``, at level INFO, and with
    each call to TRL's log.

    ``signature``: one line from which another person gets the same numbers. Not to be shared by threads. Raises InputError
    for an unknown name or option, and a model that can't be read.
    """

    def __init__(
        self,
        name: str,
        *,
        document: str = "document",
        references: str = "references",
        length: str = "free",
        band: tuple[int, int] | None = None,
        undefined: str = "none",
        unsupervised: float = 0.0,
    ) -> None:
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
        self.__name__ = name
        self._terms, scaled = make_terms(name)
        self._columns = (document, references)
        self._length = Band(*band) if band else Partial() if length == "partial" else None
        self._undefined = undefined
        self._unsupervised = unsupervised
        self._spreads = None if scaled and len(self._terms) > 1 else [1.0] * len(self._terms)
        self._lowest = math.inf
        self._known: Recent[bytes, np.ndarray] = Recent(_KNOWN)
        self._watch = Watch()
        parts = "+".join(f"{term.weight:g}*{term.name}" for term in self._terms)
        self.signature = f"reward:{parts}|" + "|".join(dict.fromkeys(term.scorer.signature for term in self._terms))

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
        if document not in columns and any("document" in term.scorer.needs for term in self._terms):
            there = ", ".join(sorted(key for key, value in columns.items() if isinstance(value, list)))
            raise InputError(f"the data set has no column {document!r} ({there}); name it: Reward(…, document=NAME)")
        if references not in columns and self.needs_references:
            raise InputError(f"this reward compares with references, and there is no column {references!r}; name it")
        texts = [_text(completion) for completion in as_list(completions)]
        found = self.score(
            [_text(value) for value in as_list(columns.get(document, [""] * len(texts)))],
            texts,
            [[_text(text) for text in texts_of(own)] for own in as_list(columns.get(references, [[]] * len(texts)))],
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
        items = items_of(documents, summaries, references)
        documents, summaries = [item.document for item in items], [item.summary for item in items]
        values = self._values(items)
        self._scale(values, documents)
        total = self._sum(values, items)
        words = np.array([word_count(summary) for summary in summaries], np.float64)
        if self._length is not None:
            total = self._length.adjust(total, words, documents)
        undefined = np.isnan(total)
        self._lowest = min(self._lowest, *total[~undefined].tolist(), math.inf)
        # Whoever writes nothing, or no word, must not get away with no reward at all.
        filled = undefined if self._undefined == "lowest" else undefined & (words == 0)
        total[filled] = self._lowest if math.isfinite(self._lowest) else 0.0
        before = self._watch.outputs // _REPORT_EVERY
        self._watch.add(documents, summaries, total, words, int(undefined.sum()))
        if self._watch.outputs // _REPORT_EVERY > before:
            _log.info("%s after %d outputs: %s", self.__name__, self._watch.outputs, self.report())
        return total

    def report(self) -> dict[str, float | None]:
        """What the last 2,000 outputs were like: see ``Watch``."""
        return self._watch.report()

    def calibrate(
        self, documents: Sequence[str], summaries: Sequence[str], references: Sequence[Sequence[str]]
    ) -> None:
        """Settle the scales of several parts on these summaries (several of each document, best of all) instead of the
        first call's."""
        if self._spreads is None:
            items = items_of(documents, summaries, references)
            self._scale(self._values(items), [item.document for item in items])

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

    def _scale(self, values: np.ndarray, documents: Sequence[str]) -> None:
        """Settle the scales by ``values`` [n, terms], unless they are settled."""
        if self._spreads is None:
            spreads = [within_spread(column, documents) for column in values.T]
            # A part that does not vary here tells nothing of its scale.
            self._spreads = [spread if spread > 1e-9 else 1.0 for spread in spreads]

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
        by_key = dict(zip(keys, items, strict=True))
        if new := self._known.missing(keys):
            self._known.add(new, self._score_new([by_key[key] for key in new]))
        result = np.stack(self._known.find(keys)) if keys else np.zeros((0, len(self._terms)))
        self._known.trim()
        return result

    def _score_new(self, items: Sequence[Item]) -> np.ndarray:
        values = np.full((len(items), len(self._terms)), np.nan)
        # Aspects of one estimator are read at once.
        for scorer in {id(term.scorer): term.scorer for term in self._terms}.values():
            rows = [row for row, item in enumerate(items) if fault_of(item, scorer.needs) is None]
            if rows:
                found = scorer.score([items[row] for row in rows])
                for place, term in enumerate(self._terms):
                    if term.scorer is scorer:
                        values[rows, place] = term.values(found)
        return values


def _text(value: Any) -> str:
    """The text of a completion or a column: itself ("": missing), or the content of TRL's last message."""
    if is_missing(value):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and isinstance(value[-1], Mapping):
        content = value[-1].get("content")
        if isinstance(content, list):
            return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
        return content or ""
    raise InputError(f"{str(value)[:60]!r} is neither a text nor a list of messages")


class Watch:
    """Remembers the last 2,000 outputs: reward, number of words, and whether each was empty, a repeat, or a loop."""

    def __init__(self) -> None:
        self._rows: deque[tuple[float, float, bool, bool, bool]] = deque(maxlen=_WINDOW)
        self.outputs = 0
        self.undefined = 0

    def add(
        self, documents: Sequence[str], summaries: Sequence[str], values: np.ndarray, words: np.ndarray, undefined: int
    ) -> None:
        """Take in n outputs with their rewards [n] (NaN where there is none) and numbers of words [n]."""
        times = Counter(zip(documents, summaries, strict=True))
        self.outputs += len(summaries)
        self.undefined += undefined
        for document, summary, value, count in zip(documents, summaries, values.tolist(), words.tolist(), strict=True):
            again = times[document, summary] > 1
            self._rows.append((value, count, is_blank(summary), again, _loops(summary)))

    def report(self) -> dict[str, float | None]:
        """Mean and spread of the reward, its correlation with the number of words, mean number of words, and shares.

        ``empty``: outputs without text; ``repeated``: those that came more than once for a document in one call;
        ``looping``: those half of whose three-word runs, or more, have stood in them before. None where undefined.
        """
        rows = np.array(self._rows, np.float64).reshape(-1, 5)
        good = rows[~np.isnan(rows[:, 0])]
        varied = len(good) > 1 and good[:, 0].std() > 1e-12 and good[:, 1].std() > 1e-12
        return {
            "mean": float(good[:, 0].mean()) if len(good) else None,
            "spread": float(good[:, 0].std(ddof=1)) if len(good) > 1 else None,
            "correlation_with_words": float(np.corrcoef(good[:, 0], good[:, 1])[0, 1]) if varied else None,
            "words": float(rows[:, 1].mean()) if len(rows) else None,
            **{
                name: float(rows[:, column].mean()) if len(rows) else None
                for column, name in enumerate(("empty", "repeated", "looping"), start=2)
            },
            "undefined": self.undefined / self.outputs if self.outputs else None,
        }


def _loops(text: str) -> bool:
    """Whether half of the three-word runs of ``text``, or more, have stood in it before."""
    words = word_tokens(text)
    runs = list(zip(words, words[1:], words[2:], strict=False))
    return len(runs) > 1 and 2 * len(set(runs)) <= len(runs)

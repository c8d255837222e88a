"""The project's scores as a reward for training summarizers: with TRL's signature, for TRL and for ``negsample reinforce``.

from negsample.rewards import Reward
GRPOTrainer(model, reward_funcs=Reward("ready.support=1, ready.coverage=1", length="partial"), …)
"""

import logging
import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.recent import Recent
from negsample.records import as_list, is_missing, texts_of
from negsample.registry import defaults_of, distinct, parse, split_outside, suggestion, write
from negsample.scoring.scorer import METRICS, Columns, Item, Scorer, fault_of, items_of, make_metric, p2
from negsample.seeds import digest
from negsample.text import is_blank, word_count, word_tokens

# So many outputs from one report in the log to the next; outputs that a report looks back on.
_REPORT_EVERY, _WINDOW = 1000, 2000
# Scored outputs that are kept: greedy decoding gives the same ones again and again.
_KNOWN = 1 << 16
# How much of what earlier calls showed of length is kept at each call.
_MEMORY = 0.9
_log = logging.getLogger("negsample.rewards")


class Reward:
    """A reward function for TRL's trainers (``reward_funcs=``); ``score`` is that of plain texts, for ``negsample reinforce``.

    ``name``: a model, an aspect of it, a metric, or a weighted sum of several (see ``make_terms``). The parts of a
    sum are divided by their spread among the summaries of one document, as ``calibrate`` or the first call finds it; a
    single part gives its own score. ``document``, ``references``: the data set's columns.

    ``length``: ``free``; ``partial``, what is left of the reward given the number of words among the summaries of the same
    document (``Partial``); ``band``, less e² where the words are by a share e outside of ``band`` = (fewest, most).

    ``undefined``: what becomes of an output that can't be scored: ``none`` (None, which TRL leaves out), or ``lowest``, the
    lowest reward seen; an output without a word always gets that. ``unsupervised``: the share of documents without
    references: what compares with references then weighs 1/(1 − share) as much where there are some (Scialom et al. 2019
    §4.2.2). Every 1,000 outputs, ``report()`` goes to the logger ``negsample.rewards``, at level INFO, and with each call
    to TRL's log, where the reward is called by its name and what else it was given.

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
        for wrong, told in (
            (length not in ("free", "partial", "band"), f"length={length!r}: give one of free, partial, band"),
            ((length == "band") != (band is not None), "length='band' and band=(fewest, most) go together"),
            (band and not 0 < band[0] <= band[1], f"band={band}: give the fewest and the most words, such as (30, 80)"),
            (undefined not in ("none", "lowest"), f"undefined={undefined!r}: give none or lowest"),
            (not 0 <= unsupervised < 1, f"unsupervised={unsupervised}: give the share without references, below 1"),
        ):
            if wrong:
                raise InputError(told)
        options: dict[str, object] = {"document": document, "references": references, "length": length, "band": band}
        options |= {"undefined": undefined, "unsupervised": unsupervised}
        # Two rewards of one trainer share its log.
        self.__name__ = write(name, options, defaults_of(Reward))
        self._terms, scaled = make_terms(name)
        self._columns = (document, references)
        self._band, self._partial = band, Partial() if length == "partial" else None
        self._undefined, self._unsupervised = undefined, unsupervised
        self._spreads = None if scaled and len(self._terms) > 1 else [1.0] * len(self._terms)
        self._lowest = math.inf
        self._known: Recent[bytes, np.ndarray] = Recent(_KNOWN)
        self._rows: deque[tuple[float, float, bool, bool, bool]] = deque(maxlen=_WINDOW)
        self._outputs = self._without = 0
        parts = "+".join(f"{term.weight:g}*{term.name}" for term in self._terms)
        self.signature = f"reward:{parts}|" + "|".join(dict.fromkeys(term.scorer.signature for term in self._terms))

    @property
    def needs_references(self) -> bool:
        """Whether nothing of it can be had without references."""
        return all(term.supervised for term in self._terms)

    def __call__(
        self, prompts: Iterable[Any], completions: Iterable[Any], completion_ids: Any = None, **columns: Any
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
        self, documents: Iterable[str], summaries: Iterable[str], references: Iterable[Sequence[str]]
    ) -> np.ndarray:
        """Rewards float64 [n], NaN where undefined (with ``undefined="lowest"`` never).

        A single estimator or metric that is left free of length gives its own score. Summaries of a document that
        stand in one call are compared with each other where ``length="partial"``.
        """
        items = items_of(documents, summaries, references)
        values, groups = self._values(items), _groups(items)
        self._settle(values, groups)
        total = self._sum(values, items)
        words = np.array([word_count(item.summary) for item in items], np.float64)
        if self._band is not None:
            low, high = self._band
            total -= np.maximum(0.0, np.maximum((low - words) / low, (words - high) / high)) ** 2
        if self._partial is not None:
            total = self._partial.adjust(total, words, groups)
        undefined = np.isnan(total)
        self._lowest = min(self._lowest, *total[~undefined].tolist(), math.inf)
        # Whoever writes nothing, or no word, must not get away with no reward at all.
        filled = undefined if self._undefined == "lowest" else undefined & (words == 0)
        total[filled] = self._lowest if math.isfinite(self._lowest) else 0.0
        self._watch(items, total, words, int(undefined.sum()))
        return total

    def calibrate(
        self, documents: Iterable[str], summaries: Iterable[str], references: Iterable[Sequence[str]]
    ) -> None:
        """Settle the scales of several parts on these summaries (several of each document, best of all) instead of the
        first call's."""
        if self._spreads is None:
            items = items_of(documents, summaries, references)
            self._settle(self._values(items), _groups(items))

    def state(self) -> dict[str, Any]:
        """What later rewards depend on, in plain values: for a checkpoint."""
        lowest = self._lowest if math.isfinite(self._lowest) else None
        return {"spreads": self._spreads, "lowest": lowest, "length": self._partial.sums if self._partial else []}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from ``state``."""
        self._spreads = state["spreads"]
        self._lowest = math.inf if state["lowest"] is None else state["lowest"]
        if self._partial is not None:
            self._partial = Partial(state["length"])

    def _settle(self, values: np.ndarray, groups: np.ndarray) -> None:
        """Settle the scales by ``values`` [n, terms], unless they are; a part that does not vary tells nothing of its own."""
        if self._spreads is None:
            spreads = [within_spread(column, groups) for column in values.T]
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
        """The terms' own scores float64 [n, terms]; each distinct record is scored once, aspects of one model together."""
        keys = [digest(item.document, item.summary, *item.references) for item in items]
        by_key = dict(zip(keys, items, strict=True))
        if new := self._known.missing(keys):
            values = np.full((len(new), len(self._terms)), np.nan)
            for scorer in {id(term.scorer): term.scorer for term in self._terms}.values():
                rows = [row for row, name in enumerate(new) if fault_of(by_key[name], scorer.needs) is None]
                if rows:
                    found = scorer.score([by_key[new[row]] for row in rows])
                    for place, term in enumerate(self._terms):
                        if term.scorer is scorer:
                            values[rows, place] = term.values(found)
            self._known.add(new, values)
        result = np.stack(self._known.find(keys)) if keys else np.zeros((0, len(self._terms)))
        self._known.trim()
        return result

    def _watch(self, items: Sequence[Item], values: np.ndarray, words: np.ndarray, undefined: int) -> None:
        """Remember n outputs with their rewards [n] (NaN: none) and numbers of words [n], and tell of every thousand."""
        times = Counter(items)
        for item, value, count in zip(items, values.tolist(), words.tolist(), strict=True):
            self._rows.append((value, count, is_blank(item.summary), times[item] > 1, _loops(item.summary)))
        before, self._outputs = self._outputs, self._outputs + len(items)
        self._without += undefined
        if self._outputs // _REPORT_EVERY > before // _REPORT_EVERY:
            _log.info("%s after %d outputs: %s", self.__name__, self._outputs, self.report())

    def report(self) -> dict[str, float | None]:
        """Of the last 2,000 outputs mean and spread of the reward, its correlation with the number of words, mean number of
        words, and shares.

        ``empty``: outputs without text; ``repeated``: those that came more than once for a document in one call;
        ``looping``: those half of whose three-word runs, or more, have stood in them before; ``undefined``. None where
        undefined.
        """
        rows = np.array(self._rows, np.float64).reshape(-1, 5)
        good = rows[~np.isnan(rows[:, 0])]
        varied = len(good) > 1 and good[:, 0].std() > 1e-12 and good[:, 1].std() > 1e-12
        named = zip(("words", "empty", "repeated", "looping"), rows.T[1:], strict=True)
        return {
            "mean": float(good[:, 0].mean()) if len(good) else None,
            "spread": float(good[:, 0].std(ddof=1)) if len(good) > 1 else None,
            "correlation_with_words": float(np.corrcoef(good[:, 0], good[:, 1])[0, 1]) if varied else None,
            **{name: float(column.mean()) if len(rows) else None for name, column in named},
            "undefined": self._without / self._outputs if self._outputs else None,
        }


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


def _loops(text: str) -> bool:
    words = word_tokens(text)
    runs = list(zip(words, words[1:], words[2:], strict=False))
    return len(runs) > 1 and 2 * len(set(runs)) <= len(runs)


class Partial:
    """r − b·(w − w̄): what is left of a reward given the number of words w; w̄ is the mean over the summaries of a document.

    b is the slope of r on w within documents, from this call and, fading by 0.9 a call, those before it (``sums``): the
    summaries of one document are too few for a slope of their own (two would always lie on it).
    """

    def __init__(self, sums: Sequence[float] = (0.0, 0.0)) -> None:
        self.sums = list(sums)

    def adjust(self, values: np.ndarray, words: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Rewards float64 [n] without what goes with ``words`` [n] among those of one of ``groups`` [n]; NaN stays."""
        good = np.flatnonzero(~np.isnan(values))
        apart = _centred(words[good], groups[good])
        both, own = float(apart @ _centred(values[good], groups[good])), float(apart @ apart)
        self.sums = [_MEMORY * self.sums[0] + both, _MEMORY * self.sums[1] + own]
        adjusted = values.copy()
        if self.sums[1]:
            adjusted[good] -= self.sums[0] / self.sums[1] * apart
        return adjusted


def _groups(items: Sequence[Item]) -> np.ndarray:
    """The documents as numbers, int [n]."""
    numbers = {document: number for number, document in enumerate(dict.fromkeys(item.document for item in items))}
    return np.array([numbers[item.document] for item in items], int)


def _centred(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """``values`` [n] less the mean of each one's group."""
    if not len(values):
        return values
    return values - (np.bincount(groups, values) / np.maximum(np.bincount(groups), 1))[groups]


def within_spread(values: np.ndarray, groups: np.ndarray) -> float:
    """Standard deviation of ``values`` float64 [n] within ``groups`` int [n]; over all where no group has two; 0 for none."""
    good = ~np.isnan(values)
    if good.sum() < 2:
        return 0.0
    free = good.sum() - len(set(groups[good]))
    inside = float(np.sqrt((_centred(values[good], groups[good]) ** 2).sum() / free)) if free else 0.0
    return inside if inside > 1e-9 else float(values[good].std(ddof=1))


@dataclass(frozen=True)
class Term:
    """``weight`` · ``aspect`` (``score``: the score itself) of ``scorer``; ``name`` is what the user called it."""

    name: str
    weight: float
    scorer: Scorer
    aspect: str = "score"

    @property
    def supervised(self) -> bool:
        """Whether it can't be had without references."""
        return "references" in self.scorer.needs

    def values(self, found: Columns) -> np.ndarray:
        """Its column of what the scorer ``found``, float64 [n], more is better."""
        column = np.asarray(found.named()[self.aspect], np.float64)
        return column if self.scorer.higher_is_better else -column


def make_terms(spec: str) -> tuple[list[Term], bool]:
    """The terms of ``spec``, and whether their scales are to be made alike (those of a paper's sum are not).

    ``spec`` is one NAME, or ``NAME=WEIGHT, NAME=WEIGHT, …``. A NAME is a metric with its options (``rougeL(value=recall)``);
    or a model: ``ready``, a folder, a hub id, each also with an aspect or a target behind it (``ready.support``);
    ``QA_learned(model=QA)`` and ``QA_equally(model=QA)`` are the sums of Scialom et al. (2019 §4.2.1), with its weights or
    with equal ones. Raises InputError for anything else.
    """
    if (paper := spec.partition("(")[0].strip()) in ("QA_learned", "QA_equally"):
        published = p2(parse(spec).options.get("model", "")).items()
        return [
            Term(name, weight if paper == "QA_learned" else 1.0, make_metric(name)) for name, weight in published
        ], False
    names = _named_weights(spec)
    distinct([name for name, _ in names], "reward")
    if not all(math.isfinite(weight) for _, weight in names) or not any(weight for _, weight in names):
        raise InputError(f"reward {spec!r}: weights must be finite numbers, and not all 0")
    models: dict[str, Scorer] = {}
    return [_term(name, weight, models) for name, weight in names], True


def _named_weights(spec: str) -> list[tuple[str, float]]:
    # A folder may have commas and equal signs of its own.
    if Path(spec).expanduser().is_dir():
        return [(spec, 1.0)]
    pieces = split_outside(spec, ",")
    if pieces is None:
        raise InputError(f"reward {spec!r}: a parenthesis is not closed or not opened")
    found = []
    for piece in pieces:
        *parts, number = split_outside(piece, "=") or [piece]
        name, number = ("=".join(parts).strip(), number) if parts else (piece.strip(), "1")
        if not name:
            raise InputError(f"reward {spec!r}: a part has no name; write NAME=WEIGHT, NAME=WEIGHT")
        try:
            found.append((name, float(number)))
        except ValueError:
            raise InputError(f"reward {spec!r}: {number!r} is no weight; write {name}=1") from None
    return found


def _term(name: str, weight: float, models: dict[str, Scorer]) -> Term:
    """``models``: those that are loaded already."""
    model, dot, aspect = name.rpartition(".")
    if name.partition("(")[0].partition(":")[0] in METRICS or not (_is_model(name) or (dot and _is_model(model))):
        return Term(name, weight, make_metric(name))
    if _is_model(name):
        model, aspect = name, "score"
    if model not in models:
        from negsample.models import load_once

        estimator = load_once(model)
        estimator.expect_again()
        models[model] = estimator.scorer(model)
    scorer = models[model]
    if aspect not in ("score", *scorer.aspects):
        hint = suggestion(aspect, list(scorer.aspects)) if scorer.aspects else "that model has none"
        raise InputError(f"reward {name!r}: no aspect is called {aspect!r}; {hint}")
    return Term(name, weight, scorer, aspect)


def _is_model(name: str) -> bool:
    """Whether ``name`` is the ready estimator, a folder, or an id of the hub: what is behind its last dot is no aspect then."""
    end = name.rpartition(".")[2] if "." in name.rpartition("/")[2] else ""
    return name == "ready" or Path(name).expanduser().is_dir() or ("/" in name and not end.isidentifier())

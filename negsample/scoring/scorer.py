"""The one interface of everything that scores summaries: estimators, fitted models, metrics, language models; metrics by name.

Metrics live in ``negsample.eval.metrics``; that they are named here lets models and rewards weigh them.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.records import as_list, domain_of, joined, text_fault, texts_of
from negsample.registry import Registry, build, quote


@dataclass(frozen=True, slots=True)
class Item:
    """One record to score. ``document`` may be ``""`` for a scorer that reads references only; several are ``joined``."""

    document: str
    summary: str
    references: tuple[str, ...] = ()
    domain: str = ""


@dataclass(frozen=True)
class Columns:
    """What a scorer says of n items, as flat arrays.

    ``scores``: float [n], NaN where missing; ``reasons`` [n]: why something is missing, else None; ``cut``: bool [n],
    which items were longer than the scorer reads. ``aspects``: name → float [n], NaN where it can't be judged; of a model
    fitted to people's scores the targets stand among them, on people's scale, and ``intervals`` has for each float [n, 2].
    ``percentiles``: ``score`` and each aspect → the share in [0, 1] of real summaries that score lower, float [n].
    """

    scores: np.ndarray
    reasons: list[str | None]
    cut: np.ndarray
    aspects: dict[str, np.ndarray] = field(default_factory=dict)
    intervals: dict[str, np.ndarray] = field(default_factory=dict)
    percentiles: dict[str, np.ndarray] = field(default_factory=dict)

    def named(self) -> dict[str, np.ndarray]:
        """``score``, then each aspect → float [n]."""
        return {"score": self.scores, **self.aspects}

    def overall(self) -> "Columns":
        """The score alone, without aspects."""
        reasons = [why if gone else None for why, gone in zip(self.reasons, np.isnan(self.scores), strict=True)]
        shares = {name: share for name, share in self.percentiles.items() if name == "score"}
        return Columns(self.scores, reasons, self.cut, percentiles=shares)

    def flat(self) -> dict[str, Any]:
        """The columns of a table, float64 [n]: ``score``, ``percentile``, then for each aspect ``NAME``, ``NAME_low`` and
        ``NAME_high`` where it has an interval, ``NAME_percentile``; at last ``reason``, a list of texts ("": none).
        """
        table: dict[str, Any] = {}
        for name, values in self.named().items():
            table[name] = np.asarray(values, np.float64)
            if name in self.intervals:
                table[f"{name}_low"], table[f"{name}_high"] = self.intervals[name].T
            if name in self.percentiles:
                table["percentile" if name == "score" else f"{name}_percentile"] = self.percentiles[name]
        return {**table, "reason": [reason or "" for reason in self.reasons]}

    def rows(self) -> list[dict[str, Any]]:
        """``flat`` as n records of plain values, None where one is missing."""
        table = self.flat()
        columns = {name: _plain(name, values) for name, values in table.items() if name != "reason"}
        rows = zip(*columns.values(), strict=True)
        return [
            {**dict(zip(columns, row, strict=True)), "reason": reason}
            for row, reason in zip(rows, self.reasons, strict=True)
        ]

    def nested(self) -> list[dict[str, Any]]:
        """As ``rows``, in the shape of JSON lines: ``aspects``, ``aspect_percentiles`` and ``intervals`` are objects, and
        ``intervals`` and ``reason`` are there only where there is one.
        """
        records = []
        for row in self.rows():
            told: dict[str, Any] = {name: row[name] for name in ("score", "percentile") if name in row}
            if self.aspects:
                told["aspects"] = {name: row[name] for name in self.aspects}
            if self.aspects and self.percentiles:
                told["aspect_percentiles"] = {name: row.get(f"{name}_percentile") for name in self.aspects}
            ends = {name: [row[f"{name}_low"], row[f"{name}_high"]] for name in self.intervals}
            if ends := {name: both for name, both in ends.items() if None not in both}:
                told["intervals"] = ends
            records.append({**told, "reason": row["reason"]} if row["reason"] else told)
        return records

    def spread(self, places: Sequence[int], reasons: Sequence[str | None]) -> "Columns":
        """These columns at ``places`` among as many items as ``reasons`` has; the others are missing, and that is why."""

        def wide(column: np.ndarray) -> np.ndarray:
            found = np.full((len(reasons), *column.shape[1:]), False if column.dtype == bool else np.nan, column.dtype)
            found[list(places)] = column
            return found

        why = list(reasons)
        for place, reason in zip(places, self.reasons, strict=True):
            why[place] = reason
        groups = ({k: wide(v) for k, v in g.items()} for g in (self.aspects, self.intervals, self.percentiles))
        return Columns(wide(self.scores), why, wide(self.cut), *groups)

    def take(self, places: Sequence[int]) -> "Columns":
        """The columns of the items at ``places``, in their order."""
        at = list(places)
        groups = ({k: v[at] for k, v in g.items()} for g in (self.aspects, self.intervals, self.percentiles))
        return Columns(self.scores[at], [self.reasons[place] for place in at], self.cut[at], *groups)


@dataclass(frozen=True)
class Scorer:
    """What scores items: ``score(items)`` maps n of them to ``Columns`` of n.

    ``name`` is canonical: a metric's with the options that differ from their defaults (``rouge1(value=recall)``).
    ``signature`` is enough for another person to get the same number. ``needs`` names what every item must have: a
    subset of ``{"document", "references"}``; a metric that takes whichever is there needs neither. An item's score does
    not depend on the others or on their order. ``aspects``: what it tells apart beside its score. ``fitted_on``: keys of
    the documents whose judgments a model has learned from. ``columns``: the names in ``Columns.flat`` of what it says;
    ``shares``: those of ``score`` and the aspects that lie in [0, 1]. ``several``: whether it tells the documents of an item
    apart; what doesn't reads them as one text. ``domains``: kinds of text that have percentiles of their own.
    """

    name: str
    signature: str
    higher_is_better: bool
    needs: frozenset[str]
    score: Callable[[Sequence[Item]], Columns] = field(repr=False)
    aspects: tuple[str, ...] = ()
    fitted_on: frozenset[str] = frozenset()
    columns: tuple[str, ...] = ("score", "reason")
    shares: tuple[str, ...] = ()
    several: bool = False
    domains: frozenset[str] = frozenset()


def collect(results: Iterable[float | str]) -> Columns:
    """Make ``Columns`` of one result an item: a finite number, or a text that says why there is none."""
    found = list(results)
    reasons = [
        result if isinstance(result, str) else None if np.isfinite(result) else "the value is not finite"
        for result in found
    ]
    values = [np.nan if reason is not None else result for result, reason in zip(found, reasons, strict=True)]
    return Columns(np.array(values, dtype=np.float64), reasons, np.zeros(len(found), bool))


def items_of(documents: Any, summaries: Any, references: Any = (), domains: Any = ()) -> list[Item]:
    """The pairs in two columns of any kind, ``references`` [n] (``texts_of``) and ``domains`` [n] (``domain_of``) beside them
    or not; a list of texts among the documents is several of them (``joined``).

    Raises InputError for what is no column (``as_list``), and where the lengths differ.
    """
    documents, summaries = as_list(documents, "documents"), as_list(summaries, "summaries")
    beside = [texts_of(own) for own in as_list(references, "references")] or [[]] * len(documents)
    kinds = list(map(domain_of, as_list(domains, "domains"))) or [""] * len(documents)
    for found, what in ((summaries, "summaries"), (beside, "lists of references"), (kinds, "domains")):
        if len(found) != len(documents):
            raise InputError(f"{len(documents)} documents but {len(found)} {what}; give each document its own")
    columns = zip(documents, summaries, beside, kinds, strict=True)
    return [Item(joined(d), s, tuple(r), kind) for d, s, r, kind in columns]


def fault_of(item: Item, needs: Set[str] = frozenset({"document"})) -> str | None:
    """Why an item can't be scored where ``needs`` must be there: a text is missing, no text, or blank; None where it can."""
    named = [("the document", item.document)] if "document" in needs else []
    named.append(("the summary", item.summary))
    if "references" in needs:
        named += [(f"reference {number}", text) for number, text in enumerate(item.references, start=1)]
    for name, text in named:
        if fault := text_fault(text):
            return f"{name} {fault}"
    return "there is no reference, which it needs" if "references" in needs and not item.references else None


def _plain(name: str, values: np.ndarray) -> list[float | None]:
    digits = 4 if name.endswith("percentile") else 7
    return [None if math.isnan(value) else round(value, digits) for value in values.tolist()]


def values_at(columns: Mapping[str, np.ndarray], place: int) -> dict[str, float | None]:
    """What each of ``columns`` has for one item, to 7 digits, None for NaN."""
    values = {name: float(column[place]) for name, column in columns.items()}
    return {name: None if math.isnan(value) else round(value, 7) for name, value in values.items()}


# A file of ``negsample.eval.metrics`` → its metrics; each one's function is called as it, in lower case.
_FAMILIES = {
    "baselines": "words copied tf-recall lead-overlap align-untrained novelty1 novelty2 novelty3 novelty4 textrank",
    "cosine": "cosine enc-avg aes",
    "external": "external",
    "judge": "judge",
    "judge_pairs": "judge-pairs",
    "language_models": "bartscore mlm perplexity",
    "learned": "learned",
    "movers": "wms sms s+wms",
    "rouge": "rouge1 rouge2 rouge3 rouge4 rougeL rougeLsum rougeW",
    "summaqa": "summaqa-f1 summaqa-conf",
}
METRICS = Registry(
    "metric",
    {
        name: f"negsample.eval.metrics.{family}:{re.sub('[^a-z0-9]', '_', name.lower())}"
        for family, names in _FAMILIES.items()
        for name in names.split()
    },
)


def make_metric(spec: str) -> Scorer:
    """Make the metric that ``spec`` names, e.g. ``"words"`` or ``"rouge1(value=recall, stem=true)"``.

    Raises InputError for an unknown name, option or value, with the nearest that there is.
    """
    return build(METRICS, spec, Scorer)


def p2(model: str) -> dict[str, float]:
    """0.8576·ROUGE-L + 2.274·QA_conf + 0.6413·QA_fscore, as metric → weight (Scialom et al. 2019, equation 1).

    The QA scores are from the document, by the question-answering ``model``; ROUGE-L is F1 against the references.
    """
    if not model:
        raise InputError("the sum of Scialom et al. needs a question-answering model: give model=FOLDER or a hub id")
    reading = f"model={quote(model)},against=document"
    return {"rougeL(against=references)": 0.8576, f"summaqa-conf({reading})": 2.274, f"summaqa-f1({reading})": 0.6413}

"""What is added up over scored records: mean and interval, what was cut or has no score, kinds of text; limits for quality."""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from negsample.errors import InputError, RecordError
from negsample.io.read import document_field
from negsample.records import Row, documents_of, told_document
from negsample.registry import suggestion
from negsample.resampling import mean_interval
from negsample.scoring.scorer import Columns, Scorer
from negsample.seeds import generator
from negsample.sentences import turns
from negsample.text import is_english, word_tokens

if TYPE_CHECKING:
    from negsample.scoring.files import Settings

# Of the interval of a mean: resamples, and blocks of scores that are resampled.
_RESAMPLES = 1000
_BLOCKS = 1000


@dataclass
class Tally:
    """Mean and 95 % interval of scores as they come, and what was left out.

    ``cut`` counts the items that were longer than the scorer reads; ``bad`` those without a score, by reason; by field
    ``replaced`` the records that had something where the new score, or what belongs to it, now stands, and ``removed``
    those whose field belonged to an earlier score; ``unread`` those that have what the scorer does not read, by what it is;
    ``kinds`` the kinds of text among the first (``text_kind``); ``domains`` the records by the domain among whose summaries
    their percentiles are, "" for all; ``unknown`` those of a domain that the scorer does not know, where it knows any, by the
    domain, of which the first few are told apart.
    """

    n: int = 0
    cut: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    domains: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    _sums: list[float] = field(default_factory=list)

    def add(self, columns: Columns) -> None:
        """Take in what a scorer says of further items."""
        missing = np.isnan(columns.scores)
        self.bad.update(str(reason) for reason, gone in zip(columns.reasons, missing, strict=True) if gone)
        self.cut += int(columns.cut[~missing].sum())
        for score in columns.scores[~missing].tolist():
            if self.n < _BLOCKS:
                self._sums.append(0.0)
            self._sums[self.n % _BLOCKS] += score
            self.n += 1

    @property
    def mean(self) -> float | None:
        """Mean of the scores; None where there are none."""
        return math.fsum(self._sums) / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Percentile interval of the mean, the scores resampled; None as of `resampled_interval`.

        It stays within the range of the scores. From the 1001st score on, what is resampled are 1,000 blocks of scores
        (every thousandth one), so that memory is flat.
        """
        if not self.n:
            return None
        blocks = len(self._sums)
        counts = np.full(blocks, self.n // blocks) + (np.arange(blocks) < self.n % blocks)
        low, high = mean_interval(np.array(self._sums), generator(0, "score", "bootstrap"), _RESAMPLES, counts)
        return None if low is None or high is None else (low, high)


WORTHLESS: dict[str, tuple[str, ...]] = {
    "short turns": ("form",),
    "several documents": ("support", "coherence", "form"),
    "not English": ("coverage",),
}
"""Kind that ``text_kind`` tells → aspects of the ready estimator that did not go with people's scores of such texts
(docs/kinds.md)."""
# Words of a turn, on average, that make a meeting's of a chat's.
_SHORT = 30
# Domains that a scorer does not know which are told apart, and what the others are called.
_DOMAINS, OTHERS = 5, "…"
# Records of a file by which its kind is told, and of these the share that makes it one.
_LOOKED_AT, _MOST = 200, 0.5


def text_kind(document: str) -> frozenset[str]:
    """Of ``WORTHLESS`` what ``document`` is: a dialogue whose turns have under 30 words on average; several (``joined``); not
    English.
    """
    several = documents_of(document)
    spoken = [turn for text in several for turn in turns(text) or ()]
    short = bool(spoken) and len(word_tokens(document)) < _SHORT * len(spoken)
    found = (short, len(several) > 1, not is_english(document))
    return frozenset(kind for kind, is_so in zip(WORTHLESS, found, strict=True) if is_so)


def look(rows: Sequence[Row], scores: Iterable[float], scorer: Scorer, settings: "Settings", tally: "Tally") -> None:
    """Count in ``tally`` of those ``rows`` that have a score (not NaN) domains, those of which ``scorer`` leaves something
    unread, and of the first 200 their kinds."""
    rows = [row for row, score in zip(rows, scores, strict=True) if not math.isnan(score)]
    for row in rows:
        known = row.domain in scorer.domains
        tally.domains[row.domain if known else ""] += 1
        if scorer.domains and row.domain and not known:
            tally.unknown[row.domain if len(tally.unknown) < _DOMAINS or row.domain in tally.unknown else OTHERS] += 1
        documents = told_document(row.fields, settings.document_field)
        if row.fields.get("question") not in (None, ""):
            tally.unread["a question, which this score does not read"] += 1
        if isinstance(documents, list) and len(documents) > 1 and not scorer.several:
            tally.unread["several documents, read as one text"] += 1
    for row in islice(rows, max(0, _LOOKED_AT - tally.kinds["all"])):
        try:
            document = document_field(row, settings.document_field)
        except RecordError:
            continue
        tally.kinds.update(("all", *text_kind(document)))


def notices(kinds: Counter[str], aspects: Collection[str]) -> Iterator[str]:
    """A line for each kind that most of the records are, where some of ``aspects`` are worth nothing."""
    for kind, known in WORTHLESS.items():
        worthless = [aspect for aspect in known if aspect in aspects]
        if worthless and kinds[kind] > _MOST * kinds["all"]:
            told = " and ".join(worthless)
            yield f"most records are of the kind {kind!r}, on which {told} told nothing of people's scores (docs/kinds.md)"


# Records that a message names.
_NAMED = 10


def parse_limits(words: Iterable[str]) -> dict[str, float]:
    """``["support=0.4", "0.5"]`` as ``{"support": 0.4, "score": 0.5}``. Raises InputError for anything else."""
    limits: dict[str, float] = {}
    for word in words:
        name, equals, value = word.rpartition("=")
        name = name if equals else "score"
        if name in limits:
            raise InputError(f"--fail-under gives {name} twice; give it once")
        with suppress(ValueError):
            limits[name] = float(value)
        if name not in limits or not name:
            raise InputError(f"--fail-under {word}: give a number, as in 0.5 or support=0.4")
    return limits


def check_name(name: str, aspects: Sequence[str]) -> None:
    """Raise InputError where ``name`` is neither ``score`` nor one of ``aspects``."""
    if name not in ("score", *aspects):
        raise InputError(f"nothing is called {name!r} here; {suggestion(name, ['score', *aspects])}")


@dataclass
class _Seen:
    """The values of one system under one limit: their sum and number, those below or missing, and the lowest."""

    total: float = 0.0
    count: int = 0
    below: int = 0
    missing: int = 0
    # (−value, order, where): the heap's first is the highest of the lowest, which goes first.
    worst: list[tuple[float, int, str]] = field(default_factory=list)


class Gate:
    """Takes columns of ``scorer`` and says which systems fall under ``limits`` (name → least value) on average.

    With ``each`` no record may. A value that is missing is under every limit, and is no part of a mean. Raises InputError
    without a limit, and for one of what the scorer does not say, not finite, or outside [0, 1] where its values lie there.
    """

    def __init__(self, limits: Mapping[str, float], scorer: Scorer, each: bool = False) -> None:
        if not limits:
            raise InputError("no limit is given; give one, as in score=0.5")
        for name, limit in limits.items():
            check_name(name, scorer.aspects)
            if not isinstance(limit, Real) or not math.isfinite(limit):
                raise InputError(f"the limit {name}={limit} is not a finite number; give one, as in {name}=0.5")
            if name in scorer.shares and not 0 <= limit <= 1:
                raise InputError(f"the limit {name}={limit:g} is outside [0, 1], where {name} lies; give one within")
        self.limits = dict(limits)
        self.each = each
        self._seen: dict[tuple[str, str], _Seen] = defaultdict(_Seen)

    def add(self, where: Sequence[str], columns: Columns, systems: Sequence[str] = ()) -> None:
        """Take in the ``columns`` of the records called ``where`` [n], written by ``systems`` [n]."""
        named = columns.named()
        for name, limit in self.limits.items():
            values = named[name].tolist()
            for record, value, system in zip(where, values, systems or [""] * len(values), strict=True):
                seen = self._seen[system, name]
                missing = math.isnan(value)
                seen.missing += missing
                seen.below += missing or value < limit
                seen.count += not missing
                seen.total += 0.0 if missing else value
                entry = (math.inf if missing else -value, -(seen.count + seen.missing), record)
                (heapq.heappush if len(seen.worst) < _NAMED else heapq.heappushpop)(seen.worst, entry)

    def failures(self) -> list[str]:
        """A line for each system and limit that is not held, with the ten lowest records; [] where all is well.

        Raises InputError where nothing was measured.
        """
        if not self._seen:
            raise InputError("no pair was measured, so that no limit is held; give at least one")
        told = (self._failure(system, name, seen) for (system, name), seen in self._seen.items())
        return [line for line in told if line]

    def _failure(self, system: str, name: str, seen: _Seen) -> str:
        limit = self.limits[name]
        mean = seen.total / seen.count if seen.count else None
        if not (seen.below if self.each else mean is None or mean < limit):
            return ""
        lowest = sorted(seen.worst, reverse=True)
        if self.each:
            told = f"{seen.below} of {seen.count + seen.missing} records have {name} under {limit:g}"
            lowest = [entry for entry in lowest if -entry[0] < limit]
        else:
            told = f"mean {name} {'is missing' if mean is None else f'{mean:.4f}'}, under {limit:g}"
        missing = f" ({seen.missing} have none)" if seen.missing else ""
        named = ", ".join(f"{where} ({'none' if value == math.inf else f'{-value:.4f}'})" for value, _, where in lowest)
        return f"{f'{system}: ' if system else ''}{told}{missing}; lowest: {named}"

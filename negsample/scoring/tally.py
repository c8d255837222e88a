"""The figures over all scored records: mean and interval, what was cut, what has no score and why, what kind of text they are."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from negsample.errors import RecordError
from negsample.io.read import document_field, text_field
from negsample.records import Row, documents_of, told_document
from negsample.resampling import mean_interval
from negsample.scoring.scorer import Columns
from negsample.seeds import generator
from negsample.sentences import turns
from negsample.text import is_english, word_tokens

if TYPE_CHECKING:
    from negsample.scoring.files import Settings
    from negsample.scoring.scorer import Scorer

# Of the interval of a mean: resamples, and blocks of scores that are resampled.
_RESAMPLES = 1000
_BLOCKS = 1000


@dataclass
class Tally:
    """Mean and 95 % interval of scores as they come, and what was left out.

    ``cut`` counts the items that were longer than the scorer reads; ``bad`` those without a score, by reason; by field
    ``replaced`` the records that had something where the new score, or what belongs to it, now stands, and ``removed``
    those whose field belonged to an earlier score; ``unread`` those that have what the scorer does not read, by what it is;
    ``kinds`` the kinds of text among the first (``text_kind``).
    """

    n: int = 0
    cut: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
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
        """Percentile interval of the mean, the scores resampled; None for fewer than two.

        It stays within the range of the scores. From the 1001st score on, what is resampled are 1,000 blocks of scores
        (every thousandth one), so that memory is flat.
        """
        if self.n < 2:
            return None
        blocks = len(self._sums)
        counts = np.full(blocks, self.n // blocks) + (np.arange(blocks) < self.n % blocks)
        low, high = mean_interval(np.array(self._sums), generator(0, "score", "bootstrap"), _RESAMPLES, counts)
        return None if low is None or high is None else (low, high)


KINDS = ("short turns", "several documents", "not English", "in words of their own")
"""What ``text_kind`` tells apart."""
WORTHLESS: dict[str, tuple[str, ...]] = {
    "short turns": ("form",),
    "several documents": ("support", "coherence", "form"),
    "not English": (),
    "in words of their own": (),
}
"""Kind → aspects of the ready estimator that did not go with people's scores on such texts (docs/kinds.md)."""
# Words of a turn, on average, that make a meeting's of a chat's; the share of pairs of words that are copied.
_SHORT, _COPIED = 30, 0.25
# Records of a file by which its kind is told, and of these the share that makes it one.
_LOOKED_AT, _MOST = 200, 0.5


def text_kind(document: str, summary: str) -> frozenset[str]:
    """Those of ``KINDS`` that a pair is: ``document`` a dialogue whose turns have under 30 words on average; several
    (``joined``); not English; fewer than a quarter of the summary's pairs of neighbouring words stand in it.
    """
    several, read, said = documents_of(document), word_tokens(document), list(pairwise(word_tokens(summary)))
    spoken = [turn for text in several for turn in turns(text) or ()]
    known = set(pairwise(read))
    found = (
        bool(spoken) and len(read) < _SHORT * len(spoken),
        len(several) > 1,
        not is_english(document),
        bool(said) and sum(pair in known for pair in said) < _COPIED * len(said),
    )
    return frozenset(kind for kind, is_so in zip(KINDS, found, strict=True) if is_so)


def look(rows: Sequence[Row], scorer: "Scorer", settings: "Settings", tally: "Tally") -> None:
    """Count in ``tally`` the records of which ``scorer`` leaves something unread, and of the first 200 their kinds."""
    for row in rows:
        documents = told_document(row.fields, settings.document_field)
        if row.fields.get("question") not in (None, ""):
            tally.unread["a question, which this score does not read"] += 1
        if isinstance(documents, list) and len(documents) > 1 and not scorer.several:
            tally.unread["several documents, read as one text"] += 1
    for row in islice(rows, max(0, _LOOKED_AT - tally.kinds["all"])):
        try:
            texts = document_field(row, settings.document_field), text_field(row, settings.summary_field)
        except RecordError:
            continue
        tally.kinds.update(("all", *text_kind(*texts)))


def notices(kinds: Counter[str], aspects: Collection[str]) -> Iterator[str]:
    """A line for each kind that most of the records are, where some of ``aspects`` are worth nothing."""
    for kind in KINDS:
        worthless = [aspect for aspect in WORTHLESS[kind] if aspect in aspects]
        if worthless and kinds[kind] > _MOST * kinds["all"]:
            told = " and ".join(worthless)
            yield f"most records are of the kind {kind!r}, on which {told} told nothing of people's scores (docs/kinds.md)"

"""The best of several candidate summaries of each document: a reranker of what systems, or one system's samples, wrote."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from negsample.errors import RecordError
from negsample.io.read import Row
from negsample.records import document_key
from negsample.scoring.files import kept_fields
from negsample.scoring.outcomes import DEFAULTS, Outcome, Settings


@dataclass
class Choice:
    """What was chosen for one document: the record and its outcome, among ``candidates``.

    ``margin``: its lead over the next best (0 for a tie); None where no other candidate has a value.
    """

    row: Row
    outcome: Outcome
    candidates: int = 1
    next_best: float | None = None
    by: str = "score"

    @property
    def value(self) -> float | None:
        """The value it was chosen by; None where no candidate has one, and the first stands for all."""
        return value_of(self.outcome, self.by)

    @property
    def margin(self) -> float | None:
        """See the class."""
        return None if self.value is None or self.next_best is None else self.value - self.next_best

    def fields(self, settings: Settings = DEFAULTS) -> dict[str, Any]:
        """The record with what scoring and choosing add to it. Raises RecordError where it has a ``margin`` of its own."""
        if taken := {"margin", "candidates"} & self.row.fields.keys():
            raise RecordError(self.row.where, f"field {min(taken)!r} is what select adds", "rename it")
        margin = None if self.margin is None else round(self.margin, 7)
        return {
            **kept_fields(self.row, settings.added()),
            **self.outcome.fields(settings.added()),
            "margin": margin,
            "candidates": self.candidates,
        }


def value_of(outcome: Outcome, by: str) -> float | None:
    """``score`` or an aspect of an outcome."""
    return outcome.score if by == "score" else (outcome.aspects or {}).get(by)


def best(scored: Iterable[tuple[Row, Outcome]], key: str, by: str = "score") -> list[Choice]:
    """Choose, of the records with the same text in the field ``key``, the one whose ``by`` is highest.

    The first of equal ones; documents in the order in which they first come. A candidate without a value is never
    preferred to one with a value. A record without the field stands alone.
    """
    found: dict[str, Choice] = {}
    for row, outcome in scored:
        text = row.fields.get(key)
        name = document_key(text) if isinstance(text, str) and text.strip() else f"alone {len(found)}"
        kept = found.get(name)
        if kept is None:
            found[name] = Choice(row, outcome, by=by)
            continue
        kept.candidates += 1
        new, old = value_of(outcome, by), kept.value
        if new is None:
            continue
        if old is None or new > old:
            kept.row, kept.outcome, kept.next_best = row, outcome, old
        elif kept.next_best is None or new > kept.next_best:
            kept.next_best = new
    return list(found.values())

"""The best of several candidate summaries of each document: a reranker of what systems, or one system's samples, wrote."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from negsample.records import document_key


@dataclass
class Choice:
    """What was chosen for one document: the record and its value (NaN: no candidate has one, and the first stands for
    all), among ``candidates``.

    ``margin``: its lead over the next best (0 for a tie); NaN where no other candidate has a value.
    """

    record: Mapping[str, Any]
    value: float
    candidates: int = 1
    next_best: float = float("nan")

    @property
    def margin(self) -> float:
        """See the class."""
        return self.value - self.next_best


def best(scored: Iterable[tuple[Mapping[str, Any], float]], key: str) -> list[Choice]:
    """Choose, of the records with the same text in the field ``key``, the one whose value is highest.

    The first of equal ones; documents in the order in which they first come. A candidate without a value (NaN) is never
    preferred to one with a value. A record without the field stands alone.
    """
    found: dict[str, Choice] = {}
    for record, value in scored:
        text = record.get(key)
        name = document_key(text) if isinstance(text, str) and text.strip() else f"alone {len(found)}"
        kept = found.get(name)
        if kept is None:
            found[name] = Choice(record, value)
            continue
        kept.candidates += 1
        if math.isnan(value):
            continue
        # Any comparison with NaN is false.
        if not value <= kept.value:
            kept.record, kept.value, kept.next_best = record, value, kept.value
        elif not value <= kept.next_best:
            kept.next_best = value
    return list(found.values())

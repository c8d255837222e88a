"""The best of several candidate summaries of each document: a reranker of what systems, or one system's samples, wrote."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from negsample.errors import RecordError
from negsample.records import Row, document_key, text_fault, told_document
from negsample.scoring.files import DEFAULTS, Input, Settings, item_of, records_of, scored_chunks
from negsample.scoring.gate import check_name
from negsample.scoring.kinds import look
from negsample.scoring.scorer import Scorer
from negsample.scoring.tally import Tally


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


def select_best(
    scorer: Scorer, source: Input, by: str = "score", settings: Settings = DEFAULTS, nested: bool = True
) -> tuple[list[Choice], Tally]:
    """Score ``source`` and choose by the score, or an aspect: a choice a document, and a tally of all candidates.

    Records are those of `records_of`, with ``margin`` and ``candidates`` called after the output field as well. A bad
    record that is skipped is no candidate, and the tally counts it. Raises InputError for an unknown ``by``.
    """
    check_name(by, scorer.aspects)
    tally = Tally()
    margin, candidates = settings.called("margin"), settings.called("candidates")

    def good(rows: list[Row]) -> Iterator[Row]:
        for row in rows:
            try:
                item_of(row, scorer.needs, settings)
            except RecordError as error:
                if settings.on_bad != "skip":
                    raise error.or_skip() from None
                tally.bad[error.reason] += 1
                continue
            yield row

    def scored() -> Iterator[tuple[dict[str, Any], float]]:
        for rows, columns in scored_chunks(scorer, (list(good(rows)) for rows in source.chunks), settings):
            tally.add(columns)
            look(rows, scorer, settings, tally)
            tally.replaced.update(name for row in rows for name in (margin, candidates) if name in row.fields)
            records = records_of(rows, columns, tally, settings, nested, source.unwritten)
            yield from zip(records, columns.named()[by].tolist(), strict=True)

    chosen = best(scored(), "document_id" if source.systems else settings.document_field)
    for choice in chosen:
        lead = None if math.isnan(choice.margin) else round(choice.margin, 7)
        choice.record = {**choice.record, margin: lead, candidates: choice.candidates}
    return chosen, tally


def best(scored: Iterable[tuple[Mapping[str, Any], float]], key: str) -> list[Choice]:
    """Choose, of the records with the same text in the field ``key``, the one whose value is highest.

    The first of equal ones; documents in the order in which they first come. A candidate without a value (NaN) is never
    preferred to one with a value. A record without the field stands alone.
    """
    found: dict[str, Choice] = {}
    for record, value in scored:
        text = told_document(record, key)
        name = document_key(str(text)) if isinstance(text, list) or text_fault(text) is None else f"alone {len(found)}"
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

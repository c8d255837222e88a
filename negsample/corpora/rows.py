"""From the records of any source to pairs: fields, ids, bad records."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from negsample.corpora.options import CorpusOptions, count_skipped, describe_skipped
from negsample.errors import InputError, RecordError
from negsample.io.read import Row, text_field
from negsample.records import Pair
from negsample.seeds import digest

_RECENT = 1 << 15


def pairs_from(
    rows: Iterable[Row],
    corpus: str,
    document_field: str,
    summary_field: str,
    options: CorpusOptions,
    skipped: Counter[str],
    *,
    unique_ids: bool = True,
) -> Iterator[Pair]:
    """A pair for each row of ``rows``, in order.

    A pair's id is the row's own (``options.id_field``, by default ``id``), else a hash of the corpus' name and the two
    texts. An id that comes again is a RecordError where ``unique_ids`` holds and the id is the row's own; else the
    second one gets ``-2`` at its end, and so on, so that ids are unique in the corpus either way.

    Raises RecordError for a bad row, unless they are skipped, and InputError where no row was good.
    """
    ids = _Ids(unique_ids)
    good = 0
    for row in rows:
        try:
            document = text_field(row, document_field)
            summary = text_field(row, summary_field)
            own = _own_id(row, options.id_field)
            made = own or digest(corpus, document, summary).hex()[:16]
            pair = Pair(ids.unique(row, made, bool(own)), document, summary, corpus)
        except RecordError as error:
            if options.on_bad == "stop":
                raise
            count_skipped(skipped, error)
            continue
        good += 1
        yield pair
    if not good:
        told = describe_skipped(skipped)
        raise InputError(f"{corpus}: not one record can be used" + (f" ({told})" if told else "; check the file"))


def _own_id(row: Row, field: str | None) -> str:
    """The row's id as text, ``""`` where it has none; a field that was asked for by name must be there."""
    value: Any = row.fields.get(field or "id")
    if field is not None and field not in row.fields:
        raise RecordError(row.where, f"no field {field!r}", f"it has: {', '.join(map(repr, row.fields))}")
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise RecordError(row.where, f"field {field or 'id'!r} is not text or a number", "give each record an id")
    if not str(value).strip():
        return ""
    return text_field(Row(row.where, {field or "id": str(value)}), field or "id")


class _Ids:
    """The ids given out so far, as 8-byte hashes: little more than that an id, whatever its length."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        # A set is quick and a sorted array is small: new hashes go to the one and from time to time into the other.
        self._recent: set[int] = set()
        self._sorted = np.empty(0, np.uint64)
        self._times: dict[str, int] = {}

    def _new(self, name: str) -> bool:
        key = int.from_bytes(digest(name, size=8), "little")
        place = int(np.searchsorted(self._sorted, np.uint64(key)))
        if key in self._recent or (place < len(self._sorted) and int(self._sorted[place]) == key):
            return False
        self._recent.add(key)
        if len(self._recent) >= _RECENT:
            fresh = np.fromiter(self._recent, np.uint64, len(self._recent))
            self._sorted = np.sort(np.concatenate([self._sorted, fresh]))
            self._recent = set()
        return True

    def unique(self, row: Row, name: str, own: bool) -> str:
        if self._new(name):
            return name
        if own and self._strict:
            raise RecordError(row.where, f"repeats an id ({name!r})", "give each record its own; doc_id may repeat")
        while True:
            self._times[name] = self._times.get(name, 1) + 1
            numbered = f"{name}-{self._times[name]}"
            if self._new(numbered):
                return numbered

"""From the records of any source to pairs: what a caller may ask for, fields, ids, and records that are passed over."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from negsample.errors import InputError, RecordError
from negsample.io.read import Row, text_field
from negsample.io.read import document_field as document_field_of
from negsample.records import Pair, is_missing
from negsample.seeds import digest
from negsample.terminal import say
from negsample.text import is_blank


@dataclass(frozen=True)
class CorpusOptions:
    """How to read a corpus; every field has a default that suits the corpus.

    ``limit``: at most so many pairs (≥ 1), the first; ``sample``: of those a random number, or a share below 1, which ``seed``
    decides (``sampled``). ``config``, ``split``: of a hub data set (``split`` also of Newsroom). ``on_bad``: ``"stop"`` raises
    the RecordError of the first bad record, ``"skip"`` passes over bad records and counts them.
    """

    limit: int | None = None
    sample: int | float | None = None
    seed: int = 0
    document_field: str | None = None
    summary_field: str | None = None
    config: str | None = None
    split: str | None = None
    on_bad: str = "stop"

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise InputError(f"limit is {self.limit}; give a number of pairs, 1 or more")
        check_sample(self.sample, "sample")
        if self.on_bad not in ("stop", "skip"):
            raise InputError(f"on-bad is {self.on_bad!r}; give stop or skip")

    def refuse(self, what: str, *names: str) -> None:
        """Raise InputError where an option that ``what`` has no use for is set, instead of ignoring it."""
        for name in names:
            if getattr(self, name) is not None:
                raise InputError(f"{what} has no {name}; leave out {name}={getattr(self, name)!r}")


def check_sample(sample: int | float | None, where: str) -> None:
    """Raise InputError, beginning with ``where``, for what is neither a number of pairs nor a share of them."""
    if sample is not None and not (sample >= 1 and float(sample).is_integer()) and not 0 < sample < 1:
        raise InputError(f"{where} is {sample}; give a whole number of pairs, or a share between 0 and 1")


def sampled(pairs: Iterable[Pair], sample: int | float, seed: int) -> Iterator[Pair]:
    """Yield a random part of ``pairs`` in their order: ``sample`` of them (all, where there are fewer), or a share.

    What decides is a hash of seed and id: those with the ``sample`` lowest are taken, or each below the share of the range
    (so that the number comes near the share). So neither the order of the corpus nor what else it holds changes whether
    a pair goes before another, and a smaller sample is part of a larger one. One pass; a number of pairs is held in
    memory until its end, a share of them is not.
    """

    def place(pair: Pair) -> int:
        return int.from_bytes(digest(seed, "sample", pair.id, size=8), "big")

    if sample < 1:
        yield from (pair for pair in pairs if place(pair) < sample * 2**64)
        return
    lowest = heapq.nsmallest(int(sample), enumerate(pairs), key=lambda entry: place(entry[1]))
    if len(lowest) < sample:
        say(f"note: sample={int(sample)}, and the corpus has {len(lowest)} pairs: all are taken", error=True)
    yield from (pair for _, pair in sorted(lowest, key=lambda entry: entry[0]))


def describe_part(read: Mapping[str, Any]) -> str:
    """Say which part of each corpus is read, by ``limit``, ``sample``, ``own_splits``: ``", a sample of 300 pairs of each"``."""
    limit, sample, splits = read.get("limit"), read.get("sample"), list(filter(None, read.get("own_splits") or ()))
    own = f", with its own splits ({', '.join(splits)})" if splits else ""
    if sample is None:
        return own + (f", the first {limit} pairs of each" if limit else "")
    number = f"{int(sample)} pairs" if sample >= 1 else f"a share of {sample:g}"
    return f"{own}, a sample of {number} of {f'the first {limit} pairs of ' if limit else ''}each"


def describe_skipped(skipped: Counter[str]) -> str:
    """Return ``"skipped 2 records: 1 field 'summary' is blank, 1 not JSON"``, most frequent first; ``""`` for none."""
    if not (total := skipped.total()):
        return ""
    reasons = sorted(skipped.items(), key=lambda item: (-item[1], item[0]))
    told = ", ".join(f"{count} {reason}" for reason, count in reasons)
    return f"skipped {total} record{'s' if total > 1 else ''}: {told}"


def pairs_from(
    rows: Iterable[Row],
    corpus: str,
    document_field: str,
    summary_field: str,
    options: CorpusOptions,
    skipped: Counter[str],
    *,
    unique_ids: bool = True,
    domain: str = "",
) -> Iterator[Pair]:
    """Yield a pair for each row of ``rows``, in order; the fields are those of ``options`` where it names any.

    A pair's id is the row's own (``id``), else a hash of the corpus' name and the two texts. An id that comes again is a
    RecordError where ``unique_ids`` holds and the id is the row's own; else the second one gets ``-2`` at its end, and so on.
    ``domain``: of rows that don't say theirs.

    Raises RecordError for a bad row, unless they are skipped, and InputError where no row was good.
    """
    # Ids given out so far as 8-byte hashes: some 80 bytes an id, whatever its length.
    seen: set[bytes] = set()
    times: Counter[str] = Counter()
    good = 0
    for row in rows:
        try:
            document = document_field_of(row, options.document_field or document_field)
            summary = text_field(row, options.summary_field or summary_field)
            own = _own_id(row)
            name = made = own or digest(corpus, document, summary).hex()[:16]
            while (short := digest(name, size=8)) in seen:
                if own and unique_ids:
                    hint = "give each record its own; doc_id may repeat"
                    raise RecordError(row.where, f"repeats an id ({made!r})", hint)
                times[made] += 1
                name = f"{made}-{times[made] + 1}"
            seen.add(short)
        except RecordError as error:
            if options.on_bad == "stop":
                raise error.or_skip("on_bad=skip") from None
            # Without the details that the reason has in brackets.
            skipped[error.reason.split(" (", 1)[0]] += 1
            continue
        good += 1
        yield Pair(name, document, summary, corpus, row.domain or domain)
    if not good:
        told = describe_skipped(skipped)
        raise InputError(f"{corpus}: not one record can be used" + (f" ({told})" if told else "; check the file"))


def _own_id(row: Row) -> str:
    """The row's id as text, ``""`` where it has none."""
    value: Any = row.fields.get("id")
    if is_missing(value):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise RecordError(row.where, "field 'id' is not text or a number", "give each record an id")
    return text_field(Row(row.where, {"id": str(value)}), "id") if not is_blank(str(value)) else ""

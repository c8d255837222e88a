"""What a caller may ask of a corpus, and how records that were passed over are counted and told."""

from collections import Counter
from dataclasses import dataclass

from negsample.errors import InputError, RecordError


@dataclass(frozen=True)
class CorpusOptions:
    """How to read a corpus; every field has a default that suits the corpus.

    ``limit``: at most so many pairs (≥ 1). ``document_field``, ``summary_field``, ``id_field``: names of the fields.
    ``config``, ``split``: of a hub data set (``split`` also of Newsroom). ``on_bad``: ``"stop"`` raises the RecordError
    of the first bad record, ``"skip"`` passes over bad records and counts them.
    """

    limit: int | None = None
    document_field: str | None = None
    summary_field: str | None = None
    id_field: str | None = None
    config: str | None = None
    split: str | None = None
    on_bad: str = "stop"

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise InputError(f"limit is {self.limit}; give a number of pairs, 1 or more")
        if self.on_bad not in ("stop", "skip"):
            raise InputError(f"on-bad is {self.on_bad!r}; give stop or skip")


def count_skipped(skipped: Counter[str], error: RecordError) -> None:
    """Count a record that is passed over under its reason, without the details that the reason has in brackets."""
    skipped[error.reason.split(" (", 1)[0]] += 1


def describe_skipped(skipped: Counter[str]) -> str:
    """``"skipped 3 records: 2 field 'summary' is blank, 1 not JSON"``, most frequent first; ``""`` where none was."""
    total = skipped.total()
    if not total:
        return ""
    reasons = sorted(skipped.items(), key=lambda item: (-item[1], item[0]))
    told = ", ".join(f"{count} {reason}" for reason, count in reasons)
    return f"skipped {total} record{'s' if total > 1 else ''}: {told}"


def refuse(options: CorpusOptions, what: str, *names: str) -> None:
    """Raise InputError where an option that ``what`` has no use for is set, instead of ignoring it."""
    for name in names:
        if getattr(options, name) is not None:
            raise InputError(f"{what} has no {name}; leave out {name}={getattr(options, name)!r}")

"""Reading examples back from the files that ``negsample generate`` writes (or from a user's own)."""

from collections.abc import Iterator
from pathlib import Path

from negsample.errors import RecordError
from negsample.io.read import Row, number_field, read_rows, text_field
from negsample.records import Example, document_key


def example_of(row: Row, number: int) -> Example:
    """The example in ``row``.

    ``document``, ``summary`` and ``label`` are needed; ``id``, ``document_id``, ``kind`` and ``change`` are made up where
    they are missing (``number`` is the record's place). Raises RecordError: a blank text, a label outside [0, 1] or NaN.
    """
    document, summary = text_field(row, "document"), text_field(row, "summary")
    label = number_field(row, "label")
    if not 0 <= label <= 1:
        raise RecordError(
            row.where, f"label is {label:g}, outside [0, 1]", "a label is the share of the summary that is good"
        )
    fields = row.fields
    change = fields.get("change")
    return Example(
        id=str(fields.get("id") or number),
        document_id=str(fields.get("document_id") or fields.get("doc_id") or document_key(document)[:16]),
        document=document,
        summary=summary,
        label=label,
        kind=str(fields.get("kind") or "unknown"),
        change=change if isinstance(change, dict) else {},
    )


def read_examples(path: str | Path) -> Iterator[Example]:
    """The examples of a file, in order, one at a time. Raises InputError for the first bad record."""
    for number, row in enumerate(read_rows(path), start=1):
        yield example_of(row, number)

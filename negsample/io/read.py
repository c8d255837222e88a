"""Records as streams: JSON lines, CSV, TSV and Parquet, plain or gzipped, read with flat memory."""

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

from negsample.errors import InputError, RecordError, one_line
from negsample.io.files import failure, format_of, has_known_ending
from negsample.io.lines import NOT_UTF8, check_exists, display, is_pipe, read_csv, reading
from negsample.records import Example, Row, document_key, joined, kind_of, text_fault, texts_of, told_document

_PARQUET_BATCH = 128
SAMPLE_PATH = Path(__file__).parents[1] / "corpora" / "sample.jsonl"
_SPACE = " \t\r\n"


class NoRecordsError(InputError):
    """A file is sound, and has no record."""


# --- reading


def read_rows(path: str | Path, format: str | None = None) -> Iterator[Row]:
    """The records of ``path`` in order, one at a time; ``"-"`` is standard input, ``"sample"`` the embedded corpus.

    ``format`` is ``"jsonl"``, ``"csv"``, ``"tsv"`` or ``"parquet"``, by default told from the name (a pipe whose name
    tells none: JSON lines); a folder is what ``datasets`` leaves with ``save_to_disk``. Text is UTF-8, with or without a
    byte order mark (or UTF-16), with either line end; ``.gz`` is unpacked. JSON that is not one object a line, an array of
    objects or indented ones, is held in memory as a whole. A CSV's first line names its fields, and all its values are
    text. Blank lines are passed over. A record that is broken on its own comes as a Row with ``error`` set. A file is opened
    once, so that a pipe will do.

    Raises InputError, at the call for a missing file or an unknown format, else on the way: no records, damaged gzip or
    Parquet, a CSV header that is missing or names a field twice, a quote that never closes.
    """
    if is_sample(path):
        path = SAMPLE_PATH
    saved, piped = is_saved(path), is_pipe(path)
    if not saved:
        check_exists(path)
    kind = "saved" if saved else format or format_of("-" if piped and not has_known_ending(path) else path)
    readers: dict[str, Callable[[str | Path], Iterator[Row]]] = {
        "jsonl": _read_json_lines,
        "csv": lambda source: read_csv(source, ","),
        "tsv": lambda source: read_csv(source, "\t"),
        "parquet": _read_parquet,
        "saved": _read_saved,
    }
    if kind == "parquet" and piped:
        raise InputError(f"{display(path)}: Parquet can't be read from a pipe; name the file")
    return _at_least_one(path, readers[kind](path))


def _at_least_one(path: str | Path, rows: Iterator[Row]) -> Iterator[Row]:
    row = None
    for row in rows:
        yield row
    if row is None:
        raise NoRecordsError(f"{display(path)}: no records; give a file with at least one")


def _read_json_lines(path: str | Path) -> Iterator[Row]:
    name = display(path)
    with reading(path) as text:
        first = True
        for number, line in enumerate(text, start=1):
            if not line.strip():
                continue
            if first and (line.lstrip().startswith("[") or line.strip() == "{"):
                yield from _json_values(name, number, line + text.read())
                return
            first = False
            yield json_row(f"{name}, line {number}", line)


def _json_values(name: str, number: int, text: str) -> Iterator[Row]:
    """The records of a file that is not one object a line: an array of objects, or objects one after another.

    ``text`` begins at line ``number``. It is held in memory as a whole.
    """
    if NOT_UTF8.search(text):
        raise InputError(f"{name}: not UTF-8; save it as UTF-8")
    values: list[Any] = []
    try:
        place = len(text) - len(text.lstrip(_SPACE))
        while place < len(text):
            value, place = json.JSONDecoder().raw_decode(text, place)
            values.append(value)
            while place < len(text) and text[place] in _SPACE:
                place += 1
    except json.JSONDecodeError as error:
        told = f"{error.msg} at line {number + error.lineno - 1}"
        raise InputError(f"{name}: not JSON ({told}); mend it, or give one JSON object a line") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: not JSON ({error}); mend it, or give one JSON object a line") from None
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    for place, value in enumerate(values, start=1):
        yield _object_row(f"{name}, record {place}", value, "give an array of objects, or one JSON object a line")


def json_row(where: str, line: str) -> Row:
    """The record that one line of JSON lines holds; what is wrong with it becomes its ``error``."""
    hint = "give one JSON object a line"
    if spoilt := NOT_UTF8.search(line):
        reason = f"not UTF-8 (character {spoilt.start() + 1} of the line)"
        return Row(where, {}, RecordError(where, reason, "save it as UTF-8"))
    try:
        return _object_row(where, json.loads(line), hint)
    except RecursionError:
        reason = "nested too deeply"
    except json.JSONDecodeError as error:
        reason = f"not JSON ({error.msg} at character {error.pos + 1})"
    except ValueError:
        # json reads integers with int(), which refuses very long ones.
        reason = "has a number that is too long"
    return Row(where, {}, RecordError(where, reason, hint))


def _object_row(where: str, value: Any, hint: str) -> Row:
    if not isinstance(value, dict):
        return Row(where, {}, RecordError(where, f"not a JSON object ({kind_of(value)})", hint))
    return Row(where, value)


def _read_parquet(path: str | Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = str(path)
    try:
        if os.path.getsize(path) == 0:
            return
        with pq.ParquetFile(path) as file:
            columns = file.schema_arrow.names
            twice = sorted({column for column in columns if columns.count(column) > 1})
            if twice:
                raise InputError(f"{name}: has the column {twice[0]!r} more than once; rename one")
            number = 0
            for batch in file.iter_batches(batch_size=_PARQUET_BATCH):
                for index in range(batch.num_rows):
                    number += 1
                    where, fields = f"{name}, row {number}", dict[str, Any]()
                    broken: RecordError | None = None
                    for column, field in zip(batch.columns, batch.schema.names, strict=True):
                        try:
                            fields[field] = column[index].as_py()
                        except (UnicodeDecodeError, ValueError, OverflowError):
                            fields[field] = None
                            broken = broken or RecordError(
                                where, f"field {field!r} can't be read", "save text as UTF-8"
                            )
                    yield Row(where, fields, broken)
    except (pa.ArrowException, OSError) as error:
        # pyarrow reports some damage as an OSError without a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise failure(name, error) from error
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{name}: not a sound Parquet file ({reason}); get it again") from error


def is_sample(path: str | Path) -> bool:
    """Whether ``path`` is the word ``sample``, and no file is called so."""
    return str(path) == "sample" and not os.path.exists(path)


def is_saved(path: str | Path) -> bool:
    """Whether ``path`` is a folder that ``save_to_disk`` of ``datasets`` wrote: a Dataset, or a DatasetDict."""
    return any(os.path.isfile(os.path.join(path, name)) for name in ("state.json", "dataset_dict.json"))


def load_saved(path: str | Path) -> dict[str, Any]:
    """Load the splits of the folder, memory-mapped: name → rows. Raises InputError where it is damaged."""
    import datasets

    try:
        found = datasets.load_from_disk(str(path))
    except Exception as error:
        told = one_line(error)
        raise InputError(f"{path}: can't be read as a folder of save_to_disk ({told}); save it again") from error
    splits = found if isinstance(found, dict) else {str(found.split or "train"): found}
    return {str(name): split.with_format(None) for name, split in splits.items()}


def _read_saved(path: str | Path) -> Iterator[Row]:
    """The records of the folder's only split. Raises InputError where it holds several."""
    splits = load_saved(path)
    if len(splits) != 1:
        names = ", ".join(os.path.join(path, name) for name in splits)
        raise InputError(f"{path}: holds {len(splits)} splits; name one of {names}")
    for split in splits.values():
        for number, record in enumerate(split, start=1):
            yield Row(f"{path}, record {number}", record)


# --- fields


def _value(row: Row, name: str, other: str | None = None) -> tuple[str, Any]:
    if row.error is not None:
        raise row.error
    for candidate in (name, other):
        if candidate is not None and candidate in row.fields:
            return candidate, row.fields[candidate]
    wanted = f"field {name!r}" if other is None else f"field {name!r} or {other!r}"
    names = list(row.fields)
    shown = ", ".join(map(repr, names[:12])) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    raise RecordError(row.where, f"no {wanted}", f"it has: {shown}" if names else "it is empty")


def text_field(row: Row, name: str, *, other: str | None = None) -> str:
    """Return the text of field ``name``, unchanged; ``other`` names the field to read where ``name`` is not there.

    Raises RecordError: the row's own error, or the field is missing, not text, blank, or has half of a surrogate pair
    (such text can't be encoded as UTF-8).
    """
    name, value = _value(row, name, other)
    if fault := text_fault(value):
        raise RecordError(row.where, f"field {name!r} {fault}", "give text or leave the record out")
    text = str(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        reason = f"field {name!r} has a lone surrogate (character {error.start + 1})"
        raise RecordError(row.where, reason, "remove it: it is half a character") from None
    return text


def texts_field(row: Row, *names: str) -> list[str]:
    """Return the texts (``texts_of``) of the first field of ``names`` that holds any; [] without.

    Raises RecordError where they are not texts, or one of them is blank, naming it.
    """
    for name in names:
        try:
            texts = texts_of(row.fields.get(name))
        except InputError:
            reason = f"field {name!r} is not a list of texts ({kind_of(row.fields[name])})"
            raise RecordError(row.where, reason, "give a list of texts") from None
        named = {f"{name}: text {place}": text for place, text in enumerate(texts, start=1)}
        if named:
            return [text_field(Row(row.where, named), label) for label in named]
    return []


def document_field(row: Row, name: str = "document") -> str:
    """Return what a record's summary is of: the text in the field ``name``, or where that has none in ``documents``.

    Several documents, a list (or its JSON text in ``documents``), are one text (``joined``). Raises RecordError as
    ``text_field`` and ``texts_field``.
    """
    own = row.fields.get(name)
    listed = isinstance(own, list) or told_document(row.fields, name) is not own
    texts = texts_field(row, name if isinstance(own, list) else "documents") if listed and row.error is None else []
    several = row.fields.get("documents")
    if listed and isinstance(several, str) and several.lstrip().startswith(("[", "{")) and texts in ([], [several]):
        raise RecordError(row.where, "field 'documents' is no JSON list of texts", f"put one text into {name!r}")
    return str(joined(texts)) if texts else text_field(row, name)


def number_field(row: Row, name: str) -> float:
    """The number in field ``name``, finite; text that spells one counts, for a CSV has only text.

    Raises RecordError: the row's own error, or the field is missing, not a number, NaN or infinite.
    """
    name, value = _value(row, name)
    number: float | None = None
    if isinstance(value, str) and "_" not in value:
        with suppress(ValueError):
            number = float(value)
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    if number is None:
        shown = f"the text {value[:40]!r}" if isinstance(value, str) else kind_of(value)
        raise RecordError(row.where, f"field {name!r} is not a number ({shown})", "give a number")
    if not math.isfinite(number):
        raise RecordError(row.where, f"field {name!r} is not a finite number ({number})", "give a number")
    return number


# --- examples


def read_examples(path: str | Path) -> Iterator[Example]:
    """The examples of a file that ``negsample generate`` has written, or of a user's own, one at a time.

    ``document`` (or ``documents``), ``summary`` and ``label`` are needed; ``id``, ``document_id``, ``kind`` and ``change`` are
    made up where they are missing. Raises RecordError for the first bad record: a blank text, a label (also of ``aspects``)
    outside [0, 1] or NaN.
    """
    for number, row in enumerate(read_rows(path), start=1):
        document, summary = document_field(row), text_field(row, "summary")
        own = row.fields.get
        aspects: Any = own("aspects")
        aspects = aspects if isinstance(aspects, dict) else {}
        document_id = str(own("document_id") or own("doc_id") or document_key(document)[:16])
        change: Any = own("change")
        change = change if isinstance(change, dict) else {}
        label, kind = _label(row, "label"), str(own("kind") or "unknown")
        labels = {name: _label(Row(row.where, aspects), name) for name in aspects}
        yield Example(str(own("id") or number), document_id, document, summary, label, kind, change, labels, row.domain)


def _label(row: Row, name: str) -> float:
    if not 0 <= (label := number_field(row, name)) <= 1:
        told = "a label is the share of the summary that is good"
        raise RecordError(row.where, f"{name} is {label:g}, outside [0, 1]", told)
    return label

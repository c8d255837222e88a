"""Records as streams: JSON lines, CSV, TSV and Parquet, plain or gzipped, read with flat memory."""

import csv
import gzip
import io
import itertools
import json
import math
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, cast

from negsample.errors import InputError, RecordError
from negsample.io.files import failure, format_of

# 256 million characters: far above any document, far below what would exhaust memory when a quote is never closed.
_CSV_FIELD_LIMIT = 1 << 28
_PARQUET_BATCH = 128
# White space, control characters and invisible marks: a text of nothing else is blank to a reader.
_BLANK = re.compile("[\\s\x00-\x1f\x7f-\x9f\u00ad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]*")
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class Row:
    """One record of an input.

    ``where`` names file and place, 1-based: ``"pairs.jsonl, line 3"`` (the line a record begins on) or
    ``"pairs.parquet, row 7"``. ``fields`` is ``{}`` where nothing could be read. ``error`` is set where the record as a
    whole is broken; ``text_field`` and ``number_field`` raise it.
    """

    where: str
    fields: dict[str, Any] = field(default_factory=dict)
    error: RecordError | None = None


# --- opening


def display(path: str | Path) -> str:
    return "standard input" if str(path) == "-" else str(path)


@contextmanager
def reading(path: str | Path) -> Iterator[BinaryIO]:
    """The bytes of ``path`` (``"-"``: standard input), unpacked where gzipped; failures become InputError."""
    name = display(path)
    raw: BinaryIO | None = None
    try:
        if str(path) == "-":
            if sys.stdin is None:
                raise InputError("standard input: it is closed; name a file or pipe the records in")
            stream: BinaryIO = sys.stdin.buffer
        else:
            stream = raw = open(path, "rb")  # noqa: SIM115 - closed below; standard input must stay open
        peek = getattr(stream, "peek", None)
        if str(path).lower().endswith(".gz") or (peek is not None and peek(2)[:2] == b"\x1f\x8b"):
            yield cast(BinaryIO, gzip.GzipFile(fileobj=stream, mode="rb"))
        else:
            yield stream
    except EOFError as error:
        raise InputError(f"{name}: the gzip file is cut short; get it again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{name}: not a sound gzip file ({error}); get it again") from error
    except OSError as error:
        raise failure(name, error) from error
    finally:
        if raw is not None:
            raw.close()


def check_exists(path: str | Path) -> None:
    if str(path) == "-":
        return
    try:
        os.stat(path)
    except OSError as error:
        raise failure(str(path), error) from error
    if os.path.isdir(path):
        raise InputError(f"{path}: is a folder; name a file")


# --- reading


def read_rows(path: str | Path, format: str | None = None) -> Iterator[Row]:
    """The records of ``path`` in order, one at a time; ``"-"`` is standard input.

    ``format`` is ``"jsonl"``, ``"csv"``, ``"tsv"`` or ``"parquet"``, by default told from the name. Text is UTF-8, with
    or without a byte order mark and with either line end; ``.gz`` is unpacked. A CSV's first line names its fields, and
    all its values are text. Blank lines are passed over. A record that is broken on its own comes as a Row with
    ``error`` set.

    Raises InputError, at the call for a missing file or an unknown format, else on the way: no records, damaged gzip or
    Parquet, a CSV header that is missing or names a field twice, a quote that never closes.
    """
    kind = format or format_of(path)
    readers: dict[str, Callable[[str | Path], Iterator[Row]]] = {
        "jsonl": _read_json_lines,
        "csv": lambda source: _read_csv(source, ","),
        "tsv": lambda source: _read_csv(source, "\t"),
        "parquet": _read_parquet,
    }
    if kind not in readers:
        raise InputError(f"{display(path)}: no format is called {kind!r}; known: {', '.join(readers)}")
    if kind == "parquet" and str(path) == "-":
        raise InputError("standard input: Parquet can't be read from a pipe; name the file")
    check_exists(path)
    return _at_least_one(path, readers[kind](path))


def _at_least_one(path: str | Path, rows: Iterator[Row]) -> Iterator[Row]:
    first = next(rows, None)
    if first is None:
        raise InputError(f"{display(path)}: no records; give a file with at least one")
    yield first
    yield from rows


def _read_json_lines(path: str | Path) -> Iterator[Row]:
    name = display(path)
    with reading(path) as stream:
        for number, line in enumerate(stream, start=1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                yield _json_row(f"{name}, line {number}", line)


def _json_row(where: str, line: bytes) -> Row:
    hint = "give one JSON object a line"
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return Row(where, {}, RecordError(where, f"not UTF-8 (byte {error.start + 1} of the line)", "save it as UTF-8"))
    except RecursionError:
        return Row(where, {}, RecordError(where, "nested too deeply", hint))
    except json.JSONDecodeError as error:
        return Row(where, {}, RecordError(where, f"not JSON ({error.msg} at character {error.pos + 1})", hint))
    except ValueError:
        # json reads integers with int(), which refuses very long ones.
        return Row(where, {}, RecordError(where, "has a number that is too long", hint))
    if not isinstance(value, dict):
        return Row(where, {}, RecordError(where, f"not a JSON object ({_kind(value)})", hint))
    return Row(where, value)


def _next_cells(reader: Iterator[list[str]]) -> list[str] | None:
    # The limit belongs to the process, so it is raised for the length of one call only.
    before = csv.field_size_limit(_CSV_FIELD_LIMIT)
    try:
        return next(reader, None)
    finally:
        csv.field_size_limit(before)


def _read_csv(path: str | Path, delimiter: str) -> Iterator[Row]:
    name = display(path)
    with reading(path) as stream:
        # Bytes that are not UTF-8 become surrogates, so that they spoil their own record and not the whole file.
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
        try:
            yield from _csv_rows(name, csv.reader(text, delimiter=delimiter, strict=True))
        finally:
            # Else the wrapper, once forgotten, would close standard input.
            text.detach()


def _csv_rows(name: str, reader: Any) -> Iterator[Row]:
    """The rows of a ``csv.reader``, whose first record is the header."""
    header: list[str] | None = None
    while True:
        where = f"{name}, line {reader.line_num + 1}"
        try:
            cells = _next_cells(reader)
        except csv.Error as error:
            reason = _csv_reason(where, str(error))
            if header is None:
                raise reason from error
            yield Row(where, dict.fromkeys(header), reason)
            continue
        if cells is None:
            return
        if not cells:
            continue
        if header is None:
            header = _checked_header(where, cells)
        else:
            yield _csv_row(where, header, cells)


def _csv_reason(where: str, message: str) -> RecordError:
    """The error of one broken record; raises InputError where the records after it can't be found either."""
    if "unexpected end of data" in message:
        raise InputError(f"{where}: a quoted field begins here and never ends; close the quote or double it")
    if "field larger" in message:
        raise InputError(f"{where}: a field of more than {_CSV_FIELD_LIMIT} characters; close its quote or shorten it")
    return RecordError(where, f"not a CSV record ({message})", "double each quote inside a quoted field")


def _checked_header(where: str, cells: list[str]) -> list[str]:
    if any(_ESCAPED_BYTE.search(cell) for cell in cells):
        raise InputError(f"{where}: the header is not UTF-8; save the file as UTF-8")
    twice = sorted({cell for cell in cells if cells.count(cell) > 1})
    if twice:
        raise InputError(f"{where}: the header names {', '.join(map(repr, twice))} more than once; rename one")
    return cells


def _csv_row(where: str, header: list[str], cells: list[str]) -> Row:
    fields: dict[str, Any] = dict(zip(header, itertools.chain(cells, itertools.repeat(None)), strict=False))
    if len(cells) != len(header):
        reason = f"wrong number of cells ({len(cells)}, the header has {len(header)})"
        return Row(where, fields, RecordError(where, reason, "quote fields that hold the separator or a line break"))
    broken = [key for key, cell in fields.items() if _ESCAPED_BYTE.search(cell)]
    if broken:
        fields.update(dict.fromkeys(broken))
        return Row(where, fields, RecordError(where, f"field {broken[0]!r} is not UTF-8", "save the file as UTF-8"))
    return Row(where, fields)


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
                    yield _parquet_row(f"{name}, row {number}", batch, index)
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{name}: not a sound Parquet file ({reason}); get it again") from error
    except OSError as error:
        # pyarrow reports some damage as an OSError without a number.
        if error.errno is None:
            reason = str(error).splitlines()[0]
            raise InputError(f"{name}: not a sound Parquet file ({reason}); get it again") from error
        raise failure(name, error) from error


def _parquet_row(where: str, batch: Any, index: int) -> Row:
    fields: dict[str, Any] = {}
    broken = None
    for column, name in zip(batch.columns, batch.schema.names, strict=True):
        try:
            fields[name] = column[index].as_py()
        except (UnicodeDecodeError, ValueError, OverflowError):
            fields[name] = None
            broken = broken or RecordError(where, f"field {name!r} can't be read", "save text as UTF-8")
    return Row(where, fields, broken)


# --- fields


def _kind(value: Any) -> str:
    names = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return "null" if value is None else names.get(type(value), f"a {type(value).__name__}")


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
    if not isinstance(value, str):
        raise RecordError(row.where, f"field {name!r} is not text ({_kind(value)})", "give text")
    if _BLANK.fullmatch(value):
        raise RecordError(row.where, f"field {name!r} is blank", "give text or leave the record out")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        reason = f"field {name!r} has a lone surrogate (character {error.start + 1})"
        raise RecordError(row.where, reason, "remove it: it is half a character") from None
    return value


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
        shown = f"the text {value[:40]!r}" if isinstance(value, str) else _kind(value)
        raise RecordError(row.where, f"field {name!r} is not a number ({shown})", "give a number")
    if not math.isfinite(number):
        raise RecordError(row.where, f"field {name!r} is not a finite number ({number})", "give a number")
    return number

"""Records as streams: JSON lines, CSV, TSV and Parquet, plain or gzipped, read with flat memory."""

import codecs
import gzip
import io
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

_PARQUET_BATCH = 128
# White space, control characters and invisible marks: a text of nothing else is blank to a reader.
_SPACE = re.compile("[ \t\r\n]*")
_BLANK = re.compile("[\\s\x00-\x1f\x7f-\x9f\u00ad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]*")


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


class NoRecordsError(InputError):
    """A file is sound, and has no record."""


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
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=stream, mode="rb"))
        yield _utf8(stream, name)
    except EOFError as error:
        raise InputError(f"{name}: the gzip file is cut short; get it again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{name}: not a sound gzip file ({error}); get it again") from error
    except OSError as error:
        raise failure(name, error) from error
    finally:
        if raw is not None:
            raw.close()


class _Recoded(io.RawIOBase):
    """The UTF-8 bytes of a stream in another encoding."""

    def __init__(self, stream: BinaryIO, encoding: str, name: str) -> None:
        self._stream, self._name = stream, name
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            data = self._stream.read(1 << 16)
            try:
                self._rest = self._decoder.decode(data, final=not data).encode("utf-8")
            except UnicodeError as error:
                raise InputError(f"{self._name}: not sound UTF-16 ({error}); save it as UTF-8") from None
            if not data:
                break
        part, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def _utf8(stream: BinaryIO, name: str) -> BinaryIO:
    """``stream``, or its text in UTF-8 where it is in UTF-16 or UTF-32, which zeros among its first bytes (or a mark) tell."""
    peek = getattr(stream, "peek", None)
    encoding = json.detect_encoding(peek(4)[:4]) if peek is not None else "utf-8"
    return (
        stream if encoding.startswith("utf-8") else cast(BinaryIO, io.BufferedReader(_Recoded(stream, encoding, name)))
    )


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

    ``format`` is ``"jsonl"``, ``"csv"``, ``"tsv"`` or ``"parquet"``, by default told from the name; a folder is what
    ``datasets`` leaves with ``save_to_disk``. Text is UTF-8, with or without a byte order mark (or UTF-16), with either
    line end; ``.gz`` is unpacked. JSON that is not one object a line, an array of objects or indented ones, is held in
    memory as a whole. A CSV's first line names its fields, and all its values are text. Blank lines are passed over. A
    record that is broken on its own comes as a Row with ``error`` set.

    Raises InputError, at the call for a missing file or an unknown format, else on the way: no records, damaged gzip or
    Parquet, a CSV header that is missing or names a field twice, a quote that never closes.
    """
    # These two make rows of their own.
    from negsample.io.csv_rows import read_csv
    from negsample.io.saved import is_saved, saved_rows

    saved = is_saved(path)
    kind = "saved" if saved else format or format_of(path)
    readers: dict[str, Callable[[str | Path], Iterator[Row]]] = {
        "jsonl": _read_json_lines,
        "csv": lambda source: read_csv(source, ","),
        "tsv": lambda source: read_csv(source, "\t"),
        "parquet": _read_parquet,
        "saved": saved_rows,
    }
    if kind not in readers:
        raise InputError(f"{display(path)}: no format is called {kind!r}; known: {', '.join(readers)}")
    if kind == "parquet" and str(path) == "-":
        raise InputError("standard input: Parquet can't be read from a pipe; name the file")
    if not saved:
        check_exists(path)
    return _at_least_one(path, readers[kind](path))


def _at_least_one(path: str | Path, rows: Iterator[Row]) -> Iterator[Row]:
    first = next(rows, None)
    if first is None:
        raise NoRecordsError(f"{display(path)}: no records; give a file with at least one")
    yield first
    yield from rows


def _read_json_lines(path: str | Path) -> Iterator[Row]:
    name = display(path)
    with reading(path) as stream:
        first = True
        for number, line in enumerate(stream, start=1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.strip():
                continue
            if first and (line.lstrip().startswith(b"[") or line.strip() == b"{"):
                yield from _json_values(name, number, line + stream.read())
                return
            first = False
            yield json_row(f"{name}, line {number}", line)


def _json_values(name: str, number: int, data: bytes) -> Iterator[Row]:
    """The records of a file that is not one object a line: an array of objects, or objects one after another.

    ``data`` begins at line ``number``. It is held in memory as a whole.
    """
    values: list[Any] = []
    try:
        text = data.decode("utf-8")
        place = _after_space(text, 0)
        while place < len(text):
            value, end = json.JSONDecoder().raw_decode(text, place)
            values.append(value)
            place = _after_space(text, end)
    except (ValueError, RecursionError) as error:
        at = f" at line {number + error.lineno - 1}" if isinstance(error, json.JSONDecodeError) else ""
        told = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(f"{name}: not JSON ({told}{at}); mend it, or give one JSON object a line") from None
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    for place, value in enumerate(values, start=1):
        yield _object_row(f"{name}, record {place}", value, "give an array of objects, or one JSON object a line")


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def json_row(where: str, line: bytes) -> Row:
    """The record that one line of JSON lines holds; what is wrong with it becomes its ``error``."""
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
    return _object_row(where, value, hint)


def _object_row(where: str, value: Any, hint: str) -> Row:
    if not isinstance(value, dict):
        return Row(where, {}, RecordError(where, f"not a JSON object ({_kind(value)})", hint))
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


def texts_field(row: Row, *names: str) -> list[str]:
    """Return the texts of the first field of ``names`` that holds any: a list, its JSON text, or one text; [] without.

    Raises RecordError where they are not texts, or one of them is blank, naming it.
    """
    name = next((name for name in names if row.fields.get(name) not in (None, "", [])), None)
    value = [] if name is None else row.fields[name]
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(ValueError):
            value = json.loads(value)
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list):
        raise RecordError(row.where, f"field {name!r} is not a list of texts ({_kind(texts)})", "give a list of texts")
    labels = [f"{name}: text {place}" for place in range(1, len(texts) + 1)]
    return [text_field(Row(row.where, {label: text}), label) for label, text in zip(labels, texts, strict=True)]


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

"""Writing records one at a time as JSON lines, CSV, TSV or Parquet; the file appears whole or not at all."""

import csv
import gzip
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from negsample.errors import InputError
from negsample.io.files import explained, format_of, replacing

_FLUSH_EVERY = 32
_CHUNK_RECORDS = 1000
_CHUNK_CHARACTERS = 32_000_000
# Columns that hold numbers even where the first thousand records have none, or only whole ones.
_NUMBER_COLUMNS = frozenset({"score", "percentile", "label"})


class Writer:
    """Takes records; made by ``open_writer``. Each format is a subclass."""

    def __init__(self, name: str, stream: BinaryIO, columns: Sequence[str] | None = None) -> None:
        self._name, self._stream, self._columns = name, stream, columns
        self._count = 0

    def write(self, record: Mapping[str, Any]) -> None:
        """Write one record. Values may be anything JSON can hold, numpy scalars and arrays, dates and decimals.

        Numbers that are not finite become null, since JSON has none. Raises InputError: a field that a table (CSV, TSV,
        Parquet) has no column for, a value that does not fit, a full or failing disk.
        """
        with explained(self._name):
            try:
                self._put({key: _plain(value) for key, value in record.items()})
            except RecursionError:
                raise InputError(f"{self._name}: record {self._count + 1} is nested too deeply to be written") from None
            except TypeError as error:
                raise InputError(f"{self._name}: record {self._count + 1} can't be written ({error})") from error
        self._count += 1

    def finish(self) -> None:
        """Write what is still held back. Raises InputError where the disk fails."""
        with explained(self._name):
            self._end()
            self._stream.flush()
            if isinstance(self._stream, gzip.GzipFile):
                self._stream.close()

    def abandon(self) -> None:
        """Close what the garbage collector would close later, with complaints about a file that is gone."""
        if isinstance(self._stream, gzip.GzipFile):
            self._stream.close()

    def _put(self, record: dict[str, Any]) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        pass

    def _refuse_unknown(self, record: Mapping[str, Any]) -> None:
        if self._columns is not None and (unknown := [key for key in record if key not in self._columns]):
            told = f"a record has the field {unknown[0]!r}, for which the file has no column"
            raise InputError(f"{self._name}: {told}; write .jsonl instead")


def _plain(value: Any) -> Any:
    """Return ``value`` with numpy's types as Python's, and None for numbers that are not finite."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    # numpy scalars and arrays, without importing numpy.
    return _plain(value.tolist()) if hasattr(value, "tolist") else value


@contextmanager
def open_writer(path: str | Path, *, columns: Sequence[str] | None = None, schema: Any = None) -> Iterator[Writer]:
    """A Writer to ``path``, which appears, complete, when the block ends well; on any exception nothing is left.

    The ending of ``path`` tells the format. ``columns`` fixes the columns of CSV, TSV and Parquet and their order;
    without it they are those of the first record (Parquet: of the first 1,000), and a later record with another field
    is an InputError that names it. ``.gz`` files are byte for byte the same for the same records.

    - JSON lines: UTF-8; a lone surrogate is written as its ``\\uXXXX`` escape.
    - CSV, TSV: None is an empty cell, lists and objects are JSON text.
    - Parquet: types come from the first 1,000 records; ``score``, ``percentile`` and ``label`` are float64; a column in
      which these have nothing (None, empty lists, empty objects) becomes text, later values in it JSON text. An Arrow
      ``schema``, where given, says instead what the columns hold.
    - ``"-"``: standard output, JSON lines, flushed every 32 records and at the end. Raises BrokenPipeError where its
      reader has gone away.

    Raises InputError for an unknown ending, a folder that is missing or not writable, and a disk that fills.
    """
    kind = format_of(path)
    if str(path) == "-":
        if sys.stdout is None:
            raise InputError("standard output: it is closed; name a file")
        sys.stdout.flush()
        writer: Writer = _JsonLines("standard output", sys.stdout.buffer, flush_every=_FLUSH_EVERY)
        try:
            yield writer
        except BaseException:
            with suppress(OSError):
                sys.stdout.buffer.flush()
            raise
        writer.finish()
        return
    name = str(path)
    with replacing(path) as handle:
        packed = name.lower().endswith(".gz")
        stream = cast(BinaryIO, gzip.GzipFile("", "wb", 6, handle, mtime=0)) if packed else handle
        if kind == "jsonl":
            writer = _JsonLines(name, stream)
        elif kind == "parquet":
            writer = _Parquet(name, stream, columns, schema)
        else:
            writer = _Cells(name, stream, columns, "," if kind == "csv" else "\t")
        try:
            yield writer
            writer.finish()
        except BaseException:
            with suppress(Exception):
                writer.abandon()
            raise


def write_table(path: Path, rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> None:
    """Write ``rows`` to ``path`` (its ending names the format); a value that a row lacks is left empty."""
    with open_writer(path, columns=columns) as writer:
        for row in rows:
            writer.write(row)


# --- JSON lines


def _json_default(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if type(value).__name__ in ("Decimal", "UUID", "timedelta"):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no JSON form")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_json_default)


class _JsonLines(Writer):
    def __init__(self, name: str, stream: BinaryIO, flush_every: int = 0) -> None:
        super().__init__(name, stream)
        self._flush_every = flush_every

    def _put(self, record: dict[str, Any]) -> None:
        self._stream.write(_json(record).encode("utf-8", "backslashreplace") + b"\n")
        if self._flush_every and (self._count + 1) % self._flush_every == 0:
            self._stream.flush()


# --- CSV and TSV


def _escaped(value: Any) -> Any:
    """``value`` with each lone surrogate as the six characters of its escape, for formats that can't hold it."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_escaped(key): _escaped(item) for key, item in value.items()}
    return [_escaped(item) for item in value] if isinstance(value, list) else value


class _Lines:
    """What ``csv.writer`` writes to. With CRLF as its line end it quotes both characters; here the line ends with LF."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, line: str) -> None:
        self._stream.write((line.removesuffix("\r\n") + "\n").encode("utf-8", "backslashreplace"))


class _Cells(Writer):
    def __init__(self, name: str, stream: BinaryIO, columns: Sequence[str] | None, delimiter: str) -> None:
        super().__init__(name, stream, columns)
        self._rows = csv.writer(_Lines(stream), delimiter=delimiter, lineterminator="\r\n")

    def _put(self, record: dict[str, Any]) -> None:
        if self._columns is None:
            self._columns = list(record)
        if not self._count:
            self._rows.writerow(self._columns)
        self._refuse_unknown(record)
        self._rows.writerow([_cell(record.get(column)) for column in self._columns])

    def _end(self) -> None:
        if self._columns and not self._count:
            self._rows.writerow(self._columns)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float | list | dict):
        return _json(_escaped(value))
    return str(_json_default(value))


# --- Parquet


class _Parquet(Writer):
    def __init__(self, name: str, stream: BinaryIO, columns: Sequence[str] | None, schema: Any) -> None:
        super().__init__(name, stream, columns if schema is None else schema.names)
        self._records: list[dict[str, Any]] = []
        self._characters = 0
        self._schema: Any = schema
        self._file: Any = None

    def _put(self, record: dict[str, Any]) -> None:
        self._refuse_unknown(record)
        self._records.append(record)
        self._characters += sum(len(value) for value in record.values() if isinstance(value, str))
        if len(self._records) >= _CHUNK_RECORDS or self._characters >= _CHUNK_CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._schema is None:
            self._schema = told_schema(schema_of(self._name, self._records, self._columns))
            self._columns = self._schema.names
        if self._file is None:
            self._file = pq.ParquetWriter(self._stream, self._schema)
        if self._records:
            arrays = [self._array(column.name, column.type) for column in self._schema]
            self._file.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._records, self._characters = [], 0

    def _array(self, column: str, kind: Any) -> Any:
        import pyarrow as pa

        values = [_escaped(record.get(column)) for record in self._records]
        if kind == pa.string():
            values = [None if value is None else _cell(value) for value in values]
        own = pa.schema([(column, _inferred(self._name, column, values))])
        try:
            # By itself pyarrow drops keys that a struct does not have, and cuts 0.5 to 0 where the column holds integers.
            if pa.unify_schemas([pa.schema([(column, kind)]), own], promote_options="permissive").types == [kind]:
                return pa.array(values, type=kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            if "too large" in str(error):
                raise _misfit(self._name, column, "has a number that is too large for Parquet") from error
        told = f"holds {kind} by the first records, and later ones hold {own.types[0]}"
        raise _misfit(self._name, column, "has values of different types" if own.types[0] == kind else told)

    def _end(self) -> None:
        if self._records or self._file is None:
            self._flush()
        self._file.close()

    def abandon(self) -> None:
        if self._file is not None:
            self._file.close()


def schema_of(name: str, records: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> Any:
    """The Arrow schema of ``records`` (of their ``columns``, by default of all): null where they have nothing but None,
    empty lists and empty objects. Raises InputError, which names ``name``, for a column whose values are of several types.
    """
    import pyarrow as pa

    fields = []
    for column in columns or dict.fromkeys(key for record in records for key in record):
        kind = _inferred(name, column, [_escaped(_plain(record.get(column))) for record in records])
        fields.append((column, pa.float64() if column in _NUMBER_COLUMNS else pa.null() if _untold(kind) else kind))
    return pa.schema(fields)


def told_schema(schema: Any) -> Any:
    """``schema`` with text for the columns of which it tells no type."""
    import pyarrow as pa

    return pa.schema([field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in schema])


def _inferred(name: str, column: str, values: list[Any]) -> Any:
    """The Arrow type of all ``values``."""
    import pyarrow as pa

    try:
        return pa.infer_type(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _misfit(name, column, "has values of different types") from error


def _misfit(name: str, column: str, reason: str) -> InputError:
    # pyarrow's messages may have several lines.
    return InputError(f"{name}: the column {column!r} {' '.join(reason.split())}; write .jsonl instead")


def _untold(kind: Any) -> bool:
    """Whether a type leaves open what it holds, at any depth: nothing but nulls, empty lists or empty objects."""
    from pyarrow import types

    if types.is_list(kind):
        return _untold(kind.value_type)
    if types.is_struct(kind):
        return kind.num_fields == 0 or any(_untold(part.type) for part in kind)
    return types.is_null(kind)

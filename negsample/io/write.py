"""Writing records one at a time as JSON lines, CSV, TSV or Parquet; the file appears whole or not at all."""

import csv
import gzip
import io
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from negsample.errors import InputError
from negsample.io.files import failure, format_of, replacing

_FLUSH_EVERY = 32
_CHUNK_RECORDS = 1000
_CHUNK_CHARACTERS = 32_000_000
# Columns that hold numbers even where the first thousand records have none, or only whole ones.
_NUMBER_COLUMNS = frozenset({"score", "label"})


class _ReaderGoneError(Exception):
    """Whoever read our standard output has closed it."""


class _Sink(Protocol):
    def write(self, record: dict[str, Any]) -> None: ...

    def finish(self) -> None: ...

    def abandon(self) -> None: ...


class Writer:
    """Takes records; made by ``open_writer``.

    ``count`` is the number of records written, ``nulled`` the number of values among them that were NaN or infinite and
    were written as null (JSON has no such numbers), for the caller to report.
    """

    def __init__(self, name: str, sink: _Sink) -> None:
        self._name = name
        self._sink = sink
        self.count = 0
        self.nulled = 0

    def write(self, record: Mapping[str, Any]) -> None:
        """Write one record. Values may be anything JSON can hold, numpy scalars and arrays, dates and decimals.

        Raises InputError: a field that a table (CSV, TSV, Parquet) has no column for, a value that does not fit, a full
        or failing disk.
        """
        try:
            self._sink.write({key: self._plain(value) for key, value in record.items()})
        except BrokenPipeError:
            raise _ReaderGoneError from None
        except OSError as error:
            raise failure(self._name, error) from error
        except RecursionError:
            raise InputError(f"{self._name}: record {self.count + 1} is nested too deeply to be written") from None
        except TypeError as error:
            raise InputError(f"{self._name}: record {self.count + 1} can't be written ({error})") from error
        self.count += 1

    def _plain(self, value: Any) -> Any:
        if value is None or isinstance(value, str | int):
            return value
        if isinstance(value, float):
            if math.isfinite(value):
                return value
            self.nulled += 1
            return None
        if isinstance(value, Mapping):
            return {key: self._plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._plain(item) for item in value]
        # numpy scalars and arrays, without importing numpy.
        return self._plain(value.tolist()) if hasattr(value, "tolist") else value


@contextmanager
def open_writer(
    path: str | Path, *, columns: Sequence[str] | None = None, format: str | None = None
) -> Iterator[Writer]:
    """A Writer to ``path``, which appears, complete, when the block ends well; on any exception nothing is left.

    ``format`` is told from the name by default. ``columns`` fixes the columns of CSV, TSV and Parquet and their order;
    without it they are those of the first record (Parquet: of the first 1,000), and a later record with another field
    is an InputError that names it. ``.gz`` files are byte for byte the same for the same records.

    - JSON lines: UTF-8; a lone surrogate is written as its ``\\uXXXX`` escape.
    - CSV, TSV: None is an empty cell, lists and objects are JSON text.
    - Parquet: types come from the first 1,000 records; ``score`` and ``label`` are float64; a column in which these
      have nothing (None, empty lists, empty objects) becomes text, later values in it JSON text.
    - ``"-"``: standard output, JSON lines, flushed every 32 records and at the end. Where its reader has gone away the
      block ends early and quietly, so what follows it must not count on the block having run through.

    Raises InputError for an unknown ending, a folder that is missing or not writable, and a disk that fills.
    """
    kind = format or format_of(path)
    if kind not in ("jsonl", "csv", "tsv", "parquet"):
        raise InputError(f"{path}: no format is called {kind!r}; known: jsonl, csv, tsv, parquet")
    if str(path) == "-":
        if kind != "jsonl":
            raise InputError(f"standard output: only JSON lines can be written to it, not {kind}; name a file")
        with _standard_output() as writer:
            yield writer
        return
    name = str(path)
    with replacing(path) as handle:
        packed = gzip.GzipFile("", "wb", 6, handle, mtime=0) if name.lower().endswith(".gz") else None
        stream = cast(BinaryIO, packed) if packed is not None else handle
        sink: _Sink
        if kind == "jsonl":
            sink = _JsonLines(stream)
        elif kind == "parquet":
            sink = _Parquet(name, stream, columns)
        else:
            sink = _Cells(name, stream, "," if kind == "csv" else "\t", columns)
        try:
            yield Writer(name, sink)
            try:
                sink.finish()
                if packed is not None:
                    packed.close()
            except OSError as error:
                raise failure(name, error) from error
        except BaseException:
            # Else the garbage collector would close these later, and complain about a file that is gone.
            with suppress(Exception):
                sink.abandon()
            if packed is not None:
                with suppress(Exception):
                    packed.close()
            raise


def write_table(path: Path, rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> None:
    """Write ``rows`` to ``path`` (its ending names the format); a value that a row lacks is left empty."""
    with open_writer(path, columns=columns) as writer:
        for row in rows:
            writer.write(row)


@contextmanager
def _standard_output() -> Iterator[Writer]:
    if sys.stdout is None:
        raise InputError("standard output: it is closed; name a file")
    sys.stdout.flush()
    sink = _JsonLines(sys.stdout.buffer, flush_every=_FLUSH_EVERY)
    try:
        try:
            yield Writer("standard output", sink)
        except _ReaderGoneError:
            raise
        except BaseException:
            with suppress(OSError):
                sys.stdout.buffer.flush()
            raise
        try:
            sink.finish()
        except BrokenPipeError:
            raise _ReaderGoneError from None
        except OSError as error:
            raise failure("standard output", error) from error
    except _ReaderGoneError:
        # Not all of it is written, so that what comes after (a mean over all records) must not be told.
        raise BrokenPipeError from None


# --- JSON lines


def _json_default(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if type(value).__name__ in ("Decimal", "UUID", "timedelta"):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no JSON form")


def _json(value: Any, ensure_ascii: bool = False) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False, default=_json_default)


class _JsonLines:
    def __init__(self, stream: BinaryIO, flush_every: int = 0) -> None:
        self._stream = stream
        self._flush_every = flush_every
        self._count = 0

    def write(self, record: dict[str, Any]) -> None:
        try:
            line = _json(record).encode("utf-8")
        except UnicodeEncodeError:
            line = _json(record, ensure_ascii=True).encode("ascii")
        self._stream.write(line + b"\n")
        self._count += 1
        if self._flush_every and self._count % self._flush_every == 0:
            self._stream.flush()

    def finish(self) -> None:
        self._stream.flush()

    def abandon(self) -> None:
        pass


# --- CSV and TSV


def _escaped(value: Any) -> Any:
    """``value`` with each lone surrogate as the six characters of its escape, for formats that can't hold it."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_escaped(key): _escaped(item) for key, item in value.items()}
    return [_escaped(item) for item in value] if isinstance(value, list) else value


def _refuse_unknown(name: str, record: Mapping[str, Any], columns: Sequence[str]) -> None:
    unknown = [key for key in record if key not in columns]
    if unknown:
        raise InputError(
            f"{name}: a record has the field {unknown[0]!r}, for which the file has no column; write .jsonl instead"
        )


class _Cells:
    def __init__(self, name: str, stream: BinaryIO, delimiter: str, columns: Sequence[str] | None) -> None:
        self._name = name
        self._stream = stream
        self._columns = list(columns) if columns is not None else None
        self._buffer = io.StringIO(newline="")
        # With CRLF as its line end the csv module quotes both characters; the line itself is then ended with LF.
        self._writer = csv.writer(self._buffer, delimiter=delimiter, lineterminator="\r\n")
        self._started = False

    def _put(self, cells: list[str]) -> None:
        self._writer.writerow(cells)
        line = self._buffer.getvalue().removesuffix("\r\n") + "\n"
        self._buffer.seek(0)
        self._buffer.truncate()
        self._stream.write(line.encode("utf-8", "backslashreplace"))

    def _start(self) -> list[str]:
        columns = self._columns or []
        if not self._started:
            self._started = True
            self._put(columns)
        return columns

    def write(self, record: dict[str, Any]) -> None:
        if self._columns is None:
            self._columns = list(record)
        columns = self._start()
        _refuse_unknown(self._name, record, columns)
        self._put([_cell(record.get(column)) for column in columns])

    def finish(self) -> None:
        if self._columns:
            self._start()
        self._stream.flush()

    def abandon(self) -> None:
        pass


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float | list | dict):
        return _json(_escaped(value))
    return str(_json_default(value))


# --- Parquet


class _Parquet:
    def __init__(self, name: str, stream: BinaryIO, columns: Sequence[str] | None) -> None:
        import pyarrow

        self._pa = pyarrow
        self._name = name
        self._stream = stream
        self._columns = list(columns) if columns is not None else None
        self._records: list[dict[str, Any]] = []
        self._characters = 0
        self._schema: Any = None
        self._file: Any = None

    def write(self, record: dict[str, Any]) -> None:
        columns = self._schema.names if self._schema is not None else self._columns
        if columns is not None:
            _refuse_unknown(self._name, record, columns)
        self._records.append(record)
        self._characters += sum(len(value) for value in record.values() if isinstance(value, str))
        if len(self._records) >= _CHUNK_RECORDS or self._characters >= _CHUNK_CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        import pyarrow.parquet as pq

        if self._schema is None:
            columns = (
                self._columns if self._columns is not None else list(dict.fromkeys(k for r in self._records for k in r))
            )
            self._schema = self._pa.schema([(column, self._infer(column)) for column in columns])
            self._file = pq.ParquetWriter(self._stream, self._schema)
        arrays = [self._array(column.name, column.type) for column in self._schema]
        if self._records:
            self._file.write_table(self._pa.Table.from_arrays(arrays, schema=self._schema))
        self._records, self._characters = [], 0

    def _infer(self, column: str) -> Any:
        if column in _NUMBER_COLUMNS:
            return self._pa.float64()
        values = [_escaped(record.get(column)) for record in self._records]
        try:
            found = self._pa.infer_type(values)
        except (self._pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise self._misfit(column, "has values of different types") from error
        return self._pa.string() if _untold(self._pa, found) else found

    def _array(self, column: str, kind: Any) -> Any:
        values = [_escaped(record.get(column)) for record in self._records]
        if kind == self._pa.string():
            values = [None if value is None else _cell(value) for value in values]
        lost = next((value for value in values if not _fits(self._pa, value, kind)), None)
        if lost is not None:
            raise self._misfit(column, f"holds {kind} by the first records, and a later value is {_json(lost)[:80]}")
        try:
            return self._pa.array(values, type=kind)
        except (self._pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise self._misfit(
                column, f"holds {kind} by the first records, and a value does not fit ({error})"
            ) from error

    def _misfit(self, column: str, reason: str) -> InputError:
        # pyarrow's messages may have several lines.
        return InputError(f"{self._name}: the column {column!r} {' '.join(reason.split())}; write .jsonl instead")

    def finish(self) -> None:
        if self._records or self._schema is None:
            self._flush()
        self._file.close()
        self._stream.flush()

    def abandon(self) -> None:
        if self._file is not None:
            self._file.close()


def _untold(pa: Any, kind: Any) -> bool:
    """Whether a type leaves open what it holds, at any depth: nothing but nulls, empty lists or empty objects."""
    if pa.types.is_null(kind):
        return True
    if pa.types.is_list(kind):
        return _untold(pa, kind.value_type)
    if pa.types.is_struct(kind):
        return kind.num_fields == 0 or any(_untold(pa, part.type) for part in kind)
    return False


def _fits(pa: Any, value: Any, kind: Any) -> bool:
    """Whether ``value`` can be stored as ``kind`` with nothing lost.

    pyarrow silently drops keys that a struct does not have, and cuts 0.5 to 0 where the column holds integers.
    """
    types = pa.types
    if value is None:
        return True
    if isinstance(value, dict):
        return types.is_struct(kind) and all(
            kind.get_field_index(key) >= 0 and _fits(pa, item, kind.field(key).type) for key, item in value.items()
        )
    if isinstance(value, list):
        return types.is_list(kind) and all(_fits(pa, item, kind.value_type) for item in value)
    if isinstance(value, bool):
        return types.is_boolean(kind)
    if isinstance(value, int):
        return types.is_integer(kind) or types.is_floating(kind)
    if isinstance(value, float):
        return types.is_floating(kind)
    # Text, dates and decimals: pyarrow refuses what does not fit.
    return not (isinstance(value, str) and not types.is_string(kind))

"""CSV and TSV as records: which delimiter and quoting a file has, and which lines a broken record takes with it."""

import csv
import functools
import io
import itertools
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from negsample.errors import InputError, RecordError
from negsample.io.read import Row, display, reading

QUOTINGS = ("auto", "none", "standard")
# 256 million characters: far above any document, far below what would exhaust memory when a quote is never closed.
_FIELD_LIMIT = 1 << 28
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
# What stands between cells where the delimiter that the file's name tells leaves the header in one piece.
_DELIMITERS = ";\t,|"
_UNQUOTED = "--tsv-quoting none reads each line of a TSV as one record"

_tsv_quoting = "auto"


def set_tsv_quoting(value: str) -> None:
    """Set how tab-separated files are read from now on: ``"auto"``, ``"none"`` (a quote is a letter) or ``"standard"``."""
    global _tsv_quoting
    if value not in QUOTINGS:
        raise InputError(f"--tsv-quoting {value}: give {', '.join(QUOTINGS)}")
    _tsv_quoting = value


@functools.cache
def _tell(note: str) -> None:
    """Say ``note`` on standard error, once, however often the file is read."""
    print(f"note: {note}", file=sys.stderr, flush=True)


class _Tape:
    """The lines of a text as ``csv.reader`` takes them; ``lines`` are those of the present record, ``last`` its last one."""

    def __init__(self, text: Iterator[str]) -> None:
        self._text = text
        self.lines: list[str] = []
        self.last = 0

    def __iter__(self) -> "_Tape":
        return self

    def __next__(self) -> str:
        self.lines.append(next(self._text))
        self.last += 1
        return self.lines[-1]

    def next_cells(self, reader: Iterator[list[str]]) -> list[str] | None:
        """The next record of ``reader``, which reads this tape; None at the end."""
        self.lines = []
        # The limit belongs to the process, so it is raised for the length of one call only.
        before = csv.field_size_limit(_FIELD_LIMIT)
        try:
            return next(reader, None)
        finally:
            csv.field_size_limit(before)


@contextmanager
def _lines_of(path: str | Path) -> Iterator[Iterator[str]]:
    with reading(path) as stream:
        # Bytes that are not UTF-8 become surrogates, so that they spoil their own record and not the whole file.
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
        try:
            yield text
        finally:
            # Else the wrapper, once forgotten, would close standard input.
            text.detach()


def read_csv(path: str | Path, named: str) -> Iterator[Row]:
    """The records of a file whose name tells the delimiter ``named``, the first one being the header.

    Where ``named`` leaves the header in one piece, the delimiter is the first of semicolon, tab, comma and bar that does
    not, or what a first line ``sep=;`` says. A tab-separated file is read with quotes as letters where `set_tsv_quoting`
    says so, or where fewer records are broken that way; it is read twice to find out (a pipe is not), and it is told.
    """
    name = display(path)
    with _lines_of(path) as text:
        begin = []
        for line in text:
            begin.append(line)
            if line.strip():
                break
        delimiter = _delimiter(begin, named)
        quoting = _quoting(path, name) if delimiter == "\t" else csv.QUOTE_MINIMAL
        tape = _Tape(itertools.chain(begin, text))
        yield from _rows(name, tape, csv.reader(tape, delimiter=delimiter, quoting=quoting, strict=True), delimiter)


def _delimiter(begin: list[str], named: str) -> str:
    """What separates the cells of the header, the last of the lines ``begin``; a line ``sep=;`` is made blank."""
    line = begin[-1] if begin else ""
    if told := re.fullmatch("sep=(.)[\r\n]*", line):
        begin[-1] = "\n"
        return told[1]
    split = (d for d in (named, *_DELIMITERS) if len(next(csv.reader([line], delimiter=d), [])) > 1)
    return next(split, named)


def _quoting(path: str | Path, name: str) -> Literal[0, 3]:
    """How a tab-separated file is to be read (csv's constants)."""
    if _tsv_quoting == "none":
        return csv.QUOTE_NONE
    if _tsv_quoting == "auto" and os.path.isfile(path) and _unquoted(path):
        _tell(f"{name}: its quotes don't enclose cells, so that each line is read as one record")
        return csv.QUOTE_NONE
    return csv.QUOTE_MINIMAL


def _unquoted(path: str | Path) -> bool:
    """Whether quotes in a tab-separated file break it as quotes of cells, and more records than lines as records would."""
    with _lines_of(path) as text:
        tape = _Tape(text)
        reader = csv.reader(tape, delimiter="\t", strict=True)
        columns, errors, uneven, uneven_lines = 0, 0, 0, 0
        while True:
            try:
                cells = tape.next_cells(reader)
            except csv.Error:
                errors, cells = errors + 1, []
            if cells is None:
                return errors > 0 and uneven_lines < errors + uneven
            lines = [line for line in tape.lines if line.strip("\r\n")]
            columns = columns or len(cells)
            uneven += bool(cells) and len(cells) != columns
            uneven_lines += sum(line.count("\t") != columns - 1 for line in lines)


def _rows(name: str, tape: _Tape, reader: Any, delimiter: str) -> Iterator[Row]:
    """The rows of a ``csv.reader`` of ``tape``, whose first record is the header."""
    header: list[str] | None = None
    merged: list[str] = []
    while True:
        where = f"{name}, line {tape.last + 1}"
        try:
            cells = tape.next_cells(reader)
        except csv.Error as error:
            reason = _reason(where, str(error), tape)
            if header is None:
                raise reason from error
            yield Row(where, dict.fromkeys(header), reason)
            continue
        if cells is None:
            break
        if not cells:
            continue
        if header is None:
            header = _checked_header(where, cells)
            continue
        # Commas stand in any text; as many tabs in each of several lines are rather those of rows.
        if (
            delimiter != ","
            and len(tape.lines) > 1
            and {line.count(delimiter) for line in tape.lines} == {len(header) - 1}
        ):
            merged.append(where)
        yield _row(where, header, cells)
    if merged:
        _tell(
            f"{merged[0]}: a quoted field holds what look like rows of their own ({len(merged)} such records in the "
            f"file); if they are, {_UNQUOTED}"
        )


def _reason(where: str, message: str, tape: _Tape) -> RecordError:
    """The error of one broken record; raises InputError where the records after it can't be found either."""
    if "unexpected end of data" in message:
        raise InputError(
            f"{where}: a quoted field begins here and never ends; close the quote or double it, or {_UNQUOTED}"
        )
    if "field larger" in message:
        raise InputError(f"{where}: a field of more than {_FIELD_LIMIT} characters; close its quote or shorten it")
    # The lines that a stray quote has taken in are lost with it.
    lost = f", lines {tape.last - len(tape.lines) + 1} to {tape.last}" if len(tape.lines) > 1 else ""
    return RecordError(
        where, f"not a CSV record ({message}{lost})", f"double each quote inside a quoted field, or {_UNQUOTED}"
    )


def _checked_header(where: str, cells: list[str]) -> list[str]:
    if any(_ESCAPED_BYTE.search(cell) for cell in cells):
        raise InputError(f"{where}: the header is not UTF-8; save the file as UTF-8")
    twice = sorted({cell for cell in cells if cells.count(cell) > 1})
    if twice:
        raise InputError(f"{where}: the header names {', '.join(map(repr, twice))} more than once; rename one")
    return cells


def _row(where: str, header: list[str], cells: list[str]) -> Row:
    fields: dict[str, Any] = dict(zip(header, itertools.chain(cells, itertools.repeat(None)), strict=False))
    if len(cells) != len(header):
        reason = f"wrong number of cells ({len(cells)}, the header has {len(header)})"
        return Row(where, fields, RecordError(where, reason, "quote fields that hold the separator or a line break"))
    broken = [key for key, cell in fields.items() if _ESCAPED_BYTE.search(cell)]
    if broken:
        fields.update(dict.fromkeys(broken))
        return Row(where, fields, RecordError(where, f"field {broken[0]!r} is not UTF-8", "save the file as UTF-8"))
    return Row(where, fields)

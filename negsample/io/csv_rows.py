"""CSV and TSV as records: which delimiter and quoting a file has, and which lines a broken record takes with it."""

import csv
import functools
import itertools
import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from negsample.errors import InputError, RecordError
from negsample.io.lines import NOT_UTF8, display, reading
from negsample.records import Row
from negsample.terminal import say

# 256 million characters: far above any document, far below what would exhaust memory when a quote is never closed.
_FIELD_LIMIT = 1 << 28
# What stands between cells where the delimiter that the file's name tells leaves the header in one piece.
_DELIMITERS = ";\t,|"


def read_csv(path: str | Path, named: str) -> Iterator[Row]:
    """The records of a file whose name tells the delimiter ``named``, the first one being the header.

    Where ``named`` leaves the header in one piece, the delimiter is the first of semicolon, tab, comma and bar that does
    not, or what a first line ``sep=;`` says. In a tab-separated file a quote is a letter where fewer records are broken
    that way; it is read twice to find out (a pipe is not), and it is told.
    """
    csv.field_size_limit(max(_FIELD_LIMIT, csv.field_size_limit()))
    name = display(path)
    with reading(path, newline="") as text:
        begin = []
        for line in text:
            begin.append(line)
            if line.strip():
                break
        delimiter = _delimiter(begin, named)
        plain = delimiter == "\t" and os.path.isfile(path) and _unquoted(path, name)
        if plain:
            _tell(f"{name}: its quotes don't enclose cells, so that each line is read as one record")
        lines = itertools.chain(begin, text)
        quoting: Literal[0, 3] = csv.QUOTE_NONE if plain else csv.QUOTE_MINIMAL
        yield from _rows(name, csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True))


@functools.cache
def _tell(note: str) -> None:
    """Say ``note`` on standard error, once, however often the file is read."""
    say(f"note: {note}", error=True)


def _delimiter(begin: list[str], named: str) -> str:
    """What separates the cells of the header, the last of the lines ``begin``; a line ``sep=;`` is made blank."""
    line = begin[-1] if begin else ""
    if told := re.fullmatch("sep=(.)[\r\n]*", line):
        begin[-1] = "\n"
        return told[1]
    split = (d for d in (named, *_DELIMITERS) if len(next(csv.reader([line], delimiter=d), [])) > 1)
    return next(split, named)


def _unquoted(path: str | Path, name: str) -> bool:
    """Whether a tab-separated file has fewer broken records with each line as one than with its quotes around cells."""
    with reading(path, newline="") as text:
        if not any('"' in line for line in text):
            return False

    def broken(quoting: Literal[0, 3]) -> float:
        count = 0
        with reading(path, newline="") as text, suppress(InputError):
            for row in _rows(name, csv.reader(text, delimiter="\t", quoting=quoting, strict=True)):
                lines = "\t".join(cell or "" for cell in row.fields.values()).splitlines()
                # Rows that two stray quotes have merged.
                merged = len(lines) > 1 and all(line.count("\t") == len(row.fields) - 1 for line in lines if line)
                count += row.error is not None or merged
            return count
        return math.inf  # it can't be read on

    return broken(csv.QUOTE_NONE) < broken(csv.QUOTE_MINIMAL)


def _rows(name: str, reader: Any) -> Iterator[Row]:
    """The rows of a ``csv.reader``, whose first record is the header."""
    header: list[str] | None = None
    while True:
        first = reader.line_num + 1
        where = f"{name}, line {first}"
        try:
            cells = next(reader, None)
        except csv.Error as error:
            broken = _broken(where, str(error), first, reader.line_num)
            if header is None:
                raise broken from error
            yield Row(where, dict.fromkeys(header), broken)
            continue
        if cells is None:
            return
        if not cells:
            continue
        if header is None:
            header = _checked_header(where, cells)
        else:
            yield _row(where, header, cells)


def _broken(where: str, message: str, first: int, last: int) -> RecordError:
    """The error of one broken record; raises InputError where the records after it can't be found either."""
    if "unexpected end of data" in message:
        raise InputError(f"{where}: a quoted field begins here and never ends; close the quote or double it")
    if "field larger" in message:
        raise InputError(f"{where}: a field of more than {_FIELD_LIMIT} characters; close its quote or shorten it")
    # The lines that a stray quote has taken in are lost with it.
    lost = f", lines {first} to {last}" if last > first else ""
    return RecordError(where, f"not a CSV record ({message}{lost})", "double each quote inside a quoted field")


def _checked_header(where: str, cells: list[str]) -> list[str]:
    if any(NOT_UTF8.search(cell) for cell in cells):
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
    broken = [key for key, cell in fields.items() if NOT_UTF8.search(cell)]
    if broken:
        fields.update(dict.fromkeys(broken))
        return Row(where, fields, RecordError(where, f"field {broken[0]!r} is not UTF-8", "save the file as UTF-8"))
    return Row(where, fields)

"""A file or a pipe opened as text, whatever its packing and encoding; text files whose lines belong together; CSV and TSV."""

import csv
import functools
import gzip
import io
import itertools
import json
import math
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, Literal

from negsample.errors import InputError, RecordError
from negsample.io.files import explained, failure
from negsample.records import Row
from negsample.terminal import say

# What a byte that is not UTF-8 has become.
NOT_UTF8 = re.compile("[\udc80-\udcff]")


def display(path: str | Path) -> str:
    """``path`` as messages name it."""
    return "standard input" if str(path) == "-" else str(path)


def is_pipe(path: str | Path) -> bool:
    """Whether ``path`` can be read only once: standard input, a named pipe, bash's ``<(…)``."""
    if str(path) == "-":
        return True
    try:
        return not stat.S_ISREG(mode := os.stat(path).st_mode) and not stat.S_ISDIR(mode)
    except OSError:
        return False


def check_exists(path: str | Path) -> None:
    """Raise InputError where ``path`` is not there, or is a folder."""
    if str(path) == "-":
        return
    with explained(str(path)):
        os.stat(path)
    if os.path.isdir(path):
        raise InputError(f"{path}: is a folder; name a file")


@contextmanager
def reading(path: str | Path, newline: str = "\n") -> Iterator[io.TextIOWrapper]:
    """The text of ``path`` (``"-"``: standard input), unpacked where gzipped; failures become InputError.

    It is UTF-8, or UTF-16 or UTF-32 where zeros among the first bytes (or a mark) tell so. A byte that is not UTF-8
    becomes a lone surrogate (``NOT_UTF8``), so that it spoils its own record and not the whole file. ``newline``: as
    for ``open``.
    """
    name = display(path)
    raw: IO[bytes] | None = None
    text: io.TextIOWrapper | None = None
    try:
        if str(path) == "-":
            if sys.stdin is None:
                raise InputError("standard input: it is closed; name a file or pipe the records in")
            stream: Any = sys.stdin.buffer
        else:
            stream = raw = open(path, "rb")  # noqa: SIM115 - closed below; standard input must stay open
        if str(path).lower().endswith(".gz") or _begin(stream)[:2] == b"\x1f\x8b":
            stream = gzip.GzipFile(fileobj=stream, mode="rb")
        encoding = json.detect_encoding(_begin(stream))
        encoding = "utf-8-sig" if encoding == "utf-8" else encoding
        text = io.TextIOWrapper(stream, encoding, "surrogateescape", newline)
        yield text
    except EOFError as error:
        raise InputError(f"{name}: the gzip file is cut short; get it again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{name}: not a sound gzip file ({error}); get it again") from error
    except UnicodeError as error:
        raise InputError(f"{name}: not sound UTF-16 ({error}); save it as UTF-8") from None
    except OSError as error:
        raise failure(name, error) from error
    finally:
        if text is not None:
            # Else the wrapper, once forgotten, would close standard input.
            text.detach()
        if raw is not None:
            raw.close()


def _begin(stream: Any) -> bytes:
    """The first bytes of ``stream``, which stay to be read; none where it can't be looked into."""
    return bytes(stream.peek(4)[:4]) if hasattr(stream, "peek") else b""


def open_text(path: str | Path) -> Iterator[str]:
    """The lines of a text file in order, without their ends (LF or CRLF); blank lines are kept.

    Lines end at LF only: form feeds, U+2028 and the like stay inside a line, as line-aligned files need. ``.gz`` is
    unpacked. Raises InputError for a missing file (at the call), an empty one, and a line that is not UTF-8.
    """
    check_exists(path)
    return _text_lines(path)


def _text_lines(path: str | Path) -> Iterator[str]:
    number = 0
    with reading(path) as text:
        for number, line in enumerate(text, start=1):
            if NOT_UTF8.search(line):
                raise InputError(f"{display(path)}, line {number}: not UTF-8; save the file as UTF-8")
            yield line.removesuffix("\n").removesuffix("\r")
    if number == 0:
        raise InputError(f"{display(path)}: no lines; give a file with at least one")


def aligned_lines(paths: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number from 1, a line of each file). Raises InputError where a file ends before another, or is empty."""
    missing = object()
    for number, lines in enumerate(zip_longest(*map(open_text, paths), fillvalue=missing), start=1):
        if missing in lines:
            short = display(paths[lines.index(missing)])
            other = display(next(path for path, line in zip(paths, lines, strict=True) if line is not missing))
            raise InputError(
                f"{short} ends after line {number - 1} but {other} goes on; give one summary a document, line by line"
            )
        yield number, [str(line) for line in lines]


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
            if "unexpected end of data" in str(error):
                told = "a quoted field begins here and never ends; close the quote or double it"
                raise InputError(f"{where}: {told}") from None
            if "field larger" in str(error):
                told = f"a field of more than {_FIELD_LIMIT} characters; close its quote or shorten it"
                raise InputError(f"{where}: {told}") from None
            # The lines that a stray quote has taken in are lost with it.
            lost = f", lines {first} to {reader.line_num}" if reader.line_num > first else ""
            reason = f"not a CSV record ({error}{lost})"
            broken = RecordError(where, reason, "double each quote inside a quoted field")
            if header is None:
                raise InputError(str(broken)) from error  # no record, which could be passed over
            yield Row(where, dict.fromkeys(header), broken)
            continue
        if cells is None:
            return
        if not cells:
            continue
        if header is None:
            if any(NOT_UTF8.search(cell) for cell in cells):
                raise InputError(f"{where}: the header is not UTF-8; save the file as UTF-8")
            if twice := sorted({cell for cell in cells if cells.count(cell) > 1}):
                raise InputError(f"{where}: the header names {', '.join(map(repr, twice))} more than once; rename one")
            header = cells
        else:
            yield _row(where, header, cells)


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

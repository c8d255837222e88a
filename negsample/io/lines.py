"""A file or a pipe opened as text, whatever its packing and encoding; text files whose lines belong together."""

import gzip
import io
import json
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any

from negsample.errors import InputError
from negsample.io.files import explained, failure

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

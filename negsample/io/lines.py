"""Text files whose lines belong together: line i of one stands with line i of the others."""

import os
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from negsample.errors import InputError
from negsample.io.read import check_exists, display, reading


def open_text(path: str | Path) -> Iterator[str]:
    """The lines of a UTF-8 text file in order, without their ends (LF or CRLF); blank lines are kept.

    Lines end at LF only: form feeds, U+2028 and the like stay inside a line, as line-aligned files need. ``.gz`` is
    unpacked. Raises InputError for a missing file (at the call), an empty one, and a line that is not UTF-8.
    """
    check_exists(path)
    return _text_lines(path)


def _text_lines(path: str | Path) -> Iterator[str]:
    name = display(path)
    number = 0
    with reading(path) as stream:
        for number, line in enumerate(stream, start=1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError:
                raise InputError(f"{name}, line {number}: not UTF-8; save the file as UTF-8") from None
            yield text.removesuffix("\n").removesuffix("\r")
    if number == 0:
        raise InputError(f"{name}: no lines; give a file with at least one")


def aligned_lines(paths: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number from 1, a line of each file). Raises InputError where a file ends before another, or is empty."""
    missing = object()
    for number, lines in enumerate(zip_longest(*map(open_text, paths), fillvalue=missing), start=1):
        if missing in lines:
            short = paths[lines.index(missing)]
            other = paths[next(i for i, line in enumerate(lines) if line is not missing)]
            raise InputError(f"{_unlike(short, other, number)}; give one summary a document, line by line")
        yield number, [str(line) for line in lines]


def _unlike(short: str, other: str, number: int) -> str:
    """Say what is wrong with two files, of which ``short`` has no line ``number``."""
    # Standard input and other pipes can't be read again to be counted.
    if all(path != "-" and os.path.isfile(path) for path in (short, other)):
        counts = [(path, sum(1 for _ in open_text(path))) for path in (short, other)]
        return " but ".join(f"{path} has {count} lines" for path, count in counts)
    ended, goes_on = ("standard input" if path == "-" else path for path in (short, other))
    return f"{ended} ends after line {number - 1} but {goes_on} goes on"

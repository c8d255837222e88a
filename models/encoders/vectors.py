"""Tables of word vectors: read from GloVe and word2vec files, saved as ``.npy`` beside a word list."""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from negsample.errors import InputError
from negsample.io.files import atomic_text, replacing

_BLOCK_LINES = 4096
_BLOCK_BYTES = 1 << 24
_LONGEST_WORD = 1 << 16
Block = tuple[list[str], np.ndarray]
"""Words and their rows, float32 [words, dim]."""


@dataclass(frozen=True, eq=False)
class WordVectors:
    """``index``: word → row of ``matrix`` (float32 [words, dim], finite; maybe memory-mapped).

    ``digest``: SHA-256 over words and numbers, the same whatever file format they came from.
    ``repeated``: rows of the file left out because their word had stood there before.
    """

    index: dict[str, int]
    matrix: np.ndarray
    digest: str
    repeated: int = 0

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])


def table(words: Sequence[str], matrix: np.ndarray) -> WordVectors:
    """The table of ``words`` and their rows in ``matrix`` [len(words), dim]; a repeated word keeps its first."""
    index: dict[str, int] = {}
    rows: list[int] = []
    for row, word in enumerate(words):
        if index.setdefault(word, len(rows)) == len(rows):
            rows.append(row)
    if len(rows) < len(words):
        matrix = matrix[rows]
    hasher = hashlib.sha256(json.dumps(list(index), ensure_ascii=True).encode())
    hasher.update(str(matrix.shape).encode())
    for start in range(0, len(matrix), _BLOCK_LINES):
        hasher.update(np.ascontiguousarray(matrix[start : start + _BLOCK_LINES], dtype="<f4").data)
    return WordVectors(index, matrix, hasher.hexdigest(), len(words) - len(rows))


def read_vectors(path: Path, limit: int = 0) -> WordVectors:
    """Read a table of word vectors; ``limit`` > 0 takes only the first rows (files are sorted by frequency).

    ``path`` is a text file (``word v1 … vd`` a line, with or without the line ``words dim`` before them: GloVe,
    fastText, word2vec text), a word2vec binary file, either of them gzipped, or a folder written by ``save_vectors``.
    Words are UTF-8, undecodable bytes become U+FFFD. Raises InputError with the line or byte where a file is damaged.
    """
    path = Path(path).expanduser()
    if limit < 0:
        raise InputError(f"limit={limit} is negative; give the number of rows to read, or 0 for all")
    if path.is_dir():
        return _read_saved(path, limit)
    try:
        with cast(BinaryIO, gzip.open(path) if path.suffix == ".gz" else path.open("rb")) as stream:
            first = stream.readline(_LONGEST_WORD)
            size = _header(first)
            binary = size is not None and not _is_text_row(stream.readline(_LONGEST_WORD))
            stream.seek(len(first) if size else 0)
            if size and binary:
                words, matrix = _collected(_binary_blocks(stream, path, size, len(first), limit))
            else:
                words, matrix = _collected(_text_blocks(stream, path, size, limit))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give the path of a word-vector file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read ({error}); download it again") from error
    if not words:
        raise InputError(f"{path}: holds no word vectors; expected lines 'word v1 … vd'")
    return table(words, matrix)


def _header(line: bytes) -> tuple[int, int] | None:
    """(words, dim) where the line is a word2vec header."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields) and int(fields[1]) > 0:
        return int(fields[0]), int(fields[1])
    return None


def _is_text_row(line: bytes) -> bool:
    """Whether the line after a header reads as ``word v1 …`` (binary files have raw bytes there)."""
    fields = line.split()
    return not fields or (len(fields) > 1 and _floats(fields[1:][-1:]) is not None)


def _floats(fields: Sequence[bytes]) -> list[float] | None:
    try:
        return [float(field) for field in fields]
    except ValueError:
        return None


def _collected(blocks: Iterable[Block]) -> Block:
    """Join ``blocks``; the matrix grows by a quarter in place, so that reading peaks near the size of the result."""
    words: list[str] = []
    matrix = np.empty((0, 0), dtype=np.float32)
    for more, block in blocks:
        needed = len(words) + len(more)
        if not words:
            matrix = np.empty((max(needed, _BLOCK_LINES), block.shape[1]), dtype=np.float32)
        elif needed > len(matrix):
            matrix.resize((max(needed, len(matrix) * 5 // 4), matrix.shape[1]), refcheck=False)
        matrix[len(words) : needed] = block
        words += more
    matrix.resize((len(words), matrix.shape[1]), refcheck=False)
    return words, matrix


def _text_blocks(stream: BinaryIO, path: Path, size: tuple[int, int] | None, limit: int) -> Iterator[Block]:
    """Yield the rows of a text file from the stream's place on; ``size`` is the header that was read, if there was one."""
    before, dim = (1, size[1]) if size else (0, 0)
    count = 0
    while not limit or count < limit:
        wanted = min(_BLOCK_LINES, limit - count) if limit else _BLOCK_LINES
        lines = [line.rstrip() for line in islice(stream, wanted)]
        if not lines:
            break
        dim = dim or len(lines[0].split()) - 1
        if dim < 1:
            raise InputError(f"{path}:1: expected 'word v1 … vd', found one field; is this a word-vector file?")
        words, block = _parse_lines(lines, dim, path, before)
        count += len(words)
        before += len(lines)
        yield words, block
    if size and not limit and count != size[0]:
        raise InputError(f"{path}: the header promises {size[0]} words, the file has {count}; download it again")


def _parse_lines(lines: list[bytes], dim: int, path: Path, before: int) -> tuple[list[str], np.ndarray]:
    """Words and float32 [n, dim] of ``lines``, the first being line ``before + 1``; blank lines are passed over."""
    heads, tails = [], []
    for number, line in enumerate(lines, before + 1):
        if not line:
            continue
        head, _, tail = line.partition(b" ")
        if tail.count(b" ") != dim - 1 or b"\t" in line:
            # Tabs, doubled spaces, or a word with spaces in it (glove.840B has some): the numbers come last.
            fields = line.split()
            if len(fields) <= dim:
                raise InputError(f"{path}:{number}: expected a word and {dim} numbers, found {len(fields)} fields")
            head, tail = b" ".join(fields[:-dim]), b" ".join(fields[-dim:])
        heads.append(head)
        tails.append(tail)
    block = _parse_numbers(b" ".join(tails), len(tails) * dim)
    if block is None:
        # Something Arrow does not read as a number: Python, which reads "+1" as well, finds the line that is wrong.
        filled = (number for number, line in enumerate(lines, before + 1) if line)
        block = np.concatenate([_parse_row(tail, path, number) for number, tail in zip(filled, tails, strict=True)])
    return [head.decode("utf-8", "replace") for head in heads], block.reshape(-1, dim)


def _parse_row(tail: bytes, path: Path, number: int) -> np.ndarray:
    values = _floats(tail.split(b" "))
    with np.errstate(over="ignore"):
        row = None if values is None else np.array(values, dtype=np.float32)
    if row is None or not np.isfinite(row).all():
        raise InputError(f"{path}:{number}: a word must be followed by finite numbers; correct the line")
    return row


def _parse_numbers(text: bytes, count: int) -> np.ndarray | None:
    """``count`` numbers, one space between each two, as float32; None where one is not a finite number."""
    import pyarrow

    if not count:
        return np.empty(0, dtype=np.float32)
    # Arrow parses a column of strings ten times as fast as numpy or Python parse text; its layout is the strings end to
    # end and where each begins.
    data = np.frombuffer(text, dtype=np.uint8)
    is_space = data == ord(" ")
    spaces = np.flatnonzero(is_space)
    ends = np.concatenate([[0], spaces - np.arange(len(spaces)), [len(data) - len(spaces)]]).astype(np.int64)
    if len(ends) != count + 1:
        return None
    buffers = [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(data[~is_space])]
    strings = pyarrow.Array.from_buffers(pyarrow.large_utf8(), count, buffers)
    try:
        numbers = strings.cast(pyarrow.float32()).to_numpy(zero_copy_only=False)
    except pyarrow.ArrowInvalid:
        return None
    return numbers if np.isfinite(numbers).all() else None


def _binary_blocks(stream: BinaryIO, path: Path, size: tuple[int, int], offset: int, limit: int) -> Iterator[Block]:
    """Yield the rows of a word2vec binary file: each the word, a space, ``dim`` little-endian float32, and often a line feed."""
    total, dim = size
    wanted = min(total, limit) if limit else total
    width = 4 * dim
    data, place, count = b"", 0, 0
    while count < wanted:
        more = stream.read(max(_BLOCK_BYTES, width))
        offset += place
        data, place = data[place:] + more, 0
        words: list[str] = []
        rows: list[np.ndarray] = []
        while count + len(words) < wanted:
            space = data.find(b" ", place, place + _LONGEST_WORD)
            if space < 0 or space + 1 + width > len(data):
                break
            words.append(data[place:space].lstrip(b"\n").decode("utf-8", "replace"))
            rows.append(np.frombuffer(data, dtype="<f4", count=dim, offset=space + 1))
            place = space + 1 + width
        if rows:
            block = np.stack(rows)
            finite = np.isfinite(block).all(axis=1)
            if not finite.all():
                bad = int(np.argmin(finite))
                raise InputError(f"{path}: word {count + bad + 1} ({words[bad]!r}) has numbers that are not finite")
            count += len(words)
            yield words, block
        elif not more or len(data) > _LONGEST_WORD + width:
            raise InputError(
                f"{path}: byte {offset + place}: word {count + 1} of {total} is cut short or damaged; "
                "download the file again"
            )
    if wanted == total and (data[place:] + stream.read(1)).strip(b"\n"):
        raise InputError(
            f"{path}: byte {offset + place}: data after the last of {total} words; download the file again"
        )


def save_vectors(vectors: WordVectors, folder: Path) -> None:
    """Write ``vectors.npy`` (float32) and ``words.json`` (a list, in row order) into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / "vectors.npy") as stream:
        np.save(stream, np.asarray(vectors.matrix, dtype="<f4"), allow_pickle=False)
    atomic_text(folder / "words.json", json.dumps(list(vectors.index), ensure_ascii=False))


def _read_saved(folder: Path, limit: int) -> WordVectors:
    """What ``save_vectors`` wrote; the matrix is memory-mapped."""
    try:
        matrix = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
        words = json.loads((folder / "words.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{folder}: vectors.npy or words.json is missing or damaged ({error}); save it again"
        ) from error
    if not isinstance(words, list) or matrix.ndim != 2 or len(matrix) != len(words) or matrix.dtype != np.float32:
        raise InputError(f"{folder}: words.json and vectors.npy do not belong together; save them again")
    return table(words[:limit] if limit else words, matrix[:limit] if limit else matrix)

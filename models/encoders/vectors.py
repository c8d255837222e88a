"""Tables of word vectors: read from GloVe and word2vec files, saved as ``.npy`` beside a word list."""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from negsample.errors import InputError
from negsample.io.files import atomic_text, replacing

_BLOCK_LINES = 4096
_BLOCK_BYTES = 1 << 24
_LONGEST_WORD = 1 << 16
Row = tuple[str, np.ndarray]
"""A word and its numbers, float32 [dim]."""


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
        with (
            cast(BinaryIO, gzip.open(path) if path.suffix == ".gz" else path.open("rb")) as stream,
            np.errstate(over="ignore"),
        ):
            first = stream.readline(_LONGEST_WORD)
            size = _header(first)
            binary = size is not None and not _is_text_row(stream.readline(_LONGEST_WORD))
            stream.seek(len(first) if size else 0)
            if size and binary:
                words, matrix = _collected(_binary_rows(stream, path, size, len(first), limit))
            else:
                words, matrix = _collected(_text_rows(stream, path, size, limit))
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
    try:
        return not fields or (len(fields) > 1 and bool(np.array(fields[-1:], dtype=np.float32).size))
    except ValueError:
        return False


def _collected(rows: Iterable[Row]) -> tuple[list[str], np.ndarray]:
    """Join ``rows``; the matrix grows by a quarter in place, so that reading peaks near the size of the result."""
    words: list[str] = []
    matrix = np.empty((0, 0), dtype=np.float32)
    for word, numbers in rows:
        if len(words) == len(matrix):
            matrix.resize((max(_BLOCK_LINES, len(matrix) * 5 // 4), len(numbers)), refcheck=False)
        matrix[len(words)] = numbers
        words.append(word)
    matrix.resize((len(words), matrix.shape[1]), refcheck=False)
    return words, matrix


def _text_rows(stream: BinaryIO, path: Path, size: tuple[int, int] | None, limit: int) -> Iterator[Row]:
    """Yield the rows of a text file from the stream's place on; ``size`` is the header that was read, if there was one."""
    before, dim = (1, size[1]) if size else (0, 0)
    count = 0
    for number, line in enumerate(stream, before + 1):
        if limit and count == limit:
            return
        fields = line.split()
        if not fields:
            continue
        dim = dim or len(fields) - 1
        if not 1 <= dim < len(fields):
            told = f"a word and {dim} numbers" if dim else "'word v1 … vd'"
            raise InputError(
                f"{path}:{number}: expected {told}, found {len(fields)} fields; is this a word-vector file?"
            )
        try:
            row = np.array(fields[-dim:], dtype=np.float32)
        except ValueError:
            row = np.array([np.nan])
        if not np.isfinite(row).all():
            raise InputError(f"{path}:{number}: a word must be followed by finite numbers; correct the line")
        # A word may have spaces in it (glove.840B has some): the numbers come last.
        yield b" ".join(fields[:-dim]).decode("utf-8", "replace"), row
        count += 1
    if size and not limit and count != size[0]:
        raise InputError(f"{path}: the header promises {size[0]} words, the file has {count}; download it again")


def _binary_rows(stream: BinaryIO, path: Path, size: tuple[int, int], offset: int, limit: int) -> Iterator[Row]:
    """Yield the rows of a word2vec binary file: each the word, a space, ``dim`` little-endian float32, and often a line feed."""
    total, dim = size
    wanted = min(total, limit) if limit else total
    data, place = b"", 0
    for number in range(1, wanted + 1):
        space = data.find(b" ", place, place + _LONGEST_WORD)
        if space < 0 or space + 1 + 4 * dim > len(data):
            offset += place
            data, place = data[place:] + stream.read(max(_BLOCK_BYTES, 4 * dim)), 0
            space = data.find(b" ", 0, _LONGEST_WORD)
            if space < 0 or space + 1 + 4 * dim > len(data):
                raise InputError(
                    f"{path}: byte {offset}: word {number} of {total} is cut short or damaged; download the file again"
                )
        word = data[place:space].lstrip(b"\n").decode("utf-8", "replace")
        row = np.frombuffer(data, dtype="<f4", count=dim, offset=space + 1)
        if not np.isfinite(row).all():
            raise InputError(f"{path}: word {number} ({word!r}) has numbers that are not finite")
        yield word, row
        place = space + 1 + 4 * dim
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

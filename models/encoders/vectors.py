"""Tables of word vectors: read from GloVe and word2vec files, saved as ``.npy`` beside a word list."""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from negsample.errors import InputError
from negsample.io.files import atomic_text, replacing
from negsample.models.language.model_files import telling

_BLOCK_ROWS = 4096
_LONGEST_WORD = 1 << 16


@dataclass(frozen=True, eq=False)
class WordVectors:
    """``index``: word → row of ``matrix`` (float32 [words, dim], finite; maybe memory-mapped).

    ``digest``: SHA-256 over words and numbers, the same whatever file format they came from.
    """

    index: dict[str, int]
    matrix: np.ndarray
    digest: str

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
    for start in range(0, len(matrix), _BLOCK_ROWS):
        hasher.update(np.ascontiguousarray(matrix[start : start + _BLOCK_ROWS], dtype="<f4").data)
    return WordVectors(index, matrix, hasher.hexdigest())


def read_vectors(path: Path, limit: int = 0) -> WordVectors:
    """Read a table of word vectors; ``limit`` > 0 takes only the first rows (files are sorted by frequency).

    ``path`` is a text file (``word v1 … vd`` a line, with or without the line ``words dim`` before them: GloVe,
    fastText, word2vec text), a word2vec binary file, either of them gzipped, or a folder written by ``save_vectors``.
    Words are UTF-8, undecodable bytes become U+FFFD. Raises InputError with the line or word where a file is damaged.
    """
    path = Path(path).expanduser()
    if limit < 0:
        raise InputError(f"limit={limit} is negative; give the number of rows to read, or 0 for all")
    if path.is_dir():
        return _read_saved(path, limit)
    words, numbers = [], bytearray()
    opened: Any = gzip.open if path.suffix == ".gz" else open
    told = telling(path, "cannot be read", "give the path of a word-vector file", OSError, EOFError, zlib.error)
    with told, cast(BinaryIO, opened(path, "rb")) as stream, np.errstate(over="ignore"):
        for word, row in _rows(stream, path, limit):
            words.append(word.decode("utf-8", "replace"))
            numbers += row.astype("<f4", copy=False).data
    if not words:
        raise InputError(f"{path}: holds no word vectors; expected lines 'word v1 … vd'")
    return table(words, np.frombuffer(numbers, "<f4").reshape(len(words), -1))


def _rows(stream: BinaryIO, path: Path, limit: int) -> Iterator[tuple[bytes, np.ndarray]]:
    """Words and their numbers, float32 [dim]."""
    first = stream.readline(_LONGEST_WORD)
    fields = first.split()
    header = len(fields) == 2 and all(field.isdigit() for field in fields) and int(fields[1]) > 0
    if not header:
        stream.seek(0)
        yield from _text_rows(stream, path, 0, 0, limit)
        return
    count, dim = map(int, fields)
    last = stream.readline(_LONGEST_WORD).split()[-1:]
    stream.seek(len(first))
    # Binary files have raw bytes where text has a number.
    read = _binary_rows if np.isnan(_numbers(last)).any() else _text_rows
    yield from read(stream, path, count, dim, limit)


def _numbers(fields: list[bytes]) -> np.ndarray:
    """The numbers that ``fields`` spell, float32; a NaN where one of them is none."""
    try:
        return np.array(fields, dtype=np.float32)
    except ValueError:
        return np.array([np.nan], dtype=np.float32)


def _text_rows(stream: BinaryIO, path: Path, promised: int, dim: int, limit: int) -> Iterator[tuple[bytes, np.ndarray]]:
    """The rows of a text file; ``promised``, ``dim``: what its header says, 0 where there is none."""
    count = 0
    for number, line in enumerate(stream, 2 if dim else 1):
        if limit and count == limit:
            return
        fields = line.split()
        if not fields:
            continue
        dim = dim or max(1, len(fields) - 1)
        row = _numbers(fields[-dim:])
        if len(fields) <= dim or not np.isfinite(row).all():
            raise InputError(f"{path}:{number}: expected a word and {dim} finite numbers; is this a word-vector file?")
        # A word may have spaces in it (glove.840B has some): the numbers come last.
        yield b" ".join(fields[:-dim]), row
        count += 1
    if promised and not limit and count != promised:
        raise InputError(f"{path}: the header promises {promised} words, the file has {count}; download it again")


def _binary_rows(stream: BinaryIO, path: Path, total: int, dim: int, limit: int) -> Iterator[tuple[bytes, np.ndarray]]:
    """The rows of a word2vec binary file: each the word, a space, ``dim`` little-endian float32, and often a line feed."""
    wanted = min(total, limit) if limit else total
    for number in range(1, wanted + 1):
        word = b""
        while (letter := stream.read(1)) not in (b" ", b"") and len(word) < _LONGEST_WORD:
            word += letter
        row = np.frombuffer(stream.read(4 * dim), dtype="u1")
        if len(row) < 4 * dim or not np.isfinite(row.view("<f4")).all():
            raise InputError(f"{path}: word {number} of {total} is cut short or damaged; download the file again")
        yield word.lstrip(b"\n"), row.view("<f4")
    if wanted == total and stream.read(2).strip(b"\n"):
        raise InputError(f"{path}: data after the last of {total} words; download the file again")


def save_vectors(vectors: WordVectors, folder: Path) -> None:
    """Write ``vectors.npy`` (float32) and ``words.json`` (a list, in row order) into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / "vectors.npy") as stream:
        np.save(stream, np.asarray(vectors.matrix, dtype="<f4"), allow_pickle=False)
    atomic_text(folder / "words.json", json.dumps(list(vectors.index), ensure_ascii=False))


def _read_saved(folder: Path, limit: int) -> WordVectors:
    """What ``save_vectors`` wrote; the matrix is memory-mapped."""
    with telling(folder, "vectors.npy or words.json is missing or damaged", "save it again"):
        matrix = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
        words = json.loads((folder / "words.json").read_text(encoding="utf-8"))
    if not isinstance(words, list) or matrix.ndim != 2 or len(matrix) != len(words) or matrix.dtype != np.float32:
        raise InputError(f"{folder}: words.json and vectors.npy do not belong together; save them again")
    return table(words[:limit] if limit else words, matrix[:limit] if limit else matrix)

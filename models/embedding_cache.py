"""Every unique text encoded once, its vector kept on disk, shared by runs and processes.

A cache is a folder that belongs to one encoder (its fingerprint and width): ``vectors-….bin`` holds the vectors, float32, end
to end in the order of writing, so that the sentences of one document lie together; ``index.sqlite`` says which row belongs
to a text. A text is found by its key, a 16-byte hash that does not depend on the encoder. Vectors are written before
the index names them, so that a crash loses only the chunk it was in, and neither of them is held in memory.

As blobs in SQLite vectors were read four times as slowly as from the mapped file.
"""

import contextlib
import logging
import mmap
import os
import re
import secrets
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from negsample.errors import InputError
from negsample.registry import suggestion
from negsample.text import readable

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

logger = logging.getLogger(__name__)

KEY_BYTES = 16
CHUNK = 4096
_INDEX, _VECTORS = "index.sqlite", "vectors-*.bin"
_TABLES = (
    "CREATE TABLE vectors (row INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE)",
    "CREATE TABLE about (name TEXT, fingerprint TEXT, dim INTEGER, file TEXT)",
    "PRAGMA user_version = 1",
)
_WAIT_SECONDS = 60.0
# Keys asked for in one statement.
_ASKED = 500
# Keys whose numbers are remembered: some 9 MB.
_REMEMBERED = 1 << 16
_ROW_BITS = 40  # a number is file << 40 | row
# Bytes of a mapped file that may count as this process's memory before they are given back, and what reading a row maps.
_MOST_MAPPED, _AROUND = 1 << 25, 1 << 16


def key(text: str) -> bytes:
    """Return the key of what encoders read of a text: 16 bytes, the same for every encoder, on every machine."""
    return blake2b(readable(text).encode(), digest_size=KEY_BYTES).digest()


def keys(texts: Sequence[str]) -> np.ndarray:
    """Return the keys of ``texts``; uint8 [n, 16]."""
    return np.frombuffer(b"".join(map(key, texts)), dtype=np.uint8).reshape(len(texts), KEY_BYTES)


class _Rows:
    """The vectors of one file; it may grow, and stays readable when it is deleted."""

    def __init__(self, path: Path, dim: int) -> None:
        self.path, self.dim, self.touched = path, dim, 0
        self.rows = np.empty((0, dim), np.float32)

    def cover(self, count: int) -> None:
        """Map ``count`` rows at least. Raises ``_Damaged`` where the file has fewer."""
        if count <= len(self.rows):
            return
        with contextlib.suppress(FileNotFoundError), self.path.open("rb") as file:
            whole = os.fstat(file.fileno()).st_size // (4 * self.dim)
            if whole >= count:
                self.map = mmap.mmap(file.fileno(), whole * 4 * self.dim, access=mmap.ACCESS_READ)
                self.rows = np.frombuffer(self.map, "<f4").reshape(whole, self.dim)
        if count > len(self.rows):
            raise _Damaged(f"it names {count} vectors, {self.path.name} has {len(self.rows)}")

    def take(self, numbers: np.ndarray) -> np.ndarray:
        """Return the rows ``numbers``, copied; [n, dim]."""
        found = self.rows[numbers]
        # Every page that was touched counts as this process's memory, until the kernel needs the room: a job scheduler that
        # limits memory might end a process that has only read a large cache.
        self.touched += len(numbers) * _AROUND + found.nbytes
        if self.touched > _MOST_MAPPED and len(self.rows):
            self.map.madvise(mmap.MADV_DONTNEED)
            self.touched = 0
        return found


class _Damaged(sqlite3.DatabaseError):
    """The index and the vectors do not belong together."""


class _Unusable(InputError):
    """Nothing can be kept in the folder."""


class _Open(NamedTuple):
    """The index within a transaction: ``slot`` numbers the file of vectors that it speaks of, which has ``stored`` rows."""

    db: sqlite3.Connection
    slot: int
    stored: int

    def find(self, wanted: Sequence[bytes]) -> dict[bytes, int]:
        """Key → number, of those that are there."""
        found: dict[bytes, int] = {}
        for start in range(0, len(wanted), _ASKED):
            some = wanted[start : start + _ASKED]
            marks = ",".join("?" * len(some))
            found.update(self.db.execute(f"SELECT key, row FROM vectors WHERE key IN ({marks})", some))
        return {key: self.slot << _ROW_BITS | row for key, row in found.items()}


class EmbeddingCache:
    """The vectors of one encoder, encoded when they are first asked for.

    ``folder`` defaults to one under ``cache_root()`` named after the encoder, its fingerprint and its width. Texts are
    encoded ``chunk`` at a time and each chunk is on disk before the next begins. Where nothing can be kept there (a
    folder that can't be written, a file system without locks) a warning says so, and vectors are kept in a temporary
    folder while the object lives. A damaged index is deleted with a warning, and texts are encoded again.

    Several processes may use one folder. A text that two of them meet at the same moment is encoded by both; either
    vector serves. One object must not be used by several threads at once.

    Raises InputError where the folder holds another encoder's vectors.
    """

    def __init__(self, encoder: "Encoder", folder: Path | None = None, *, chunk: int = CHUNK) -> None:
        self.encoder = encoder
        self.dim: int = encoder.dim
        self._chunk = chunk
        # A number given out names one of these for the life of this object; a second one begins when the cache is cleared.
        self._files: list[_Rows] = []
        # Numbers of keys asked for before: words come again and again.
        self._known: dict[bytes, int] = {}
        self.folder = Path(folder) if folder is not None else cache_root() / self._default_name()
        try:
            with self._index(write=True):
                pass
        except _Unusable as reason:
            logger.warning("%s; until then each run computes them anew", reason)
            self._temporary = tempfile.TemporaryDirectory(prefix="negsample-")
            self.folder = Path(self._temporary.name)

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of ``texts``, encoding those never seen; float32 [n, dim].

        Raises InputError as ``index`` does.
        """
        return self.gather(self.index(texts))

    def index(self, texts: Sequence[str], wanted: np.ndarray | None = None) -> np.ndarray:
        """Return a number for each text, encoding those never seen; int64 [n]. ``wanted``: ``keys(texts)``, where known.

        The numbers are for ``gather`` of this object, while it lives; a store on disk keeps ``keys(texts)`` and asks
        ``resolve``.

        Raises InputError where the encoder returns anything but finite vectors of its width, or the disk is full.
        """
        wanted = keys(texts) if wanted is None else wanted
        numbers = self.resolve(wanted)
        missing = np.flatnonzero(numbers < 0).tolist()
        todo = {wanted[place].tobytes(): texts[place] for place in missing}
        names, found = list(todo), dict[bytes, int]()
        for start in range(0, len(names), self._chunk):
            found.update(self._encode({name: todo[name] for name in names[start : start + self._chunk]}))
        numbers[missing] = [found[wanted[place].tobytes()] for place in missing]
        return numbers

    def resolve(self, wanted: np.ndarray) -> np.ndarray:
        """Return the numbers of keys (uint8 [n, 16]) whose vectors are there, -1 for the others; int64 [n]."""
        whole = np.ascontiguousarray(wanted, dtype=np.uint8).tobytes()
        names = [whole[start : start + KEY_BYTES] for start in range(0, len(whole), KEY_BYTES)]
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        if new := [name for name in dict.fromkeys(names) if name not in self._known]:
            with self._index() as opened:
                self._known.update(opened.find(new))
        return np.fromiter((self._known.get(name, -1) for name in names), np.int64, len(names))

    def gather(self, numbers: np.ndarray) -> np.ndarray:
        """Return the vectors of ``numbers`` (any shape), a row of zeros for each -1; float32 [.., dim].

        Raises IndexError for a number that this object did not give out.
        """
        numbers = np.asarray(numbers, dtype=np.int64)
        flat = numbers.ravel()
        out = np.zeros((flat.size, self.dim), dtype=np.float32)
        slots = flat >> _ROW_BITS
        if flat.size and (flat.min() < -1 or slots.max() >= len(self._files)):
            raise IndexError("a row number that did not come from this cache object")
        for slot in np.unique(slots[slots >= 0]):
            where = np.flatnonzero(slots == slot)
            out[where] = self._files[slot].take(flat[where] & ((1 << _ROW_BITS) - 1))
        return out.reshape(*numbers.shape, self.dim)

    def _default_name(self) -> str:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.encoder.name)
        return f"{name}-{self.encoder.fingerprint[:16]}-d{self.dim}"

    @contextlib.contextmanager
    def _index(self, *, write: bool = False) -> Iterator[_Open]:
        """The index, in a transaction that is kept when the block ends well; made where it is not there.

        It is opened anew each time, so that a cache that is cleared meanwhile begins again. Raises InputError.
        """
        try:
            try:
                opened = self._begun(write)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as reason:
                path = self.folder / _INDEX
                logger.warning("%s: damaged (%s); deleted, its texts will be encoded again", path, reason)
                _delete(self.folder)
                opened = self._begun(write)
            with contextlib.closing(opened.db):
                yield opened
                opened.db.execute("COMMIT")
        except (OSError, sqlite3.Error) as error:
            raise _Unusable(
                f"{self.folder}: vectors can't be kept there ({error}); make room there or set NEGSAMPLE_CACHE to "
                "another folder"
            ) from error

    def _begun(self, write: bool) -> _Open:
        self.folder.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.folder / _INDEX, timeout=_WAIT_SECONDS, isolation_level=None)
        try:
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            if db.execute("PRAGMA user_version").fetchone() == (0,):
                if not write:
                    db.close()
                    return self._begun(write=True)
                self._make(db)
            name, fingerprint, dim, file = db.execute("SELECT * FROM about").fetchone()
            for what, theirs, ours in (
                ("fingerprint", fingerprint, self.encoder.fingerprint),
                ("width", dim, self.dim),
            ):
                if theirs != ours:
                    raise InputError(
                        f"{self.folder}: holds vectors of encoder {name!r} with {what} {theirs!r}, not {ours!r}; give "
                        "another folder or clear this one"
                    )
            (count,) = db.execute("SELECT coalesce(max(row) + 1, 0) FROM vectors").fetchone()
            names = [known.path.name for known in self._files]
            if file not in names:
                names.append(file)
                self._files.append(_Rows(self.folder / file, self.dim))
            self._files[names.index(file)].cover(count)
            return _Open(db, names.index(file), count)
        except BaseException:
            db.close()
            raise

    def _make(self, db: sqlite3.Connection) -> None:
        file = _VECTORS.replace("*", secrets.token_hex(8))
        (self.folder / file).touch()
        for statement in _TABLES:
            db.execute(statement)
        about = (self.encoder.name, self.encoder.fingerprint, self.dim, file)
        db.execute("INSERT INTO about VALUES (?, ?, ?, ?)", about)

    def _encode(self, asked: dict[bytes, str]) -> dict[bytes, int]:
        """Encode the texts by their keys and store them, unless another process has done so meanwhile; their numbers."""
        with self._index() as opened:
            found = opened.find(list(asked))
        new = {name: readable(text) for name, text in asked.items() if name not in found}
        if not new:
            return found
        vectors = self._vectors(list(new.values()))
        with self._index(write=True) as opened:
            file = self._files[opened.slot]
            with file.path.open("r+b") as stream:
                # What a killed writer has left behind the last row of the index is written over.
                stream.seek(opened.stored * 4 * self.dim)
                stream.write(vectors.data)
                stream.flush()
                os.fsync(stream.fileno())
            rows = enumerate(new, opened.stored)
            opened.db.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
            file.cover(opened.stored + len(new))
            return found | opened.find(list(new))

    def _vectors(self, texts: list[str]) -> np.ndarray:
        """What the encoder makes of ``texts``, checked; float32 [n, dim]."""
        counts = getattr(self.encoder, "counts", {})
        before = counts.get("truncated", 0)
        vectors = np.asarray(self.encoder.encode(texts))
        if (cut := counts.get("truncated", 0) - before) > 0:
            logger.warning(
                "%s: %d of %d new texts are longer than the encoder reads, and their ends are left out",
                self.encoder.name,
                cut,
                len(texts),
            )
        if vectors.shape != (len(texts), self.dim):
            raise InputError(
                f"encoder {self.encoder.name!r} returned an array of shape {vectors.shape} for {len(texts)} texts, "
                f"expected ({len(texts)}, {self.dim})"
            )
        with np.errstate(over="ignore"):
            kept = np.ascontiguousarray(vectors, dtype="<f4")
        bad = np.flatnonzero(~np.isfinite(kept).all(axis=1))
        if bad.size:
            raise InputError(
                f"encoder {self.encoder.name!r} returned values that are not finite as float32 for {bad.size} of "
                f"{len(texts)} texts, the first {texts[bad[0]][:60]!r}; check its weights"
            )
        return kept


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """One encoder's cache on disk: the encoder's name and fingerprint, how many vectors, how many bytes."""

    name: str
    fingerprint: str
    rows: int
    bytes: int
    folder: Path


def cache_root() -> Path:
    """Return the folder of all caches: ``NEGSAMPLE_CACHE``, ``XDG_CACHE_HOME/negsample`` or ``~/.cache/negsample``."""
    if own := os.environ.get("NEGSAMPLE_CACHE"):
        return Path(own).expanduser()
    # A relative one is to be ignored (XDG Base Directory Specification).
    shared = Path(os.environ.get("XDG_CACHE_HOME", "")).expanduser()
    return (shared if shared.is_absolute() else Path.home() / ".cache") / "negsample"


def find_caches(name: str | None = None) -> list[CacheInfo]:
    """Return the caches of the encoder ``name`` (or the folder of that name), or all under ``cache_root()``, by name.

    A damaged one has no rows. Raises InputError where ``name`` is not there.
    """
    found = []
    for path in cache_root().glob(f"*/{_INDEX}"):
        size = sum(own.stat().st_size for own in (path, *path.parent.glob(_VECTORS)))
        about: tuple[str, str, int] = ("?", "?", 0)
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path, timeout=1)) as db:
            query = "SELECT name, fingerprint, (SELECT coalesce(max(row) + 1, 0) FROM vectors) FROM about"
            about = db.execute(query).fetchone() or about
        found.append(CacheInfo(*about, size, path.parent))
    found.sort(key=lambda info: (info.name, info.fingerprint))
    chosen = [info for info in found if name is None or name in (info.name, info.folder.name)]
    if name is not None and not chosen:
        told = suggestion(name, sorted({info.name for info in found})) if found else "there is none yet"
        raise InputError(f"no cache of encoder {name!r} in {cache_root()}; {told}")
    return chosen


def clear_cache(name: str | None = None) -> int:
    """Delete the caches of the encoder ``name`` (or the folder of that name), or all, and return the bytes freed.

    Only files that the cache made are deleted. A process that is using them keeps what it has mapped, and goes on in a
    new cache. Raises InputError where ``name`` is not there.
    """
    infos = find_caches(name)
    for info in infos:
        _delete(info.folder)
    return sum(info.bytes for info in infos)


def _delete(folder: Path) -> None:
    # Nobody may be in the middle of writing. An index that can't be locked is damaged.
    with contextlib.closing(sqlite3.connect(folder / _INDEX, timeout=_WAIT_SECONDS)) as db:
        with contextlib.suppress(sqlite3.DatabaseError):
            db.execute("BEGIN EXCLUSIVE")
        for path in (folder / _INDEX, folder / f"{_INDEX}-journal", *folder.glob(_VECTORS)):
            path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()  # stays where somebody keeps other files in it

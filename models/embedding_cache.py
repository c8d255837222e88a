"""Every unique text encoded once, its vector kept on disk, shared by runs and processes.

A cache is a folder that belongs to one encoder (its fingerprint and width), with one SQLite file in it: the vector, float32,
of each text by its key, a 16-byte hash that does not depend on the encoder. A crash loses only the chunk it was in.
"""

import contextlib
import logging
import os
import re
import sqlite3
from collections.abc import Callable, Container, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import numpy as np

from negsample.errors import InputError
from negsample.models.language.model_files import telling
from negsample.registry import suggestion
from negsample.text import readable

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

T = TypeVar("T")
logger = logging.getLogger(__name__)

KEY_BYTES = 16
_FILE = "vectors.sqlite"
_TABLES = (
    "CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)",
    "CREATE TABLE about (name TEXT, fingerprint TEXT, dim INTEGER)",
    "PRAGMA user_version = 1",
)
# A page holds a few vectors of the usual widths.
_PAGE_BYTES = 8192
_WAIT_SECONDS = 60.0
# What is kept in memory where nothing can be kept on disk.
_SPARE_KILOBYTES = 1 << 20
# Keys asked for in one statement.
_ASKED = 500
# Bytes of vectors that stay in memory once read (an epoch meets them again), and what one takes beside its numbers.
_KEPT_BYTES, _BESIDE = 1 << 28, 200


def key(text: str) -> bytes:
    """The key of what encoders read of a text: 16 bytes, the same for every encoder, on every machine."""
    return blake2b(readable(text).encode(), digest_size=KEY_BYTES).digest()


def keys(texts: Sequence[str]) -> np.ndarray:
    """The keys of ``texts``; uint8 [n, 16]."""
    return np.frombuffer(b"".join(map(key, texts)), dtype=np.uint8).reshape(len(texts), KEY_BYTES)


def _names(wanted: np.ndarray) -> list[bytes]:
    return cast("list[bytes]", np.ascontiguousarray(wanted, np.uint8).view(f"V{KEY_BYTES}").ravel().tolist())


def _is_new(db: sqlite3.Connection) -> bool:
    return db.execute("PRAGMA user_version").fetchone() == (0,)


class EmbeddingCache:
    """The vectors of one encoder, encoded when they are first asked for.

    ``folder`` defaults to one under ``cache_root()`` named after the encoder, its fingerprint and its width. Texts are
    encoded ``chunk`` at a time and each chunk is on disk before the next begins. Where nothing can be kept there a
    warning says so; what is there is read, and new vectors are kept in memory (above a gigabyte in a temporary file) while
    the object lives. A damaged file is deleted with a warning, and texts are encoded again.

    Several processes may use one folder. A text that two of them meet at the same moment is encoded by both; either
    vector serves. One object must not be used by several threads at once.

    Raises InputError where the folder holds another encoder's vectors.
    """

    def __init__(self, encoder: "Encoder", folder: Path | None = None, *, chunk: int = 4096) -> None:
        self.encoder, self.dim = encoder, encoder.dim
        name = f"{re.sub(r'[^A-Za-z0-9._-]+', '-', encoder.name)}-{encoder.fingerprint[:16]}-d{self.dim}"
        self.folder = cache_root() / name if folder is None else Path(folder)
        self._chunk = chunk
        self._kept: dict[bytes, bytes] = {}
        # What takes the vectors that the folder does not.
        self._spare: sqlite3.Connection | None = None
        self._store({})

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of ``texts``, encoding those never seen; float32 [n, dim].

        Raises InputError where the encoder returns anything but finite vectors of its width.
        """
        names = [key(text) for text in texts]
        self._recall(names)
        for new in self._encoded(names, texts, self._kept):
            self._kept.update(new)
        return self._array(names)

    def add(self, texts: Sequence[str], wanted: np.ndarray) -> None:
        """Encode those of ``texts`` that were never seen, for ``vectors``; ``wanted``: ``keys(texts)``. Raises as ``rows``."""
        names = _names(wanted)
        for _ in self._encoded(names, texts, {name for (name,) in self._select("key", names)}):
            pass

    def vectors(self, wanted: np.ndarray) -> np.ndarray:
        """Return the vectors of keys (uint8 [n, 16]); float32 [n, dim]. Raises InputError where one is not there."""
        names = _names(wanted)
        self._recall(names)
        try:
            return self._array(names)
        except KeyError:
            raise InputError(f"{self.folder}: vectors were removed while they were in use; run again") from None

    def _array(self, names: Sequence[bytes]) -> np.ndarray:
        # Of a bytearray, because an array of bytes can't be written to.
        return np.frombuffer(bytearray().join([self._kept[name] for name in names]), "<f4").reshape(-1, self.dim)

    def _recall(self, names: Sequence[bytes]) -> None:
        """Bring the vectors of ``names`` into memory, as far as they are there."""
        if len(self._kept) * (4 * self.dim + _BESIDE) > _KEPT_BYTES:
            self._kept = {}
        missing = self._select("key, vector", [name for name in names if name not in self._kept])
        self._kept.update((key, vector) for key, vector in missing)

    def _select(self, columns: str, names: Sequence[bytes]) -> list[tuple[bytes, ...]]:
        wanted = list(dict.fromkeys(names))

        def select(db: sqlite3.Connection) -> list[tuple[bytes, ...]]:
            found = []
            for start in range(0, len(wanted), _ASKED):
                some = wanted[start : start + _ASKED]
                marks = ",".join("?" * len(some))
                found += db.execute(f"SELECT {columns} FROM vectors WHERE key IN ({marks})", some).fetchall()
            return found

        if not wanted:
            return []
        found = self._in_folder("BEGIN", select) or []
        return found if self._spare is None else found + select(self._spare)

    def _store(self, vectors: dict[bytes, bytes]) -> None:
        def insert(db: sqlite3.Connection) -> None:
            db.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", vectors.items())

        if self._spare is None:
            self._in_folder("BEGIN IMMEDIATE", insert)
        if self._spare is not None:
            what, advice = (
                "vectors can be kept neither there nor in a temporary file",
                "make room or set NEGSAMPLE_CACHE",
            )
            with telling(self.folder, what, advice):
                insert(self._spare)

    def _in_folder(self, begin: str, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """What ``work`` answers in a transaction that is kept when it ends well; None where the folder can't be used."""
        try:
            try:
                return self._attempt(begin, work)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as reason:
                path = self.folder / _FILE
                logger.warning("%s: damaged (%s); deleted, its texts will be encoded again", path, reason)
                _delete(self.folder)
                return self._attempt(begin, work)
        except (OSError, sqlite3.Error) as error:
            if self._spare is None:
                told = "until there is room, or NEGSAMPLE_CACHE names another folder, each run computes them anew"
                logger.warning("%s: vectors can't be kept there (%s); %s", self.folder, error, told)
                # A database without a name is in memory, and in a temporary file once it has outgrown that.
                self._spare = sqlite3.connect("", isolation_level=None, check_same_thread=False)
                self._spare.execute(f"PRAGMA cache_size = -{_SPARE_KILOBYTES}")
                self._make(self._spare)
            return None

    def _attempt(self, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
        # The file is opened anew each time, so that a cache that is cleared meanwhile begins again.
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
        opened = sqlite3.connect(self.folder / _FILE, timeout=_WAIT_SECONDS, isolation_level=None)
        with contextlib.closing(opened) as db:
            db.execute("PRAGMA synchronous = NORMAL")
            if _is_new(db):
                db.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
                db.execute("BEGIN IMMEDIATE")
                if _is_new(db):
                    self._make(db)
                db.execute("COMMIT")
            db.execute(begin)
            name, *theirs = db.execute("SELECT name, fingerprint, dim FROM about").fetchone()
            if theirs != [self.encoder.fingerprint, self.dim]:
                told = f"vectors of encoder {name!r} with fingerprint {theirs[0]!r} and width {theirs[1]}"
                own = f"{self.encoder.fingerprint!r} and {self.dim}"
                raise InputError(f"{self.folder}: holds {told}, not {own}; give another folder or clear this one")
            answer = work(db)
            db.execute("COMMIT")
            return answer

    def _make(self, db: sqlite3.Connection) -> None:
        for statement in _TABLES:
            db.execute(statement)
        about = (self.encoder.name, self.encoder.fingerprint, self.dim)
        db.execute("INSERT INTO about VALUES (?, ?, ?)", about)

    def _encoded(
        self, names: Sequence[bytes], texts: Sequence[str], known: Container[bytes]
    ) -> Iterator[dict[bytes, bytes]]:
        """Encode what is not ``known`` and store it, chunk by chunk: vectors by key."""
        asked = {name: text for name, text in zip(names, texts, strict=True) if name not in known}
        new = list(asked)
        for start in range(0, len(new), self._chunk):
            some = new[start : start + self._chunk]
            vectors = self._vectors([readable(asked[name]) for name in some])
            found = {name: vector.tobytes() for name, vector in zip(some, vectors, strict=True)}
            self._store(found)
            yield found

    def _vectors(self, texts: list[str]) -> np.ndarray:
        """What the encoder makes of ``texts``, checked; float32 [n, dim]."""
        counts = getattr(self.encoder, "counts", {})
        before = counts.get("truncated", 0)
        vectors = np.asarray(self.encoder.encode(texts))
        if (cut := counts.get("truncated", 0) - before) > 0:
            told = f"{cut} of {len(texts)} new texts are longer than the encoder reads, and their ends are left out"
            logger.warning("%s: %s", self.encoder.name, told)
        who = f"encoder {self.encoder.name!r} returned"
        if vectors.shape != (wanted := (len(texts), self.dim)):
            raise InputError(f"{who} an array of shape {vectors.shape} for {len(texts)} texts, expected {wanted}")
        with np.errstate(over="ignore"):
            kept = np.ascontiguousarray(vectors, dtype="<f4")
        if (bad := np.flatnonzero(~np.isfinite(kept).all(axis=1))).size:
            which = f"{bad.size} of {len(texts)} texts, the first {texts[bad[0]][:60]!r}"
            raise InputError(f"{who} values that are not finite as float32 for {which}; check its weights")
        return kept


class CacheInfo(NamedTuple):
    """One encoder's cache on disk: the encoder's name and fingerprint, how many vectors, how many bytes."""

    name: str
    fingerprint: str
    rows: int
    bytes: int
    folder: Path


def cache_root() -> Path:
    """The folder of all caches: ``NEGSAMPLE_CACHE``, ``XDG_CACHE_HOME/negsample`` or ``~/.cache/negsample``."""
    if own := os.environ.get("NEGSAMPLE_CACHE"):
        return Path(own).expanduser()
    # A relative one is to be ignored (XDG Base Directory Specification).
    shared = Path(os.environ.get("XDG_CACHE_HOME", "")).expanduser()
    return (shared if shared.is_absolute() else Path.home() / ".cache") / "negsample"


def find_caches(name: str | None = None) -> list[CacheInfo]:
    """The caches of the encoder ``name`` (or the folder of that name), or all under ``cache_root()``, by name.

    A damaged one has no rows. Raises InputError where ``name`` is not there.
    """
    found = []
    for path in cache_root().glob(f"*/{_FILE}"):
        size = path.stat().st_size
        about: tuple[str, str, int] = ("?", "?", 0)
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path, timeout=1)) as db:
            query = "SELECT name, fingerprint, (SELECT coalesce(max(rowid), 0) FROM vectors) FROM about"
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

    Only files that the cache made are deleted. A process that is using them goes on in a new cache. Raises InputError
    where ``name`` is not there.
    """
    infos = find_caches(name)
    for info in infos:
        _delete(info.folder)
    return sum(info.bytes for info in infos)


def _delete(folder: Path) -> None:
    # Nobody may be in the middle of writing. A file that can't be locked is damaged.
    with contextlib.closing(sqlite3.connect(folder / _FILE, timeout=_WAIT_SECONDS)) as db:
        with contextlib.suppress(sqlite3.DatabaseError):
            db.execute("BEGIN EXCLUSIVE")
        for path in (folder / _FILE, folder / f"{_FILE}-journal"):
            path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()  # stays where somebody keeps other files in it

"""Every unique text encoded once, kept on disk, shared by runs and processes.

A folder belongs to one encoder (its fingerprint, width and type) and holds segments (see ``segments``). A text is found
by a 16-byte hash, which does not depend on the encoder. What stays in memory is the mapping of the files, not the
vectors and no dictionary of keys. A damaged segment is noticed when it is opened, deleted with a warning, and its texts
are encoded again when they are next asked for. POSIX only: deleting a file that others have mapped must be allowed.
"""

import contextlib
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from negsample.errors import InputError
from negsample.models.store import segments
from negsample.models.store.cache_folders import (
    LABEL,
    LOCK,
    CacheInfo,
    cache_report,
    cache_root,
    clear_cache,
    read_label,
    write_label,
)
from negsample.models.store.segments import KEY_BYTES, Damaged, Segment
from negsample.registry import suggestion
from negsample.seeds import digest

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

__all__ = ["CacheInfo", "CacheStats", "EmbeddingCache", "cache_report", "cache_root", "clear_cache", "key", "keys"]

logger = logging.getLogger(__name__)

CHUNK = 4096
_ROW_BITS = 40  # a number is slot << 40 | row
_MOST_SEGMENTS = 32
_LARGE_SEGMENTS = 8  # these are left as they are when the others are merged, so that big files are rarely rewritten
_TYPES = {"float32": "<f4", "float16": "<f2"}


@dataclass(frozen=True, slots=True)
class CacheStats:
    """``rows`` and ``bytes`` on disk, in how many ``segments``; this object was ``asked`` for so many texts and
    ``encoded`` so many.
    """

    rows: int
    bytes: int
    segments: int
    asked: int
    encoded: int


def key(text: str) -> bytes:
    """The 16-byte key of a text: the same for every encoder, on every machine."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


def keys(texts: Sequence[str]) -> np.ndarray:
    """The keys of ``texts``; uint8 [n, 16]."""
    return np.frombuffer(b"".join(map(key, texts)), dtype=np.uint8).reshape(len(texts), KEY_BYTES)


class EmbeddingCache:
    """The vectors of one encoder, encoded when they are first asked for.

    ``folder`` defaults to one under ``cache_root()`` named after the encoder, its fingerprint and its width.
    ``dtype`` is how vectors are kept, ``"float32"`` or ``"float16"``; they are returned as float32. Texts are encoded
    ``chunk`` at a time and each chunk is on disk before the next begins.

    An encoder whose vectors are a cheap function of another's (``Encoder.shared``) is kept as the other's vectors, in the
    other's folder; ``gather`` applies the function.

    Several processes may use one folder. A text that two of them meet at the same moment is encoded by both; either
    vector serves. One object must not be used by several threads at once.

    Raises InputError where the folder holds another encoder's vectors or can't be written.
    """

    def __init__(
        self, encoder: "Encoder", folder: Path | None = None, *, dtype: str = "float32", chunk: int = CHUNK
    ) -> None:
        if dtype not in _TYPES:
            raise InputError(f"an embedding cache can't keep {dtype!r}; {suggestion(dtype, sorted(_TYPES))}")
        self._finish: Callable[[np.ndarray], np.ndarray] | None
        encoder, self._finish = getattr(encoder, "shared", None) or (encoder, None)
        self.encoder = encoder
        self.dim: int = encoder.dim
        self._type = _TYPES[dtype]
        self._chunk = chunk
        self._owner = digest(encoder.fingerprint, encoder.dim, self._type, size=16)
        self.folder = Path(folder) if folder is not None else cache_root() / self._default_name(dtype)
        # The lookups go over _segments (slot → segment). A number given out names a slot for the life of this object;
        # _places says where that slot's rows are now, which may be further down a merged segment.
        self._segments: dict[int, Segment] = {}
        self._places: list[tuple[Segment, int]] = []
        self._known: set[str] = set()
        self._asked = self._encoded = 0
        self._prepare()
        segments.remove_leftovers(self.folder)
        self._refresh()

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of ``texts``, encoding those never seen; float32 [n, dim].

        Raises InputError as ``index`` does.
        """
        return self.gather(self.index(texts))

    def index(self, texts: Sequence[str], wanted: np.ndarray | None = None) -> np.ndarray:
        """A number for each text, encoding those never seen; int64 [n]. ``wanted``: ``keys(texts)``, where known.

        The numbers are for ``gather`` of this object, while it lives; a store on disk keeps ``keys(texts)`` and asks
        ``resolve``. Two equal texts may have two numbers, if they were asked for at different times.

        Raises InputError where the encoder returns anything but finite vectors of its width, or the disk is full.
        """
        wanted = keys(texts) if wanted is None else wanted
        self._asked += len(texts)
        numbers = self._find(wanted)
        missing = np.flatnonzero(numbers < 0)
        if missing.size:
            self._refresh()
            numbers[missing] = self._find(wanted[missing])
            todo = _first_of_each(wanted, np.flatnonzero(numbers < 0))
            for start in range(0, len(todo), self._chunk):
                self._encode(texts, wanted, todo[start : start + self._chunk])
            missing = np.flatnonzero(numbers < 0)
            numbers[missing] = self._find(wanted[missing])
            if (numbers < 0).any():
                raise RuntimeError("texts that were just encoded are not in the cache")
        return numbers

    def resolve(self, wanted: np.ndarray) -> np.ndarray:
        """The numbers of keys (uint8 [n, 16]) whose vectors are there, -1 for the others; int64 [n]."""
        wanted = np.asarray(wanted, dtype=np.uint8).reshape(-1, KEY_BYTES)
        numbers = self._find(wanted)
        missing = np.flatnonzero(numbers < 0)
        if missing.size:
            self._refresh()
            numbers[missing] = self._find(wanted[missing])
        return numbers

    def gather(self, numbers: np.ndarray) -> np.ndarray:
        """The vectors of ``numbers`` (any shape), a row of zeros for each -1; float32 [.., dim].

        Raises IndexError for a number that this object did not give out.
        """
        numbers = np.asarray(numbers, dtype=np.int64)
        flat = numbers.ravel()
        out = np.zeros((flat.size, self.dim), dtype=np.float32)
        slots = flat >> _ROW_BITS
        if flat.size and (flat.min() < -1 or slots.max() >= len(self._places)):
            raise IndexError("a row number that did not come from this cache object")
        for slot in np.unique(slots):
            if slot < 0:
                continue
            where = np.flatnonzero(slots == slot)
            segment, offset = self._places[slot]
            out[where] = segment.take((flat[where] & ((1 << _ROW_BITS) - 1)) + offset)
        if self._finish is not None:
            out = self._finish(out)
        return out.reshape(*numbers.shape, self.dim)

    def stats(self) -> CacheStats:
        """What is on disk as this object last saw it, and what it was asked for."""
        live = self._segments.values()
        return CacheStats(
            sum(map(len, live)), sum(segment.size for segment in live), len(live), self._asked, self._encoded
        )

    def _default_name(self, dtype: str) -> str:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.encoder.name)
        suffix = "" if dtype == "float32" else f"-{dtype}"
        return f"{name}-{self.encoder.fingerprint[:16]}-d{self.dim}{suffix}"

    def _prepare(self) -> None:
        """Make the folder and its label, or check that the label is this encoder's."""
        label = {
            "format": 1,
            "name": self.encoder.name,
            "fingerprint": self.encoder.fingerprint,
            "dim": self.dim,
            "dtype": self._type,
        }
        found = read_label(self.folder)
        if found is not None:
            for field in ("format", "fingerprint", "dim", "dtype"):
                if found.get(field) != label[field]:
                    raise InputError(
                        f"{self.folder}: holds vectors of encoder {found.get('name')!r} with {field} "
                        f"{found.get(field)!r}, not {label[field]!r}; give another folder or clear this one"
                    )
            return
        try:
            write_label(self.folder, label)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(
            f"{self.folder}: can't write the embedding cache ({error.strerror or error}); "
            "make room there or set NEGSAMPLE_CACHE to another folder"
        )

    def _refresh(self) -> None:
        """Open the segments that have appeared; drop the damaged ones."""
        # A segment that is gone before it is opened was merged into a new one: list again.
        for _ in range(8):
            fresh = [path for path in sorted(self.folder.glob(segments.PATTERN)) if path.name not in self._known]
            vanished = False
            for path in fresh:
                try:
                    self._open(path)
                except FileNotFoundError:
                    vanished = True
            if not vanished:
                return

    def _open(self, path: Path) -> None:
        try:
            header = segments.read_header(path)
            if header.owner != self._owner:
                logger.warning("%s: belongs to another encoder and is left alone", path)
                self._known.add(path.name)
                return
            if header.dim != self.dim or header.dtype != self._type:
                raise Damaged("its rows have another shape than the encoder's")
            self._add(segments.open_segment(path))
        except Damaged as reason:
            logger.warning("%s: damaged (%s); deleted, its texts will be encoded again", path, reason)
            self._known.add(path.name)
            with contextlib.suppress(OSError):
                path.unlink()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise InputError(
                f"{path}: can't be read ({error.strerror or error}); check its permissions or delete it"
            ) from error

    def _add(self, segment: Segment) -> None:
        self._known.add(segment.path.name)
        self._segments[len(self._places)] = segment
        self._places.append((segment, 0))

    def _find(self, wanted: np.ndarray) -> np.ndarray:
        """Numbers of the keys (uint8 [n, 16]) among the open segments, -1 where there is none."""
        high, low = segments.halves(wanted)
        numbers = np.full(len(wanted), -1, dtype=np.int64)
        pending = np.argsort(high)  # in order, so that each binary search starts near the last one's pages
        for slot, segment in self._segments.items():
            if not pending.size:
                break
            found = segment.find(high[pending], low[pending])
            hit = found >= 0
            numbers[pending[hit]] = found[hit] | (slot << _ROW_BITS)
            pending = pending[~hit]
        return numbers

    def _encode(self, texts: Sequence[str], wanted: np.ndarray, positions: np.ndarray) -> None:
        """Encode the texts at ``positions`` and store them, less what other processes have stored meanwhile."""
        self._refresh()
        positions = positions[self._find(wanted[positions]) < 0]
        if not positions.size:
            return
        chosen = [texts[position] for position in positions]
        before = self._cut()
        vectors = self._checked(chosen, np.asarray(self.encoder.encode(chosen)))
        if (cut := self._cut() - before) > 0:
            logger.warning(
                "%s: %d of %d new texts are longer than the encoder reads, and their ends are left out",
                self.encoder.name,
                cut,
                len(chosen),
            )
        self._encoded += len(chosen)
        try:
            if not (self.folder / LABEL).exists():
                self._prepare()  # somebody has cleared the cache
            self._add(
                segments.write_segment(self.folder, self._owner, wanted[positions], [vectors], self.dim, self._type)
            )
            self._merge()
        except OSError as error:
            raise self._unwritable(error) from error

    def _cut(self) -> int:
        """How many texts the encoder has cut so far, where it counts them."""
        return int(getattr(self.encoder, "counts", {}).get("truncated", 0))

    def _checked(self, texts: list[str], vectors: np.ndarray) -> np.ndarray:
        if vectors.shape != (len(texts), self.dim):
            raise InputError(
                f"encoder {self.encoder.name!r} returned an array of shape {vectors.shape} for {len(texts)} texts, "
                f"expected ({len(texts)}, {self.dim})"
            )
        with np.errstate(over="ignore"):
            kept = vectors.astype(self._type)
        bad = np.flatnonzero(~np.isfinite(kept).all(axis=1))
        if bad.size:
            raise InputError(
                f"encoder {self.encoder.name!r} returned values that are not finite as {kept.dtype} for {bad.size} of "
                f"{len(texts)} texts, the first {texts[bad[0]][:60]!r}; check its weights"
            )
        return kept

    def _merge(self) -> None:
        """Merge all but the largest segments into one when there are too many, unless another process is at it."""
        if len(self._segments) <= _MOST_SEGMENTS:
            return
        with segments.lock(self.folder / LOCK) as held:
            self._refresh()
            self._drop_vanished()
            live = {slot: segment for slot, segment in self._segments.items() if segment.path.exists()}
            if not held or len(live) <= _MOST_SEGMENTS:
                return
            large = sorted(live, key=lambda slot: len(live[slot]), reverse=True)[:_LARGE_SEGMENTS]
            old = [slot for slot in live if slot not in large]
            merged, bases = segments.merge(self.folder, self._owner, [live[slot] for slot in old])
            self._add(merged)
            moved = {id(live[slot]): base for slot, base in zip(old, bases, strict=True) if base is not None}
            for slot, (segment, offset) in enumerate(self._places):
                if id(segment) in moved:
                    self._places[slot] = (merged, moved[id(segment)] + offset)
            for slot in old:
                live[slot].path.unlink(missing_ok=True)
                del self._segments[slot]

    def _drop_vanished(self) -> None:
        """Stop looking into segments that another process has merged; numbers already given out stay good.

        A segment that was deleted in any other way (the cache was cleared) has its rows nowhere else, and stays.
        """
        for slot, segment in [item for item in self._segments.items() if not item[1].path.exists()]:
            covered = np.zeros(len(segment), dtype=bool)
            for other in self._segments.values():
                if other.path.exists():
                    covered |= other.find(segment.high, segment.low) >= 0
            if covered.all():
                del self._segments[slot]


def _first_of_each(wanted: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Of ``positions``, the first of each distinct key, in their order."""
    high, low = segments.halves(wanted[positions])
    order = np.lexsort((positions, low, high))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(high[order]) != 0) | (np.diff(low[order]) != 0)
    return np.sort(positions[order[first]])

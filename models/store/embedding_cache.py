"""Every unique text encoded once, kept on disk, shared by runs and processes.

A folder belongs to one encoder (its fingerprint, width and type) and holds files of vectors (see ``vector_files``). A
text is found by a 16-byte hash, which does not depend on the encoder. What stays in memory is the mapping of the files,
not the vectors and no dictionary of keys. A damaged file is noticed when it is opened, deleted with a warning, and its
texts are encoded again when they are next asked for. POSIX only: deleting a file that others have mapped must be allowed.
"""

import contextlib
import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from filelock import FileLock, Timeout

from negsample.errors import InputError
from negsample.io.files import atomic_json
from negsample.models.store import vector_files
from negsample.models.store.cache_folders import LABEL, LOCK, cache_root, read_label
from negsample.models.store.text_keys import KEY_BYTES, first_of_each, halves, keys
from negsample.models.store.vector_files import Damaged, VectorFile
from negsample.seeds import digest
from negsample.text import readable

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

logger = logging.getLogger(__name__)

CHUNK = 4096
_ROW_BITS = 40  # a number is slot << 40 | row
_MOST_FILES = 32
_LARGE_FILES = 8  # these are left as they are when the others are merged, so that big files are rarely rewritten
_TYPE = "<f4"


class EmbeddingCache:
    """The vectors of one encoder, encoded when they are first asked for.

    ``folder`` defaults to one under ``cache_root()`` named after the encoder, its fingerprint and its width. Texts are
    encoded ``chunk`` at a time and each chunk is on disk before the next begins.

    An encoder whose vectors are a cheap function of another's (``Encoder.shared``) is kept as the other's vectors, in the
    other's folder; ``gather`` applies the function.

    Several processes may use one folder. A text that two of them meet at the same moment is encoded by both; either
    vector serves. One object must not be used by several threads at once.

    Raises InputError where the folder holds another encoder's vectors or can't be written.
    """

    def __init__(self, encoder: "Encoder", folder: Path | None = None, *, chunk: int = CHUNK) -> None:
        self._finish: Callable[[np.ndarray], np.ndarray] | None
        encoder, self._finish = getattr(encoder, "shared", None) or (encoder, None)
        self.encoder = encoder
        self.dim: int = encoder.dim
        self._chunk = chunk
        self._owner = digest(encoder.fingerprint, encoder.dim, _TYPE, size=16)
        self.folder = Path(folder) if folder is not None else cache_root() / self._default_name()
        # The lookups go over _files (slot → file). A number given out names a slot for the life of this object;
        # _places says where that slot's rows are now, which may be further down a merged file.
        self._files: dict[int, VectorFile] = {}
        self._places: list[tuple[VectorFile, int]] = []
        self._known: set[str] = set()
        self._label_folder()
        vector_files.remove_leftovers(self.folder)
        self._refresh()

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of ``texts``, encoding those never seen; float32 [n, dim].

        Raises InputError as ``index`` does.
        """
        return self.gather(self.index(texts))

    def index(self, texts: Sequence[str], wanted: np.ndarray | None = None) -> np.ndarray:
        """Return a number for each text, encoding those never seen; int64 [n]. ``wanted``: ``keys(texts)``, where known.

        The numbers are for ``gather`` of this object, while it lives; a store on disk keeps ``keys(texts)`` and asks
        ``resolve``. Two equal texts may have two numbers, if they were asked for at different times.

        Raises InputError where the encoder returns anything but finite vectors of its width, or the disk is full.
        """
        wanted = keys(texts) if wanted is None else wanted
        numbers = self.resolve(wanted)
        missing = np.flatnonzero(numbers < 0)
        todo = missing[first_of_each(wanted[missing])]
        for start in range(0, len(todo), self._chunk):
            self._encode(texts, wanted, todo[start : start + self._chunk])
        numbers[missing] = self._find(wanted[missing])
        if (numbers < 0).any():
            raise RuntimeError("texts that were just encoded are not in the cache")
        return numbers

    def resolve(self, wanted: np.ndarray) -> np.ndarray:
        """Return the numbers of keys (uint8 [n, 16]) whose vectors are there, -1 for the others; int64 [n]."""
        wanted = np.asarray(wanted, dtype=np.uint8).reshape(-1, KEY_BYTES)
        numbers = self._find(wanted)
        missing = np.flatnonzero(numbers < 0)
        if missing.size:
            self._refresh()
            numbers[missing] = self._find(wanted[missing])
        return numbers

    def gather(self, numbers: np.ndarray) -> np.ndarray:
        """Return the vectors of ``numbers`` (any shape), a row of zeros for each -1; float32 [.., dim].

        Raises IndexError for a number that this object did not give out.
        """
        numbers = np.asarray(numbers, dtype=np.int64)
        flat = numbers.ravel()
        out = np.zeros((flat.size, self.dim), dtype=np.float32)
        slots = flat >> _ROW_BITS
        if flat.size and (flat.min() < -1 or slots.max() >= len(self._places)):
            raise IndexError("a row number that did not come from this cache object")
        for slot in np.unique(slots[slots >= 0]):
            where = np.flatnonzero(slots == slot)
            file, offset = self._places[slot]
            out[where] = file.take((flat[where] & ((1 << _ROW_BITS) - 1)) + offset)
        if self._finish is not None:
            out = self._finish(out)
        return out.reshape(*numbers.shape, self.dim)

    def _default_name(self) -> str:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.encoder.name)
        return f"{name}-{self.encoder.fingerprint[:16]}-d{self.dim}"

    def _label_folder(self) -> None:
        """Make the folder and its label, or check that the label is this encoder's."""
        fields = {"fingerprint": self.encoder.fingerprint, "dim": self.dim, "dtype": _TYPE}
        label = {"format": 1, "name": self.encoder.name, **fields}
        found = read_label(self.folder)
        if found is None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise self._unwritable(error) from error
            atomic_json(self.folder / LABEL, label)
            return
        for field in ("format", *fields):
            if found.get(field) != label[field]:
                raise InputError(
                    f"{self.folder}: holds vectors of encoder {found.get('name')!r} with {field} "
                    f"{found.get(field)!r}, not {label[field]!r}; give another folder or clear this one"
                )

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(
            f"{self.folder}: can't write the embedding cache ({error.strerror or error}); "
            "make room there or set NEGSAMPLE_CACHE to another folder"
        )

    def _refresh(self) -> None:
        """Open the files that have appeared; drop the damaged ones."""
        # A file that is gone before it is opened was merged into a new one: list again.
        for _ in range(8):
            fresh = [path for path in sorted(self.folder.glob(vector_files.PATTERN)) if path.name not in self._known]
            try:
                for path in fresh:
                    self._open(path)
                return
            except FileNotFoundError:
                continue

    def _open(self, path: Path) -> None:
        try:
            file = vector_files.open_vectors(path)
            if file.owner == self._owner:
                file.check()
                self._add(file)
            else:
                logger.warning("%s: belongs to another encoder and is left alone", path)
        except Damaged as reason:
            logger.warning("%s: damaged (%s); deleted, its texts will be encoded again", path, reason)
            with contextlib.suppress(OSError):
                path.unlink()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise InputError(
                f"{path}: can't be read ({error.strerror or error}); check its permissions or delete it"
            ) from error
        self._known.add(path.name)

    def _add(self, file: VectorFile) -> None:
        self._known.add(file.path.name)
        self._files[len(self._places)] = file
        self._places.append((file, 0))

    def _find(self, wanted: np.ndarray) -> np.ndarray:
        """Return the numbers of the keys (uint8 [n, 16]) in the open files, -1 where there is none."""
        high, low = halves(wanted)
        numbers = np.full(len(wanted), -1, dtype=np.int64)
        pending = np.argsort(high)  # in order, so that each binary search starts near the last one's pages
        for slot, file in self._files.items():
            if not pending.size:
                break
            found = file.find(high[pending], low[pending])
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
        chosen = [readable(texts[position]) for position in positions]
        counts = getattr(self.encoder, "counts", {})
        before = counts.get("truncated", 0)
        vectors = self._checked(chosen, np.asarray(self.encoder.encode(chosen)))
        if (cut := counts.get("truncated", 0) - before) > 0:
            logger.warning(
                "%s: %d of %d new texts are longer than the encoder reads, and their ends are left out",
                self.encoder.name,
                cut,
                len(chosen),
            )
        if not (self.folder / LABEL).exists():
            self._label_folder()  # somebody has cleared the cache
        try:
            self._add(
                vector_files.write_vectors(self.folder, self._owner, wanted[positions], [vectors], self.dim, _TYPE)
            )
            if len(self._files) > _MOST_FILES:
                # Where another process is merging, it is left to that one.
                with contextlib.suppress(Timeout), FileLock(self.folder / LOCK, blocking=False):
                    self._merge()
        except OSError as error:
            raise self._unwritable(error) from error

    def _checked(self, texts: list[str], vectors: np.ndarray) -> np.ndarray:
        if vectors.shape != (len(texts), self.dim):
            raise InputError(
                f"encoder {self.encoder.name!r} returned an array of shape {vectors.shape} for {len(texts)} texts, "
                f"expected ({len(texts)}, {self.dim})"
            )
        with np.errstate(over="ignore"):
            kept = vectors.astype(_TYPE)
        bad = np.flatnonzero(~np.isfinite(kept).all(axis=1))
        if bad.size:
            raise InputError(
                f"encoder {self.encoder.name!r} returned values that are not finite as {kept.dtype} for {bad.size} of "
                f"{len(texts)} texts, the first {texts[bad[0]][:60]!r}; check its weights"
            )
        return kept

    def _merge(self) -> None:
        """Merge all but the largest files into one where there are still too many. Call it with the lock held."""
        self._refresh()
        live = {slot: file for slot, file in self._files.items() if file.path.exists()}
        # A file that is gone was merged by another process, and need not be looked into. Where it was deleted in any
        # other way (the cache was cleared) its rows are nowhere else, and it stays. Numbers given out stay good.
        for slot, gone in [item for item in self._files.items() if item[0] not in live]:
            covered = np.zeros(len(gone), dtype=bool)
            for file in live.values():
                covered |= file.find(gone.high, gone.low) >= 0
            if covered.all():
                del self._files[slot]
        if len(live) <= _MOST_FILES:
            return
        large = sorted(live, key=lambda slot: len(live[slot]), reverse=True)[:_LARGE_FILES]
        old = [slot for slot in live if slot not in large]
        merged, bases = vector_files.merge(self.folder, self._owner, [live[slot] for slot in old])
        self._add(merged)
        moved = {id(live[slot]): base for slot, base in zip(old, bases, strict=True) if base is not None}
        for slot, (file, offset) in enumerate(self._places):
            if id(file) in moved:
                self._places[slot] = (merged, moved[id(file)] + offset)
        for slot in old:
            live[slot].path.unlink(missing_ok=True)
            del self._files[slot]

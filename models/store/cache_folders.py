"""The folders of embedding caches: where they are, whose vectors they hold, how big they are, and deleting them."""

import contextlib
import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.models.store import vector_files
from negsample.registry import suggestion

logger = logging.getLogger(__name__)

LABEL = "cache.json"
LOCK = "lock"


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
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared).expanduser() if shared else Path.home() / ".cache") / "negsample"


def find_caches(name: str | None = None) -> list[CacheInfo]:
    """Return the caches of the encoder ``name`` (or the folder of that name), or all under ``cache_root()``, by name.

    Rows are counted from the headers, damaged files as none. Raises InputError where ``name`` is not there.
    """
    found = []
    for folder in (path.parent for path in cache_root().glob(f"*/{LABEL}")):
        label = read_label(folder) or {}
        rows = size = 0
        for path in vector_files.all_files(folder):
            with contextlib.suppress(FileNotFoundError, vector_files.Damaged):
                size += path.stat().st_size
                rows += len(vector_files.open_vectors(path))
        found.append(CacheInfo(str(label.get("name", "?")), str(label.get("fingerprint", "?")), rows, size, folder))
    found.sort(key=lambda info: (info.name, info.fingerprint))
    chosen = [info for info in found if name is None or name in (info.name, info.folder.name)]
    if name is not None and not chosen:
        told = suggestion(name, sorted({info.name for info in found})) if found else "there is none yet"
        raise InputError(f"no cache of encoder {name!r} in {cache_root()}; {told}")
    return chosen


def clear_cache(name: str | None = None) -> int:
    """Delete the caches of the encoder ``name`` (or the folder of that name), or all, and return the bytes freed.

    Only files that the cache made are deleted. A process that is using them keeps what it has mapped.
    Raises InputError where ``name`` is not there.
    """
    freed = 0
    for info in find_caches(name):
        for path in [*vector_files.all_files(info.folder), info.folder / LOCK, info.folder / LABEL]:
            with contextlib.suppress(FileNotFoundError):
                size = path.stat().st_size
                path.unlink()
                freed += size
        with contextlib.suppress(OSError):
            info.folder.rmdir()  # stays where somebody keeps other files in it
    return freed


def read_label(folder: Path) -> dict[str, Any] | None:
    """Return the label of a cache folder; None where there is none or it can't be read as one."""
    path = folder / LABEL
    try:
        label = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        label = None
    if not isinstance(label, dict):
        logger.warning("%s: damaged, so that the folder does not say whose vectors it holds", path)
        return None
    return label

"""The folders of embedding caches: where they are, whose vectors they hold, how big they are, and deleting them."""

import contextlib
import json
import logging
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.models.store import segments
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
    """The folder of all caches: ``NEGSAMPLE_CACHE``, else ``XDG_CACHE_HOME/negsample``, else ``~/.cache/negsample``."""
    if own := os.environ.get("NEGSAMPLE_CACHE"):
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared).expanduser() if shared else Path.home() / ".cache") / "negsample"


def cache_report() -> list[CacheInfo]:
    """The caches under ``cache_root()``, sorted by name. Rows are counted from the headers, damaged files as none."""
    found = []
    for folder in _cache_folders():
        label = read_label(folder) or {}
        rows = size = 0
        for path in segments.files(folder):
            with contextlib.suppress(FileNotFoundError):
                size += path.stat().st_size
                with contextlib.suppress(segments.Damaged):
                    rows += segments.read_header(path).count
        found.append(CacheInfo(str(label.get("name", "?")), str(label.get("fingerprint", "?")), rows, size, folder))
    return sorted(found, key=lambda info: (info.name, info.fingerprint))


def find_caches(name: str | None = None) -> list[CacheInfo]:
    """The caches of the encoder ``name`` (or the folder of that name), or all. InputError where ``name`` is not there."""
    report = cache_report()
    found = [info for info in report if name is None or name in (info.name, info.folder.name)]
    if name is not None and not found:
        known = sorted({info.name for info in report})
        told = suggestion(name, known) if known else "there is none yet"
        raise InputError(f"no cache of encoder {name!r} in {cache_root()}; {told}")
    return found


def clear_cache(name: str | None = None) -> int:
    """Delete the caches of the encoder ``name`` (or the folder of that name), or all; returns the bytes freed.

    Only files that the cache made are deleted. A process that is using them keeps what it has mapped.
    Raises InputError where ``name`` is not there.
    """
    freed = 0
    for info in find_caches(name):
        for path in [*segments.files(info.folder), info.folder / LOCK, info.folder / LABEL]:
            with contextlib.suppress(FileNotFoundError):
                size = path.stat().st_size
                path.unlink()
                freed += size
        with contextlib.suppress(OSError):
            info.folder.rmdir()  # stays where somebody keeps other files in it
    return freed


def write_label(folder: Path, label: Mapping[str, Any]) -> None:
    """Make the folder if need be, and its label. Raises OSError where the disk refuses."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f"tmp-{uuid.uuid4().hex}"
    try:
        temporary.write_text(json.dumps(label, indent=1) + "\n", encoding="utf-8")
        os.replace(temporary, folder / LABEL)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _cache_folders() -> list[Path]:
    root = cache_root()
    return sorted(path.parent for path in root.glob(f"*/{LABEL}")) if root.is_dir() else []


def read_label(folder: Path) -> dict[str, Any] | None:
    """The label of a cache folder; None where there is none or it can't be read as one."""
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

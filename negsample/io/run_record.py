"""``run.json``: what was run, on what, with which versions, and how long it took."""

import hashlib
import platform
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import negsample
from negsample.io.files import atomic_json, file_digest

_PACKAGES = ("torch", "transformers", "accelerate", "datasets", "numpy", "scipy")


def versions() -> dict[str, str]:
    """Versions of Python, this package and what its numbers depend on; packages that are not installed are left out."""
    found = {"python": platform.python_version(), "negsample": negsample.__version__}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds so far, to the millisecond."""
        return round(time.monotonic() - self._start, 3)


def write_run(path: Path, watch: Stopwatch, *, device: str = "cpu", **facts: Any) -> None:
    """Write ``run.json`` at ``path``: command, time, versions, device, and ``facts`` (config, seed, data fingerprints …)."""
    record = {
        "command": ["negsample", *sys.argv[1:]],
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": watch.seconds,
        "device": device,
        "platform": platform.platform(),
        "versions": versions(),
        **facts,
    }
    atomic_json(path, record)


def fingerprints(paths: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of each file; of a folder, of its files' relative paths and contents in order."""
    found = {}
    for path in dict.fromkeys(paths):
        top = Path(path)
        if not top.is_file() and not top.is_dir():  # a pipe has been read
            continue
        hasher = hashlib.sha256()
        for file in [top] if top.is_file() else sorted(p for p in top.rglob("*") if p.is_file()):
            if file != top:
                hasher.update(str(file.relative_to(top)).encode("utf-8", "surrogateescape") + b"\0")
            hasher.update(file_digest(file))
        found[path] = hasher.hexdigest()
    return found

"""``run.json``: what was run, on what, with which versions, and how long it took; and a folder that one experiment fills.

Such a folder is begun with its arguments, gone on with by the same ones only, held by a lock: what ``--resume`` rests on. Where
in its training a run goes on is kept by ``negsample.train.fit.checkpoint``.
"""

import hashlib
import itertools
import json
import platform
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from filelock import AcquireReturnProxy, FileLock, Timeout

import negsample
from negsample.errors import InputError
from negsample.io.files import atomic_json, failure, file_digest
from negsample.terminal import say

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


_LOCK = "lock"
# Whoever waits longer says so, and again each time as many seconds have passed as stand at the end.
_PATIENCE = (5.0, 60.0)


@contextmanager
def work_folder(
    out: Path,
    arguments: Mapping[str, Any],
    *,
    name: str,
    what: str,
    alone: bool,
    makes: Sequence[str] = (),
    kept: Sequence[str] = (),
    resume: bool = True,
) -> Iterator[None]:
    """Begin the folder ``out`` with ``arguments``, or go on in one begun with the same ones, and hold it for the block.

    The arguments are kept in its file ``name``; ``what`` it is for (``"a table"``) is told in errors. Another process
    that comes meanwhile is refused where this is to be ``alone``; else it waits, so the block of a folder that several
    processes share holds only what one of them must do for all.

    Where the block raises InputError and this call has begun the folder, what was made is removed, so that the mistake
    can be corrected and the same folder given: the arguments, the entries ``makes``, and folders that were not there
    before; but nothing where a pattern of ``kept`` matches: work that is worth going on with.

    Raises InputError before anything is written: for a file, a folder that holds something else (without ``resume``:
    anything), a damaged file of arguments, other arguments, naming those that differ, and (``alone``) a folder that
    another process holds.
    """
    # Another process may be about to write its arguments: what a locked folder holds is told once the lock is ours.
    if not (out / _LOCK).exists():
        _is_begun(out, arguments, name, what, resume)
    lock, made = _hold(out, alone)
    ours, own = False, False
    try:
        own = not _is_begun(out, arguments, name, what, resume)
        ours = True
        if own:
            (out / name).parent.mkdir(exist_ok=True)
            atomic_json(out / name, arguments)
        yield
    except InputError:
        if own and not any(match for pattern in kept for match in out.glob(pattern)):
            for entry in makes:
                shutil.rmtree(out / entry, ignore_errors=True)
            (out / name).unlink(missing_ok=True)
        raise
    finally:
        if ours:
            # The lock file goes while it is held: who has it open sees that it is no longer there.
            (out / _LOCK).unlink(missing_ok=True)
        lock.release()
        # Only empty folders go.
        with suppress(OSError):
            for folder in made:
                folder.rmdir()


def refuse_changes(out: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise InputError where the folder ``out`` was begun with other arguments than ``now``, naming those that differ."""
    now = json.loads(json.dumps(now))
    changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    if changed:
        told = ", ".join(f"{key} was {before.get(key)!r}, is {now.get(key)!r}" for key in changed)
        raise InputError(f"{out}: was begun with another configuration ({told}); give that one, or another folder")


def waiting(path: Path) -> AcquireReturnProxy:
    """Hold the lock file ``path`` for a block, waiting for as long as another process holds it; its folder is made.

    Whoever waits for more than five seconds says on standard error for which folder, once a minute.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    return _wait(FileLock(path), path.parent)


@contextmanager
def trying(path: Path) -> Iterator[bool]:
    """Whether this process now holds the lock file ``path``; never waits. Its folder is made.

    The kernel frees the lock of a process that dies.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    with suppress(Timeout):
        lock.acquire(blocking=False)
    try:
        yield lock.is_locked
    finally:
        lock.release()


def _wait(lock: FileLock, folder: Path) -> AcquireReturnProxy:
    for seconds in itertools.chain([_PATIENCE[0]], itertools.repeat(_PATIENCE[1])):
        try:
            return lock.acquire(timeout=seconds)
        except Timeout:
            say(f"{folder}: waiting for another process, which is working on this, to end", error=True)
    raise AssertionError


def _hold(out: Path, alone: bool) -> tuple[FileLock, list[Path]]:
    """The lock of the folder ``out``, held; and the folders that were made for it, the innermost first."""
    lock = FileLock(out / _LOCK)
    while True:
        made = [folder for folder in (out, *out.parents) if not folder.exists()]
        try:
            out.mkdir(parents=True, exist_ok=True)
            if alone:
                lock.acquire(blocking=False)
            else:
                _wait(lock, out)
            return lock, made
        except Timeout:
            raise InputError(
                f"{out}: another process is working on this; wait for it, or give another folder"
            ) from None
        except FileNotFoundError:
            # Its last holder has failed, and removed the folder between these two steps.
            continue
        except OSError as error:
            raise failure(str(out), error) from error


def _is_begun(out: Path, arguments: Mapping[str, Any], name: str, what: str, resume: bool) -> bool:
    """Whether ``out`` was begun with ``arguments``; False where it is still to be begun. Raises as ``work_folder``."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; give a folder for {what}")
    holds = out.is_dir() and any(e.name != _LOCK and not e.name.startswith(".negsample-") for e in out.iterdir())
    if holds and not resume:
        raise InputError(f"{out}: is not empty; go on with --resume, or give another folder")
    path = out / name
    if not path.is_file():
        if holds:
            raise InputError(f"{out}: holds something else than {what}; give an empty or new folder")
        return False
    try:
        before = dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise InputError(f"{path}: damaged; give another folder with --out") from None
    refuse_changes(out, before, arguments)
    return True

"""A folder that holds one experiment: made with its arguments, gone on with by the same ones only, shared by locks."""

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.io.files import atomic_json, failure
from negsample.models.store.segments import lock

# What another process that has just begun the same folder may have put there before its arguments.
_EARLY = ("lock", "locks")
_POLL_SECONDS = 0.5


def claim(out: Path, arguments: Mapping[str, Any], name: str, what: str) -> bool:
    """Make the folder ``out`` with ``arguments`` in its file ``name``, or see that it was begun with the same ones.

    Returns whether this call has begun it. ``what`` it is for (``"a table"``) is told in errors. Raises InputError for a
    file, a folder that holds something else, a damaged file of arguments, or other arguments, naming those that differ.
    """
    if _begun(out, arguments, name, what):
        return False
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise failure(str(out), error) from error
    atomic_json(out / name, arguments)
    return True


@contextmanager
def opening(out: Path, arguments: Mapping[str, Any], name: str, what: str, makes: Sequence[str]) -> Iterator[None]:
    """``claim`` the folder ``out``, and let other processes that open it wait until the block ends.

    Where the block raises InputError and this call has begun the folder, what was made is removed again, so that the
    mistake can be corrected and the same folder given: the claim, the entries ``makes``, and folders that were not there
    before. Raises InputError as ``claim`` does, before anything is written.
    """
    _begun(out, arguments, name, what)
    path = out / "locks" / "opening.lock"
    made: list[Path] = []
    with ExitStack() as stack:
        while not _hold(path, out, made, stack):
            time.sleep(_POLL_SECONDS)
        own = claim(out, arguments, name, what)
        try:
            yield
        except InputError:
            if own:
                _remove([out / entry for entry in (*makes, name)])
                if path.parent in made:
                    path.unlink(missing_ok=True)
                _remove_empty(made)
            raise


@contextmanager
def alone(
    out: Path, arguments: Mapping[str, Any], name: str, what: str, makes: Sequence[str], kept: str
) -> Iterator[None]:
    """``claim`` the folder ``out`` for this process alone, until the block ends.

    Where the block raises InputError, what was made is removed again as by ``opening``, unless something in the folder
    matches the pattern ``kept``: work that is worth going on with. Raises InputError as ``claim`` does, before anything
    is written, and where another process has the folder.
    """
    _begun(out, arguments, name, what)
    path = out / "lock"
    made: list[Path] = []
    with ExitStack() as stack:
        if not _hold(path, out, made, stack):
            raise InputError(f"{out}: another process is working on this; wait for it, or give another folder")
        own = claim(out, arguments, name, what)
        try:
            yield
        except InputError:
            if own and not any(out.glob(kept)):
                # The lock goes while it is held: who opens its file now sees that it is no longer there.
                _remove([out / entry for entry in (*makes, name, path.name)])
                _remove_empty(made)
            raise


def _hold(path: Path, out: Path, made: list[Path], stack: ExitStack) -> bool:
    """Whether ``stack`` now holds ``path``, a lock file in ``out``; folders made for it are added to ``made``."""
    missing = [folder for folder in path.parents if not folder.exists()]
    try:
        for folder in reversed(missing):
            with suppress(FileExistsError):
                folder.mkdir()
                made.append(folder)
        with ExitStack() as attempt:
            held = attempt.enter_context(lock(path))
            if held:
                stack.enter_context(attempt.pop_all())
            return held
    except FileNotFoundError:
        # The process that held it has failed, and removed the folder between two of these steps.
        return False
    except OSError as error:
        _remove_empty(made)
        raise failure(str(out), error) from error


def _remove(entries: Sequence[Path]) -> None:
    """Remove files and whole folders, as far as they are there."""
    for entry in entries:
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove ``folders``, each made before those in it, as far as they are empty."""
    with suppress(OSError):
        for folder in reversed(folders):
            folder.rmdir()


def _begun(out: Path, arguments: Mapping[str, Any], name: str, what: str) -> bool:
    """Whether ``out`` was begun with ``arguments``; False where it is still to be begun. Raises as ``claim`` does."""
    path = out / name
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; give a folder for {what}")
    if not path.is_file():
        if out.is_dir() and any(_foreign(entry) for entry in out.iterdir()):
            raise InputError(f"{out}: holds something else than {what}; give an empty or new folder")
        return False
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise InputError(f"{path}: damaged; give another folder with --out") from None
    now = json.loads(json.dumps(arguments))
    changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    if changed:
        told = ", ".join(f"{key} was {before.get(key)!r}, is {now.get(key)!r}" for key in changed)
        raise InputError(f"{out}: was begun with other arguments ({told}); give those, or another folder with --out")
    return True


def _foreign(entry: Path) -> bool:
    return entry.name not in _EARLY and not entry.name.startswith(".negsample-")


@contextmanager
def waiting(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``, whose folder is made, waiting for as long as another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with lock(path) as held:
            if held:
                yield
                return
        time.sleep(_POLL_SECONDS)

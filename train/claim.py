"""A folder that holds one experiment: made with its arguments, gone on with by the same ones only, shared by locks."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.fileio import atomic_json, failure
from negsample.models.segments import lock

# What another process that has just begun the same folder may have put there before its arguments.
_EARLY = ("lock", "locks")
_POLL_SECONDS = 0.5


def claim(out: Path, arguments: Mapping[str, Any], name: str, what: str) -> None:
    """Make the folder ``out`` with ``arguments`` in its file ``name``, or see that it was begun with the same ones.

    ``what`` it is for (``"a table"``) is told in errors. Raises InputError for a file, a folder that holds something
    else, a damaged file of arguments, or other arguments, naming those that differ.
    """
    path = out / name
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; give a folder for {what}")
    if not path.is_file():
        if out.is_dir() and any(_foreign(entry) for entry in out.iterdir()):
            raise InputError(f"{out}: holds something else than {what}; give an empty or new folder")
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise failure(str(out), error) from error
        atomic_json(path, arguments)
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise InputError(f"{path}: damaged; give another folder with --out") from None
    now = json.loads(json.dumps(arguments))
    changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    if changed:
        told = ", ".join(f"{key} was {before.get(key)!r}, is {now.get(key)!r}" for key in changed)
        raise InputError(f"{out}: was begun with other arguments ({told}); give those, or another folder with --out")


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

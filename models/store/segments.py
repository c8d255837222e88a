"""A lock file, for those that have not yet gone over to ``filelock``."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def lock(path: Path) -> Iterator[bool]:
    """Whether this process now holds the lock file; never waits. The kernel frees the lock of a process that dies."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield _is_still(path, file.fileno())


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether ``path`` is the file that is open: its last holder may have deleted it before it let it go."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False

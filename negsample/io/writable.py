"""Seeing, before long work, that what it finds can be written: the result of an hour is not lost to a misspelt folder."""

import secrets
from contextlib import suppress
from pathlib import Path

from negsample.io.files import failure, replacing


class _TriedError(Exception):
    """Ends a try before anything is replaced."""


def check_file(path: str | Path) -> None:
    """InputError where the file ``path`` can't be written, for the reasons of ``replacing``. Nothing is changed."""
    # Permissions don't tell all (a read-only file system, root), so that it is tried.
    with suppress(_TriedError), replacing(path):
        raise _TriedError


def check_folder(out: str | Path) -> None:
    """InputError where the folder ``out`` can't be made, or be replaced where it is there. Nothing is changed."""
    try:
        nearest = next(folder for folder in Path(out).absolute().parents if folder.exists())
        probe = nearest / f".negsample-{secrets.token_hex(8)}.part"
        probe.mkdir()
        probe.rmdir()
    except OSError as error:
        raise failure(str(out), error) from error

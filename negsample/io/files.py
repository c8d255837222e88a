"""Files as a whole: which format a name means, why an operation failed, and writing that never leaves half a file."""

import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from negsample.errors import InputError

ENDINGS = {
    **{f".{kind}{packing}": kind for kind in ("jsonl", "csv", "tsv") for packing in ("", ".gz")},
    ".json": "jsonl",
    ".json.gz": "jsonl",
    ".parquet": "parquet",
}
_KNOWN = ".jsonl[.gz], .json[.gz] (one object a line, or an array), .csv[.gz], .tsv[.gz], .parquet"
# So many seconds may pass until a file that another machine has written is seen.
_PATIENCE = 30.0

_HINTS = {
    errno.ENOENT: "no such file or folder; check the path",
    errno.EISDIR: "is a folder; name a file",
    errno.ENOTDIR: "a part of the path is a file, not a folder; check the path",
    errno.EACCES: "permission denied; choose another place or change its permissions",
    errno.EPERM: "not permitted; choose another place or change its permissions",
    errno.EROFS: "the file system is read-only; choose another place",
    errno.ENOSPC: "the disk is full; free some space or choose another place",
    errno.EDQUOT: "the disk quota is used up; free some space or choose another place",
    errno.EFBIG: "the file would be larger than allowed here; choose another place",
    errno.ENOTEMPTY: "has been filled meanwhile, by another process; give another folder",
    errno.EEXIST: "has been made meanwhile, by another process; give another folder",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
}


# What ``replacing`` writes.
_PART = ".negsample-*.part"
# Reasons that a write has, and a read has not.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def format_of(path: str | Path) -> str:
    """``"jsonl"``, ``"csv"``, ``"tsv"`` or ``"parquet"``, from the ending of ``path``; ``"-"`` is ``"jsonl"``.

    Raises InputError, which lists the known endings, for any other name.
    """
    if str(path) == "-":
        return "jsonl"
    if not has_known_ending(path):
        raise InputError(f"{path}: can't tell the format from the name; known endings: {_KNOWN}")
    return next(kind for ending, kind in ENDINGS.items() if str(path).lower().endswith(ending))


def has_known_ending(path: str | Path) -> bool:
    """Whether the name tells a format of records."""
    return str(path).lower().endswith(tuple(ENDINGS))


def failure(name: str, error: OSError) -> InputError:
    """The InputError that says why the operating system refused ``name`` and what to do."""
    return InputError(f"{name}: {_HINTS.get(error.errno or 0) or error.strerror or error}")


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn an OSError of the block, but a reader that has gone away, into the InputError of ``failure``."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise failure(name, error) from error


def _open_beside(target: str) -> tuple[str, BinaryIO]:
    """A new, empty file in the folder of ``target``: its path and an open handle."""
    folder = os.path.dirname(target)
    path = os.path.join(folder, _PART.replace("*", secrets.token_hex(8)))
    # Readable by others as far as the umask allows, as any new file; tempfile would make it its owner's alone.
    return path, open(path, "x+b")


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file to write; it becomes ``path`` when the block ends well and vanishes when it does not.

    The bytes go to a temporary file in the same folder, which is synced to disk and then renamed, so that at any moment
    ``path`` is either what it was or complete. A library that opens files itself is given the temporary file's path, the
    handle's ``name``. Raises InputError where the folder is missing or not writable, where
    ``path`` is not an ordinary file, or where the disk fails at the end.
    """
    name = str(path)
    target = os.path.realpath(path)
    with explained(name):
        mode = os.stat(target).st_mode if os.path.lexists(target) else None
        if mode is not None and stat.S_ISDIR(mode):
            raise InputError(f"{name}: is a folder; name a file")
        if mode is not None and not stat.S_ISREG(mode):
            raise InputError(f"{name}: not an ordinary file; use - for standard output")
        if not os.path.isdir(os.path.dirname(target)):
            raise InputError(f"{name}: there is no folder {os.path.dirname(target)}; make it first")
        temporary, handle = _open_beside(target)
    try:
        try:
            yield handle
        except OSError as error:
            # A copy tells its source first.
            if error.errno in _FULL and (error.filename is None or error.filename2 == temporary):
                raise failure(name, error) from error
            raise
        with explained(name):
            handle.close()
            # A library may have put another file in its place.
            with open(temporary, "r+b") as written:
                os.fsync(written.fileno())
            if mode is not None:
                shutil.copymode(target, temporary)
            os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            handle.close()
        with suppress(OSError):
            os.unlink(temporary)
        raise


def remove_parts(folder: Path) -> None:
    """Remove what processes that were killed were writing (``replacing``) in ``folder``."""
    for path in folder.glob(_PART):
        path.unlink(missing_ok=True)


def file_digest(path: Path) -> bytes:
    """SHA-256 of a file's bytes; about a gigabyte a second."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def copy_file(source: Path, target: Path) -> None:
    """Copy the bytes of ``source`` (links followed) to ``target``, whole or not at all; its folder is made."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as stream:
        shutil.copyfile(source, stream.name)


def share_weights(folder: Path, like: str = "config.json") -> None:
    """Let all weights below ``folder`` be read by whoever may read its file ``like``: safetensors makes them their owner's
    alone."""
    for path in folder.rglob("*.safetensors"):
        shutil.copymode(folder / like, path)


def appears(path: Path) -> bool:
    """Whether ``path`` comes to be there: a network file system looks for other machines' files after a while."""
    deadline = time.monotonic() + _PATIENCE
    while not path.exists():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.2)
    return True


def atomic_text(path: str | Path, text: str) -> None:
    """Write ``text`` as UTF-8 to ``path``, whole or not at all; half a surrogate pair as its ``\\uXXXX`` escape.

    Raises InputError as ``replacing`` does.
    """
    with replacing(path) as handle, explained(str(path)):
        handle.write(text.encode("utf-8", "backslashreplace"))


def atomic_json(path: str | Path, value: Any) -> None:
    """Write ``value`` as JSON (UTF-8, indented by 2, keys in their order) to ``path``, whole or not at all.

    Raises ValueError for a number that is not finite, for JSON has none, and InputError as ``replacing`` does.
    """
    atomic_text(path, json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2) + "\n")


class _TriedError(Exception):
    """Ends a try before anything is replaced."""


def check_outputs(targets: Iterable[str | None], read: Iterable[str | None] = ()) -> None:
    """InputError where a file of ``targets`` can't be written, is given twice, or is ``read``, by whatever path or link.

    None and ``"-"`` are passed over; nothing is changed. A command asks before it loads or computes anything.
    """
    inputs = [path for path in read if path is not None and os.path.isfile(path)]
    places: list[str] = []
    for target in targets:
        if target is None or target == "-":
            continue
        if os.path.exists(target) and any(os.path.samefile(path, target) for path in inputs):
            raise InputError(f"{target}: is an input too; give another file")
        if os.path.realpath(target) in places:
            raise InputError(f"{target}: is another output too; give another file")
        # Permissions don't tell all (a read-only file system, root), so that it is tried.
        with suppress(_TriedError), replacing(target):
            raise _TriedError
        places.append(os.path.realpath(target))


def check_new(out: str) -> None:
    """InputError where the folder ``out`` holds something, is a file, or can't be made. Nothing is changed."""
    path = Path(out)
    with explained(out):
        if path.is_dir():
            if any(path.iterdir()):
                raise InputError(f"{out}: is not empty; give another folder with --out")
        elif path.exists() or path.is_symlink():
            raise InputError(f"{out}: is not a folder; give another one with --out")
        nearest = next(folder for folder in path.absolute().parents if folder.exists())
        # Permissions don't tell all (a read-only file system, root), so that it is tried.
        probe = nearest / _PART.replace("*", secrets.token_hex(8))
        probe.mkdir()
        probe.rmdir()


@contextmanager
def new_folder(out: str) -> Iterator[Path]:
    """A folder to fill, which becomes ``out`` when the block ends well and vanishes when it does not.

    Raises InputError as `check_new` does, and where the folder can't be made.
    """
    check_new(out)
    target = Path(out).absolute()
    draft = target.parent / f".{target.name}-{secrets.token_hex(6)}.part"
    with explained(out):
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.mkdir()
    try:
        yield draft
        with explained(out):
            os.replace(draft, target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise

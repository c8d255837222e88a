"""Files of a data set as its publisher hands them out: below a folder, packed or unpacked, read without unpacking to disk."""

import html
import io
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from negsample.errors import InputError

_TAG = re.compile(r"<[^<>]*>")
_ARCHIVES = (".tar", ".tgz", ".tar.gz")


def files_below(root: Path, wanted: Callable[[str], bool], what: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file below ``root`` whose name is ``wanted``: unpacked files first, then archives' members.

    Archives inside archives are read too. Raises InputError where ``root`` is no folder (``what`` says which to give), and
    for a file that can't be read or an archive that is damaged.
    """
    if not root.is_dir():
        raise InputError(f"{root}: not a folder; give {what}")
    files = sorted(file for file in root.rglob("*") if file.is_file())
    for file in files:
        place = file.relative_to(root.parent).as_posix() if root.parent != root else file.as_posix()
        if wanted(place):
            try:
                yield place, file.read_bytes()
            except OSError as error:
                raise InputError(f"{file}: can't be read ({error.strerror}); check its permissions") from None
    for file in files:
        if file.name.lower().endswith(_ARCHIVES):
            with file.open("rb") as stream:
                yield from _members(stream, str(file), wanted)


def _members(stream: IO[bytes], name: str, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """The wanted files of an archive, and of the archives inside it."""
    try:
        with tarfile.open(fileobj=stream) as archive:
            for member in archive:
                inner = member.name.lower().endswith(_ARCHIVES)
                content = archive.extractfile(member) if member.isfile() and (inner or wanted(member.name)) else None
                if content is None:
                    continue
                if inner:
                    yield from _members(io.BytesIO(content.read()), f"{name}: {member.name}", wanted)
                else:
                    yield member.name, content.read()
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise InputError(f"{name}: not a sound tar archive ({error}); get it again") from None


def decode(data: bytes) -> str:
    """The text of ``data``: UTF-8, else Windows' Latin-1, of which Latin-1 newswire is a part."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def without_tags(markup: str) -> str:
    """The text of a piece of SGML or HTML in one line: tags out, entities resolved."""
    return " ".join(html.unescape(_TAG.sub(" ", markup)).split())

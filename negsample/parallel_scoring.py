"""One input scored by several processes: each takes every n-th chunk, and the first one puts the answers in order.

The chunks are those of a single process, so that every pair is computed beside the same others and the output is the
same to the last byte (on the same kind of device, with the same number of threads; head ``align`` keeps what it has read
for later pairs, and may differ in the last digit). Each process reads the whole input and scores its share; what it
finds goes to a part file in a folder that all of them see.
"""

import dataclasses
import json
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from negsample.errors import InputError
from negsample.io.files import appears, failure
from negsample.io.read import Row
from negsample.processes import Crew
from negsample.progress import Bar
from negsample.scoring import Outcome, Outcomes

T = TypeVar("T")


def score_together(
    crew: Crew,
    chunks: Callable[[], Iterator[list[Row]]],
    score: Outcomes,
    write: Callable[[Outcomes], T],
    beside: str | None,
) -> T | None:
    """Score ``chunks()`` in all processes; what ``write`` makes of the outcomes in the first one, None in the others.

    ``write`` reads the chunks again, in order, and asks for the outcomes of each. ``beside`` is the file it writes: the
    parts lie in a folder next to it while they are needed, or in the system's temporary folder where it is None or
    ``"-"``. A mistake in the input is told as by one process: the first one, whichever process meets it. Raises InputError
    where a process can't see that folder, and whatever the input and the scorer raise.
    """
    with _parts(crew, beside) as folder:
        share = _Share(crew, folder)
        crew.together(lambda: share.run(chunks(), score), lambda: share.chunk)

        def finish() -> T | None:
            if crew.rank:
                return None
            with ExitStack() as stack:
                return write(_recorded(folder, crew.size, stack))

        return crew.together(finish)


@contextmanager
def _parts(crew: Crew, beside: str | None) -> Iterator[Path]:
    """A folder that all processes see, for as long as the block lasts."""
    place = Path(tempfile.gettempdir()) if beside in (None, "-") else Path(os.path.realpath(str(beside))).parent
    folder = place / f".negsample-{crew.agree(secrets.randbits(62)):016x}.parts"

    def make() -> None:
        try:
            folder.mkdir()
        except OSError as error:
            raise failure(str(place), error) from error

    try:
        crew.together(lambda: None if crew.rank else make())
        crew.together(lambda: _see(folder, beside))
        yield folder
    finally:
        if not crew.rank:
            shutil.rmtree(folder, ignore_errors=True)


def _see(folder: Path, beside: str | None) -> None:
    if not appears(folder):
        advice = "set TMPDIR to a folder" if beside in (None, "-") else "put the output on a file system"
        raise InputError(
            f"{folder.parent}: {socket.gethostname()} does not see what the first process writes there; "
            f"{advice} that all machines share"
        )


class _Share:
    """One process' work: every ``crew.size``-th chunk, the ``crew.rank``-th first; ``chunk`` is where it is."""

    def __init__(self, crew: Crew, folder: Path) -> None:
        self._crew = crew
        self._folder = folder
        self.chunk = 0

    def run(self, chunks: Iterator[list[Row]], score: Outcomes) -> None:
        """Write the outcomes of the chunks that are this process' own, a line a chunk."""
        path = _part(self._folder, self._crew.rank)
        try:
            with open(path, "w", encoding="ascii") as part, Bar("scoring") as bar:
                for rows in chunks:
                    if self._stopped():
                        return
                    if self.chunk % self._crew.size == self._crew.rank:
                        part.write(json.dumps([_plain(outcome) for outcome in score(rows)]) + "\n")
                    bar.advance(len(rows))
                    self.chunk += 1
        except BaseException as error:
            # Told at once, so that the others need not finish what nobody will read.
            with suppress(OSError):
                (self._folder / f"failed-{self.chunk}").touch()
            if isinstance(error, OSError) and error.filename in (None, str(path)):
                raise failure(str(self._folder), error) from error
            raise

    def _stopped(self) -> bool:
        """Whether another process has met a mistake further up in the input than this one's next chunk."""
        found = (name.removeprefix("failed-") for name in os.listdir(self._folder) if name.startswith("failed-"))
        return any(int(chunk) < self.chunk for chunk in found)


def _part(folder: Path, rank: int) -> Path:
    return folder / f"part-{rank}.jsonl"


def _plain(outcome: Outcome) -> list[Any]:
    aspects = outcome.aspects
    return [outcome.score, outcome.cut, outcome.where, outcome.reason, None if aspects is None else dict(aspects)]


def _recorded(folder: Path, size: int, stack: ExitStack) -> Outcomes:
    """The outcomes that lie in the parts, chunk after chunk."""
    parts = [stack.enter_context(_part(folder, rank).open(encoding="ascii")) for rank in range(size)]
    names = [field.name for field in dataclasses.fields(Outcome)]
    number = 0

    def outcomes(rows: Sequence[Row]) -> list[Outcome]:
        nonlocal number
        line = parts[number % size].readline()
        number += 1
        found = [Outcome(**dict(zip(names, values, strict=True))) for values in json.loads(line or "[]")]
        if len(found) != len(rows):
            raise InputError("the input has changed while it was scored; score it again")
        return found

    return outcomes

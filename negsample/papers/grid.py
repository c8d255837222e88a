"""An experiment of many trainings in one folder: each is done once, gone on with, and shared by processes."""

import json
import re
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from negsample.errors import InputError
from negsample.io.files import atomic_json
from negsample.io.resume import trying
from negsample.io.run_record import Stopwatch
from negsample.models.build import Parts, takes
from negsample.models.features.align import AlignFeatures
from negsample.models.features.rows import RowFeatures
from negsample.seeds import digest
from negsample.terminal import say as tell
from negsample.train.config import TrainConfig
from negsample.train.data import Split, open_split, prepare_split
from negsample.train.fit.loop import own_state
from negsample.train.job import parts_of

POLL_SECONDS = 1.0


class Cell(Protocol):
    """One training of an experiment; ``str`` names it in messages.

    ``config`` decides it but for its data, resolved; ``folder`` lies below that of all cells; ``base`` is the folder of
    the cell whose model it goes on from, None for one that begins anew.
    """

    @property
    def config(self) -> TrainConfig: ...

    @property
    def folder(self) -> Path: ...

    @property
    def base(self) -> Path | None: ...


C = TypeVar("C", bound=Cell)


class Grid(ABC, Generic[C]):
    """The cells of an experiment in the order they are worked on, and how each of them is trained.

    ``out`` is the folder of the experiment: figures in ``cells``, locks in ``locks``, and in ``work`` what is needed until
    all is done. One process holds the encoder that it used last.
    """

    def __init__(self, out: Path, cells: Sequence[C]) -> None:
        self.out = out
        self.cells = cells
        self._last: tuple[Any, Any, dict[str, str]] | None = None

    @abstractmethod
    def train(self, cell: C, parts: Parts, work: Path, watch: Stopwatch) -> dict[str, Any]:
        """Train ``parts``, test them, save what is kept but the figures; return the content of ``figures.json``.

        ``work`` is a folder for checkpoints. Raises InputError where the cell can't be trained.
        """

    @abstractmethod
    def line(self, cell: C, found: Mapping[str, Any]) -> str:
        """Say in one line what came of a cell."""

    def parts(self, cell: C) -> Parts:
        """Return new parts for a training, over the frozen encoder of the cell before where it is the same.

        Raises InputError for an encoder that can't be loaded.
        """
        config = cell.config
        key = (takes(config.head), config.encoder, config.lm)
        if self._last is None or self._last[0] != key:
            self._last = None
            parts = parts_of(config)
            if key[0] == "rows":
                self._last = key, parts.features, parts.encoder
            elif isinstance(parts.features, AlignFeatures):
                self._last = key, parts.features.untouched(), parts.encoder
            return parts
        _, features, about = self._last
        if isinstance(features, RowFeatures):
            features = RowFeatures(features.encoder, config.max_document, config.max_summary, features.cache)
        else:
            # One reader for all keeps what the encoder makes of words, in memory alone.
            features = features.untouched()
        return Parts(config.head, {}, features, None, dict(about))

    def place(self, cell: C) -> Path:
        """Return the folder of a cell's figures."""
        return self.out / "cells" / cell.folder

    def lock(self, cell: C) -> Path:
        """Return the lock file of a cell."""
        return self.out / "locks" / f"{digest(cell.folder, size=12).hex()}.lock"

    def read(self, cell: C) -> dict[str, Any] | None:
        """Return a cell's ``figures.json``, None where it is not finished. Raises InputError for a damaged file."""
        path = self.place(cell) / "figures.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            found = None
        if not isinstance(found, dict) or "test" not in found:
            raise InputError(f"{path}: damaged; delete it, and the cell is worked out again")
        return found


def run_cells(grid: Grid[C], *, say: Callable[[str], None] = print) -> list[tuple[C, dict[str, Any]]]:
    """Train every cell that is not finished; return all of them, each with the content of its ``figures.json``.

    Each cell is trained by one process, which holds its lock; a process takes the next cell that is neither finished nor
    held, and goes on from the checkpoint of one that has died; this returns when all are finished, whoever finished them.
    ``say`` is told of each finished cell; waiting for others is said after five seconds and then once a minute.

    Raises InputError, naming the cell, where one can't be trained or its encoder is not that of finished cells.
    """
    finished = {cell.folder: found for cell in grid.cells if (found := grid.read(cell)) is not None}
    if finished:
        say(f"{len(finished)} of {len(grid.cells)} trainings are finished already")
    looks = 0
    while waiting := [cell for cell in grid.cells if cell.folder not in finished]:
        before = len(finished)
        for cell in waiting:
            if cell.base is not None and cell.base not in finished:
                continue
            found, other = grid.read(cell), ", by another process"
            if found is None:
                with trying(grid.lock(cell)) as held:
                    # It may have been finished between the look and the lock.
                    if held and (found := grid.read(cell)) is None:
                        found, other = _train(grid, cell, finished), ""
            if found is not None:
                finished[cell.folder] = found
                say(f"{len(finished)}/{len(grid.cells)} {grid.line(cell, found)}{other}")
        looks = 0 if len(finished) > before else looks + 1
        if looks:
            time.sleep(POLL_SECONDS)
        if looks * POLL_SECONDS % 60 == 5:
            told = f"waiting for other processes to end their trainings ({len(waiting)} left)"
            tell(f"{grid.out}: {told}", error=True)
    return [(cell, finished[cell.folder]) for cell in grid.cells]


def _train(grid: Grid[C], cell: C, finished: Mapping[Path, Mapping[str, Any]]) -> dict[str, Any]:
    """Train a cell whose lock is held, and write its ``figures.json``."""
    watch = Stopwatch()
    work = grid.out / "work" / "cells" / cell.folder / "run"
    work.mkdir(parents=True, exist_ok=True)
    try:
        with own_state():
            parts = grid.parts(cell)
            own = _encoder(parts.encoder)
            if any(own[0] == name and own[1] != mark for name, mark in map(_encoder, finished.values())):
                raise InputError(
                    f"encoder {own[0]} has changed since the experiment was begun; give another folder with --out"
                )
            found = grid.train(cell, parts, work, watch)
    except InputError as error:
        raise InputError(f"{cell}: {error}") from error
    grid.place(cell).mkdir(parents=True, exist_ok=True)
    atomic_json(grid.place(cell) / "figures.json", found)
    shutil.rmtree(work, ignore_errors=True)
    return found


def _encoder(about: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return name and fingerprint of an encoder, or of the one that a ``figures.json`` names."""
    if "encoder" not in about:
        return about["name"], about.get("fingerprint")
    encoder = about["encoder"]
    return _encoder(encoder) if isinstance(encoder, dict) else (encoder, about["encoder_fingerprint"])


def file_name(spec: str) -> str:
    """Return ``spec`` as the name of a folder: itself where it is simple, else with a hash of what was replaced."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", spec).strip(".-")
    return plain if plain == spec else f"{plain[:60]}-{digest(spec, size=4).hex()}"


def read_splits(examples: Path, store: Path, parts: Parts, names: Sequence[str]) -> dict[str, Split]:
    """Return the splits ``names`` of the example files in ``examples``, read into ``store`` unless they are there.

    Hold a lock of the store.
    """
    for name in names:
        prepare_split(examples / f"{name}.jsonl.gz", store / name, parts.features)
    return {name: open_split(store / name) for name in names}

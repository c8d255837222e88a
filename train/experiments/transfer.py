"""Transfer between domains: every training once, tested on every target; gone on with, and shared by processes."""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.io.work_folder import opening
from negsample.models.store.segments import lock
from negsample.train.data.corpora import find_corpora
from negsample.train.experiments.columns import file_name
from negsample.train.experiments.transfer_cells import Bench, Cell, read_figures, run_cell
from negsample.train.experiments.transfer_config import TransferConfig
from negsample.train.experiments.transfer_data import held_out, split_domain

ARGUMENTS = "transfer-config.json"
_POLL_SECONDS = 1.0


@dataclass(frozen=True)
class NotRun:
    """A training that there can't be, and why."""

    cell: Cell
    reason: str


@dataclass(frozen=True)
class Finished:
    """What an experiment found: each cell with its ``figures.json``, and the trainings that there can't be."""

    cells: list[tuple[Cell, dict[str, Any]]]
    not_run: list[NotRun]


def run_transfer(config: TransferConfig, out: Path, *, say: Callable[[str], None] = print) -> Finished:
    """Work out every cell of ``config`` in the folder ``out``, with whatever other processes work on it.

    Each cell is trained by one process, which holds its lock; a process takes the next cell that is neither finished
    nor held, and returns when all are finished, whoever finished them. The kernel frees the locks of a process that
    dies, and its cells are gone on with from their checkpoints. ``say`` is told of each finished cell.

    Raises InputError for a folder begun with another experiment, a corpus that can't be read, split, or trained on in any
    size (the folder is then left as it was found), or a cell that can't be trained, naming it. A corpus that has changed
    since the experiment was begun is noticed, and refused, where examples are still to be made of it: what is finished is
    read from ``out``, and the corpora are not read again.
    """
    _find_corpora(config, out)
    with opening(out, config.as_dict(), ARGUMENTS, "a transfer experiment", makes=("domains",)):
        bench = open_bench(config, out)
        wanted, not_run = plan(bench)
        if not wanted:
            raise InputError(f"nothing can be trained: {not_run[0].cell}: {not_run[0].reason}")
    for entry in not_run:
        say(f"not run: {entry.cell}: {entry.reason}")
    finished: dict[Path, dict[str, Any]] = {}
    for cell in wanted:
        if (found := read_figures(bench.path(cell))) is not None:
            finished[cell.folder] = found
    if finished:
        say(f"{len(finished)} of {len(wanted)} trainings are finished already")
    while len(finished) < len(wanted):
        before = len(finished)
        for cell, found, own in _pass(bench, [cell for cell in wanted if cell.folder not in finished], finished):
            finished[cell.folder] = found
            say(f"{len(finished)}/{len(wanted)} {_line(cell, found)}{'' if own else ', by another process'}")
        if len(finished) == before:
            time.sleep(_POLL_SECONDS)
    return Finished([(cell, finished[cell.folder]) for cell in wanted], not_run)


def _find_corpora(config: TransferConfig, out: Path) -> None:
    """See that every corpus that is still to be read can be, before the folder is made. InputError names the domain."""
    for name, domain in config.domains.items():
        if not (_domain_folder(out, name) / "split.npz").is_file():
            try:
                find_corpora(domain.config(config.train))
            except InputError as error:
                raise InputError(f"{name}: {error}") from error


def _domain_folder(out: Path, name: str) -> Path:
    return out / "domains" / file_name(name)


def open_bench(config: TransferConfig, out: Path) -> Bench:
    """The splits of every domain; call it in ``opening``, and they are read once whatever the number of processes.

    Raises InputError, naming the domain, where its corpus can't be read or split.
    """
    splits = {}
    for name, domain in config.domains.items():
        try:
            splits[name] = split_domain(domain.config(config.train), _domain_folder(out, name))
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
    return Bench(config, out, splits, held_out(splits[name] for name in config.targets))


def plan(bench: Bench) -> tuple[list[Cell], list[NotRun]]:
    """The cells of the experiment in the order they are worked on, few-shot ones last; and what there can't be."""
    wanted, not_run = [], []
    cells = list(_cells(bench.config))
    for cell in [*cells, *_adapted(bench.config, cells)]:
        if bench.choice(cell) is not None:
            wanted.append(cell)
        elif cell.shots:
            not_run.append(NotRun(cell, f"{cell.target} has fewer than {cell.shots} training pairs"))
        else:
            not_run.append(NotRun(cell, f"{cell.source.name} has fewer than {cell.size} training pairs"))
    impossible = {entry.cell.folder for entry in not_run}
    return [cell for cell in wanted if cell.base.folder not in impossible], not_run


def _cells(config: TransferConfig) -> Iterator[Cell]:
    for head in config.heads:
        for recipe in config.recipes:
            for size in head.sizes or config.sizes:
                for source in config.all_sources():
                    for seed in config.seeds:
                        yield Cell(recipe, head, source, size, seed)


def _adapted(config: TransferConfig, cells: list[Cell]) -> Iterator[Cell]:
    for cell in cells:
        for target in config.targets:
            if target not in cell.source.domains:
                for shots in config.few_shot:
                    yield Cell(cell.recipe, cell.head, cell.source, cell.size, cell.seed, target, shots)


def _pass(
    bench: Bench, cells: list[Cell], finished: Mapping[Path, dict[str, Any]]
) -> Iterator[tuple[Cell, dict[str, Any], bool]]:
    """Go through ``cells`` once: those that are free are trained (True), those that others have finished are read."""
    for cell in cells:
        if cell.shots and cell.base.folder not in finished:
            continue
        found, own = read_figures(bench.path(cell)), False
        if found is None:
            with lock(bench.lock(cell)) as held:
                # It may have been finished between the look and the lock.
                if held and (found := read_figures(bench.path(cell))) is None:
                    found, own = run_cell(bench, cell), True
        if found is not None:
            yield cell, found, own


def _line(cell: Cell, found: dict[str, Any]) -> str:
    name = figure_name(cell)
    told = []
    for target, figures in found["test"].items():
        value = figures.get(name, {}).get("value")
        told.append(f"{target} {'not defined' if value is None else f'{100 * value:.1f}'}")
    return f"{cell}: {', '.join(told)} ({found['seconds']:.0f} s)"


def figure_name(cell: Cell) -> str:
    """What a cell is judged by: Pearson's r where its recipe grades, else accuracy."""
    return "pearson" if cell.recipe.graded else "accuracy"


def clear_work(out: Path) -> None:
    """Forget what was needed to get there. Call when every cell is finished."""
    shutil.rmtree(out / "work", ignore_errors=True)

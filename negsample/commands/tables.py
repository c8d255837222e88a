"""``negsample tables p3-table1`` and ``p3-table2``."""

import dataclasses
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from negsample.errors import InputError

if TYPE_CHECKING:
    from negsample.train.experiments.grid import Grid

# Settings that have an option of their own, or that the grid decides.
_OPTIONS = ("corpus", "limit", "seed", "encoders", "heads")
_DECIDED = {"head": "heads are given by --heads", "recipe": "the table has its own"}


@dataclass(frozen=True)
class Request:
    """What the command line asks for; None and empty: as the file says, or the default."""

    table: str
    out: str
    config: str | None
    corpus: list[str]
    settings: list[str]
    encoders: list[str]
    heads: str | None
    limit: int | None
    seed: int | None
    jobs: int
    keep_models: bool
    smoke: bool


def run(request: Request) -> None:
    """Work out P3's Table 1 or 2; print it, with the published one, as it stands in ``table.md``."""
    from negsample.train.experiments.grid import Grid
    from negsample.train.experiments.smoke import smoke, stand_in_encoders
    from negsample.train.experiments.table_files import markdown
    from negsample.train.experiments.tables import run_table

    if request.config is None and not request.corpus and not request.smoke:
        raise InputError("nothing says what to train on; give --config FILE or --corpus PATH")
    grid = _grid(request)
    if request.smoke:
        encoders = grid.encoders
        grid = Grid(smoke(grid.config), tuple(stand_in_encoders(encoders)), grid.heads)
        if grid.encoders != encoders:
            print(f"smoke run: encoders {', '.join(encoders)} → {', '.join(grid.encoders)}")
    found = run_table(
        request.table,
        grid.config,
        Path(request.out),
        encoders=grid.encoders,
        heads=grid.heads,
        jobs=request.jobs or min(os.cpu_count() or 1, 4),
        keep_models=request.keep_models,
        smoke=request.smoke,
        command=sys.argv,
    )
    print(markdown(found), end="")
    print(f"\n{request.out}: table.json, table.csv, table.md, run.json; each cell's figures below cells/")


def _grid(request: Request) -> "Grid":
    """The grid that the file, the words and the options together ask for."""
    from negsample.models.build import takes
    from negsample.train.experiments.grid import Grid, read_grid
    from negsample.train.experiments.tables import split_specs

    grid = read_grid(request.table, request.config, _words(request))
    config, heads = grid.config, grid.heads
    if request.corpus:
        config = dataclasses.replace(config, corpus=request.corpus[0] if len(request.corpus) == 1 else request.corpus)
    if request.heads is not None:
        heads = tuple(name.strip() for name in request.heads.split(",") if name.strip())
    kinds = {takes(head) for head in heads}
    for word in request.settings:
        # A file may hold it for a head that is not asked for this time.
        if _key(word) == "encoder" and kinds <= {"rows"}:
            raise InputError(f"{word}: encoder= is for cls; name the rows' encoders with --encoders")
    if "align" in kinds and request.config is None and "redraws" not in map(_key, request.settings):
        # The table's own default is for heads that take turns with the sets of negatives; align reads all at once.
        config = dataclasses.replace(config, redraws=1)
    return Grid(config, tuple(split_specs(request.encoders)) or grid.encoders, heads)


def _key(word: str) -> str:
    return word.partition("=")[0].strip()


def _words(request: Request) -> list[str]:
    """The settings, with those that were given as options."""
    for word in request.settings:
        key = _key(word)
        if key in _OPTIONS:
            raise InputError(f"{word}: give it as --{key}, or leave it out")
        if key in _DECIDED:
            raise InputError(f"{word}: leave it out; {_DECIDED[key]}")
    options = {"seed": request.seed, "limit": request.limit}
    return [f"{key}={value}" for key, value in options.items() if value is not None] + request.settings

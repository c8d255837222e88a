"""``negsample tables p3-table1`` and ``p3-table2``."""

import dataclasses
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from negsample.errors import InputError

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
    from negsample.train.grid import Grid, read_grid
    from negsample.train.smoke import smoke, stand_in_encoders
    from negsample.train.table_files import markdown
    from negsample.train.tables import run_table, split_specs

    if request.config is None and not request.corpus:
        raise InputError("nothing says what to train on; give --config FILE or --corpus PATH")
    grid = read_grid(request.table, request.config, _words(request))
    config = grid.config
    if request.corpus:
        config = dataclasses.replace(config, corpus=request.corpus[0] if len(request.corpus) == 1 else request.corpus)
    encoders = tuple(split_specs(request.encoders)) or grid.encoders
    heads = grid.heads
    if request.heads is not None:
        heads = tuple(name.strip() for name in request.heads.split(",") if name.strip())
    grid = Grid(config, encoders, heads)
    if request.smoke:
        grid = Grid(smoke(config), tuple(stand_in_encoders(encoders)), heads)
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


def _words(request: Request) -> list[str]:
    """The settings, with those that were given as options."""
    for word in request.settings:
        key = word.partition("=")[0].strip()
        if key in _OPTIONS:
            raise InputError(f"{word}: give it as --{key}, or leave it out")
        if key in _DECIDED:
            raise InputError(f"{word}: leave it out; {_DECIDED[key]}")
    options = {"seed": request.seed, "limit": request.limit}
    return [f"{key}={value}" for key, value in options.items() if value is not None] + request.settings

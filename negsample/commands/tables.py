"""``negsample tables p3-table1`` and ``p3-table2``."""

import dataclasses
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from negsample.commands import options
from negsample.errors import InputError

if TYPE_CHECKING:
    from negsample.train.experiments.grid import Grid

# Settings that have an option of their own, or that the grid decides.
_OPTIONS = ("corpus", "limit", "seed", "encoders", "heads")
_DECIDED = {"head": "heads are given by --heads", "recipe": "the table has its own"}


def _table_command(table: str, about: str) -> Callable[..., None]:
    """The command of a grid of encoders and heads; both tables take the same options."""

    def command(
        out: Annotated[str, typer.Option("--out", help="Folder for the table; begun before: goes on.", metavar="DIR")],
        settings: Annotated[
            list[str] | None, typer.Argument(help="Settings as for 'train', such as negatives=5.", metavar="KEY=VALUE")
        ] = None,
        config: Annotated[
            str | None, typer.Option("--config", help="YAML file: settings, encoders, heads.", metavar="FILE")
        ] = None,
        corpus: Annotated[
            list[str] | None, typer.Option("--corpus", help="Name, file, folder or hub id; may be given again.")
        ] = None,
        encoders: Annotated[
            list[str] | None, typer.Option("--encoders", help="Default: all that need no download.", metavar="A,B,…")
        ] = None,
        heads: Annotated[
            str | None,
            typer.Option(
                "--heads", help="Default: fc,cnn,lstm; 'cls' adds a fine-tuned [CLS] column.", metavar="A,B,…"
            ),
        ] = None,
        limit: Annotated[
            int | None, typer.Option("--limit", min=1, help="Read only the first N pairs of each corpus.")
        ] = None,
        seed: Annotated[int | None, typer.Option("--seed", help="Decides every random choice (default 0).")] = None,
        jobs: Annotated[
            int, typer.Option("--jobs", min=0, help="Encoders worked on side by side (0: by the cores).")
        ] = 0,
        keep_models: Annotated[bool, typer.Option("--keep-models", help="Keep the model of each cell.")] = False,
        smoke: options.Smoke = False,
    ) -> None:
        from negsample.train.experiments.grid import Grid
        from negsample.train.experiments.smoke import smoke as made_small
        from negsample.train.experiments.smoke import stand_in_encoders
        from negsample.train.experiments.table_files import markdown
        from negsample.train.experiments.tables import run_table

        if config is None and not corpus and not smoke:
            raise InputError("nothing says what to train on; give --config FILE or --corpus PATH")
        words = settings or []
        _check_settings(words)
        given = [f"{key}={value}" for key, value in (("seed", seed), ("limit", limit)) if value is not None]
        grid = _grid(table, config, [*given, *words], corpus or [], encoders or [], heads)
        if smoke:
            asked = grid.encoders
            grid = Grid(made_small(grid.config), tuple(stand_in_encoders(asked)), grid.heads)
            if grid.encoders != asked:
                print(f"smoke run: encoders {', '.join(asked)} → {', '.join(grid.encoders)}")
        found = run_table(
            table,
            grid.config,
            Path(out),
            encoders=grid.encoders,
            heads=grid.heads,
            jobs=jobs or min(os.cpu_count() or 1, 4),
            keep_models=keep_models,
            smoke=smoke,
            command=sys.argv,
        )
        print(markdown(found), end="")
        print(f"\n{out}: table.json, table.csv, table.md, run.json; each cell's figures below cells/")

    command.__name__, command.__doc__ = table, about
    return command


p3_table1 = _table_command("p3-table1", "Encoders x heads on cross pairing: accuracy, beside P3's Table 1.")
p3_table2 = _table_command(
    "p3-table2", "Encoders x heads on words added, deleted, replaced: Pearson x 100, beside P3's Table 2."
)


def _grid(
    table: str, path: str | None, words: list[str], corpus: list[str], encoders: list[str], named_heads: str | None
) -> "Grid":
    """The grid that the file, the ``key=value`` words and the options together ask for."""
    from negsample.models.build import takes
    from negsample.train.experiments.grid import Grid, read_grid
    from negsample.train.experiments.tables import split_specs

    grid = read_grid(table, path, words)
    config, heads = grid.config, grid.heads
    if corpus:
        config = dataclasses.replace(config, corpus=corpus[0] if len(corpus) == 1 else corpus)
    if named_heads is not None:
        heads = tuple(name.strip() for name in named_heads.split(",") if name.strip())
    kinds = {takes(head) for head in heads}
    for word in words:
        # A file may hold it for a head that is not asked for this time.
        if _key(word) == "encoder" and kinds <= {"rows"}:
            raise InputError(f"{word}: encoder= is for cls; name the rows' encoders with --encoders")
    if "align" in kinds and path is None and "redraws" not in map(_key, words):
        # The table's own default is for heads that take turns with the sets of negatives; align reads all at once.
        config = dataclasses.replace(config, redraws=1)
    return Grid(config, tuple(split_specs(encoders)) or grid.encoders, heads)


def _key(word: str) -> str:
    return word.partition("=")[0].strip()


def _check_settings(words: list[str]) -> None:
    """Raises InputError for a ``key=value`` word that has an option of its own, or that the table decides."""
    for word in words:
        key = _key(word)
        if key in _OPTIONS:
            raise InputError(f"{word}: give it as --{key}, or leave it out")
        if key in _DECIDED:
            raise InputError(f"{word}: leave it out; {_DECIDED[key]}")

"""``negsample tables``: which there are, ``p3-table1`` and ``p3-table2``."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from negsample.commands import options
from negsample.errors import InputError


def paper_rows() -> list[tuple[str, ...]]:
    """Each table and figure of the papers: paper, what, command (after ``negsample``), what is published, what departs."""
    from negsample.io.yaml_text import read_mapping

    papers = read_mapping(Path(__file__).parents[1] / "papers" / "papers.yaml", "papers.yaml")
    lines = [(paper, line) for paper, text in papers.items() for line in text.splitlines()]
    return [(paper, *map(str.strip, line.split("|"))) for paper, line in lines]


def _list(wanted: bool) -> None:
    if not wanted:
        return
    before = ""
    for paper, what, command, published, departs in paper_rows():
        if paper != before:
            print(f"{paper}\n")
        before = paper
        print(f"  {what}: {published}")
        print(f"    {'no command' if command == '–' else f'negsample {command}'}")
        print("" if departs == "–" else f"    {departs}\n")
    raise typer.Exit


def tables_command(
    listed: Annotated[
        bool, typer.Option("--list", callback=_list, is_eager=True, help="Every table and figure, and its command.")
    ] = False,
) -> None:
    """The papers' tables on your own data."""


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
        from negsample.papers.grid_table import read_table, run_table
        from negsample.papers.stand_ins import small_table
        from negsample.papers.tables_report import markdown

        if config is None and not corpus and not smoke:
            raise InputError("nothing says what to train on; give --config FILE or --corpus PATH")
        chosen = read_table(
            table,
            config,
            settings or [],
            corpus=corpus or [],
            encoders=encoders or [],
            heads=heads,
            limit=limit,
            seed=seed,
        )
        if smoke:
            chosen = small_table(chosen)
        found = run_table(
            table,
            chosen.settings,
            Path(out),
            encoders=chosen.encoders,
            heads=chosen.heads,
            jobs=jobs or min(os.cpu_count() or 1, 4),
            keep_models=keep_models,
            smoke=smoke,
            command=sys.argv,
        )
        print(markdown(found), end="")
        print(f"\n{out}: table.json, table.csv, table.md, run.json; each cell's figures below cells/")

    command.__name__, command.__doc__ = table, about
    return command


p3_table1 = _table_command(
    "p3-table1", "Encoders x heads on cross pairing: accuracy, beside Table 1 of Bao et al. 2021."
)
p3_table2 = _table_command(
    "p3-table2", "Encoders x heads on words added, deleted, replaced: Pearson x 100, beside Table 2 of Bao et al. 2021."
)

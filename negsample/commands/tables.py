"""``negsample tables NAME``: a table or figure of the papers, on your own data or on stand-ins."""

from pathlib import Path
from typing import Annotated

import typer

from negsample.commands import options
from negsample.terminal import say


def _list(wanted: bool) -> None:
    """Print every table and figure and its command, and end."""
    if not wanted:
        return
    from negsample.papers.declared import all_declared

    before = ""
    for paper, what, command, title, departs in (each.listed() for each in all_declared()):
        if paper != before:
            say(f"{paper}\n")
        before = paper
        say(f"  {what}: {title}")
        say(f"    {'no command' if command == '–' else f'negsample {command} --out DIR'}")
        say("" if departs == "–" else f"    {departs}\n")
    raise typer.Exit


def tables(
    name: Annotated[str, typer.Argument(help="Which table: p0-table1 … p4-figure2 (--list).", metavar="NAME")],
    out: Annotated[str, typer.Option("--out", help="Folder for the table; begun before: goes on.", metavar="DIR")],
    values: Annotated[
        list[str] | None, typer.Argument(help="Settings of the trainings (p3-…), as for 'train'.", metavar="KEY=VALUE")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            help="What people judged: FILE or NAME:PATH as for 'correlate'; p3-table5 to 7: tac2010:DIR; p4-…: records of "
            "headlines. May be repeated.",
            metavar="DATA",
        ),
    ] = None,
    part: Annotated[
        list[str] | None,
        typer.Option(
            "--part",
            help="What stands for an encoder or model that the paper names, such as GloVe=glove:FILE; may be repeated.",
            metavar="NAME=SPEC",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="These rows, not the paper's; may be repeated.", metavar="NAME")
    ] = None,
    human: Annotated[
        list[str] | None,
        typer.Option("--human", help="Only this human score (default: the paper's, else all); may be repeated."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", help="Leave out this system, besides those that the paper does; may be repeated."),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option("--config", help="p3-table1, 2: YAML file with settings, encoders, heads.", metavar="FILE"),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            "--models",
            help="p3-table5 to 7: model folders instead of training, such as 'runs/*-*'; none: ROUGE alone.",
            metavar="GLOB",
        ),
    ] = None,
    keep_models: Annotated[bool, typer.Option("--keep-models", help="p3-table1, 2: keep each cell's model.")] = False,
    precision: options.Precision = "float32",
    bootstrap: options.Bootstrap = 1000,
    seed: Annotated[int | None, typer.Option("--seed", help="Decides every random choice (default 0).")] = None,
    smoke: options.Smoke = False,
    listed: Annotated[
        bool, typer.Option("--list", callback=_list, is_eager=True, help="Every table and figure, and its command.")
    ] = False,
) -> None:
    """A table or figure of the papers on your own data, beside the printed figures."""

    from negsample.papers.judged import Asked
    from negsample.papers.run import run_table

    several = {"data": data, "words": values, "parts": part, "metrics": metric, "human": human, "without": without}
    asked = Asked(
        **{key: tuple(given or ()) for key, given in several.items()},
        config=config,
        models=models,
        keep_models=keep_models,
        precision=precision,
        bootstrap=bootstrap,
        seed=seed,
        smoke=smoke,
    )
    run_table(name, asked, Path(out), say)

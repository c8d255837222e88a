"""``negsample tables NAME``: a table or figure of the papers, on your own data or on stand-ins."""

from pathlib import Path
from typing import Annotated

import typer

from negsample.commands import options


def _list(wanted: bool) -> None:
    """Print every table and figure and its command, and end."""
    if not wanted:
        return
    from negsample.papers.declared import all_declared

    before = ""
    for paper, what, command, title, departs in (each.listed() for each in all_declared()):
        if paper != before:
            print(f"{paper}\n")
        before = paper
        print(f"  {what}: {title}")
        print(f"    {'no command' if command == '–' else f'negsample {command}'}")
        print("" if departs == "–" else f"    {departs}\n")
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
    human: Annotated[
        list[str] | None,
        typer.Option("--human", help="Only this human score (default: the paper's, else all); may be repeated."),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option("--config", help="p3-table1, 2: YAML file with settings, encoders, heads.", metavar="FILE"),
    ] = None,
    rouge_alone: Annotated[
        bool, typer.Option("--rouge-alone", help="p3-table6, 7: no models are trained; ROUGE alone.")
    ] = False,
    keep_models: Annotated[bool, typer.Option("--keep-models", help="p3-table1, 2: keep each cell's model.")] = False,
    bootstrap: options.Bootstrap = 1000,
    seed: Annotated[int | None, typer.Option("--seed", help="Decides every random choice (default 0).")] = None,
    smoke: options.Smoke = False,
    listed: Annotated[
        bool, typer.Option("--list", callback=_list, is_eager=True, help="Every table and figure, and its command.")
    ] = False,
) -> None:
    """A table or figure of the papers on your own data, beside the printed figures."""
    from functools import partial

    from negsample.papers.judged import Asked
    from negsample.papers.run import run_table

    asked = Asked(
        data=tuple(data or ()),
        words=tuple(values or ()),
        parts=tuple(part or ()),
        human=tuple(human or ()),
        config=config,
        rouge_alone=rouge_alone,
        keep_models=keep_models,
        bootstrap=bootstrap,
        seed=seed,
        smoke=smoke,
    )
    run_table(name, asked, Path(out), partial(print, flush=True))

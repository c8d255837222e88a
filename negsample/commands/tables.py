"""``negsample tables`` and ``negsample transfer``: the papers' tables and figures, and estimators between domains."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

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
    name: Annotated[str, Argument(help="Which table: p0-table1 … p4-figure2 (--list).", metavar="NAME")],
    out: Annotated[str, Option(help="Folder for the table; begun before: goes on.", metavar="DIR")],
    values: Annotated[list[str] | None, Argument(help="Settings of trainings (p3-…).", metavar="KEY=VALUE")] = None,
    data: Annotated[
        list[str] | None,
        Option(help="Judgments as for 'correlate'; p3-table5 to 7: tac2010:DIR; p4-…: headlines.", metavar="DATA"),
    ] = None,
    part: Annotated[
        list[str] | None,
        Option(help="What stands for an encoder or model of the paper, as in GloVe=glove:FILE.", metavar="NAME=SPEC"),
    ] = None,
    human: Annotated[list[str] | None, Option(help="Only this human score (default: the paper's, else all).")] = None,
    config: Annotated[str | None, Option(help="p3-table1, 2: YAML file of settings.", metavar="FILE")] = None,
    rouge_alone: Annotated[bool, Option("--rouge-alone", help="p3-table6, 7: no models, ROUGE alone.")] = False,
    keep_models: Annotated[bool, Option("--keep-models", help="p3-table1, 2: keep each cell's model.")] = False,
    bootstrap: options.Bootstrap = 1000,
    seed: Annotated[int | None, Option(help="Decides every random choice (default 0).")] = None,
    smoke: options.Smoke = False,
    listed: Annotated[
        bool, Option("--list", callback=_list, is_eager=True, help="Every table and figure, and its command.")
    ] = False,
) -> None:
    """A table or figure of the papers on your own data, beside the printed figures. Options may be repeated."""
    from negsample.papers.judged import Asked
    from negsample.papers.run import run_table

    given = tuple(data or ()), tuple(values or ()), tuple(part or ()), tuple(human or ())
    asked = Asked(*given, config, rouge_alone, keep_models, bootstrap, seed, smoke)
    run_table(name, asked, Path(out), say)


def transfer(
    config: Annotated[
        str, Option(help="YAML file: sources, targets …; or a packaged one (p3_table3_transfer).", metavar="FILE")
    ],
    out: Annotated[str, Option(help="Folder for the figures; gone on with.", metavar="DIR")],
    smoke: options.Smoke = False,
) -> None:
    """Train on each domain, test on every one: accuracy or Pearson, the drop against in-domain, a heat map."""
    from negsample.eval.report import made
    from negsample.eval.report.transfer import transfer_page
    from negsample.io.run_record import Stopwatch
    from negsample.papers.declared import write
    from negsample.papers.stand_ins import small_transfer
    from negsample.papers.transfer import run_transfer
    from negsample.papers.transfer_config import read_transfer
    from negsample.papers.transfer_report import transfer_table

    watch = Stopwatch()
    experiment = read_transfer(config)
    if smoke:
        experiment = small_transfer(experiment)
    grid = run_transfer(experiment, Path(out), say)
    table = transfer_table(grid, config)
    page = made("transfer.html", lambda: transfer_page(table.content()))
    write(
        replace(table, pictures={"transfer.html": page.encode()} if page else {}),
        Path(out),
        watch,
        smoke=smoke,
        config=experiment.as_dict(),
        seed=experiment.common.seed,
        data=table.more["domains"],
        cell_seconds=sum(found["seconds"] for _, found in grid.finished),
    )
    options.check_whole(page is not None)

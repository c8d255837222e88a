"""``negsample transfer``."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from negsample.commands import options
from negsample.terminal import say


def transfer(
    config: Annotated[
        str,
        typer.Option(
            "--config",
            help="YAML file: sources, targets, recipes …; or a packaged one, such as p3_table3_transfer.",
            metavar="FILE",
        ),
    ],
    out: Annotated[str, typer.Option("--out", help="Folder for the figures; gone on with.", metavar="DIR")],
    smoke: options.Smoke = False,
) -> None:
    """Train on each domain, test on every one: accuracy or Pearson, the drop against in-domain, a heat map."""
    from negsample.eval.report.page import made
    from negsample.eval.report.transfer import transfer_page
    from negsample.io.run_record import Stopwatch
    from negsample.papers.records import write
    from negsample.papers.stand_ins import small_transfer
    from negsample.papers.transfer import run_transfer
    from negsample.papers.transfer_config import read_transfer
    from negsample.papers.transfer_report import published_beside, transfer_table

    watch = Stopwatch()
    experiment = read_transfer(config)
    printed = published_beside(experiment)
    if smoke:
        experiment = small_transfer(experiment)
    grid = run_transfer(experiment, Path(out), say=say)
    table = transfer_table(grid, printed)
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

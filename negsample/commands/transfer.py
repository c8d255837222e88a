"""``negsample transfer``."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from negsample.commands import options


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
    from negsample.eval.report.transfer import transfer_page
    from negsample.io.files import atomic_text
    from negsample.io.run_record import Stopwatch
    from negsample.io.work_folder import waiting
    from negsample.train.experiments.outputs import write_outputs
    from negsample.train.experiments.smoke import small_transfer
    from negsample.train.experiments.transfer import run_transfer
    from negsample.train.experiments.transfer_config import read_transfer
    from negsample.train.experiments.transfer_report import (
        CSV_COLUMNS,
        csv_rows,
        markdown,
        published_beside,
        transfer_table,
    )

    watch = Stopwatch()
    experiment = read_transfer(config)
    published = published_beside(experiment)
    if smoke:
        experiment = small_transfer(experiment)
    folder = Path(out)
    finished = run_transfer(experiment, folder, say=partial(print, flush=True))
    # Several processes may get here together; each writes the same figures.
    with waiting(folder / "locks" / "report"):
        table = transfer_table(finished, published)
        text = markdown(table)
        atomic_text(folder / "transfer.html", transfer_page(table, sys.argv))
        write_outputs(
            folder,
            "transfer",
            table,
            csv_rows(table),
            CSV_COLUMNS,
            text,
            watch,
            command=sys.argv,
            smoke=smoke,
            config=experiment.as_dict(),
            seed=experiment.train.seed,
            data=table["domains"],
            cell_seconds=sum(found["seconds"] for _, found in finished.cells),
        )
    print(text, end="")
    print(f"\n{out}: transfer.html, transfer.json, transfer.csv, transfer.md, run.json; each training below cells/")

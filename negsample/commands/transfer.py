"""``negsample transfer``."""

import sys
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
    from negsample.io.files import atomic_json, atomic_text
    from negsample.io.run_record import Stopwatch, write_run
    from negsample.io.work_folder import waiting
    from negsample.train.experiments.transfer import clear_work, run_transfer
    from negsample.train.experiments.transfer_config import read_transfer
    from negsample.train.experiments.transfer_table import csv_text, markdown, published_beside, transfer_table

    watch = Stopwatch()
    experiment = read_transfer(config)
    published = published_beside(experiment)
    if smoke:
        from negsample.train.experiments.transfer_smoke import small_transfer

        experiment = small_transfer(experiment)
    folder = Path(out)
    finished = run_transfer(experiment, folder, say=_say)
    # Several processes may get here together; each writes the same figures.
    with waiting(folder / "locks" / "report"):
        table = transfer_table(experiment, finished, folder, published)
        atomic_json(folder / "transfer.json", table)
        atomic_text(folder / "transfer.csv", csv_text(table))
        atomic_text(folder / "transfer.md", markdown(table))
        atomic_text(folder / "transfer.html", transfer_page(table, sys.argv))
        write_run(
            folder / "run.json",
            watch,
            command=sys.argv,
            smoke=smoke,
            config=experiment.as_dict(),
            seed=experiment.train.seed,
            data=table["domains"],
            cell_seconds=sum(found["seconds"] for _, found in finished.cells),
        )
        clear_work(folder)
    print(markdown(table), end="")
    print(f"\n{out}: transfer.html, transfer.json, transfer.csv, transfer.md, run.json; each training below cells/")


def _say(line: str) -> None:
    print(line, flush=True)

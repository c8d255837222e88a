"""Estimates from a few judgments: estimate.json and estimate.csv."""

from dataclasses import asdict, fields

from negsample.eval.agreement.estimate import Estimate, Estimates
from negsample.eval.report import about, write_report
from negsample.io.run_record import Stopwatch, fingerprints


def write_estimates(result: Estimates, out: str, watch: Stopwatch) -> None:
    """Write ``estimate.json``, ``estimate.csv`` and ``run.json`` in the folder ``out``."""
    rows, settings = [asdict(each) for each in result.estimates], result.settings
    plain = {"settings": asdict(settings), "metric": {"name": result.column.name, **about(result.column)}}
    plain |= {"estimates": rows, "chosen": list(result.chosen), "notes": list(result.notes)}
    contents = {"estimate.json": plain, "estimate.csv": (rows, [field.name for field in fields(Estimate)])}
    about_run = {"config": plain["settings"], "seed": settings.seed, "data": fingerprints(settings.inputs)}
    write_report(out, contents, watch, **about_run, signatures={result.column.name: result.column.signature})

"""``negsample compare``."""

import sys
from typing import TYPE_CHECKING

from negsample.errors import InputError
from negsample.formats import number, p_text
from negsample.io.run_record import Stopwatch

if TYPE_CHECKING:
    from negsample.eval.compare import Comparison

# Documents named for each system; the page and compare.json have more.
_SHOWN = 3


def run(
    models: list[str],
    metrics: list[str],
    inputs: list[str],
    source: str | None,
    targets: list[str],
    references: list[str],
    out: str | None,
    baseline: str | None,
    on_bad: str,
    bootstrap: int,
    seed: int,
) -> None:
    """Compare the systems, print a table for each model and metric, and write the folder ``out`` if one is given."""
    from negsample.eval.compare import Settings, compare
    from negsample.eval.report.files import write_comparison
    from negsample.io.files import check_new

    watch = Stopwatch()
    if (source is None) != (not targets):
        raise InputError("-s and -t go together: -s DOCUMENTS.txt -t BASELINE.txt OTHER.txt …")
    if source is None and not inputs:
        raise InputError("nothing to compare; give -s DOCUMENTS.txt -t BASELINE.txt OTHER.txt …, or a table of records")
    if source is None and references:
        raise InputError("-r goes with -s and -t; a table of records has its own 'references'")
    if out is not None:
        check_new(out)
    settings = Settings(
        models=tuple(models),
        metrics=tuple(metrics),
        source=source,
        targets=(*targets, *inputs) if source is not None else (),
        references=tuple(references),
        inputs=tuple(inputs) if source is None else (),
        baseline=baseline,
        on_bad=on_bad,
        bootstrap=bootstrap,
        seed=seed,
    )
    result = compare(settings)
    # Shown first: what was found is not lost where it can't be written.
    print_comparison(result)
    if out is not None:
        write_comparison(result, out, watch, ["negsample", *sys.argv[1:]])
        print(f"\nreport: {out}/report.html   figures: {out}/compare.csv, compare.json")


def print_comparison(result: "Comparison") -> None:
    """A table for each model and metric, best system first, with the documents that differ most."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False, markup=False)
    for section in result.sections:
        turned = " (sign turned: lower is better)" if section.column.turned else ""
        table = Table(title=f"{section.column.name}{turned}", title_justify="left", box=None, pad_edge=False)
        for name in ("rank", "system", "mean", "95 % interval", "difference", "95 % interval", "p", "p (Holm)", "n"):
            table.add_column(name, justify="left" if name == "system" else "right", no_wrap=name != "system")
        for s in sorted(section.systems, key=lambda s: (s.rank, -s.mean)):
            table.add_row(
                str(s.rank),
                s.system,
                number(s.mean, 4),
                _interval(s.low, s.high),
                number(s.difference, 4) if s.difference is not None else "(first)",
                _interval(s.difference_low, s.difference_high),
                p_text(s.p),
                p_text(s.p_holm),
                str(s.documents),
            )
        console.print(table)
        for system, found in section.different.items():
            shown = ", ".join(
                f"{result.systems.documents[section.documents[d.document]]} ({number(d.difference)})"
                for d in found[:_SHOWN]
            )
            if shown:
                console.print(f"  {system} differs most on: {shown}")
        for reason, count in section.left_out.items():
            console.print(f"  left out: {count} × {reason}")
        console.print(f"  {section.column.signature}")
        console.print()
    for reason, count in result.systems.left_out.items():
        console.print(f"left out: {count} × {reason}")


def _interval(low: float | None, high: float | None) -> str:

    return "–" if low is None else f"{number(low, 4)} to {number(high, 4)}"

"""``negsample compare``."""

from typing import TYPE_CHECKING, Annotated

import typer

from negsample.commands import options
from negsample.errors import InputError
from negsample.number_text import number, p_text
from negsample.terminal import say, say_table

if TYPE_CHECKING:
    from negsample.eval.agreement.compare import SystemsComparison

# Documents named for each system; the page and compare.json have more.
_SHOWN = 3


def compare(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(help="Tables of records with 'system'; after -t: further systems.", metavar="INPUT"),
    ] = None,
    models: options.Models = None,
    metrics: options.Metrics = None,
    source: options.Source = None,
    targets: options.Targets = None,
    references: options.References = None,
    out: Annotated[str | None, typer.Option("--out", help="Folder for figures and report.html.", metavar="DIR")] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="System to compare with: the first by default.")
    ] = None,
    on_bad: Annotated[
        str, typer.Option("--on-bad", help="Missing summaries: 'stop' (exit 2) or 'skip' (counted).")
    ] = "stop",
    precision: options.Precision = "float32",
    bootstrap: options.Bootstrap = 1000,
    seed: options.Seed = 0,
) -> None:
    """Which of several systems is better, by the ready estimator or others: means, differences to the first, tests, ranks."""
    from negsample.eval.agreement.compare import Settings
    from negsample.eval.agreement.compare import compare as compare_systems
    from negsample.eval.report.compare import write_comparison
    from negsample.io.files import check_new
    from negsample.io.run_record import Stopwatch

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
        models=options.chosen_models(models, metrics),
        metrics=tuple(metrics or ()),
        source=source,
        targets=(*(targets or ()), *(inputs or ())) if source is not None else (),
        references=tuple(references or ()),
        inputs=tuple(inputs or ()) if source is None else (),
        baseline=baseline,
        on_bad=on_bad,
        precision=precision,
        bootstrap=bootstrap,
        seed=seed,
    )
    result = compare_systems(settings)
    try:
        print_comparison(result)
    finally:  # neither where it can't be shown nor where it can't be written is lost what was found
        if out is not None:
            write_comparison(result, out, watch)
    if out is not None:
        say(f"\nreport: {out}/report.html   figures: {out}/compare.csv, compare.json")


def print_comparison(result: "SystemsComparison") -> None:
    """A table for each model and metric, best system first, with the documents that differ most."""
    head = ("rank", "system", "mean", "95 % interval", "difference", "95 % interval", "p", "p (Holm)", "n")
    for section in result.sections:
        rows = [
            (
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
            for s in sorted(section.systems, key=lambda s: (s.rank, -s.mean))
        ]
        turned = " (sign turned: lower is better)" if section.column.turned else ""
        say_table(head, rows, title=section.column.name + turned, texts=("system",))
        for system, found in section.different.items():
            shown = ", ".join(
                f"{result.systems.documents[section.documents[d.document]]} ({number(d.difference)})"
                for d in found[:_SHOWN]
            )
            if shown:
                say(f"  {system} differs most on: {shown}")
        for reason, count in section.left_out.items():
            say(f"  left out: {count} × {reason}")
        say(f"  {section.column.signature}")
        say()
    for reason, count in result.systems.left_out.items():
        say(f"left out: {count} × {reason}")


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None else f"{number(low, 4)} to {number(high, 4)}"

"""``negsample compare``."""

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from negsample.commands import options
from negsample.errors import InputError
from negsample.number_text import interval, number, p_text
from negsample.terminal import say, say_table

if TYPE_CHECKING:
    from negsample.eval.agreement.compare import SystemsComparison

# Documents named for each system; the page and compare.json have more.
_SHOWN = 3


def compare(
    inputs: Annotated[
        list[str] | None,
        Argument(help="Tables of records with 'system'; after -t: further systems.", metavar="INPUT"),
    ] = None,
    models: options.Models = None,
    metrics: options.Metrics = None,
    source: options.Source = None,
    targets: options.Targets = None,
    references: options.References = None,
    out: Annotated[str | None, Option(help="Folder for figures and report.html.", metavar="DIR")] = None,
    baseline: Annotated[str | None, Option(help="System to compare with: the first by default.")] = None,
    on_bad: Annotated[str, Option(help="Missing summaries: 'stop' (exit 2) or 'skip' (counted).")] = "stop",
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
    options.check_texts(source, targets, references)
    if source is None and not inputs:
        raise InputError("nothing to compare; give -s DOCUMENTS.txt -t BASELINE.txt OTHER.txt …, or a table of records")
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
            options.check_whole(write_comparison(result, out, watch))
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
                interval(s.low, s.high, 4) or "–",
                number(s.difference, 4) if s.difference is not None else "(first)",
                interval(s.difference_low, s.difference_high, 4) or "–",
                p_text(s.p),
                p_text(s.p_holm),
                str(s.documents),
            )
            for s in sorted(section.systems, key=lambda s: (s.rank, -s.mean))
        ]
        turned = " (sign turned: lower is better)" if section.column.turned else ""
        say_table(head, rows, title=section.column.name + turned, texts=("system",))
        for system, found in section.different.items():
            places = [(section.documents[row], gap) for row, gap in found[:_SHOWN]]
            shown = [f"{result.systems.documents[place]} ({number(gap)})" for place, gap in places]
            if shown:
                say(f"  {system} differs most on: {', '.join(shown)}")
        for reason, count in section.left_out.items():
            say(f"  left out: {count} × {reason}")
        say(f"  {section.column.signature}\n")
    for reason, count in result.systems.left_out.items():
        say(f"left out: {count} × {reason}")

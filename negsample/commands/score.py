"""``negsample score``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from negsample.commands import options
from negsample.errors import InputError

if TYPE_CHECKING:
    from negsample.processes import Processes
    from negsample.scoring import Scorer, Tally


def score(
    context: typer.Context,
    model: Annotated[str | None, typer.Option("--model", help="Model folder.", metavar="DIR")] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="A metric in place of a model.", metavar="NAME[:option=value]")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(help="Records to score (- for standard input); after -t: further systems.", metavar="INPUT"),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Where the scored records go (- for standard output).", metavar="OUTPUT"),
    ] = None,
    source: options.Source = None,
    targets: options.Targets = None,
    references: options.References = None,
    document_field: options.DocumentField = "document",
    summary_field: options.SummaryField = "summary",
    aspects: Annotated[bool, typer.Option("--aspects", help="Add the aspects to each record (head align).")] = False,
    output_field: Annotated[
        str, typer.Option("--output-field", help="Field of the score; its aspects and reason are called after it.")
    ] = "score",
    batch_size: options.BatchSize = 32,
    on_bad: options.OnBad = "stop",
    tsv_quoting: options.TsvQuoting = "auto",
) -> None:
    """Score records (JSONL, CSV, TSV, Parquet) or line-aligned text files, by a model or a metric."""
    from negsample.io.files import format_of
    from negsample.scoring import Settings, line_chunks, score_lines, score_table, table_chunks

    inputs, targets, references = inputs or [], targets or [], references or []
    if on_bad not in ("stop", "skip"):
        raise InputError(f"--on-bad {on_bad}: give stop or skip")
    if (source is None) != (not targets):
        raise InputError("-s and -t go together: -s DOCUMENTS.txt -t SUMMARIES.txt …")
    if references and source is None:
        raise InputError("-r goes with -s and -t; a table of records has its own 'references'")
    if source is not None and (document_field, summary_field) != ("document", "summary"):
        raise InputError("--document-field and --summary-field go with a table of records; -s and -t are plain text")
    if source is None and len(inputs) != 1:
        raise InputError(f"give one INPUT (or -s and -t), not {len(inputs)}")
    if source is None and output is None:
        raise InputError("give -o OUTPUT (- for standard output)")
    if output is not None:
        format_of(output)
    if output_field in ("", document_field, summary_field):
        raise InputError(f"--output-field {output_field!r}: give a name of its own, which holds no text")
    processes: Processes | None = context.obj
    read = [path for path in (source, *targets, *references, *inputs) if path is not None]
    if processes and processes.size > 1 and "-" in read:
        raise InputError("standard input can't be shared by several processes; name a file that all of them can read")
    if output not in (None, "-") and any(_same(output, path) for path in read):
        raise InputError(f"{output}: is an input too; give another file with -o")
    systems = [*targets, *inputs]
    # What is wrong at the beginning of a file is told before a model is loaded.
    if "-" not in read:
        next(table_chunks(inputs[0]) if source is None else line_chunks(source, systems, references), None)
    scorer = _scorer(model, metric, aspects)
    settings = Settings(document_field, summary_field, batch_size, on_bad, aspects, output_field)
    if source is None:
        tallies = {inputs[0]: score_table(scorer, inputs[0], str(output), settings, processes)}
    else:
        tallies = score_lines(scorer, source, systems, output, references, settings, processes)
    if not (processes and processes.rank):
        print_tallies(tallies, scorer.signature, sys.stderr if output == "-" else sys.stdout)
    if not any(tally.n for tally in tallies.values()):
        raise InputError(f"{', '.join(tallies)}: not one record could be scored, for the reasons told")


def _same(one: str, other: str) -> bool:
    """Whether both names mean one file that is there."""
    return Path(one).is_file() and Path(other).exists() and Path(one).samefile(other)


def _scorer(model: str | None, metric: str | None, aspects: bool) -> "Scorer":
    if (model is None) == (metric is None):
        raise InputError("give --model DIR or --metric NAME, one of them")
    if metric is not None:
        from negsample.eval.metric_scorer import MetricScorer

        if aspects:
            raise InputError("--aspects goes with --model; a metric has none")
        return MetricScorer(metric)
    from negsample.eval.fit.model import load_model

    estimator = load_model(str(model))
    if aspects:
        estimator.need_aspects()
    return estimator


def print_tallies(tallies: dict[str, "Tally"], signature: str, stream: TextIO) -> None:
    """Print one line a system: mean, 95 % interval, n, signature; then what was cut and what has no score."""
    width = max(map(len, tallies))
    for name, tally in tallies.items():
        mean = f"{tally.mean:.4f}" if tally.mean is not None else "–"
        interval = tally.interval
        told = f"95 % interval {interval[0]:.4f} to {interval[1]:.4f}" if interval else "no interval"
        print(f"{name:<{width}}  mean {mean}  {told}  n {tally.n}  {signature}", file=stream)
    for name, tally in tallies.items():
        if tally.cut:
            print(f"{name}: {tally.cut} of {tally.n} pairs are longer than the model reads and were cut", file=stream)
        for field, count in tally.replaced.items():
            print(
                f"{name}: {count} records had their own {field!r}, replaced; keep it with --output-field", file=stream
            )
        if tally.bad:
            reasons = ", ".join(f"{count} {reason}" for reason, count in tally.bad.most_common())
            print(f"{name}: {tally.bad.total()} records without a score: {reasons}", file=stream)

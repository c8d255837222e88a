"""``negsample score``."""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from negsample.commands import options
from negsample.commands.score_view import ScoredTable
from negsample.errors import InputError

if TYPE_CHECKING:
    from negsample.io.read import Row
    from negsample.processes import Processes
    from negsample.scoring.outcomes import Outcome, Settings, Tally
    from negsample.scoring.scorer import Scorer


def score(
    context: typer.Context,
    model: options.Model = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="A metric in place of a model.", metavar="NAME[:option=value]")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Records to score (-: standard input; sample); after -t: further systems.", metavar="INPUT"
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Where the scored records go (-: standard output); without it a table of the first is shown.",
            metavar="OUTPUT",
        ),
    ] = None,
    source: options.Source = None,
    targets: options.Targets = None,
    references: options.References = None,
    document_field: options.DocumentField = "document",
    summary_field: options.SummaryField = "summary",
    aspects: Annotated[
        bool | None, typer.Option("--aspects/--no-aspects", help="With the aspects; by default where there are any.")
    ] = None,
    output_field: Annotated[
        str, typer.Option("--output-field", help="Field of the score; what goes with it is called after it.")
    ] = "score",
    precision: options.Precision = "float32",
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-under", help="Exit 1 where a system's mean is below; may be repeated.", metavar="[ASPECT=]NUMBER"
        ),
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="--fail-under holds for every record.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Score only the first N records.")] = None,
    batch_size: options.BatchSize = 32,
    on_bad: options.OnBad = "stop",
    on: Annotated[
        str | None,
        typer.Option("--on", help="Score files and folders into the folder -o, on Ray.", metavar="ray[:ADDRESS]"),
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="With --on: actors at most.")] = None,
    records_per_part: Annotated[
        int, typer.Option("--records-per-part", min=1, help="With --on: records of an output file.")
    ] = 1024,
) -> None:
    """Score records (JSONL, CSV, TSV, Parquet) or line-aligned text files: by the ready estimator, a model or a metric."""
    from negsample.io.files import format_of
    from negsample.scoring.files import line_chunks, score_lines, score_table, table_chunks
    from negsample.scoring.gate import Gate, parse_limits
    from negsample.scoring.outcomes import Settings

    inputs, targets, references = inputs or [], targets or [], references or []
    if on_bad not in ("stop", "skip"):
        raise InputError(f"--on-bad {on_bad}: give stop or skip")
    if (source is None) != (not targets):
        raise InputError("-s and -t go together: -s DOCUMENTS.txt -t SUMMARIES.txt …")
    if references and source is None:
        raise InputError("-r goes with -s and -t; a table of records has its own 'references'")
    if source is not None and (document_field, summary_field) != ("document", "summary"):
        raise InputError("--document-field and --summary-field go with a table of records; -s and -t are plain text")
    if source is not None and limit is not None:
        raise InputError("--limit goes with a table of records")
    if output_field in ("", document_field, summary_field):
        raise InputError(f"--output-field {output_field!r}: give a name of its own, which holds no text")
    processes: Processes | None = context.obj
    if on is None and workers is not None:
        raise InputError("--workers goes with --on ray")
    if on is not None:
        if processes or source is not None or limit is not None or fail_under or each:
            raise InputError("--on goes without accelerate launch, -s, --limit, --fail-under and --each")
        # Actors may begin in folders of their own.
        place = os.path.abspath(model) if model is not None and Path(model).exists() else model
        load = partial(make_scorer, place, metric, aspects, precision, batch_size)
        settings = Settings(document_field, summary_field, batch_size, on_bad, aspects is not False, output_field)
        _score_on(on, load, inputs, output, settings, workers, records_per_part)
        return
    if source is None and len(inputs) != 1:
        raise InputError(f"give one INPUT (or -s and -t), not {len(inputs)}")
    if each and not fail_under:
        raise InputError("--each goes with --fail-under")
    if output is not None:
        format_of(output)
    read = [path for path in (source, *targets, *references, *inputs) if path is not None]
    if processes and processes.size > 1 and "-" in read:
        raise InputError("standard input can't be shared by several processes; name a file that all of them can read")
    if output not in (None, "-") and any(_same(output, path) for path in read):
        raise InputError(f"{output}: is an input too; give another file with -o")
    systems = [*targets, *inputs]
    table = options.records(inputs[0]) if source is None else ""
    # What is wrong at the beginning of a file is told before a model is loaded.
    if "-" not in read:
        next(table_chunks(table) if source is None else line_chunks(source, systems, references), None)
    scorer = make_scorer(model, metric, aspects, precision, batch_size)
    known = scorer.aspects if aspects is not False else ()
    gate = Gate(parse_limits(fail_under or [], known), each)
    settings = Settings(document_field, summary_field, batch_size, on_bad, bool(known), output_field, scorer.ranked)
    shown = ScoredTable()

    def see(row: "Row", outcome: "Outcome") -> None:
        gate.add(row.where.rpartition(", ")[2], outcome, str(row.fields.get("system") or ""))
        if source is None and output is None:
            shown.add(row, outcome, summary_field)

    if source is None:
        tallies = {inputs[0]: score_table(scorer, table, output, settings, processes, see, limit)}
    else:
        tallies = score_lines(scorer, source, systems, output, references, settings, processes, see)
    if not (processes and processes.rank):
        stream = sys.stderr if output == "-" else sys.stdout
        shown.print(stream)
        print_tallies(tallies, scorer.signature, stream)
    if not any(tally.n for tally in tallies.values()):
        raise InputError(f"{', '.join(tallies)}: not one record could be scored, for the reasons told")
    if failures := gate.failures():
        if not (processes and processes.rank):
            print("\n".join(failures), file=sys.stderr)
        raise typer.Exit(1)


def _score_on(
    on: str,
    load: "Callable[[], Scorer]",
    inputs: list[str],
    output: str | None,
    settings: "Settings",
    workers: int | None,
    size: int,
) -> None:
    from negsample.engines.on_ray import score_on_ray

    engine, _, address = on.partition(":")
    if engine != "ray":
        raise InputError(f"--on {on}: give ray, or ray:ADDRESS")
    if output in (None, "-") or not inputs or "-" in inputs:
        raise InputError("--on ray: give INPUT… (files or folders, not -) and -o FOLDER (not -)")
    names = {name: name if "://" in name else os.path.abspath(options.records(name)) for name in inputs}
    done = score_on_ray(
        load,
        list(names.values()),
        Path(str(output)).absolute(),
        settings,
        address=address or None,
        workers=workers,
        size=size,
    )
    tallies = {name: done.tallies[place] for name, place in names.items()}
    print_tallies(tallies, done.signature, sys.stdout)
    for name, reason in done.unread.items():
        print(f"{name}: not read to its end: {reason}")
    if not any(tally.n for tally in tallies.values()):
        raise InputError(f"{', '.join(inputs)}: not one record could be scored, for the reasons told")


def _same(one: str, other: str) -> bool:
    """Whether both names mean one file that is there."""
    return Path(one).is_file() and Path(other).exists() and Path(one).samefile(other)


def make_scorer(
    model: str | None,
    metric: str | None,
    aspects: bool | None = None,
    precision: str = "float32",
    batch_size: int = 32,
) -> "Scorer":
    """The metric, the model, or else the ready estimator. Raises InputError for both, and for aspects that aren't there."""
    if model is not None and metric is not None:
        raise InputError("give --model DIR or --metric NAME, one of them")
    if metric is not None:
        from negsample.scoring.metrics import make_metric

        if aspects:
            raise InputError("--aspects goes with --model; a metric has none")
        if precision != "float32":
            raise InputError("--precision goes with --model; a metric has its own")
        return make_metric(metric)
    from negsample.eval.fit.model import load_model

    estimator = load_model(model, precision=precision)
    if aspects:
        estimator.need_aspects()
    return estimator.scorer(batch_size=batch_size)


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

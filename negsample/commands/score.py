"""``negsample score``."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from negsample.commands import options
from negsample.errors import InputError
from negsample.io.files import format_of
from negsample.io.read import Row
from negsample.processes import Crew
from negsample.progress import silence
from negsample.scoring import (
    ItemScorer,
    Outcomes,
    Scorer,
    Tally,
    line_chunks,
    score_lines,
    score_rows,
    score_table,
    table_chunks,
)


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
    batch_size: options.BatchSize = 32,
    on_bad: options.OnBad = "stop",
) -> None:
    """Score records (JSONL, CSV, TSV, Parquet) or line-aligned text files, by a model or a metric."""
    # Where several processes share the input the first one writes and prints (``negsample.parallel_scoring``).
    crew: Crew | None = context.obj
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
    if crew is not None and crew.size == 1:
        crew = None
    read = [path for path in (source, *targets, *references, *inputs) if path is not None]
    if crew is not None and "-" in read:
        raise InputError("standard input can't be shared by several processes; name a file that all of them can read")
    if output not in (None, "-") and any(_same(output, path) for path in read):
        raise InputError(f"{output}: is an input too; give another file with -o")
    settings: dict[str, Any] = {"batch_size": batch_size, "on_bad": on_bad, "aspects": aspects}
    chunks: Callable[[], Iterator[list[Row]]]
    write: Callable[[Outcomes | None], dict[str, Tally]]
    if source is not None:
        systems = [*targets, *inputs]
        chunks = partial(line_chunks, source, systems, references)

        def write(outcomes: Outcomes | None) -> dict[str, Tally]:
            return score_lines(scorer, source, systems, output, references=references, outcomes=outcomes, **settings)

    else:
        settings |= {"document_field": document_field, "summary_field": summary_field}
        chunks = partial(table_chunks, inputs[0])

        def write(outcomes: Outcomes | None) -> dict[str, Tally]:
            return {inputs[0]: score_table(scorer, inputs[0], str(output), outcomes=outcomes, **settings)}

    def load() -> Scorer | ItemScorer:
        # What is wrong at the beginning of a file is told before a model is loaded.
        if "-" not in read:
            next(chunks(), None)
        return _scorer(model, metric, aspects)

    scorer = load() if crew is None else crew.together(load)
    tallies: dict[str, Tally] | None
    if crew is None:
        tallies = write(None)
    else:
        from negsample.parallel_scoring import score_together

        if crew.rank:
            silence()
        tallies = score_together(crew, chunks, partial(score_rows, scorer, **settings), write, output)
    if tallies is not None:
        print_tallies(tallies, scorer.signature, sys.stderr if output == "-" else sys.stdout)


def _same(one: str, other: str) -> bool:
    """Whether both names mean one file that is there."""
    return Path(one).is_file() and Path(other).exists() and Path(one).samefile(other)


def _scorer(model: str | None, metric: str | None, aspects: bool) -> Scorer | ItemScorer:
    if (model is None) == (metric is None):
        raise InputError("give --model DIR or --metric NAME, one of them")
    if metric is not None:
        from negsample.eval.metric_scorer import metric_scorer

        if aspects:
            raise InputError("--aspects goes with --model; a metric has none")
        return metric_scorer(metric)
    from negsample.models.estimator import Estimator

    estimator = Estimator.load(str(model))
    if aspects:
        estimator.need_aspects()
    return estimator


def print_tallies(tallies: dict[str, Tally], signature: str, stream: TextIO) -> None:
    """One line a system: mean, 95 % interval, n, signature; then what was cut and what has no score."""
    width = max(map(len, tallies))
    for name, tally in tallies.items():
        mean = f"{tally.mean:.4f}" if tally.mean is not None else "–"
        interval = tally.interval
        told = f"95 % interval {interval[0]:.4f} to {interval[1]:.4f}" if interval else "no interval"
        print(f"{name:<{width}}  mean {mean}  {told}  n {tally.n}  {signature}", file=stream)
    for name, tally in tallies.items():
        if tally.cut:
            print(f"{name}: {tally.cut} of {tally.n} pairs are longer than the model reads and were cut", file=stream)
        if tally.bad:
            reasons = ", ".join(f"{count} {reason}" for reason, count in tally.bad.most_common())
            print(f"{name}: {tally.bad.total()} records without a score: {reasons}", file=stream)

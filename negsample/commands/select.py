"""``negsample select``."""

import sys
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from negsample.commands import options
from negsample.errors import InputError

if TYPE_CHECKING:
    from negsample.scoring.select import Choice


def select(
    output: Annotated[
        str, typer.Option("--output", "-o", help="Where the best go (- for standard output).", metavar="BEST")
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Records, several to a document (- for standard input); after -t: systems.", metavar="INPUT"
        ),
    ] = None,
    model: options.Model = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="A metric in place of a model.", metavar="NAME[:option=value]")
    ] = None,
    source: options.Source = None,
    targets: options.Targets = None,
    references: options.References = None,
    by: Annotated[str, typer.Option("--by", help="Choose by this: score, or an aspect.")] = "score",
    document_field: options.DocumentField = "document",
    summary_field: options.SummaryField = "summary",
    batch_size: options.BatchSize = 32,
    on_bad: options.OnBad = "stop",
) -> None:
    """Keep the best of several candidate summaries of each document, with its lead over the next best."""
    from negsample.commands.score import make_scorer
    from negsample.io.files import format_of
    from negsample.io.write import open_writer
    from negsample.scoring.files import line_chunks, score_stream, table_chunks
    from negsample.scoring.gate import check_name
    from negsample.scoring.outcomes import Settings
    from negsample.scoring.select import best

    inputs, targets = inputs or [], targets or []
    if on_bad not in ("stop", "skip"):
        raise InputError(f"--on-bad {on_bad}: give stop or skip")
    if (source is None) != (not targets):
        raise InputError("-s and -t go together: -s DOCUMENTS.txt -t ONE.txt OTHER.txt …")
    if source is None and len(inputs) != 1:
        raise InputError(f"give one INPUT (or -s and -t), not {len(inputs)}")
    kind = format_of(output)
    if source is None:
        pieces, key = table_chunks(inputs[0]), document_field
    else:
        pieces, key = line_chunks(source, [*targets, *inputs], references or []), "document_id"
    # What is wrong at the beginning of a file is told before a model is loaded.
    pieces = chain([next(pieces)], pieces)
    scorer = make_scorer(model, metric)
    aspects = scorer.aspects
    check_name(by, aspects)
    settings = Settings(document_field, summary_field, batch_size, on_bad, bool(aspects), percentiles=scorer.ranked)
    chosen = best(score_stream(scorer, pieces, settings), key, by)
    records = [choice.fields(settings) for choice in chosen]
    if source is not None:
        records = [{k: v for k, v in record.items() if k not in ("document", "references")} for record in records]
    names = list(dict.fromkeys(name for record in records for name in record))
    with open_writer(output, columns=None if kind == "jsonl" else names) as writer:
        for record in records:
            writer.write(record)
    _tell(chosen, scorer.signature, to_stderr=output == "-")


def _tell(chosen: "list[Choice]", signature: str, to_stderr: bool) -> None:
    """Print how many were chosen, among how many, how clearly, and what could not be judged."""
    stream = sys.stderr if to_stderr else sys.stdout
    margins = [choice.margin for choice in chosen if choice.margin is not None]
    ties = sum(margin == 0 for margin in margins)
    lead = f", mean lead {sum(margins) / len(margins):.4f}, {ties} ties" if margins else ""
    count = sum(choice.candidates for choice in chosen)
    print(f"{len(chosen)} documents, {count} candidates{lead}  {signature}", file=stream)
    if empty := sum(choice.value is None for choice in chosen):
        print(f"{empty} documents without a candidate that has a value: the first stands for all", file=stream)

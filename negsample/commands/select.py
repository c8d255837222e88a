"""``negsample select``."""

import math
from typing import TYPE_CHECKING, Annotated

import typer

from negsample.commands import options
from negsample.terminal import say

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
        str | None, typer.Option("--metric", help="A metric in place of a model.", metavar="NAME[(option=value)]")
    ] = None,
    source: options.Source = None,
    targets: options.Targets = None,
    references: options.References = None,
    by: Annotated[str, typer.Option("--by", help="Choose by this: score, or an aspect.")] = "score",
    document_field: options.DocumentField = "document",
    summary_field: options.SummaryField = "summary",
    output_field: options.OutputField = "score",
    batch_size: options.BatchSize = 32,
    on_bad: options.OnBad = "stop",
) -> None:
    """Keep the best of several candidate summaries of each document, with its lead over the next best."""
    from negsample.commands.score import make_scorer, open_input, print_notes
    from negsample.io.files import check_outputs, format_of
    from negsample.io.write import open_writer
    from negsample.scoring.files import Settings
    from negsample.scoring.select import select_best

    settings = Settings(document_field, summary_field, on_bad, output_field)
    nested = format_of(output) == "jsonl"
    check_outputs([output], [*(inputs or []), source, *(targets or []), *(references or [])])
    given = open_input(inputs or [], source, targets or [], references or [])
    scorer = make_scorer(model, metric, batch_size=batch_size)
    chosen, tally = select_best(scorer, given, by, settings, nested)
    names = list(dict.fromkeys(name for choice in chosen for name in choice.record))
    with open_writer(output, columns=None if nested else names) as writer:
        for choice in chosen:
            writer.write(choice.record)
    print_notes({given.name: tally}, error=output == "-")
    _tell(chosen, scorer.signature, error=output == "-")


def _tell(chosen: "list[Choice]", signature: str, error: bool) -> None:
    """Print how many were chosen, among how many, how clearly, and what could not be judged."""
    margins = [choice.margin for choice in chosen if not math.isnan(choice.margin)]
    ties = sum(margin == 0 for margin in margins)
    lead = f", mean lead {sum(margins) / len(margins):.4f}, {ties} ties" if margins else ""
    count = sum(choice.candidates for choice in chosen)
    say(f"{len(chosen)} documents, {count} candidates{lead}  {signature}", error=error)
    if empty := sum(math.isnan(choice.value) for choice in chosen):
        say(f"{empty} documents without a candidate that has a value: the first stands for all", error=error)

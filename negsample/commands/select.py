"""``negsample select``."""

import math
from typing import Annotated

from typer import Argument, Option

from negsample.commands import options
from negsample.terminal import say


def select(
    output: Annotated[str, Option("--output", "-o", help="Where the best go (- for standard output).", metavar="BEST")],
    inputs: Annotated[
        list[str] | None,
        Argument(help="Records, several to a document (- for standard input); after -t: systems.", metavar="INPUT"),
    ] = None,
    model: options.Model = None,
    metric: options.Metric = None,
    source: options.Source = None,
    targets: options.Targets = None,
    references: options.References = None,
    by: Annotated[str, Option(help="Choose by this: score, or an aspect.")] = "score",
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
    names = list(dict.fromkeys(name for one in chosen for name in one.record))
    with open_writer(output, columns=None if nested else names) as writer:
        for one in chosen:
            writer.write(one.record)
    margins = [one.margin for one in chosen if not math.isnan(one.margin)]
    lead = f", mean lead {sum(margins) / len(margins):.4f}, {margins.count(0)} ties" if margins else ""
    count, beside = sum(one.candidates for one in chosen), output == "-"
    print_notes({given.name: tally}, error=beside, aspects=scorer.aspects)
    say(f"{len(chosen)} documents, {count} candidates{lead}  {scorer.signature}", error=beside)
    if empty := sum(math.isnan(one.value) for one in chosen):
        say(f"{empty} documents without a candidate that has a value: the first stands for all", error=beside)

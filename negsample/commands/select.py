"""``negsample select``."""

import math
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from negsample.commands import options
from negsample.errors import RecordError
from negsample.terminal import say

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    batch_size: options.BatchSize = 32,
    on_bad: options.OnBad = "stop",
) -> None:
    """Keep the best of several candidate summaries of each document, with its lead over the next best."""
    from negsample.commands.score import make_scorer, open_input
    from negsample.io.files import check_not_read, format_of
    from negsample.io.write import open_writer
    from negsample.scoring.files import Settings, records_of, scored_chunks
    from negsample.scoring.gate import check_name
    from negsample.scoring.select import best

    settings = Settings(document_field, summary_field, on_bad)
    nested = format_of(output) == "jsonl"
    check_not_read(output, [*(inputs or []), source, *(targets or []), *(references or [])])
    given = open_input(inputs or [], source, targets or [], references or [])
    scorer = make_scorer(model, metric, batch_size=batch_size)
    check_name(by, scorer.aspects)

    def scored() -> "Iterator[tuple[dict[str, Any], float]]":
        for rows, columns in scored_chunks(scorer, given.chunks, settings):
            for row in rows:
                if taken := {"margin", "candidates"} & row.fields.keys():
                    raise RecordError(row.where, f"field {min(taken)!r} is what select adds", "rename it")
            records = records_of(rows, columns, settings, nested, given.unwritten)
            yield from zip(records, columns.named()[by].tolist(), strict=True)

    chosen = best(scored(), "document_id" if given.systems else document_field)
    records = []
    for one in chosen:
        margin = None if math.isnan(one.margin) else round(one.margin, 7)
        records.append({**one.record, "margin": margin, "candidates": one.candidates})
    names = list(dict.fromkeys(name for record in records for name in record))
    with open_writer(output, columns=None if nested else names) as writer:
        for record in records:
            writer.write(record)
    margins = [one.margin for one in chosen if not math.isnan(one.margin)]
    lead = f", mean lead {sum(margins) / len(margins):.4f}, {margins.count(0)} ties" if margins else ""
    count, beside = sum(one.candidates for one in chosen), output == "-"
    say(f"{len(chosen)} documents, {count} candidates{lead}  {scorer.signature}", error=beside)
    if empty := sum(math.isnan(one.value) for one in chosen):
        say(f"{empty} documents without a candidate that has a value: the first stands for all", error=beside)

"""``negsample score`` and ``select``."""

import math
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from negsample.commands import options
from negsample.errors import InputError
from negsample.terminal import say, say_table, screen_width, shorten

if TYPE_CHECKING:
    from negsample.io.read import Row
    from negsample.processes import Processes
    from negsample.scoring.files import Input, Settings
    from negsample.scoring.scorer import Columns, Scorer
    from negsample.scoring.tally import Tally

# Records that are shown where they are written nowhere.
_SHOWN = 20


def score(
    context: typer.Context,
    model: options.Model = None,
    metric: options.Metric = None,
    inputs: Annotated[
        list[str] | None,
        Argument(help="Records to score (-: standard input; sample); after -t: further systems.", metavar="INPUT"),
    ] = None,
    output: Annotated[
        str | None,
        Option("--output", "-o", help="Where records go (-: standard output); else some are shown.", metavar="OUTPUT"),
    ] = None,
    source: options.Source = None,
    targets: options.Targets = None,
    references: options.References = None,
    document_field: options.DocumentField = "document",
    summary_field: options.SummaryField = "summary",
    aspects: Annotated[bool | None, Option(help="With the aspects; by default where there are any.")] = None,
    output_field: options.OutputField = "score",
    precision: options.Precision = "float32",
    fail_under: Annotated[
        list[str] | None, Option(help="Exit 1 where a mean is below; may be repeated.", metavar="[ASPECT=]NUMBER")
    ] = None,
    each: Annotated[bool, Option("--each", help="--fail-under holds for every record.")] = False,
    limit: Annotated[int | None, Option(min=1, help="Score only the first N records.")] = None,
    batch_size: options.BatchSize = 32,
    on_bad: options.OnBad = "stop",
    on: Annotated[str | None, Option(help="Score files and folders into folder -o.", metavar="ray[:ADDRESS]")] = None,
    workers: Annotated[int | None, Option(min=1, help="With --on: actors at most.")] = None,
    records_per_part: Annotated[int, Option(min=1, help="With --on: records of an output file.")] = 1024,
) -> None:
    """Score records (JSONL, CSV, TSV, Parquet) or line-aligned text files: by the ready estimator, a model or a metric."""
    from negsample.io.files import check_outputs, format_of
    from negsample.scoring.files import Settings, write_scores
    from negsample.scoring.tally import Gate, parse_limits

    inputs, targets, references = inputs or [], targets or [], references or []
    if source is not None and (document_field, summary_field) != ("document", "summary"):
        raise InputError("--document-field and --summary-field go with a table of records; -s and -t are plain text")
    settings = Settings(document_field, summary_field, on_bad, output_field)
    processes: Processes | None = context.obj
    if on is not None:
        if processes or source is not None or limit is not None or fail_under or each:
            raise InputError("--on goes without accelerate launch, -s, --limit, --fail-under and --each")
        # Actors may begin in folders of their own.
        place = os.path.abspath(model) if model is not None and Path(model).exists() else model
        load = partial(make_scorer, place, metric, aspects, precision, batch_size)
        _score_on(on, load, inputs, output, settings, workers=workers, size=records_per_part)
        return
    if workers is not None:
        raise InputError("--workers goes with --on ray")
    if each and not fail_under:
        raise InputError("--each goes with --fail-under")
    if output is not None:
        format_of(output)
    read = [path for path in (source, *targets, *references, *inputs) if path is not None]
    if processes and processes.size > 1 and "-" in read:
        raise InputError("standard input can't be shared by several processes; name a file that all of them can read")
    limits = parse_limits(fail_under or [])
    check_outputs([output], read)
    records = open_input(inputs, source, targets, references, limit)
    scorer = make_scorer(model, metric, aspects, precision, batch_size)
    gate = Gate(limits, scorer, each) if limits else None
    shown: list[tuple[Row, dict[str, Any]]] = []

    def see(rows: "list[Row]", columns: "Columns") -> None:
        if gate is not None:
            systems = [str(row.fields.get("system") or "") for row in rows]
            gate.add([row.where.rpartition(", ")[2] for row in rows], columns, systems)
        shown.extend(zip(rows[: _SHOWN - len(shown)], columns.rows(), strict=False))

    tallies = write_scores(scorer, records, output, settings, processes, see)
    first = not (processes and processes.rank)
    if first:
        if source is None and output is None:
            _show(shown, scorer.aspects, summary_field)
            if more := sum(tally.n + tally.bad.total() for tally in tallies.values()) - len(shown):
                say(f"… and {more} records more; -o FILE writes all of them")
        print_tallies(tallies, scorer.signature, scorer.aspects, error=output == "-")
    if not any(tally.n for tally in tallies.values()):
        raise InputError(f"{', '.join(tallies)}: not one record could be scored, for the reasons told")
    if gate is not None and (failures := gate.failures()):
        if first:
            say("\n".join(failures), error=True)
        raise typer.Exit(1)


def open_input(
    inputs: list[str], source: str | None, targets: list[str], references: list[str], limit: int | None = None
) -> "Input":
    """The records that a command's INPUT, or its -s, -t and -r, mean. Raises InputError where they don't go together."""
    from negsample.scoring.files import lines, table

    options.check_texts(source, targets, references)
    if source is not None:
        if limit is not None:
            raise InputError("--limit goes with a table of records")
        return lines(source, [*targets, *inputs], references)
    if len(inputs) != 1:
        raise InputError(f"give one INPUT (or -s and -t), not {len(inputs)}")
    return table(inputs[0], limit)


def _score_on(
    on: str, load: "Callable[[], Scorer]", inputs: list[str], output: str | None, settings: "Settings", **how: Any
) -> None:
    from negsample.io.read import SAMPLE_PATH, is_sample
    from negsample.ray import score_on_ray

    engine, _, address = on.partition(":")
    if engine != "ray":
        raise InputError(f"--on {on}: give ray, or ray:ADDRESS")
    if output in (None, "-") or not inputs or "-" in inputs:
        raise InputError("--on ray: give INPUT… (files or folders, not -) and -o FOLDER (not -)")
    places = {name: str(SAMPLE_PATH) if is_sample(name) else name for name in inputs}
    names = {name: place if "://" in name else os.path.abspath(place) for name, place in places.items()}
    out = Path(str(output)).absolute()
    done = score_on_ray(load, list(names.values()), out, settings, address=address or None, **how)
    tallies = {name: done.tallies[place] for name, place in names.items()}
    print_tallies(tallies, done.signature)
    for name, reason in done.unread.items():
        say(f"{name}: not read to its end: {reason}")
    if not any(tally.n for tally in tallies.values()):
        raise InputError(f"{', '.join(inputs)}: not one record could be scored, for the reasons told")


def make_scorer(
    model: str | None, metric: str | None, aspects: bool | None = None, precision: str = "float32", batch_size: int = 32
) -> "Scorer":
    """The metric, the model, or else the ready estimator. Raises InputError for both, and for aspects that aren't there."""
    if model is not None and metric is not None:
        raise InputError("give --model DIR or --metric NAME, one of them")
    if metric is not None:
        from negsample.scoring.scorer import make_metric

        if aspects:
            raise InputError("--aspects goes with --model; a metric has none")
        if precision != "float32":
            raise InputError("--precision goes with --model; a metric has its own")
        return make_metric(metric)
    from negsample.models import load

    estimator = load(model, precision=precision)
    if aspects:
        estimator.need_aspects()
    return estimator.scorer(batch_size=batch_size, aspects=aspects is not False)


def _show(shown: "list[tuple[Row, dict[str, Any]]]", aspects: Sequence[str], summary_field: str) -> None:
    """A table of records: name, summary, score and aspects, each with its percentile."""
    # What the numbers leave to the summary.
    widths = {"record": 12, "summary": max(16, screen_width(110) - 14 - 12 * (1 + len(aspects)))}
    rows = []
    for row, found in shown:
        name = row.fields.get("id")
        name = row.where.rpartition(", ")[2] if name in (None, "") else name
        cells = [_cell(found["score"], found.get("percentile"))]
        cells += [_cell(found[aspect], found.get(f"{aspect}_percentile")) for aspect in aspects]
        rows.append([str(name), " ".join(str(row.fields.get(summary_field) or "").split()), *cells])
    say_table(["record", "summary", "score", *aspects], rows, widths=widths, width=110)
    if any(found.get("percentile") is not None for _, found in shown):
        say("%: the share of the real summaries that the estimator knows which score lower")


def _cell(value: float | None, share: float | None) -> str:
    shown = "–" if value is None else f"{value:.3f}"
    return shown if share is None else f"{shown} {share:>4.0%}"


def print_tallies(
    tallies: dict[str, "Tally"], signature: str, aspects: Sequence[str] = (), *, error: bool = False
) -> None:
    """Print one line a system: mean, 95 % interval, n, signature; then ``print_notes``."""
    width = max(map(len, tallies))
    for name, tally in tallies.items():
        mean = f"{tally.mean:.4f}" if tally.mean is not None else "–"
        interval = tally.interval
        told = f"95 % interval {interval[0]:.4f} to {interval[1]:.4f}" if interval else "no interval"
        say(f"{name:<{width}}  mean {mean}  {told}  n {tally.n}  {signature}", error=error)
    print_notes(tallies, error=error, aspects=aspects)


def print_notes(tallies: dict[str, "Tally"], *, error: bool, aspects: Sequence[str] = ()) -> None:
    """Print what was cut, among which summaries the percentiles are, what became of fields of the records, what was not read,
    which of ``aspects`` are worth nothing on such texts, and what has no score."""
    from negsample.scoring.tally import OTHERS, notices

    for name, tally in tallies.items():
        if tally.cut:
            say(f"{name}: {tally.cut} of {tally.n} pairs are longer than the model reads and were cut", error=error)
        if any(tally.domains) or tally.unknown:
            told = ", ".join(f"of {domain or 'all'} {count}" for domain, count in tally.domains.most_common())
            by_count = sorted(tally.unknown.items(), key=lambda one: (one[0] == OTHERS, -one[1]))
            unknown = ", ".join(f"{shorten(domain, 40)} {count}" for domain, count in by_count)
            say(f"{name}: percentiles: {told}{unknown and f'; unknown domains: {unknown}'}", error=error)
        for field, count in tally.replaced.items():
            say(f"{name}: {count} records had their own {field!r}, replaced; keep it with --output-field", error=error)
        for field, count in tally.removed.items():
            say(f"{name}: {count} records had {field!r} of an earlier scoring, left out", error=error)
        for what, count in tally.unread.items():
            say(f"{name}: {count} records have {what}", error=error)
        for line in notices(tally.kinds, aspects):
            say(f"{name}: {line}", error=error)
        if tally.bad:
            reasons = ", ".join(f"{count} {reason}" for reason, count in tally.bad.most_common())
            say(f"{name}: {tally.bad.total()} records without a score: {reasons}", error=error)


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
    from negsample.corpora.pairs import describe_skipped
    from negsample.io.files import check_outputs, format_of
    from negsample.io.write import open_writer
    from negsample.scoring.files import Settings, select_best

    settings = Settings(document_field, summary_field, on_bad, output_field)
    nested = format_of(output) == "jsonl"
    check_outputs([output], [*(inputs or []), source, *(targets or []), *(references or [])])
    given = open_input(inputs or [], source, targets or [], references or [])
    scorer = make_scorer(model, metric, batch_size=batch_size)
    chosen, tally = select_best(scorer, given, by, settings, nested)
    if not chosen:
        raise InputError(f"{given.name}: not one record can be used ({describe_skipped(tally.bad)})")
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

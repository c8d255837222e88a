"""``negsample score``."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TextIO

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


def run(
    model: str | None,
    metric: str | None,
    inputs: list[str],
    output: str | None,
    source: str | None,
    targets: list[str],
    references: list[str],
    *,
    document_field: str,
    summary_field: str,
    batch_size: int,
    on_bad: str,
    aspects: bool = False,
    crew: Crew | None = None,
) -> None:
    """Score a table, or text files aligned by line; print a line for each system, and the signature.

    Where ``crew`` has several processes they share the input (``negsample.parallel_scoring``); the first one writes and prints.
    """
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
    options: dict[str, Any] = {"batch_size": batch_size, "on_bad": on_bad, "aspects": aspects}
    chunks: Callable[[], Iterator[list[Row]]]
    write: Callable[[Outcomes | None], dict[str, Tally]]
    if source is not None:
        systems = [*targets, *inputs]
        chunks = partial(line_chunks, source, systems, references)

        def write(outcomes: Outcomes | None) -> dict[str, Tally]:
            return score_lines(scorer, source, systems, output, references=references, outcomes=outcomes, **options)

    else:
        options |= {"document_field": document_field, "summary_field": summary_field}
        chunks = partial(table_chunks, inputs[0])

        def write(outcomes: Outcomes | None) -> dict[str, Tally]:
            return {inputs[0]: score_table(scorer, inputs[0], str(output), outcomes=outcomes, **options)}

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
        tallies = score_together(crew, chunks, partial(score_rows, scorer, **options), write, output)
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

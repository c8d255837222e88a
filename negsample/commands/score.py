"""``negsample score``."""

import sys
from typing import Any, TextIO

from negsample.errors import InputError
from negsample.scoring import ItemScorer, Scorer, Tally, score_lines, score_table


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
) -> None:
    """Score a table, or text files aligned by line; print a line for each system, and the signature."""
    if on_bad not in ("stop", "skip"):
        raise InputError(f"--on-bad {on_bad}: give stop or skip")
    if (source is None) != (not targets):
        raise InputError("-s and -t go together: -s DOCUMENTS.txt -t SUMMARIES.txt …")
    if references and source is None:
        raise InputError("-r goes with -s and -t; a table of records has its own 'references'")
    if source is None and len(inputs) != 1:
        raise InputError(f"give one INPUT (or -s and -t), not {len(inputs)}")
    if source is None and output is None:
        raise InputError("give -o OUTPUT (- for standard output)")
    scorer = _scorer(model, metric, aspects)
    options: dict[str, Any] = {"batch_size": batch_size, "on_bad": on_bad, "aspects": aspects}
    if source is not None:
        tallies = score_lines(scorer, source, [*targets, *inputs], output, references=references, **options)
    else:
        fields: dict[str, Any] = {"document_field": document_field, "summary_field": summary_field}
        tallies = {inputs[0]: score_table(scorer, inputs[0], str(output), **fields, **options)}
    print_tallies(tallies, scorer.signature, sys.stderr if output == "-" else sys.stdout)


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

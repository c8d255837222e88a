"""``negsample fit``."""

from typing import TYPE_CHECKING, Annotated

from typer import Option

from negsample.commands import options
from negsample.errors import InputError
from negsample.number_text import interval, number
from negsample.terminal import say, say_table

if TYPE_CHECKING:
    from negsample.eval.learn import FitResult, Settings
    from negsample.io.run_record import Stopwatch


def fit(
    judgments: Annotated[
        str, Option(help="People's judgments: FILE, or tac2010:DIR, summeval:FILE, …", metavar="FILE")
    ],
    out: Annotated[str, Option(help="Model folder to write.", metavar="DIR")],
    model: options.Model = None,
    metrics: options.Metrics = None,
    targets: Annotated[
        list[str] | None, Option("--target", help="Only this human score; may be repeated.", metavar="NAME")
    ] = None,
    references: Annotated[
        bool, Option("--references", help="Metrics may read references: the model will always need them.")
    ] = False,
    every_half: Annotated[bool, Option("--all", help="Fit rows of half: report too.")] = False,
    preset: Annotated[
        str | None,
        Option(help="A learned metric of the --metric ones alone, as in Scialom et al.", metavar="p2|equal"),
    ] = None,
    confidence: Annotated[float, Option(help="Of the intervals of single summaries.")] = 0.9,
    scores_columns: options.ScoresColumns = None,
    bootstrap: options.Bootstrap = 1000,
    seed: options.Seed = 0,
) -> None:
    """Learn from people's judgments: a model whose score, and targets, are fitted to them, and what that is worth."""
    from negsample.eval.learn import Settings, learn
    from negsample.eval.report.learn import write_fit
    from negsample.io.files import check_new
    from negsample.io.run_record import Stopwatch
    from negsample.models import load

    watch = Stopwatch()
    check_new(out)
    settings = Settings(
        judgments=judgments,
        metrics=tuple(metrics or ()),
        targets=tuple(dict.fromkeys(targets or ())),
        references=references,
        every_half=every_half,
        columns=options.names(scores_columns),
        confidence=confidence,
        bootstrap=bootstrap,
        seed=seed,
    )
    if preset is not None:
        if model is not None or not metrics or not targets:
            raise InputError(
                "--preset weighs metrics alone: give --metric NAME and --target HUMAN, and no --model "
                "(an aspect is a metric too: --metric align-untrained(aspect=coverage))"
            )
        _fit_preset(preset, settings, out, watch)
        return
    estimator = load(model)
    result = learn(estimator, settings)
    try:
        print_fit(result)
    finally:  # neither where it can't be shown nor where it can't be written is lost what was found
        options.check_whole(write_fit(result, estimator, model or "ready", out, watch))
    say(f"\nmodel: {out}   report: {out}/fit/report.html   figures: {out}/fit/fit.csv, fit.json")


def print_fit(result: "FitResult") -> None:
    """For each target: the table of its first level, the weights, the verdict, how many judgments are enough."""
    from negsample.eval.agreement.levels import level_title
    from negsample.eval.learn import FITTED, OVERALL
    from negsample.eval.report import learn as words

    for note in result.notes:
        say(note)
    for target in result.targets:
        title = f"{target.human}: {len(target.task.people)} summaries of {target.task.count} documents"
        rows = []
        for name in words.ranked(target):
            figure, seen = target.figure(name), " (cross-validated)" if name in (FITTED, OVERALL) else ""
            span = interval(figure.low, figure.high)
            rows.append((name + seen, number(figure.value), span, number(figure.given_length)))
        head = ("metric", level_title(target.level), "95 % interval", "given length")
        say_table(head, rows, title=title, texts=("metric",))
        say(f"  weights: {words.in_words(words.weights(result, target.fit.weights))}")
        say(f"  {words.verdict(target)}")
        say(f"  {words.enough(target)}")
        covered, low, high = target.coverage
        say(
            f"  {result.settings.confidence:.0%} intervals (± {target.fit.half_width:.3g} on people's scale) "
            f"held {covered:.1%} of held-out summaries ({interval(low, high)})"
        )
        for reason, count in target.left_out.items():
            say(f"  left out: {count} × {reason}")
        say()
    say(f"overall score: {words.in_words(words.weights(result, result.overall.weights))}")


def _fit_preset(preset: str, settings: "Settings", out: str, watch: "Stopwatch") -> None:
    from negsample.eval.judgments import load_judgments
    from negsample.eval.metrics.learned import fit_preset
    from negsample.eval.report.learn import write_preset

    rows = load_judgments(settings.judgments, columns=settings.columns)
    half = "" if settings.every_half or not any(row.half for row in rows) else "tune"
    result = fit_preset(preset, settings.metrics, rows, settings.targets, half=half, seed=settings.seed)
    width, learned = max(map(len, result.table)), result.learned
    say(f"Spearman with the geometric mean of {', '.join(settings.targets)}, on the other half of the documents")
    for name, held in result.table.items():
        say(f"  {name:<{width}}  {number(held.mean)} ± {number(held.sd)}  ({held.splits} random halves)")
    parts = " ".join(f"{weight:+.4f}·{name}" for weight, name in zip(learned.weights, learned.columns, strict=True))
    say(f"{learned.source}: {parts} {learned.intercept:+.4f}")
    write_preset(result, out, watch, settings.judgments, settings.seed)
    say(f"\nmetric: --metric learned:{out}/learned.json   table: {out}/table.csv")

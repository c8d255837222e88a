"""``negsample correlate`` and ``fit``: agreement with people, and learning from them."""

from itertools import chain
from typing import TYPE_CHECKING, Annotated

from typer import Option

from negsample.commands import options
from negsample.errors import InputError
from negsample.terminal import interval, number, say, say_table, short

if TYPE_CHECKING:
    from negsample.eval.agreement.columns import ScoreColumn
    from negsample.eval.agreement.correlate import Correlation, Measured
    from negsample.eval.agreement.figures import AgreementFigure
    from negsample.eval.agreement.people import Ceiling
    from negsample.eval.agreement.shares import Contestant
    from negsample.eval.agreement.significance import BaselineVerdict
    from negsample.eval.learn import FitResult


def correlate(
    judgments: Annotated[
        list[str],
        Option(help="People's judgments: FILE, or tac2010:DIR, summeval:FILE, …; may be repeated.", metavar="FILE"),
    ],
    out: Annotated[str, Option(help="Folder for figures, scores and report.html.", metavar="DIR")],
    models: options.Models = None,
    metrics: options.Metrics = None,
    scores: Annotated[
        list[str] | None, Option(help="Other scores: document_id, system, score; may be repeated.", metavar="NAME=FILE")
    ] = None,
    judge: Annotated[
        list[str] | None,
        Option(help="A metric or scores: the others' agreement with it too; may be repeated.", metavar="NAME"),
    ] = None,
    human: Annotated[list[str] | None, Option(help="Only this human score; may be repeated.")] = None,
    half: Annotated[str | None, Option(help="Only judgments of this half.", metavar="tune|report")] = None,
    scores_columns: options.ScoresColumns = None,
    level: Annotated[str, Option(help="Levels, separated by commas.")] = "pooled,summary,system",
    max_missed: Annotated[
        float | None,
        Option(help="0/1 labels: the limit is to miss no more than this share of the bad.", metavar="SHARE"),
    ] = None,
    precision: options.Precision = "float32",
    bootstrap: options.Bootstrap = 1000,
    seed: options.Seed = 0,
) -> None:
    """Agreement of models (by default the ready one) and metrics with people: figures, intervals, tests, a page."""
    from negsample.eval.agreement.correlate import Settings
    from negsample.eval.agreement.correlate import correlate as measure_agreement
    from negsample.eval.report.correlate import write_correlation
    from negsample.io.files import check_new
    from negsample.io.run_record import Stopwatch

    watch = Stopwatch()
    check_new(out)
    settings = Settings(
        judgments=tuple(judgments),
        models=options.chosen_models(models, metrics, scores),
        metrics=tuple(metrics or ()),
        scores=tuple(scores or ()),
        judges=tuple(dict.fromkeys(judge or ())),
        human=tuple(dict.fromkeys(human or ())),
        half=half,
        columns=options.names(scores_columns),
        levels=options.names(level),
        precision=precision,
        max_missed=max_missed,
        bootstrap=bootstrap,
        seed=seed,
    )
    result = measure_agreement(settings)
    try:
        print_correlation(result)
    finally:  # neither where it can't be shown nor where it can't be written is lost what was found
        options.check_whole(write_correlation(result, out, watch))
    say(f"\nreport: {out}/report.html   figures: {out}/agreement.csv, agreement.json   scores: {out}/scores.parquet")


def _name(column: "ScoreColumn") -> str:
    return column.name + (" (sign turned)" if column.turned else "")


def _beside(column: "ScoreColumn", verdict: "BaselineVerdict | None") -> str:
    return verdict.text if verdict else "baseline" if column.kind == "baseline" else ""


def _with_span(figure: "AgreementFigure | Ceiling | Contestant", value: str = "value") -> str:
    return number(getattr(figure, value)) + (
        "" if figure.low is None else f" [{number(figure.low, 2)}, {number(figure.high, 2)}]"
    )


def _print_shares(data: "Measured", human: str) -> None:
    shares = data.shares[human]
    lines, limits = data.share_lines(human), shares.limits
    if not lines:
        say(f"  {human}, {shares.kind.level}: {shares.how}")
        return
    rows = [
        (
            _name(column),
            *([short(limits[column.name])] if limits else []),
            *map(_with_span, figures.values()),
            str(next(iter(figures.values())).n),
            _beside(column, verdict),
        )
        for column, figures, verdict in lines
    ]
    name, constant = shares.constant
    rows.append((name, *(["–"] if limits else []), *map(number, constant), "", "baseline"))
    head = ("metric", *(["bad is under"] if limits else []), *shares.kind.names.values(), "n", "beside trivial")
    title = f"{data.source.name} · {human}: {shares.kind.level}, {shares.how}"
    say_table(head, rows, title=title, texts=("metric", "beside trivial"))


def print_correlation(result: "Correlation") -> None:
    """Tables for each data set and human score, then what was left out, then the average ranks."""
    from negsample.eval.agreement.levels import level_title

    for data in result.datasets:
        for human in data.table.human:
            lines, rows = data.lines(human), []
            levels = [level for level in result.settings.shown_levels() if level in lines[0][1]]
            for column, figures, verdict in lines:
                cells = []
                for figure in (figures[level] for level in levels):
                    cells += [_with_span(figure), str(figure.n)]
                    cells += [number(figure.given_length)] if figure.level != "label" else []
                rows.append((_name(column), *cells, _beside(column, verdict)))
            for name, agreed, beside in data.among(human):
                pairs = ([_with_span(agreed[level]) if level in agreed else "", ""] for level in levels)
                gaps = ([] if level == "label" else [""] for level in levels)
                rows.append((name, *chain(*chain(*zip(pairs, gaps, strict=True))), beside))
            titles = ((level_title(level), "n", "given length")[: 2 if level == "label" else 3] for level in levels)
            head = ("metric", *chain(*titles), "beside trivial")
            title = f"{data.source.name} · {human} ({data.head()})"
            say_table(head, rows, title=title, texts=("metric", "beside trivial"))
            if human in data.shares:
                _print_shares(data, human)
            for reason in data.reasons(human):
                say(f"  {reason}")
            say()
        if data.contest:
            rows = [
                (c.system, str(c.wins), str(c.losses), str(c.ties), _with_span(c, "strength")) for c in data.contest
            ]
            head = ("system", "chosen", "not chosen", "ties", "strength (Bradley–Terry)")
            say_table(head, rows, title=f"{data.source.name}: people's choices", texts=("system",))
            if any(c.strength is None for c in data.contest):
                say("  no strengths: some systems have won, or lost, every choice against all the others")
        for note in data.notes():
            say(f"  {data.source.name}: {note}")
    for level, found in result.ranks.items():
        ranks = ", ".join(f"{r.metric} {r.rank:.2f} ({r.datasets})" for r in found)
        say(f"average rank over data sets (their number), {level_title(level)}: {ranks}")
    for note in result.notes:
        say(note)


def fit(
    judgments: Annotated[str, Option(help="People's judgments: FILE, tac2010:DIR, summeval:FILE, …", metavar="FILE")],
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
        str | None, Option(help="A learned metric of the --metric ones alone, as in Scialom et al.", metavar="p2|equal")
    ] = None,
    confidence: Annotated[float, Option(help="Of the intervals of single summaries.")] = 0.9,
    scores_columns: options.ScoresColumns = None,
    bootstrap: options.Bootstrap = 1000,
    seed: options.Seed = 0,
) -> None:
    """Learn from people's judgments: a model whose score, and targets, are fitted to them, and what that is worth."""
    from negsample.eval.judgments import load_judgments
    from negsample.eval.learn import Settings, learn
    from negsample.eval.metrics.learned import fit_preset
    from negsample.eval.report.learn import write_fit, write_preset
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
        rows = load_judgments(judgments, columns=settings.columns)
        half = "" if every_half or not any(row.half for row in rows) else "tune"
        weighed = fit_preset(preset, settings.metrics, rows, settings.targets, half=half, seed=seed)
        width, learned = max(map(len, weighed.table)), weighed.learned
        say(f"Spearman with the geometric mean of {', '.join(settings.targets)}, on the other half of the documents")
        for name, held in weighed.table.items():
            say(f"  {name:<{width}}  {number(held.mean)} ± {number(held.sd)}  ({held.splits} random halves)")
        parts = " ".join(f"{weight:+.4f}·{name}" for weight, name in zip(learned.weights, learned.columns, strict=True))
        say(f"{learned.source}: {parts} {learned.intercept:+.4f}")
        write_preset(weighed, out, watch, judgments, seed)
        say(f"\nmetric: --metric learned:{out}/learned.json   table: {out}/table.csv")
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
        span = f" ({interval(low, high)})" if low is not None else ""
        say(
            f"  {result.settings.confidence:.0%} intervals (± {target.fit.half_width:.3g} on people's scale) "
            f"held {covered:.1%} of held-out summaries{span}"
        )
        for reason, count in target.left_out.items():
            say(f"  left out: {count} × {reason}")
        say()
    say(f"overall score: {words.in_words(words.weights(result, result.overall.weights))}")

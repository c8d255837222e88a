"""``negsample correlate``."""

from typing import TYPE_CHECKING, Annotated

from typer import Option

from negsample.commands import options
from negsample.number_text import number
from negsample.terminal import say, say_table

if TYPE_CHECKING:
    from negsample.eval.agreement.correlate import Correlation


def correlate(
    judgments: Annotated[
        list[str],
        Option(help="People's judgments: FILE, or tac2010:DIR, summeval:FILE, …; may be repeated.", metavar="FILE"),
    ],
    out: Annotated[str, Option(help="Folder for figures, scores and report.html.", metavar="DIR")],
    models: options.Models = None,
    metrics: options.Metrics = None,
    scores: Annotated[
        list[str] | None,
        Option(help="Other scores: document_id, system, score; may be repeated.", metavar="NAME=FILE"),
    ] = None,
    human: Annotated[list[str] | None, Option(help="Only this human score; may be repeated.")] = None,
    half: Annotated[str | None, Option(help="Only judgments of this half.", metavar="tune|report")] = None,
    scores_columns: options.ScoresColumns = None,
    level: Annotated[str, Option(help="Levels, separated by commas.")] = "pooled,summary,system",
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
        human=tuple(dict.fromkeys(human or ())),
        half=half,
        columns=options.names(scores_columns),
        levels=options.names(level),
        precision=precision,
        bootstrap=bootstrap,
        seed=seed,
    )
    result = measure_agreement(settings)
    try:
        print_correlation(result)
    finally:  # neither where it can't be shown nor where it can't be written is lost what was found
        options.check_whole(write_correlation(result, out, watch))
    say(f"\nreport: {out}/report.html   figures: {out}/agreement.csv, agreement.json   scores: {out}/scores.parquet")


def print_correlation(result: "Correlation") -> None:
    """A table for each data set and human score, then what was left out, then the average ranks."""
    from negsample.eval.agreement.levels import level_title

    levels = result.settings.shown_levels()
    titles = (title for level in levels for title in (level_title(level), "n", "given length"))
    head = ("metric", *titles, "beside trivial")
    for data in result.datasets:
        for human in data.table.human:
            rows = []
            for line in data.lines(human):
                cells = []
                for figure in (line.figures[level] for level in levels):
                    span = "" if figure.low is None else f" [{number(figure.low, 2)}, {number(figure.high, 2)}]"
                    cells += [number(figure.value) + span, str(figure.n), number(figure.given_length)]
                name = line.column.name + (" (sign turned)" if line.column.turned else "")
                beside = "baseline" if line.column.kind == "baseline" else ""
                rows.append((name, *cells, line.verdict.text if line.verdict else beside))
            title = f"{data.source.name} · {human} ({data.head()})"
            say_table(head, rows, title=title, texts=("metric", "beside trivial"))
            for reason in data.reasons(human):
                say(f"  {reason}")
            say()
        for note in data.notes():
            say(f"  {data.source.name}: {note}")
    for level, found in result.ranks.items():
        ranks = ", ".join(f"{r.metric} {r.rank:.2f} ({r.datasets})" for r in found)
        say(f"average rank over data sets (their number), {level_title(level)}: {ranks}")
    for note in result.notes:
        say(note)

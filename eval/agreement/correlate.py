"""``negsample correlate``: models, metrics and files of scores against people's judgments, over several data sets."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from negsample.errors import InputError
from negsample.eval.agreement.columns import (
    ScoreColumn,
    check_names,
    documents_seen,
    make_scorers,
    score_columns,
    score_file_column,
)
from negsample.eval.agreement.figures import agreement
from negsample.eval.agreement.levels import LEVELS, MAIN_COEFFICIENT, ScoreTable, judged_table
from negsample.eval.agreement.result import (
    Correlation,
    Measured,
    Settings,
    Source,
    baseline_verdicts,
    furthest_apart,
)
from negsample.eval.agreement.sample_size import AverageRank, SampleSize, article_sampling, average_ranks
from negsample.eval.agreement.significance import TESTS, MetricsComparison, beats_matrix, compare_metrics
from negsample.eval.judgments import Unusable, load_judgments
from negsample.eval.judgments.collect import is_mean, with_means
from negsample.eval.judgments.files import HALVES
from negsample.progress import Bar
from negsample.records import Judged
from negsample.registry import suggestion
from negsample.resampling import check_resamples

# A permutation p can't fall below 1/(m + 1), and Holm multiplies the smallest by the number of pairs of metrics: with 50
# draws a pair the smallest adjusted p is 0.02. At the system level Williams' test decides, and 1,000 are enough.
PERMUTATIONS = 1000
_DRAWS_PER_PAIR = 50
_DRAWN_MOST = 20_000_000  # draws × documents held at once


def correlate(settings: Settings) -> Correlation:
    """Score all judged summaries by everything asked for and by the trivial baselines, and measure the agreement.

    Raises InputError for whatever is wrong with the settings or the files, before the long work where it can be seen.
    """
    check_resamples(settings.bootstrap)
    if not settings.judgments:
        raise InputError("no judgments; give --judgments FILE, or one of the published sets as NAME:PATH")
    for level in settings.levels:
        if level not in LEVELS:
            raise InputError(f"--level {level}: {suggestion(level, list(LEVELS))}")
    if settings.half not in (None, *HALVES):
        raise InputError(f"--half {settings.half}: {suggestion(str(settings.half), list(HALVES))}")
    sources, told = _chosen(load_sources(settings.judgments, settings.columns), settings)
    rows = [row for source in sources for row in source.rows]
    owners = [source.name for source in sources for _ in source.rows]
    matched = [score_file_column(argument, rows, owners) for argument in settings.scores]
    from_files = [column for column, _ in matched]
    scorers, missed = make_scorers(settings.models, settings.metrics, baselines=True, precision=settings.precision)
    notes = [*told, *missed, *(line for _, lines in matched for line in lines)]
    check_names([*(column.name for column in from_files), *(scorer.name for scorer in scorers)])
    # The baselines stand last.
    columns = sorted([*score_columns(scorers, rows), *from_files], key=lambda column: column.kind == "baseline")
    check_names(column.name for column in columns)
    asked = [column for column in columns if column.kind != "baseline"]
    if asked and all(np.isnan(column.values).all() for column in asked):
        why = "; ".join(f"{column.name}: {column.unscored()}" for column in asked)
        raise InputError(f"not one judged summary could be scored: {why}")

    measured, start = [], 0
    for source in sources:
        part = range(start, start + len(source.rows))
        start = part.stop
        measured.append(_measure(source, [column.take(part) for column in columns], settings))
    notes += [note for data in measured if (note := _uneven(data))]
    for scorer in scorers:
        for source in sources:
            if seen := documents_seen(scorer, source.rows):
                notes.append(
                    f"{scorer.name} was fitted to judgments of {seen} of the documents of {source.name}: its figures there are "
                    "too good; measure it on others (--half report, where it was fitted on half: tune)"
                )
    return Correlation(settings, tuple(columns), tuple(measured), _ranks(measured), tuple(notes))


def _uneven(data: Measured) -> str:
    """Tell where the means of the system level are over different documents; "" where they are not."""
    count = max((figure.uneven for figure in data.figures), default=0)
    if not count:
        return ""
    return (
        f"{data.source.name}: system level: {count} of {len(data.table.system_names)} systems lack documents that others "
        "have; each mean is over a system's own documents, so that harder ones may count against it"
    )


def load_sources(specs: Sequence[str], columns: Sequence[str] = ()) -> list[Source]:
    """Load the data sets of all ``--judgments``; one source may hold several, and names are made to differ.

    The mean of a data set's human scores is one more, as `with_means` has it.
    """
    found: list[Source] = []
    for spec in specs:
        unusable = Unusable()
        groups: dict[str, list[Judged]] = {}
        for row in with_means(load_judgments(spec, unusable, columns), unusable):
            groups.setdefault(row.dataset or Path(spec.rpartition(":")[2]).name, []).append(row)
        for name, rows in groups.items():
            taken = {source.name for source in found}
            number = next(k for k in range(1, len(taken) + 2) if (name if k == 1 else f"{name}-{k}") not in taken)
            # What could not be read has no data set of its own, so it is told of once for each source.
            lines = tuple(unusable.lines()) if name == next(iter(groups)) else ()
            found.append(Source(name if number == 1 else f"{name}-{number}", spec, tuple(rows), lines))
    return found


def _chosen(sources: list[Source], settings: Settings) -> tuple[list[Source], list[str]]:
    """The sources with only the half and the human scores that were asked for; what is to be told of it.

    Raises InputError for a file without a row of the half, which was given to be measured, and an unknown human score.
    """
    half, wanted, notes = settings.half, settings.human, []
    if half is not None:
        for spec in dict.fromkeys(source.spec for source in sources):
            found = {row.half for source in sources if source.spec == spec for row in source.rows}
            if half not in found:
                told = f"no row has half: {half}" if found - {""} else "no row has the field 'half'"
                raise InputError(f"{spec}: {told}; mark its rows half: tune or half: report, or leave --half out")
        for source in sources:
            # What has no half may be of either.
            if count := sum(not row.half for row in source.rows):
                notes.append(f"{source.name}: left out {count} × judged summary without a half")
        sources = [replace(source, rows=tuple(r for r in source.rows if r.half == half)) for source in sources]
        notes += [f"{source.name}: left out, for no row has half: {half}" for source in sources if not source.rows]
        sources = [source for source in sources if source.rows]
    if wanted:
        known = list(dict.fromkeys(name for source in sources for row in source.rows for name in row.scores))
        for name in wanted:
            if name not in known:
                raise InputError(f"--human {name}: no judgments have that score; {suggestion(name, known)}")
        sources = [replace(source, rows=tuple(_only(row, wanted) for row in source.rows)) for source in sources]
        without = [source for source in sources if not any(row.scores for row in source.rows)]
        score = " or ".join(wanted)
        notes += [f"{source.name}: left out, for none of its judgments has the score {score}" for source in without]
        sources = [source for source in sources if source not in without]
    halves = Counter(row.half for source in sources for row in source.rows if row.scores)
    if half is None and halves["tune"]:
        told = f"{halves['tune']} of {halves.total()} judged summaries have half: tune, for choosing settings by"
        over = "; the figures are over both halves, --half report leaves these out" if halves["report"] else ""
        notes.append(told + over)
    return sources, notes


def _only(row: Judged, wanted: Sequence[str]) -> Judged:
    return replace(row, scores={name: value for name, value in row.scores.items() if name in wanted})


def _measure(source: Source, columns: Sequence[ScoreColumn], settings: Settings) -> Measured:
    people = list(dict.fromkeys(name for row in source.rows for name in row.scores))
    table = judged_table(source.name, source.rows, people, {column.name: column.values for column in columns})
    with Bar(f"{source.name}: agreement") as bar:
        figures = agreement(
            table,
            levels=settings.levels,
            bootstrap=settings.bootstrap,
            seed=settings.seed,
            progress=lambda done, total: bar.advance(note=f"{done} of {total}"),
        )
    pairs = len(columns) * (len(columns) - 1) // 2
    comparisons: list[MetricsComparison] = []
    with Bar(f"{source.name}: comparing", total=len(table.human) * len(settings.levels) * pairs) as bar:
        for human in table.human:
            for level in settings.levels:
                comparisons += compare_metrics(
                    table,
                    human,
                    level=level,
                    bootstrap=settings.bootstrap,
                    permutations=_permutations(pairs, len(table.document_names)) if level != "system" else PERMUTATIONS,
                    seed=settings.seed,
                    progress=lambda done, total: bar.advance(),
                )
    groups: dict[tuple[str, str], list[MetricsComparison]] = {}
    for comparison in comparisons:
        groups.setdefault((comparison.human, comparison.level), []).append(comparison)
    beats = {key: beats_matrix(group, TESTS[key[1]]) for key, group in groups.items()}
    return Measured(
        source,
        tuple(columns),
        table,
        tuple(figures),
        tuple(comparisons),
        beats,
        baseline_verdicts(figures, beats),
        _sampling(table, settings.seed) if "system" in settings.levels else {},
        {
            (human, metric): tuple(furthest_apart(table, metric, human))
            for human in table.human
            for metric in table.metrics
        },
    )


def _permutations(pairs: int, documents: int) -> int:
    """How many random exchanges tell ``pairs`` pairs of metrics apart, as far as memory goes."""
    return max(PERMUTATIONS, min(_DRAWS_PER_PAIR * pairs, _DRAWN_MOST // documents))


def _sampling(table: ScoreTable, seed: int) -> dict[tuple[str, str], tuple[SampleSize, ...]]:
    """Article sampling of every metric and human score with a system level, by (human, metric)."""
    pairs = [(human, metric) for human in table.human for metric in table.metrics]
    found = {(human, metric): tuple(article_sampling(table, metric, human, seed=seed)) for human, metric in pairs}
    return {key: sizes for key, sizes in found.items() if any(size.mean is not None for size in sizes)}


def _ranks(measured: Sequence[Measured]) -> dict[str, tuple[AverageRank, ...]]:
    """Level → average ranks; a data set's correlation is the mean over its own human scores, so that each counts once."""
    ranks = {}
    for level, coefficient in MAIN_COEFFICIENT.items():
        values: dict[str, dict[str, float | None]] = {}
        for data in measured:
            found: dict[str, list[float | None]] = {}
            for figure in data.figures:
                if (figure.level, figure.coefficient) == (level, coefficient) and not is_mean(figure.human):
                    found.setdefault(figure.metric, []).append(figure.value)
            means = {
                metric: None if None in column else sum(v for v in column if v is not None) / len(column)
                for metric, column in found.items()
            }
            if any(value is not None for value in means.values()):
                values[data.source.name] = means
        if len(values) > 1:
            ranks[level] = tuple(average_ranks(values))
    return ranks

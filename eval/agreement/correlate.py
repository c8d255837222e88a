"""``negsample correlate``: models, metrics and files of scores against people's judgments, over several data sets; the one
object that the terminal, the page and the files read.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.eval.agreement import figures as fg
from negsample.eval.agreement import significance as sg
from negsample.eval.agreement.columns import (
    TRIVIAL,
    ScoreColumn,
    check_names,
    make_scorers,
    score_columns,
    score_file_column,
)
from negsample.eval.agreement.levels import LEVELS, MAIN_COEFFICIENT, SHARES, ScoreTable, is_good, judged_table
from negsample.eval.agreement.people import Ceiling, People, among_people
from negsample.eval.agreement.shares import Contestant, Shares, contest, measure_choices, measure_limits
from negsample.eval.judgments import Source, Unusable, load_sources
from negsample.eval.judgments.collect import is_mean, with_means
from negsample.eval.judgments.files import CHOSEN, HALVES
from negsample.records import PEOPLE, Judged, document_key
from negsample.registry import suggestion
from negsample.resampling import check_resamples
from negsample.terminal import track

# A permutation p can't fall below 1/(m + 1), and Holm multiplies the smallest by the number of pairs of metrics: with 50
# draws a pair the smallest adjusted p is 0.02. At the system level Williams' test decides, and 1,000 are enough.
PERMUTATIONS = 1000
_DRAWS_PER_PAIR = 50
_DRAWN_MOST = 20_000_000  # draws × documents held at once


@dataclass(frozen=True)
class Settings:
    """What was asked for; ``human`` empty means all, ``half`` None both halves (and rows of none).

    ``columns``: as of `load_judgments`; ``precision``: what the models compute in; ``max_missed``: as of `measure_limits`;
    ``judges``: metrics and scores with which the others are compared as with people.
    """

    judgments: tuple[str, ...]
    models: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    human: tuple[str, ...] = ()
    half: str | None = None
    columns: tuple[str, ...] = ()
    levels: tuple[str, ...] = LEVELS
    precision: str = "float32"
    max_missed: float | None = None
    bootstrap: int = 1000
    seed: int = 0

    def shown_levels(self) -> list[str]:
        """The levels in the order in which they are shown; ``label`` only beside human scores of two values."""
        return [level for level in MAIN_COEFFICIENT if level in ("label", *self.levels)]


Line = tuple[ScoreColumn, dict[str, fg.AgreementFigure], sg.BaselineVerdict | None]
"""One metric in the table of a data set and human score: level → its headline figure (or share → figure), its verdict."""


@dataclass(frozen=True)
class Measured:
    """One data set: its figures, every two metrics compared, who beats whom by (human, level), verdicts by (human, metric,
    level, coefficient), article sampling by (human, metric), the summaries on which metric and people lie furthest apart, by
    human the shares got right of labels and of choices, and the agreement among annotators; the systems that won choices.
    """

    source: Source
    columns: tuple[ScoreColumn, ...]
    table: ScoreTable
    figures: tuple[fg.AgreementFigure, ...]
    comparisons: tuple[sg.MetricsComparison, ...]
    beats: dict[tuple[str, str], sg.BeatsMatrix]
    verdicts: dict[tuple[str, str, str, str], sg.BaselineVerdict]
    sampling: dict[tuple[str, str], list[fg.SampleSize]]
    apart: dict[tuple[str, str], list[fg.Apart]]
    shares: dict[str, Shares]
    people: dict[str, People]
    contest: tuple[Contestant, ...]

    def figure(self, human: str, metric: str, level: str, coefficient: str) -> fg.AgreementFigure | None:
        """Return the figure asked for, or None where that level was not computed."""
        wanted = (human, metric, level, coefficient)
        return next((f for f in self.figures if (f.human, f.metric, f.level, f.coefficient) == wanted), None)

    def lines(self, human: str) -> list[Line]:
        """Return the rows of the table, best first by the first of `MAIN_COEFFICIENT`'s levels that has a value."""
        figures: dict[str, dict[str, fg.AgreementFigure]] = {}
        for figure in sorted(self._headline(human), key=lambda f: [*MAIN_COEFFICIENT].index(f.level)):
            figures.setdefault(figure.level, {})[figure.metric] = figure
        valued = (level for level, own in figures.items() if any(f.value is not None for f in own.values()))
        lead = next(valued, next(iter(figures)))

        found = self._lines(human, figures, lead)
        return sorted(found, key=lambda line: (_falling(line[1][lead]), line[0].name))

    def share_lines(self, human: str) -> list[Line]:
        """Return each metric with its shares (`shares`), highest first share first; [] where none was measured."""
        if human not in self.shares or not self.shares[human].figures:
            return []
        kind, figures = self.shares[human].kind, self.shares[human].figures
        of = {share: {f.metric: f for f in figures if f.coefficient == share} for share in kind.names}
        return sorted(self._lines(human, of, kind.level), key=lambda line: _falling(next(iter(line[1].values()))))

    def _lines(self, human: str, figures: Mapping[str, Mapping[str, fg.AgreementFigure]], level: str) -> list[Line]:
        verdicts = [self.verdicts.get((human, own.name, level, MAIN_COEFFICIENT[level])) for own in self.columns]
        found = [{name: of[own.name] for name, of in figures.items()} for own in self.columns]
        return list(zip(self.columns, found, verdicts, strict=True))

    def among(self, human: str) -> list[tuple[str, dict[str, Ceiling], str]]:
        """Return the rows of annotators: name, level → agreement, with whom; [] where there are no two."""
        if human not in self.people or not self.people[human].ceiling:
            return []
        people = self.people[human]
        return [("one annotator", people.ceiling, "others' mean"), ("one annotator", people.pairwise, "another one")]

    def _headline(self, human: str) -> list[fg.AgreementFigure]:
        return [f for f in self.figures if f.human == human and MAIN_COEFFICIENT[f.level] == f.coefficient]

    def subjects(self, human: str, most: int) -> list[str]:
        """Return the metrics to draw: those asked about, in order, at most ``most`` with the best trivial baseline."""
        best = [column.name for column, _, _ in self.lines(human) if column.name in TRIVIAL][:1]
        asked = [column.name for column in self.columns if column.kind != "baseline"]
        return asked[: most - len(best)] + best

    def reasons(self, human: str) -> list[str]:
        """Say why figures are missing and what was left out, each in one line with the metrics it holds for."""
        told: dict[str, list[str]] = {}
        for figure in self._headline(human):
            why = [figure.reason] if figure.value is None else []
            for reason in (*why, *(f"left out {count} × {reason}" for reason, count in figure.left_out.items())):
                told.setdefault(f"{figure.level} level: {reason}", []).append(figure.metric)
        if human in self.people:
            found = self.people[human]
            told[f"people: {found.reason or found.text}"] = [column.name for column in self.columns]
        every = len(self.columns)
        return [reason if len(of) == every else f"{reason} ({', '.join(of)})" for reason, of in told.items()]

    def notes(self) -> list[str]:
        """Say what the data set's judgments and scores lack."""
        unscored = [f"{column.name}: {told}" for column in self.columns if (told := column.unscored())]
        lines = [*(f"judgments: {line}" for line in self.source.missing), *unscored]
        return lines if self.source.by == PEOPLE else [f"its scores are by {self.source.by}, not by people", *lines]

    def head(self) -> str:
        """Describe the data set in one line."""
        named = len(self.table.system_names)
        systems = "one system" if named == 1 else f"{named or 'no named'} systems"
        return f"{len(self.table.words)} summaries, {len(self.table.document_names)} documents, {systems}"


def _falling(figure: fg.AgreementFigure) -> float:
    return 2.0 if figure.value is None else -figure.value


@dataclass(frozen=True)
class Correlation:
    """All of it. ``columns``: name, kind and signature of every row of the table (values over all data sets).

    ``ranks``: level → average rank of each metric over the data sets, in the table's order of levels. ``notes``: what was
    left out, and why.
    """

    settings: Settings
    columns: tuple[ScoreColumn, ...]
    datasets: tuple[Measured, ...]
    ranks: dict[str, list[fg.AverageRank]]
    notes: tuple[str, ...]


def correlate(settings: Settings) -> Correlation:
    """Score all judged summaries by everything asked for and by the trivial baselines, and measure the agreement.

    Raises InputError for whatever is wrong with the settings or the files, before the long work where it can be seen.
    """
    check_resamples(settings.bootstrap)
    if settings.max_missed is not None and not 0 <= settings.max_missed < 1:
        raise InputError(f"--max-missed {settings.max_missed:g}: give a share of the bad, at least 0 and below 1")
    if not settings.judgments:
        raise InputError("no judgments; give --judgments FILE, or one of the published sets as NAME:PATH")
    for option, given, known in (
        ("level", settings.levels, LEVELS),
        ("half", settings.half and [settings.half], HALVES),
    ):
        for name in given or ():
            if name not in known:
                raise InputError(f"--{option} {name}: {suggestion(name, list(known))}")
    sources, notes = _chosen(load_sources(settings.judgments, settings.columns, judges=True), settings)
    rows = [row for source in sources for row in (*source.rows, *source.tuning)]
    owners = [source.name for source in sources for _ in (*source.rows, *source.tuning)]
    matched = [score_file_column(argument, rows, owners) for argument in settings.scores]
    from_files = [column for column, _ in matched]
    scorers, missed = make_scorers(settings.models, settings.metrics, baselines=True, precision=settings.precision)
    notes += [*missed, *(line for _, lines in matched for line in lines)]
    check_names(scorers, [column.name for column in from_files])
    # A metric may be named as it was given.
    called = {spec: scorer.name for spec, scorer in zip(dict.fromkeys(settings.metrics), scorers, strict=False)}
    judges = [called.get(name, name) for name in settings.judges]
    names = [*(scorer.name for scorer in scorers), *(column.name for column in from_files)]
    for name in judges:
        if name not in names:
            raise InputError(f"--judge {name}: no metric or scores are called so; {suggestion(name, names)}")
    # The baselines stand last.
    columns = sorted([*score_columns(scorers, rows), *from_files], key=lambda column: column.kind == "baseline")
    asked = [column for column in columns if column.kind != "baseline"]
    if asked and all(np.isnan(column.values).all() for column in asked):
        why = "; ".join(f"{column.name}: {column.unscored()}" for column in asked)
        raise InputError(f"not one judged summary could be scored: {why}")

    measured, start = [], 0
    for source in sources:
        part = range(start, start + len(source.rows) + len(source.tuning))
        start = part.stop
        own = [column.take(part) for column in columns]
        measured.append(measure(source, own, settings))
        if source.by == PEOPLE and judges:
            measured.append(measure(*_by_judges(source, own, judges), settings))
    notes += [f"{column.name}: {column.note}" for column in columns if column.note]
    for data in measured:
        if count := max((figure.uneven for figure in data.figures), default=0):
            notes.append(
                f"{data.source.name}: system level: {count} of {len(data.table.system_names)} systems lack documents that "
                "others have; each mean is over a system's own documents, so that harder ones may count against it"
            )
    for scorer, source in product(scorers, sources):
        # Documents of a model's own fit: its figures there are too good.
        texts = {text for row in source.rows for text in row.documents} if scorer.fitted_on else set()
        if seen := len(scorer.fitted_on.intersection(map(document_key, texts))):
            notes.append(
                f"{scorer.name} was fitted to judgments of {seen} of the documents of {source.name}: its figures there are "
                "too good; measure it on others (--half report, where it was fitted on half: tune)"
            )
    return Correlation(settings, tuple(columns), tuple(measured), _ranks(measured), tuple(notes))


def _by_judges(
    source: Source, columns: Sequence[ScoreColumn], judges: Sequence[str]
) -> tuple[Source, list[ScoreColumn]]:
    """The summaries of ``source`` that ``judges``, some of the ``columns``, scored, with these in the place of people's scores;
    the other columns of them.
    """
    given = [column for column in columns if column.name in judges]
    scores = [{c.name: float(c.values[i]) for c in given if np.isfinite(c.values[i])} for i in range(len(source.rows))]
    places = [place for place, own in enumerate(scores) if own]
    if not places:
        raise InputError(f"--judge {' --judge '.join(judges)}: no summary of {source.name} has a score")
    by, unusable = f"judge:{', '.join(judges)}", Unusable()
    rows = [replace(source.rows[place], scores=scores[place], ratings={}, by=by) for place in places]
    told = Source(f"{source.name} by {by}", source.spec, tuple(with_means(rows, unusable)), tuple(unusable.lines()))
    return told, [column.take(places) for column in columns if column.name not in judges]


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
        # What has no half may be of either.
        unmarked = {source.name: sum(not row.half for row in source.rows) for source in sources}
        notes += [f"{name}: left out {n} × judged summary without a half" for name, n in unmarked.items() if n]
        parts = ([[r for r in source.rows if r.half == own] for own in (half, "tune")] for source in sources)
        sources = [
            replace(source, rows=tuple(own), tuning=tuple(tune) if half == "report" else ())
            for source, (own, tune) in zip(sources, parts, strict=True)
        ]
        notes += [f"{source.name}: left out, for no row has half: {half}" for source in sources if not source.rows]
        sources = [source for source in sources if source.rows]
    if wanted:
        known = list(dict.fromkeys(name for source in sources for row in source.rows for name in row.scores))
        for name in wanted:
            if name not in known:
                raise InputError(f"--human {name}: no judgments have that score; {suggestion(name, known)}")

        def only(rows: Sequence[Judged]) -> tuple[Judged, ...]:
            return tuple(replace(r, scores={k: value for k, value in r.scores.items() if k in wanted}) for r in rows)

        told = f"left out, for none of its judgments has the score {' or '.join(wanted)}"
        sources = [replace(source, rows=only(source.rows), tuning=only(source.tuning)) for source in sources]
        notes += [f"{source.name}: {told}" for source in sources if not any(row.scores for row in source.rows)]
        sources = [source for source in sources if any(row.scores for row in source.rows)]
    # The other half is scored only where a limit is to be chosen by it.
    sources = [source if _labels(source) else replace(source, tuning=()) for source in sources]
    halves = Counter(row.half for source in sources for row in source.rows if row.scores)
    if half is None and halves["tune"]:
        told = f"{halves['tune']} of {halves.total()} judged summaries have half: tune, for choosing settings by"
        over = "; the figures are over both halves, --half report leaves these out" if halves["report"] else ""
        notes.append(told + over)
    return sources, notes


def _labels(source: Source) -> list[str]:
    """The human scores of two values."""
    rows = (*source.rows, *source.tuning)
    names = dict.fromkeys(name for row in source.rows for name in row.scores)
    values = {name: np.array([row.scores.get(name, np.nan) for row in rows]) for name in names if name != CHOSEN}
    return [name for name, own in values.items() if is_good(own) is not None]


def measure(source: Source, columns: Sequence[ScoreColumn], settings: Settings) -> Measured:
    """Measure the agreement of ``columns``, [n] each, with all human scores of the n rows of ``source``, those by which limits
    are chosen last.
    """
    rows, labels = (*source.rows, *source.tuning), _labels(source)
    every_row = judged_table(source.name, rows, labels, {column.name: column.values for column in columns})
    columns = [column.take(range(len(source.rows))) for column in columns]
    people = list(dict.fromkeys(name for row in source.rows for name in row.scores))
    table = judged_table(source.name, source.rows, people, {column.name: column.values for column in columns})
    options: dict[str, Any] = {"bootstrap": settings.bootstrap, "seed": settings.seed}
    figures = fg.agreement(table, levels=settings.levels, **options)
    labelled = replace(table, human={name: table.human[name] for name in labels})
    figures += fg.agreement(labelled, levels=("label",), coefficients=("auc",), **options)
    # As many exchanges as tell all pairs apart, as far as memory goes.
    wanted = _DRAWS_PER_PAIR * (len(columns) * (len(columns) - 1) // 2)
    most = max(PERMUTATIONS, min(wanted, _DRAWN_MOST // len(table.document_names)))
    compared, levels = {}, [*product(people, settings.levels), *product(labels, ["label"])]
    for human, level in track(levels, f"{source.name}: comparing"):
        number = PERMUTATIONS if level == "system" else most
        compared[human, level] = sg.compare_metrics(table, human, level=level, permutations=number, **options)
    options["permutations"], halves = most, np.array([row.half for row in rows])
    shares = {own: measure_limits(every_row, own, halves, max_missed=settings.max_missed, **options) for own in labels}
    if chosen := CHOSEN in people and any(row.choices for row in source.rows):
        shares[CHOSEN] = measure_choices(table, source.rows, **options)
    del options["permutations"]
    for human, own in shares.items():
        figures += own.figures
        compared[human, own.kind.level] = list(own.comparisons)
    beats = {key: sg.beats_matrix(found, sg.TESTS[key[1]]) for key, found in compared.items() if found}
    main = [f for f in figures if f.level not in SHARES or f.coefficient == MAIN_COEFFICIENT[f.level]]
    every = list(product(people, table.metrics))
    sampled = every if "system" in settings.levels else []
    sampling = {key: fg.article_sampling(table, key[1], key[0], seed=settings.seed) for key in sampled}
    among = {own: among_people(table, source.rows, own, settings.levels, **options) for own in people}
    return Measured(
        source,
        tuple(columns),
        table,
        tuple(figures),
        tuple(comparison for found in compared.values() for comparison in found),
        beats,
        sg.baseline_verdicts(main, beats),
        {key: sizes for key, sizes in sampling.items() if any(size.mean is not None for size in sizes)},
        {(human, metric): fg.furthest_apart(table, metric, human) for human, metric in every},
        shares,
        {human: found for human, found in among.items() if found},
        tuple(contest(table, source.rows, **options) if chosen else ()),
    )


def _ranks(measured: Sequence[Measured]) -> dict[str, list[fg.AverageRank]]:
    """Level → average ranks; a data set's correlation is the mean over its own human scores, so that each counts once."""
    ranks = {}
    for level, coefficient in MAIN_COEFFICIENT.items():
        values: dict[str, dict[str, float | None]] = {}
        for data in (data for data in measured if data.source.by == PEOPLE):
            own: dict[str, list[float]] = {}
            for figure in data.figures:
                if (figure.level, figure.coefficient) == (level, coefficient) and not is_mean(figure.human):
                    own.setdefault(figure.metric, []).append(np.nan if figure.value is None else figure.value)
            means: dict[str, float | None] = {metric: float(np.mean(found)) for metric, found in own.items()}
            if not np.isnan(np.array(list(means.values()), dtype=float)).all():
                values[data.source.name] = means
        if len(values) > 1:
            ranks[level] = fg.average_ranks(values)
    return ranks

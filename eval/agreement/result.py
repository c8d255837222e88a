"""What ``negsample correlate`` found: the one object that the terminal, the page and the files read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from negsample.eval.agreement.columns import TRIVIAL, ScoreColumn
from negsample.eval.agreement.figures import AgreementFigure
from negsample.eval.agreement.levels import LEVELS, MAIN_COEFFICIENT, ScoreTable
from negsample.eval.agreement.sample_size import AverageRank, SampleSize
from negsample.eval.agreement.significance import BeatsMatrix, MetricsComparison
from negsample.records import Judged


@dataclass(frozen=True)
class Settings:
    """What was asked for; ``human`` empty means all, ``half`` None both halves (and rows of none).

    ``columns``: as of `load_judgments`; ``precision``: what the models compute in.
    """

    judgments: tuple[str, ...]
    models: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    human: tuple[str, ...] = ()
    half: str | None = None
    columns: tuple[str, ...] = ()
    levels: tuple[str, ...] = LEVELS
    precision: str = "float32"
    bootstrap: int = 1000
    seed: int = 0

    def shown_levels(self) -> list[str]:
        """The levels in the order in which they are shown."""
        return [level for level in MAIN_COEFFICIENT if level in self.levels]


@dataclass(frozen=True)
class Source:
    """The judged rows of one data set. ``missing``: a line for each reason why judgments could not be used."""

    name: str
    spec: str
    rows: tuple[Judged, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Apart:
    """Row ``row`` of a table: ``metric_place`` and ``human_place`` in [0, 1], the share of the other summaries that
    are worse (ties count half); 1 is the best place. ``gap`` = ``metric_place`` − ``human_place``.
    """

    row: int
    metric_score: float
    human_score: float
    metric_place: float
    human_place: float
    gap: float


@dataclass(frozen=True)
class BaselineVerdict:
    """A metric beside the best trivial baseline of the same data set, human score, level and coefficient.

    ``above``: the metric's value is higher. ``clear``: the paired test (Holm over all pairs of the table) finds the
    two different in that direction; None where they were not compared.
    """

    baseline: str
    baseline_value: float
    above: bool
    clear: bool | None

    @property
    def text(self) -> str:
        """For a table: above or below the baseline where the test tells them apart, else more carefully put."""
        if self.above:
            return f"above {self.baseline}" + (", not clearly" if self.clear is False else "")
        return f"{'below' if self.clear else 'not above'} {self.baseline}"


@dataclass(frozen=True)
class Line:
    """One metric in the table of a data set and human score; ``figures``: level → its headline figure."""

    column: ScoreColumn
    figures: dict[str, AgreementFigure]
    verdict: BaselineVerdict | None

    @property
    def used(self) -> AgreementFigure:
        """The figure that says how many rows were used: the pooled one where there is one."""
        return self.figures.get("pooled") or next(iter(self.figures.values()))


@dataclass(frozen=True)
class Measured:
    """One data set: its figures, every two metrics compared, who beats whom by (human, level), verdicts by (human, metric,
    level, coefficient), article sampling by (human, metric), and the summaries on which metric and people lie furthest apart.
    """

    source: Source
    columns: tuple[ScoreColumn, ...]
    table: ScoreTable
    figures: tuple[AgreementFigure, ...]
    comparisons: tuple[MetricsComparison, ...]
    beats: dict[tuple[str, str], BeatsMatrix]
    verdicts: dict[tuple[str, str, str, str], BaselineVerdict]
    sampling: dict[tuple[str, str], tuple[SampleSize, ...]]
    apart: dict[tuple[str, str], tuple[Apart, ...]]

    def figure(self, human: str, metric: str, level: str, coefficient: str) -> AgreementFigure | None:
        """Return the figure asked for, or None where that level was not computed."""
        wanted = (human, metric, level, coefficient)
        return next((f for f in self.figures if (f.human, f.metric, f.level, f.coefficient) == wanted), None)

    def headline(self, human: str) -> list[AgreementFigure]:
        """Return the figures by `MAIN_COEFFICIENT`."""
        return [f for f in self.figures if f.human == human and MAIN_COEFFICIENT[f.level] == f.coefficient]

    def lines(self, human: str) -> list[Line]:
        """Return the rows of the table, best first by the first of `MAIN_COEFFICIENT`'s levels that has a value."""
        figures: dict[str, dict[str, AgreementFigure]] = {column.name: {} for column in self.columns}
        for figure in self.headline(human):
            figures[figure.metric][figure.level] = figure
        levels = [level for level in MAIN_COEFFICIENT if all(level in own for own in figures.values())]
        valued = (level for level in levels if any(f[level].value is not None for f in figures.values()))
        lead = next(valued, levels[0])

        def place(line: Line) -> tuple[float, str]:
            value = line.figures[lead].value
            return (2.0 if value is None else -value), line.column.name

        found = [
            Line(column, figures[column.name], self.verdicts.get((human, column.name, lead, MAIN_COEFFICIENT[lead])))
            for column in self.columns
        ]
        return sorted(found, key=place)

    def subjects(self, human: str, most: int) -> list[str]:
        """Return the metrics to draw: those asked about, in order, at most ``most`` with the best trivial baseline."""
        best = [line.column.name for line in self.lines(human) if line.column.name in TRIVIAL][:1]
        asked = [column.name for column in self.columns if column.kind != "baseline"]
        return asked[: most - len(best)] + best

    def reasons(self, human: str) -> list[str]:
        """Say why figures are missing and what was left out, each in one line with the metrics it holds for."""
        told: dict[str, list[str]] = {}
        for figure in self.headline(human):
            if figure.value is None:
                told.setdefault(f"{figure.level} level: {figure.reason}", []).append(figure.metric)
            for reason, count in figure.left_out.items():
                told.setdefault(f"{figure.level} level: left out {count} × {reason}", []).append(figure.metric)
        every = len(self.columns)
        return [reason if len(of) == every else f"{reason} ({', '.join(of)})" for reason, of in told.items()]

    def notes(self) -> list[str]:
        """Say what the data set's judgments and scores lack."""
        found = [f"judgments: {line}" for line in self.source.missing]
        for column in self.columns:
            found += [f"{column.name}: {told}" for told in (column.unscored(), column.note) if told]
        return list(dict.fromkeys(found))

    def head(self) -> str:
        """Describe the data set in one line."""
        systems = f"{len(self.table.system_names)} systems" if len(self.table.system_names) > 1 else "one system"
        return f"{len(self.table.words)} summaries, {len(self.table.document_names)} documents, {systems}"


@dataclass(frozen=True)
class Correlation:
    """All of it. ``columns``: name, kind and signature of every row of the table (values over all data sets).

    ``ranks``: level → average rank of each metric over the data sets, in the table's order of levels. ``notes``: what was
    left out, and why.
    """

    settings: Settings
    columns: tuple[ScoreColumn, ...]
    datasets: tuple[Measured, ...]
    ranks: dict[str, tuple[AverageRank, ...]]
    notes: tuple[str, ...]


def baseline_verdicts(
    figures: Sequence[AgreementFigure], beats: Mapping[tuple[str, str], BeatsMatrix]
) -> dict[tuple[str, str, str, str], BaselineVerdict]:
    """(human, metric, level, coefficient) → verdict, for every figure of one data set that has a value.

    The trivial baselines have none, and neither has a figure beside which no trivial baseline has a value.
    """
    best: dict[tuple[str, str, str], tuple[float, str]] = {}
    for figure in figures:
        key = (figure.human, figure.level, figure.coefficient)
        if figure.metric in TRIVIAL and figure.value is not None and (key not in best or figure.value > best[key][0]):
            best[key] = (figure.value, figure.metric)
    found = {}
    for figure in figures:
        key = (figure.human, figure.level, figure.coefficient)
        if figure.metric in TRIVIAL or figure.value is None or key not in best:
            continue
        value, rival = best[key]
        above, clear = figure.value > value, None
        matrix = beats.get((figure.human, figure.level))
        names = matrix.names if matrix is not None and MAIN_COEFFICIENT[figure.level] == figure.coefficient else ()
        if matrix is not None and figure.metric in names and rival in names:
            i, j = names.index(figure.metric), names.index(rival)
            clear = matrix.beats[i][j] if above else matrix.beats[j][i]
        found[figure.human, figure.metric, figure.level, figure.coefficient] = BaselineVerdict(
            rival, value, above, clear
        )
    return found


def furthest_apart(table: ScoreTable, metric: str, human: str, count: int = 3) -> list[Apart]:
    """Find the ``count`` summaries that the metric overrates most, then the ``count`` that it underrates most.

    Places are among all summaries of the table that have both scores. Equal gaps stand in the order of the rows; no
    summary is named twice, and none that both place alike.
    """
    from scipy.stats import rankdata

    x, y = table.metrics[metric], table.human[human]
    rows = np.flatnonzero(~np.isnan(x) & ~np.isnan(y))
    if len(rows) < 2:
        return []
    places = (rankdata(np.stack([x[rows], y[rows]]), axis=-1) - 1) / (len(rows) - 1)
    gap = places[0] - places[1]
    over = [k for k in np.argsort(-gap, kind="stable")[:count] if gap[k] > 0]
    under = [k for k in np.argsort(gap, kind="stable")[:count] if gap[k] < 0]
    return [
        Apart(int(rows[k]), *(float(v[k]) for v in (x[rows], y[rows], places[0], places[1], gap)))
        for k in [*over, *under]
    ]

"""What the terminal and the page show of an agreement: which rows, in which order, with which mark."""

from collections.abc import Sequence
from dataclasses import dataclass

from negsample.eval.baseline_verdict import HEADLINE, Mark
from negsample.eval.correlate import Correlation, Measured, unscored
from negsample.eval.score_columns import TRIVIAL, Column
from negsample.eval.stats.agreement import Figure

SYMBOLS = {"pearson": "r", "spearman": "ρ", "kendall": "τ"}


@dataclass(frozen=True)
class Line:
    """One metric in the table of a data set and human score; ``figures``: level → its headline figure."""

    column: Column
    figures: dict[str, Figure]
    mark: Mark | None

    @property
    def used(self) -> Figure:
        """The figure that says how many rows were used: the pooled one where there is one."""
        return self.figures.get("pooled") or next(iter(self.figures.values()))


def lead_level(data: Measured, human: str, levels: Sequence[str]) -> str:
    """The level that the table is ordered by: the first of summary, pooled, system that has a value."""
    wanted = [level for level in HEADLINE if level in levels]
    for level in wanted:
        if any(f.value is not None for f in data.figures if f.human == human and f.level == level):
            return level
    return wanted[0]


def lines(data: Measured, human: str, levels: Sequence[str]) -> list[Line]:
    """The rows of the table, best first by the headline figure of the lead level."""
    lead = lead_level(data, human, levels)
    found = []
    for column in data.columns:
        figures = {
            figure.level: figure
            for figure in data.figures
            if (figure.human, figure.metric) == (human, column.name) and HEADLINE[figure.level] == figure.coefficient
        }
        mark = data.marks.get((human, column.name, lead, HEADLINE[lead]))
        found.append(Line(column, figures, mark))
    return sorted(found, key=lambda line: (-_value(line.figures[lead].value), line.column.name))


def _value(value: float | None) -> float:
    return -2.0 if value is None else value


def subjects(data: Measured, human: str, levels: Sequence[str], most: int) -> list[str]:
    """Metrics to draw: those the user asked about, in their order, at most ``most`` with the best trivial baseline."""
    best = next((line.column.name for line in lines(data, human, levels) if line.column.name in TRIVIAL), None)
    asked = [column.name for column in data.columns if column.kind != "baseline"]
    chosen = asked[: most - 1] if best else asked[:most]
    return [*chosen, *([best] if best else [])]


def reasons(data: Measured, human: str) -> list[str]:
    """Why figures are missing, and what was left out, each in one line with the metrics it holds for."""
    told: dict[str, list[str]] = {}
    for figure in data.figures:
        if figure.human != human or HEADLINE[figure.level] != figure.coefficient:
            continue
        if figure.value is None:
            told.setdefault(f"{figure.level} level: {figure.reason}", []).append(figure.metric)
        for reason, count in figure.left_out.items():
            told.setdefault(f"{figure.level} level: left out {count} × {reason}", []).append(figure.metric)
    every = len(data.columns)
    return [reason if len(metrics) == every else f"{reason} ({', '.join(metrics)})" for reason, metrics in told.items()]


def notes(data: Measured) -> list[str]:
    """What the data set's judgments and scores lack."""
    found = [f"judgments: {line}" for line in data.source.missing]
    for column in data.columns:
        if told := unscored(column):
            found.append(f"{column.name}: {told}")
        if column.note:
            found.append(f"{column.name}: {column.note}")
    return list(dict.fromkeys(found))


def head(data: Measured) -> str:
    """The data set in one line."""
    table = data.table
    systems = f"{len(table.system_names)} systems" if len(table.system_names) > 1 else "one system"
    return f"{len(table.words)} summaries, {len(table.document_names)} documents, {systems}"


def level_title(level: str) -> str:
    """E.g. ``"summary ρ"``."""
    return f"{level} {SYMBOLS[HEADLINE[level]]}"


def ranked_levels(result: Correlation) -> list[str]:
    """Levels with average ranks, in the table's order."""
    return [level for level in HEADLINE if level in result.ranks]

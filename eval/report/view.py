"""What the terminal and the page show of an agreement: which rows, in which order, with which verdict."""

from collections.abc import Sequence
from dataclasses import dataclass

from negsample.eval.agreement.baseline_verdict import MAIN_COEFFICIENT, BaselineVerdict
from negsample.eval.agreement.columns import TRIVIAL, ScoreColumn
from negsample.eval.agreement.correlate import Correlation, Measured, unscored
from negsample.eval.agreement.figures import AgreementFigure

SYMBOLS = {"pearson": "r", "spearman": "ρ", "kendall": "τ"}


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


def lines(data: Measured, human: str, levels: Sequence[str]) -> list[Line]:
    """Return the rows of the table, best first by the headline figure of the first of `MAIN_COEFFICIENT` that has a value."""
    figures: dict[str, dict[str, AgreementFigure]] = {column.name: {} for column in data.columns}
    for figure in _headline(data, human):
        figures[figure.metric][figure.level] = figure
    wanted = [level for level in MAIN_COEFFICIENT if level in levels]
    has_value = (level for level in wanted if any(f[level].value is not None for f in figures.values()))
    lead = next(has_value, wanted[0])
    found = [
        Line(column, figures[column.name], data.verdicts.get((human, column.name, lead, MAIN_COEFFICIENT[lead])))
        for column in data.columns
    ]

    def place(line: Line) -> tuple[float, str]:
        value = line.figures[lead].value
        return (2.0 if value is None else -value), line.column.name

    return sorted(found, key=place)


def _headline(data: Measured, human: str) -> list[AgreementFigure]:
    return [f for f in data.figures if f.human == human and MAIN_COEFFICIENT[f.level] == f.coefficient]


def subjects(data: Measured, human: str, levels: Sequence[str], most: int) -> list[str]:
    """Return the metrics to draw: those asked about, in their order, at most ``most`` with the best trivial baseline."""
    best = [line.column.name for line in lines(data, human, levels) if line.column.name in TRIVIAL][:1]
    asked = [column.name for column in data.columns if column.kind != "baseline"]
    return asked[: most - len(best)] + best


def reasons(data: Measured, human: str) -> list[str]:
    """Say why figures are missing and what was left out, each in one line with the metrics it holds for."""
    told: dict[str, list[str]] = {}
    for figure in _headline(data, human):
        if figure.value is None:
            told.setdefault(f"{figure.level} level: {figure.reason}", []).append(figure.metric)
        for reason, count in figure.left_out.items():
            told.setdefault(f"{figure.level} level: left out {count} × {reason}", []).append(figure.metric)
    every = len(data.columns)
    return [reason if len(metrics) == every else f"{reason} ({', '.join(metrics)})" for reason, metrics in told.items()]


def notes(data: Measured) -> list[str]:
    """Say what the data set's judgments and scores lack."""
    found = [f"judgments: {line}" for line in data.source.missing]
    for column in data.columns:
        found += [f"{column.name}: {told}" for told in (unscored(column), column.note) if told]
    return list(dict.fromkeys(found))


def head(data: Measured) -> str:
    """Describe the data set in one line."""
    table = data.table
    systems = f"{len(table.system_names)} systems" if len(table.system_names) > 1 else "one system"
    return f"{len(table.words)} summaries, {len(table.document_names)} documents, {systems}"


def level_title(level: str) -> str:
    """Return e.g. ``"summary ρ"``."""
    return f"{level} {SYMBOLS[MAIN_COEFFICIENT[level]]}"


def ranked_levels(result: Correlation) -> list[str]:
    """Return the levels with average ranks, in the table's order."""
    return [level for level in MAIN_COEFFICIENT if level in result.ranks]

"""An agreement as plain values: what goes into agreement.json, agreement.csv and scores.parquet."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from negsample.eval.baseline_verdict import HEADLINE, TESTS
from negsample.eval.correlate import Correlation, Measured, unscored
from negsample.eval.stats.agreement import Figure
from negsample.eval.stats.significance import Comparison, bonferroni, holm

CSV_COLUMNS = (
    "dataset",
    "human",
    "metric",
    "level",
    "coefficient",
    "value",
    "low",
    "high",
    "p",
    "n",
    "documents",
    "systems",
    "left_out",
    "given_length",
)
SCORE_COLUMNS = ("dataset", "document_id", "system", "kind", "name", "score", "reason")
CAVEATS = (
    "Pooled rows that share a document are not independent: the p of a pooled figure and the Williams test on pooled "
    "rows are too bold. Read the intervals, for which whole documents are resampled, and the permutation test.",
    "The permutation test takes the systems as given: at the system level it says whether these systems on other "
    "documents would show the difference, not whether other systems would. The matrix of who beats whom therefore uses "
    "the Williams test at the system level.",
    "A resampling p can't fall below 1/(draws + 1), and Holm multiplies the smallest p by the number of pairs of metrics: "
    "with many metrics the adjusted bootstrap p of agreement.json can't reach 0.05 unless --bootstrap is raised. The "
    "permutation test takes 50 draws a pair.",
    "An interval that crosses 0, or a mark that says 'not clearly', means that these judgments can't tell.",
)


def as_plain(result: Correlation) -> dict[str, Any]:
    """Everything but texts and scores, as JSON takes it; no NaN."""
    return {
        "format": "negsample-agreement",
        "format_version": 1,
        "settings": asdict(result.settings),
        "headline": HEADLINE,
        "tests": TESTS,
        "metrics": [
            {
                "name": column.name,
                "kind": column.kind,
                "signature": column.signature,
                "sign_turned": column.turned,
                "note": column.note,
            }
            for column in result.columns
        ],
        "datasets": [_dataset(data) for data in result.datasets],
        "average_ranks": {level: [asdict(rank) for rank in ranks] for level, ranks in result.ranks.items()},
        "notes": list(result.notes),
        "caveats": list(CAVEATS),
    }


def _dataset(data: Measured) -> dict[str, Any]:
    table = data.table
    return {
        "name": data.source.name,
        "judgments": data.source.spec,
        "summaries": len(table.words),
        "documents": len(table.document_names),
        "systems": len(table.system_names),
        "human": list(table.human),
        "missing_judgments": list(data.source.missing),
        "missing_scores": {column.name: told for column in data.columns if (told := unscored(column))},
        "figures": [_figure(data, figure) for figure in data.figures],
        "comparisons": _comparisons(data.comparisons),
        "beats": [
            {"human": human, "level": level, "coefficient": HEADLINE[level], **asdict(matrix)}
            for (human, level), matrix in data.beats.items()
        ],
        "article_sampling": [
            {"human": human, "metric": metric, "coefficient": "pearson", "sizes": [asdict(size) for size in sizes]}
            for (human, metric), sizes in data.sampling.items()
        ],
        "furthest_apart": [
            {
                "human": human,
                "metric": metric,
                "document_id": data.source.rows[apart.row].document_id,
                "system": data.source.rows[apart.row].system,
                **{key: value for key, value in asdict(apart).items() if key != "row"},
            }
            for (human, metric), found in data.apart.items()
            for apart in found
        ],
    }


def _figure(data: Measured, figure: Figure) -> dict[str, Any]:
    plain = {key: value for key, value in asdict(figure).items() if key != "dataset"}
    mark = data.marks.get((figure.human, figure.metric, figure.level, figure.coefficient))
    return {**plain, "mark": asdict(mark) if mark else None}


def _comparisons(comparisons: tuple[Comparison, ...]) -> list[dict[str, Any]]:
    """Each comparison with its p adjusted over all comparisons of the same human score and level."""
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in comparisons:
        groups.setdefault((comparison.human, comparison.level), []).append(comparison)
    found = []
    for group in groups.values():
        adjusted = {}
        for name in ("p_permutation", "p_bootstrap", "williams_p_two"):
            raw = np.array([_nan(getattr(comparison, name)) for comparison in group])
            adjusted[f"{name}_holm"], adjusted[f"{name}_bonferroni"] = holm(raw), bonferroni(raw)
        for k, comparison in enumerate(group):
            plain = {key: value for key, value in asdict(comparison).items() if key != "dataset"}
            found.append({**plain, **{name: _none(values[k]) for name, values in adjusted.items()}})
    return found


def _nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def csv_rows(result: Correlation) -> Iterator[dict[str, Any]]:
    """One row a metric × human score × level × coefficient. ``left_out`` says what was left out and why, and where
    there is no value, why not.
    """
    for data in result.datasets:
        for figure in data.figures:
            row = {name: getattr(figure, name) for name in CSV_COLUMNS if name != "left_out"}
            told = [figure.reason] if figure.reason else []
            told += [f"{count} × {reason}" for reason, count in figure.left_out.items()]
            yield {name: "; ".join(told) if name == "left_out" else row[name] for name in CSV_COLUMNS}


def score_rows(result: Correlation) -> Iterator[dict[str, Any]]:
    """The long table of scores: one row a summary and human score (``kind`` = ``"human"``), then one a summary and
    metric, as the metric gave it (signs not turned); ``reason`` where there is none.
    """
    for data in result.datasets:
        places = [(data.source.name, row.document_id, row.system) for row in data.source.rows]
        for row, place in zip(data.source.rows, places, strict=True):
            for name, value in row.scores.items():
                yield dict(zip(SCORE_COLUMNS, (*place, "human", name, value, None), strict=True))
        for column in data.columns:
            values = -column.values if column.turned else column.values
            for place, value, reason in zip(places, values.tolist(), column.reasons, strict=True):
                score = None if reason is not None else value
                yield dict(zip(SCORE_COLUMNS, (*place, column.kind, column.name, score, reason), strict=True))

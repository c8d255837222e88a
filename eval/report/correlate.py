"""An agreement with people: its page, and the plain values of agreement.json, agreement.csv and scores.parquet."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from negsample.eval.agreement.correlate import Correlation, Measured
from negsample.eval.agreement.figures import AgreementFigure
from negsample.eval.agreement.levels import MAIN_COEFFICIENT, SHARES, level_title
from negsample.eval.agreement.significance import TESTS, BeatsMatrix, MetricsComparison, bonferroni, holm
from negsample.eval.judgments import parted
from negsample.eval.report import about, plots, render, texts, write_report
from negsample.io.run_record import Stopwatch, fingerprints
from negsample.records import PEOPLE
from negsample.terminal import number, p_text

CSV_COLUMNS = tuple(
    "dataset human metric level coefficient value low high p n documents systems left_out given_length".split()
)
SCORE_COLUMNS = ("dataset", "document_id", "system", "kind", "name", "score", "reason")
# Metrics drawn for each human score, and metrics whose disagreements are shown with texts.
_DRAWN = 6
_TEXTS = 3
_TEST_NAMES = {"permutation": "paired permutation", "williams": "Williams"}


def write_correlation(result: Correlation, out: str, watch: Stopwatch) -> bool:
    """Write ``agreement.json``, ``agreement.csv``, ``scores.parquet``, ``report.html`` and ``run.json`` in the folder ``out``."""
    settings, plain = result.settings, agreement_json(result)
    contents = {
        "agreement.json": plain,
        "agreement.csv": (agreement_rows(result), CSV_COLUMNS),
        "scores.parquet": (score_rows(result), SCORE_COLUMNS),
        "report.html": partial(correlation_page, result),
    }
    files = [parted(spec)[1] for spec in settings.judgments]
    files += [argument.partition("=")[2] for argument in settings.scores]
    signatures = {column.name: column.signature for column in result.columns}
    about_run = {"config": plain["settings"], "seed": settings.seed, "data": fingerprints(files)}
    return write_report(out, contents, watch, **about_run, signatures=signatures)


# --- plain values


def agreement_json(result: Correlation) -> dict[str, Any]:
    """Return everything but texts and scores, as JSON takes it; no NaN."""
    return {
        "settings": asdict(result.settings),
        "headline": MAIN_COEFFICIENT,
        "tests": TESTS,
        "metrics": [{"name": column.name, **about(column)} for column in result.columns],
        "datasets": [_dataset(data) for data in result.datasets],
        "average_ranks": {level: [asdict(rank) for rank in ranks] for level, ranks in result.ranks.items()},
        "notes": list(result.notes),
    }


def _dataset(data: Measured) -> dict[str, Any]:
    table = data.table
    verdicts = {key: asdict(verdict) for key, verdict in data.verdicts.items()}
    return {
        "name": data.source.name,
        "judgments": data.source.spec,
        "by": data.source.by,
        "summaries": len(table.words),
        "documents": len(table.document_names),
        "systems": len(table.system_names),
        "human": list(table.human),
        "missing_judgments": list(data.source.missing),
        "missing_scores": {column.name: told for column in data.columns if (told := column.unscored())},
        "figures": [
            asdict(f) | {"mark": verdicts.get((f.human, f.metric, f.level, f.coefficient))} for f in data.figures
        ],
        "comparisons": _comparisons(data.comparisons),
        "beats": [
            {"human": human, "level": level, "coefficient": MAIN_COEFFICIENT[level], **asdict(matrix)}
            for (human, level), matrix in data.beats.items()
        ],
        "shares": [
            {"level": own.kind.level, **{name: getattr(own, name) for name in ("human", "how", "constant", "limits")}}
            for own in data.shares.values()
        ],
        "contest": [asdict(system) for system in data.contest],
        "people": [{"human": human, **asdict(people)} for human, people in data.people.items()],
        "article_sampling": [
            {"human": human, "metric": metric, "coefficient": "pearson", "sizes": [asdict(size) for size in sizes]}
            for (human, metric), sizes in data.sampling.items()
        ],
        "furthest_apart": [
            {
                "human": human,
                "metric": metric,
                **asdict(apart),
                **{name: getattr(data.source.rows[apart.row], name) for name in ("document_id", "system")},
            }
            for (human, metric), found in data.apart.items()
            for apart in found
        ],
    }


def _comparisons(comparisons: Sequence[MetricsComparison]) -> list[dict[str, Any]]:
    """Each comparison with its p adjusted over all comparisons of the same human score and level."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for comparison in comparisons:
        groups.setdefault((comparison.human, comparison.level), []).append(asdict(comparison))
    for group in groups.values():
        for name in ("p_permutation", "p_bootstrap", "williams_p_two"):
            raw = np.array([np.nan if row[name] is None else row[name] for row in group])
            for adjust in (holm, bonferroni):
                for row, p in zip(group, adjust(raw).tolist(), strict=True):
                    row[f"{name}_{adjust.__name__}"] = None if np.isnan(p) else p
    return [row for group in groups.values() for row in group]


def agreement_rows(result: Correlation) -> Iterator[dict[str, Any]]:
    """Yield one row a metric × human score × level × coefficient.

    ``left_out`` says what was left out and why, and where there is no value, why not.
    """
    for data in result.datasets:
        for figure in data.figures:
            told = [figure.reason] if figure.reason else []
            told += [f"{count} × {reason}" for reason, count in figure.left_out.items()]
            yield {name: getattr(figure, name) for name in CSV_COLUMNS} | {"left_out": "; ".join(told)}


def score_rows(result: Correlation) -> Iterator[dict[str, Any]]:
    """Yield the long table of scores: one row a summary and human score (``kind`` = ``"human"``, or ``"judge"`` where a judge
    stands in people's place), then one a summary and metric, as the metric gave it (signs not turned); ``reason`` where there
    is none.
    """
    for data in result.datasets:
        kind = "human" if data.source.by == PEOPLE else "judge"
        found: list[tuple[Any, ...]] = [
            (row, kind, *score, None) for row in data.source.rows for score in row.scores.items()
        ]
        for column in data.columns:
            values = (-column.values if column.turned else column.values).tolist()
            for row, value, why in zip(data.source.rows, values, column.reasons, strict=True):
                found.append((row, column.kind, column.name, value if why is None else None, why))
        for row, *told in found:
            yield dict(zip(SCORE_COLUMNS, (data.source.name, row.document_id, row.system, *told), strict=True))


# --- the page


def correlation_page(result: Correlation) -> str:
    """Return the page of an agreement, as HTML."""
    shown = result.settings.shown_levels()
    datasets = [(data, [_human(data, human, shown) for human in data.table.human]) for data in result.datasets]
    found = {own.kind.level for data in result.datasets for own in data.shares.values()}
    levels = [*result.settings.levels, *found, *["label"] * ("limit" in found)]
    return render("correlate.html.j2", result=result, levels=levels, level_title=level_title, datasets=datasets)


def _human(data: Measured, human: str, shown: Sequence[str]) -> dict[str, Any]:
    lines, shares, drawn = data.lines(human), data.share_lines(human), data.subjects(human, _DRAWN)
    levels = [level for level in shown if level in lines[0][1]]
    asked = [column.name for column in data.columns if column.kind != "baseline"]
    return {
        "name": human,
        "lines": lines,
        "levels": levels,
        "shares": shares,
        "among": data.among(human),
        "shares_scale": _scale(next(iter(found.values())) for _, found, _ in shares),
        "scales": {level: _scale(found[level] for _, found, _ in lines) for level in levels},
        "matrices": [
            _matrix(data, human, level, [column.name for column, _, _ in lines])
            for level in (*levels, *SHARES)
            if (human, level) in data.beats
        ],
        "scatters": [drawing for metric in drawn if (drawing := _scatter(data, human, metric))],
        "sampling": _sampling(data, human, drawn),
        "left": sum(name not in drawn for name in asked),
        "apart": [
            (metric, [(apart, texts(data.source.rows[apart.row])) for apart in found])
            for metric in ([name for name in drawn if name in asked] or drawn)[:_TEXTS]
            if (found := data.apart[human, metric])
        ],
    }


def _scale(figures: Iterable[AgreementFigure]) -> plots.Scale:
    return plots.shared_scale([end for f in figures for end in (f.value, f.low, f.high)], zero=True)


def _matrix(data: Measured, human: str, level: str, order: Sequence[str]) -> dict[str, Any]:
    """Who beats whom at a level: names and rows in the ``order`` of the table; no rows where nothing was compared."""
    matrix = data.beats[human, level]
    told = {"title": level_title(level), "test": _TEST_NAMES[TESTS[level]], "names": order}
    if all(p is None for row in matrix.p for p in row):
        pairs = [c.reason or c.williams_reason for c in data.comparisons if (c.human, c.level) == (human, level)]
        return {**told, "rows": [], "reason": next(filter(None, pairs), "there is only one metric")}
    places = [matrix.names.index(name) for name in order]
    return {**told, "rows": [(matrix.names[i], [_against(matrix, i, j) for j in places]) for i in places]}


def _against(matrix: BeatsMatrix, i: int, j: int) -> tuple[str, str, str]:
    """Class, sign and words of the metric ``i`` against ``j``."""
    if i == j:
        return "same", "", "the same metric"
    if matrix.p[i][j] is None:
        return "none", "–", "not compared"
    p = p_text(matrix.p[i][j])
    if matrix.beats[i][j]:
        return "win", "▲", f"agrees better, p {p}"
    if matrix.beats[j][i]:
        return "loss", "▽", f"agrees less, p {p}"
    return "tie", "·", f"can't tell, p {p}"


def _scatter(data: Measured, human: str, metric: str) -> dict[str, Any] | None:
    table = data.table
    x, y = table.metrics[metric], table.human[human]
    both = ~np.isnan(x) & ~np.isnan(y)
    if both.sum() < 2:
        return None
    of = [(name, both & (table.systems == s)) for s, name in enumerate(table.system_names)]
    means = [(name, float(x[rows].mean()), float(y[rows].mean())) for name, rows in of if rows.any()]
    means = means if len(of) > 1 else []
    pooled = data.figure(human, metric, "pooled", "pearson")
    caption = f"{metric} against {human}: {int(both.sum())} summaries"
    caption += f", pooled r {number(pooled.value)}" if pooled else ""
    caption += f"; means of {len(means)} systems" if means else ""
    turned = any(column.name == metric and column.turned for column in data.columns)
    label = f"−{metric}" if turned else metric
    plot = plots.scatter(x[both], y[both], means, x_label=label, y_label=human, description=caption)
    return {"plot": plot, "caption": caption}


def _sampling(data: Measured, human: str, drawn: Sequence[str]) -> dict[str, Any] | None:
    """Correlation against the number of articles: mean and ± one standard deviation of the draws."""
    curves = []
    for metric in drawn:
        sizes = [(s.articles, s.mean, s.sd or 0) for s in data.sampling.get((human, metric), ()) if s.mean is not None]
        if sizes:
            curves.append((metric, [(articles, mean, mean - sd, mean + sd) for articles, mean, sd in sizes]))
    if not curves:
        return None
    description = f"System-level Pearson r with {human} by number of articles drawn"
    plot = plots.curve_plot(curves, (-1.0, 1.0), "articles drawn", "system r", description)
    return {"plot": plot, "names": [name for name, _ in curves]}

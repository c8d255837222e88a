"""One self-contained page: style sheet and plots inside, no script, no network."""

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape

from negsample.eval.baseline_verdict import HEADLINE, TESTS
from negsample.eval.compare import Comparison, Section
from negsample.eval.correlate import Correlation, Measured
from negsample.eval.report import plots, view
from negsample.eval.report.plain import CAVEATS
from negsample.eval.stats.agreement import Figure
from negsample.formats import number, p_text
from negsample.io.run_record import versions
from negsample.records import Judged

# Metrics drawn for each human score, and metrics whose disagreements are shown with texts.
_DRAWN = 6
_TEXTS = 3
_TEST_NAMES = {"permutation": "paired permutation", "williams": "Williams"}
# Characters of a document that are printed; the rest is counted.
_DOCUMENT = 1500


def correlation_page(result: Correlation, command: Sequence[str]) -> str:
    """The page of an agreement, as HTML."""
    levels = [level for level in HEADLINE if level in result.settings.levels]
    return render(
        "correlate.html.j2",
        command,
        result=result,
        levels=levels,
        level_title=view.level_title,
        ranked=view.ranked_levels(result),
        datasets=[_dataset(data, levels) for data in result.datasets],
        caveats=CAVEATS,
    )


def comparison_page(result: Comparison, command: Sequence[str]) -> str:
    """The page of a comparison of systems, as HTML."""
    return render(
        "compare.html.j2", command, result=result, sections=[_section(result, section) for section in result.sections]
    )


def render(template: str, command: Sequence[str], **context: Any) -> str:
    """The page that ``template`` makes of ``context``, with the style sheet inside and ``command`` at its head."""
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=select_autoescape(enabled_extensions=("html", "j2"), default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(signed=number, p=p_text)
    return environment.get_template(template).render(
        style=_read("report.css"),
        command=shlex.join(command),
        versions=versions(),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        **context,
    )


def _read(name: str) -> str:
    return (files("negsample.eval.report") / name).read_text(encoding="utf-8")


# --- agreement


def _dataset(data: Measured, levels: Sequence[str]) -> dict[str, Any]:
    return {
        "name": data.source.name,
        "spec": data.source.spec,
        "head": view.head(data),
        "notes": view.notes(data),
        "humans": [_human(data, human, levels) for human in data.table.human],
    }


def _human(data: Measured, human: str, levels: Sequence[str]) -> dict[str, Any]:
    rows = view.lines(data, human, levels)
    scales = {level: _scale([line.figures[level] for line in rows]) for level in levels}
    drawn = view.subjects(data, human, levels, _DRAWN)
    asked = _asked(data)
    return {
        "name": human,
        "lead": view.lead_level(data, human, levels),
        "rows": [
            {
                "line": line,
                "bars": {
                    level: plots.interval_bar(f.value, f.low, f.high, scales[level])
                    for level, f in line.figures.items()
                },
            }
            for line in rows
        ],
        "scales": {level: (plots.number(scale.low), plots.number(scale.high)) for level, scale in scales.items()},
        "reasons": view.reasons(data, human),
        "matrices": _matrices(data, human, levels, [line.column.name for line in rows]),
        "scatters": [plot for metric in drawn if (plot := _scatter(data, human, metric))],
        "sampling": _sampling(data, human, drawn),
        "left": sum(name not in drawn for name in asked),
        "apart": _apart(data, human, drawn),
    }


def _scale(figures: Sequence[Figure]) -> plots.Scale:
    """The scale of a column of the table."""
    ends = [v for f in figures if f.value is not None for v in (f.value, f.low, f.high) if v is not None]
    return plots.shared_scale(ends, zero=True)


def _asked(data: Measured) -> list[str]:
    return [column.name for column in data.columns if column.kind != "baseline"]


def _matrices(data: Measured, human: str, levels: Sequence[str], order: Sequence[str]) -> list[dict[str, Any]]:
    """Who beats whom at each level, in the order of the table, as cells ``(class, text, spoken)``."""
    found = []
    for level in levels:
        matrix = data.beats.get((human, level))
        if matrix is None:
            continue
        about: dict[str, Any] = {
            "level": level,
            "title": view.level_title(level),
            "test": _TEST_NAMES[TESTS[level]],
            "names": order,
        }
        if all(p is None for row in matrix.p for p in row):
            pairs = [c for c in data.comparisons if (c.human, c.level) == (human, level)]
            why = next((c.reason or c.williams_reason for c in pairs if c.reason or c.williams_reason), None)
            found.append({**about, "rows": [], "reason": why or "there is only one metric"})
            continue
        places = [matrix.names.index(name) for name in order]
        rows = []
        for i in places:
            cells = []
            for j in places:
                if i == j:
                    cells.append(("same", "", "the same metric"))
                elif matrix.p[i][j] is None:
                    cells.append(("none", "–", "not compared"))
                elif matrix.beats[i][j]:
                    cells.append(("win", "▲", f"agrees better, p {p_text(matrix.p[i][j])}"))
                elif matrix.beats[j][i]:
                    cells.append(("loss", "▽", f"agrees less, p {p_text(matrix.p[i][j])}"))
                else:
                    cells.append(("tie", "·", f"can't tell, p {p_text(matrix.p[i][j])}"))
            rows.append((matrix.names[i], cells))
        found.append({**about, "rows": rows})
    return found


def _scatter(data: Measured, human: str, metric: str) -> dict[str, Any] | None:
    table = data.table
    x, y = table.metrics[metric], table.human[human]
    both = ~np.isnan(x) & ~np.isnan(y)
    if both.sum() < 2:
        return None
    means = []
    if len(table.system_names) > 1:
        for s, name in enumerate(table.system_names):
            rows = both & (table.systems == s)
            if rows.any():
                means.append((name, float(x[rows].mean()), float(y[rows].mean())))
    pooled = data.figure(human, metric, "pooled", "pearson")
    told = f", pooled r {number(pooled.value)}" if pooled else ""
    description = f"{metric} against {human}: {int(both.sum())} summaries{told}" + (
        f"; means of {len(means)} systems" if means else ""
    )
    turned = any(column.name == metric and column.turned for column in data.columns)
    plot = plots.scatter(
        x[both], y[both], means, x_label=f"−{metric}" if turned else metric, y_label=human, description=description
    )
    return {"metric": metric, "plot": plot, "caption": description}


def _sampling(data: Measured, human: str, drawn: Sequence[str]) -> dict[str, Any] | None:
    curves = [(metric, data.sampling[human, metric]) for metric in drawn if (human, metric) in data.sampling]
    if not curves:
        return None
    ends = "; ".join(f"{name} {number(sizes[0].mean)} to {number(sizes[-1].mean)}" for name, sizes in curves)
    description = f"System-level Pearson r with {human} by number of articles drawn, from fewest to all: {ends}"
    plot = plots.sampling_plot(curves, y_label="system r", description=description)
    return {"plot": plot, "names": [name for name, _ in curves]}


def _apart(data: Measured, human: str, drawn: Sequence[str]) -> list[dict[str, Any]]:
    """Texts of the summaries on which the first metrics and people lie furthest apart."""
    asked = [name for name in drawn if name in _asked(data)] or list(drawn)
    found = []
    for metric in asked[:_TEXTS]:
        cases = [
            {
                "apart": apart,
                "over": apart.gap > 0,
                "metric_place": f"{100 * apart.metric_place:.0f}",
                "human_place": f"{100 * apart.human_place:.0f}",
                **_texts(data.source.rows[apart.row]),
            }
            for apart in data.apart[human, metric]
        ]
        if cases:
            found.append({"metric": metric, "cases": cases})
    return found


def _texts(row: Judged) -> dict[str, Any]:
    document = row.documents[0]
    return {
        "row": row,
        "document": document[:_DOCUMENT],
        "more": max(0, len(document) - _DOCUMENT),
        "others": len(row.documents) - 1,
    }


# --- comparison of systems


def _section(result: Comparison, section: Section) -> dict[str, Any]:
    systems = section.systems
    means = plots.shared_scale([v for s in systems for v in (s.mean, s.low, s.high) if v is not None], zero=False)
    gaps = plots.shared_scale(
        [v for s in systems for v in (s.difference, s.difference_low, s.difference_high) if v is not None], zero=True
    )
    return {
        "section": section,
        "rows": [
            {
                "system": s,
                "mean": plots.interval_bar(s.mean, s.low, s.high, means),
                "gap": plots.interval_bar(s.difference, s.difference_low, s.difference_high, gaps),
            }
            for s in systems
        ],
        "ends": {
            "mean": (plots.number(means.low), plots.number(means.high)),
            "gap": (plots.number(gaps.low), plots.number(gaps.high)),
        },
        "different": [
            {"system": name, "cases": [_case(result, section, name, d) for d in found]}
            for name, found in section.different.items()
            if found
        ],
    }


def _case(result: Comparison, section: Section, name: str, d: Any) -> dict[str, Any]:
    rows = result.systems.rows[section.documents[d.document]]
    return {
        "case": d,
        "first": rows[0],
        "other": rows[result.systems.names.index(name)],
        **_texts(rows[0]),
    }

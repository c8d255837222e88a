"""What a table makes of its scores: correlations, average ranks, curves over articles, systems' means, statistics, examples."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.eval.agreement import levels as lv
from negsample.eval.agreement.figures import AgreementFigure, agreement
from negsample.eval.agreement.sample_size import article_sampling, average_ranks
from negsample.eval.agreement.significance import williams
from negsample.eval.metrics.learned import SPLITS, Learned, fit_learned
from negsample.number_text import number, short
from negsample.papers.measure import Measured
from negsample.text import word_count

_LETTER = {"pearson": "P", "spearman": "S", "kendall": "τ"}


@dataclass(frozen=True)
class Section:
    """A table in text: ``body``'s first row is its head."""

    title: str
    body: list[list[str]]


@dataclass
class Found:
    """``sections`` and ``texts`` (a name and a text each) are read, ``records`` (a figure each) go into files."""

    sections: list[Section] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)


def _figures(
    measured: Measured, table: lv.ScoreTable, bootstrap: int, more: Mapping[str, np.ndarray] | None = None
) -> dict[tuple[str, str, str], AgreementFigure]:
    """Figure by (human, metric, coefficient); ``more`` are columns beside the table's metrics."""
    table = replace(table, metrics={**(more or {}), **table.metrics})
    found = agreement(
        table,
        levels=[measured.spec.level],
        coefficients=measured.spec.coefficients,
        bootstrap=bootstrap,
        seed=measured.settings.seed,
    )
    return {(figure.human, figure.metric, figure.coefficient): figure for figure in found}


def correlations(measured: Measured) -> Found:
    """A row a metric, a column for each data set, human score and coefficient: value, marks, 95 % interval."""
    spec, found = measured.spec, Found()
    columns: list[tuple[str, str, str]] = []
    cells: dict[str, dict[tuple[str, str, str], str]] = {}
    for table in measured.tables:
        people = dict(table.human) if spec.between_people else {}
        figures = _figures(measured, table, measured.settings.bootstrap, people)
        columns += [(table.dataset, human, coefficient) for human in table.human for coefficient in spec.coefficients]
        for (human, metric, coefficient), figure in figures.items():
            p = _better(measured, table, human, metric) if spec.against else figure.p
            if human != metric:
                cells.setdefault(metric, {})[table.dataset, human, coefficient] = _cell(figure, p, spec.stars)
                found.records.append(_record(table.dataset, human, metric, figure, p))
        found.sections += _learned(measured, table) if spec.learned else []
    head = ["metric", *(f"{data} {human} {_LETTER[coefficient]}" for data, human, coefficient in columns)]
    body = [[metric, *(row.get(column, "") for column in columns)] for metric, row in cells.items()]
    title = f"{spec.level} level; 95 % interval by bootstrap over documents"
    found.sections.insert(0, Section(title, [head, *body]))
    return found


def _cell(figure: AgreementFigure, p: float | None, stars: Sequence[tuple[float, str]]) -> str:
    if figure.value is None:
        return f"– ({figure.reason})"
    mark = next((mark for most, mark in stars if p is not None and p < most), "")
    span = f" [{number(figure.low, 2)}, {number(figure.high, 2)}]" if figure.low is not None else ""
    return number(figure.value) + mark + span


def _record(dataset: str, human: str, metric: str, figure: AgreementFigure, p: float | None) -> dict[str, Any]:
    kept = ("level", "coefficient", "value", "low", "high", "n", "documents", "systems", "reason")
    return {"dataset": dataset, "human": human, "row": metric, "p": p, **{name: getattr(figure, name) for name in kept}}


def _better(measured: Measured, table: lv.ScoreTable, human: str, metric: str) -> float | None:
    """One-sided p of Williams' test that ``metric`` agrees better with people than the row that the table names."""
    base = measured.spec.against
    if metric == base or base not in table.metrics:
        return None
    block = lv.make_block(table, [table.human[human], table.metrics[metric], table.metrics[base]])
    if block.values.shape[1] < 4:
        return None
    pairs = [(0, 1), (0, 2), (1, 2)]
    r12, r13, r23 = map(float, lv.block_correlations(block, measured.spec.level, measured.spec.coefficients[0], pairs))
    test = None if np.isnan([r12, r13, r23]).any() else williams(r12, r13, r23, block.values.shape[1])
    return None if test is None else test.p_one


def _learned(measured: Measured, table: lv.ScoreTable) -> list[Section]:
    """The learned metric of the table's rows: each alone and all, fitted and with equal weights, on random halves.

    Where one of the paper's columns did not run, of all rows that did.
    """
    lacking = [label for label in measured.spec.learned if label not in table.metrics]
    title = f"{table.dataset}: learned metric"
    if lacking:
        title += f" of all metrics that ran, for {', '.join(lacking)} did not"
    wanted = [label for label in table.metrics if label not in measured.extra] if lacking else measured.spec.learned
    columns = {label: table.metrics[label] for label in wanted if np.isfinite(table.metrics[label]).any()}
    documents = [table.document_names[code] for code in table.documents]

    def fitted(subset: Mapping[str, np.ndarray], *, equal: bool = False) -> Learned:
        seed = measured.settings.seed
        return fit_learned(subset, table.human, documents, equal=equal, splits=SPLITS, seed=seed)

    try:
        if not columns:
            raise InputError("none of its metrics ran")
        sets = {label: {label: columns[label]} for label in columns} if len(columns) > 1 else {}
        named = {**sets, " + ".join(columns): columns}
        results = {name: fitted(subset) for name, subset in named.items()}
        results["equal weights"] = fitted(columns, equal=True)
    except InputError as error:
        return [Section(title, [["metrics", "held out"], ["–", str(error)]])]
    body = [["metrics", "held out: mean", "sd", "halves", "weights"]]
    for name, learned in results.items():
        held = learned.held_out
        assert held is not None
        weights = " ".join(short(weight) for weight in learned.weights)
        body.append([name, number(held.mean), number(held.sd), str(held.splits), weights])
    return [Section(title, body)]


def ranks(measured: Measured) -> Found:
    """Average rank of each metric over the data sets, against references and against documents, by each coefficient."""
    columns: dict[str, dict[str, float]] = {}
    for side in ("ref", "doc"):
        for coefficient in measured.spec.coefficients:
            values: dict[str, dict[str, float | None]] = {}
            for table in measured.tables:
                figures = _figures(measured, table, 0)
                for label in table.metrics:
                    prefix, colon, rest = label.partition(":")
                    if colon and prefix != side:
                        continue
                    own = [figures[human, label, coefficient].value for human in table.human]
                    known = [value for value in own if value is not None]
                    mean = sum(known) / len(known) if len(known) == len(own) else None
                    values.setdefault(table.dataset, {})[rest or label] = mean
            columns[f"{_LETTER[coefficient]}({side})"] = {
                each.metric: each.rank for each in average_ranks(values, ties="min")
            }
    labels = list(dict.fromkeys(label for column in columns.values() for label in column))
    order = [name for row in measured.signatures if (name := row.rpartition(":")[2]) in labels]
    body = [[label, *(number(column.get(label)) for column in columns.values())] for label in dict.fromkeys(order)]
    records = [
        {"row": label, "coefficient": name, "value": value}
        for name, own in columns.items()
        for label, value in own.items()
    ]
    names = ", ".join(table.dataset for table in measured.tables)
    return Found([Section(f"1 = best; mean over {names}", [["metric", *columns], *body])], records)


def sampling(measured: Measured) -> Found:
    """Pearson over systems against the number of articles, mean ± standard deviation of 50 draws."""
    found = Found()
    for table in measured.tables:
        for human in table.human:
            curves = {
                label: {
                    size.articles: size for size in article_sampling(table, label, human, seed=measured.settings.seed)
                }
                for label in table.metrics
            }
            sizes = sorted({size for curve in curves.values() for size in curve})
            if not sizes:
                found.notes.append(f"{table.dataset}, {human}: too few articles or systems to draw from")
                continue
            body = [["articles", *curves]]
            for size in sizes:
                row = [curve.get(size) for curve in curves.values()]
                body.append([str(size), *("–" if x is None else f"{number(x.mean)} ± {number(x.sd, 2)}" for x in row)])
                found.records += [
                    {
                        "dataset": table.dataset,
                        "human": human,
                        "row": label,
                        "articles": size,
                        "value": x.mean,
                        "sd": x.sd,
                    }
                    for label, x in zip(curves, row, strict=True)
                    if x is not None
                ]
            found.sections.append(Section(f"{table.dataset} {human}: Pearson over systems", body))
    return found


def _system_means(table: lv.ScoreTable, values: np.ndarray) -> list[float | None]:
    """The mean of a column over the rows of each system that have a value, by the order of the system names."""
    known = np.isfinite(values)
    own = [values[(table.systems == code) & known] for code in range(len(table.system_names))]
    return [float(part.mean()) if len(part) else None for part in own]


def systems(measured: Measured) -> Found:
    """Each system's mean human score and mean similarity."""
    found = Found()
    for table in measured.tables:
        columns = {**{f"people: {name}": column for name, column in table.human.items()}, **table.metrics}
        means = {name: _system_means(table, values) for name, values in columns.items()}
        body = [["system", *means]]
        for code, system in enumerate(table.system_names):
            body.append([system, *(number(own[code]) for own in means.values())])
            found.records += [
                {"dataset": table.dataset, "system": system, "row": name, "value": own[code]}
                for name, own in means.items()
            ]
        found.sections.append(Section(table.dataset, body))
    return found


def statistics(measured: Measured) -> Found:
    """Systems, lengths in words, and the systems' scores: a column for each data set and human score."""
    columns: dict[str, dict[str, float | None]] = {}
    for source, table in zip(measured.sources, measured.tables, strict=True):
        rows = source.rows
        references = {row.document_id: row.references for row in rows}
        documents = {row.document_id: row.documents for row in rows}
        articles = [len({row.document_id for row in rows if row.system == name}) for name in table.system_names]
        for human, values in table.human.items():
            means = np.array([mean for mean in _system_means(table, values) if mean is not None])
            columns[f"{table.dataset} {human}"] = {
                "systems": len(means),
                "reference-length": _mean_words(references.values()),
                "summary-length": _mean_words([row.summary for row in rows]),
                "document-length": _mean_words(documents.values()),
                "lowest-system": float(means.min()) if len(means) else None,
                "highest-system": float(means.max()) if len(means) else None,
                "sd-of-systems": float(means.std(ddof=1)) if len(means) > 1 else None,
                "articles-a-system": float(np.mean(articles)) if articles else None,
            }
    names = list(next(iter(columns.values())))
    body = [[name, *(number(column[name]) for column in columns.values())] for name in names]
    records = [{"dataset": data, "row": name, "value": own[name]} for data, own in columns.items() for name in names]
    return Found([Section("lengths in words", [["statistic", *columns], *body])], records)


def _mean_words(texts: Iterable[str | Sequence[str]]) -> float | None:
    counts = [word_count(text) for each in texts for text in ([each] if isinstance(each, str) else each)]
    return float(np.mean(counts)) if counts else None


def examples(measured: Measured) -> Found:
    """The scores of one article's summaries, and how far each lies from the first one's."""
    source, table = measured.sources[0], measured.tables[0]
    first = source.rows[0]
    rows = [k for k, row in enumerate(source.rows) if row.document_id == first.document_id]
    body, records = [["summary", *table.metrics]], []
    for k in rows:
        row = source.rows[k]
        cells = []
        for label, values in table.metrics.items():
            value, start = float(values[k]) * _scale(label), float(values[rows[0]]) * _scale(label)
            change = "" if k == rows[0] or not start else f" ({number(100 * (value / start - 1), 0, sign=True)} %)"
            cells.append("–" if np.isnan(value) else number(value, 2) + change)
            records.append({"row": label, "system": row.system, "value": None if np.isnan(value) else value})
        body.append([row.system, *cells])
    texts = [
        ("reference", " ".join(first.references)),
        *((source.rows[k].system, source.rows[k].summary) for k in rows),
    ]
    return Found([Section("scores", body)], records, texts=texts)


def disagreements(measured: Measured) -> Found:
    """The two summaries on whose rank two metrics differ most, one each way, with marks of the metrics' quarters."""
    found = Found()
    for source, table in zip(measured.sources, measured.tables, strict=True):
        first, second = "ROUGE-L", "SMS"
        if first not in table.metrics or second not in table.metrics:
            found.notes.append(f"{table.dataset}: no {first} or no {second}")
            continue
        people = {human: table.human[human] for human in table.human}
        values = np.stack([*people.values(), *table.metrics.values()])
        whole = np.flatnonzero(np.isfinite(values).all(axis=0))
        if len(whole) < lv.MIN_ROWS:
            found.notes.append(f"{table.dataset}: fewer than {lv.MIN_ROWS} summaries have all scores")
            continue
        from scipy.stats import rankdata

        apart = rankdata(table.metrics[second][whole]) - rankdata(table.metrics[first][whole])
        body = [["example", *people, *table.metrics]]
        for place, k in enumerate((whole[int(apart.argmax())], whole[int(apart.argmin())]), start=1):
            cells = [number(column[k], 2) for column in people.values()]
            for label, column in table.metrics.items():
                low, high = np.quantile(column[whole], (0.25, 0.75))
                mark = "**" if column[k] >= high else "*" if column[k] <= low else ""
                cells.append(f"{mark}{number(column[k] * _scale(label), 2)}{mark}")
                found.records.append(
                    {"dataset": table.dataset, "example": place, "row": label, "value": float(column[k]), "mark": mark}
                )
            row = source.rows[k]
            body.append([str(place), *cells])
            found.texts += [
                (f"{place}, reference", " ".join(row.references)),
                (f"{place}, {table.dataset} {row.document_id}, {row.system}", row.summary),
            ]
        found.sections.append(Section(table.dataset, body))
    return found


def _scale(label: str) -> float:
    """The papers' scale for reading: ROUGE × 100, mover's similarities × 1000 (Clark et al. 2019, footnote 1)."""
    return 100 if label.startswith("ROUGE") else 1000


KINDS: dict[str, Callable[[Measured], Found]] = {
    kind.__name__: kind for kind in (correlations, ranks, sampling, systems, statistics, examples, disagreements)
}

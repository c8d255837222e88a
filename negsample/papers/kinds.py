"""What a table makes of its scores: correlations, average ranks, curves over articles, systems' means, statistics, examples.

Each kind maps what was measured to records, and to texts and notes that go with them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.eval.agreement import levels as lv
from negsample.eval.agreement.figures import AgreementFigure, agreement, article_sampling, average_ranks
from negsample.eval.agreement.significance import williams
from negsample.eval.metrics.learned import SPLITS, fit_learned
from negsample.number_text import number
from negsample.papers.judged import Measured
from negsample.papers.records import Record
from negsample.text import word_count

LETTERS = {"pearson": "P", "spearman": "S", "kendall": "τ"}


@dataclass
class Found:
    """``records`` are the figures; ``texts`` (a name and a text each) are read with them."""

    records: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)


def _figures(
    measured: Measured, table: lv.ScoreTable, bootstrap: int, more: Mapping[str, np.ndarray] | None = None
) -> list[AgreementFigure]:
    """The agreement of every metric, and of ``more`` columns before them, at the table's level by its coefficients."""
    table = replace(table, metrics={**(more or {}), **table.metrics})
    spec, seed = measured.spec, measured.seed
    return agreement(table, levels=[spec.level], coefficients=spec.coefficients, bootstrap=bootstrap, seed=seed)


def correlations(measured: Measured) -> Found:
    """A row a metric, a column for each data set, human score and coefficient: value, marks, 95 % interval."""
    spec, found = measured.spec, Found()
    for table in measured.tables:
        people = dict(table.human) if spec.between_people else {}
        for figure in _figures(measured, table, measured.bootstrap, people):
            if figure.human == figure.metric:
                continue
            p = _better(measured, table, figure.human, figure.metric) if spec.against else figure.p
            found.records.append(figure_record(figure, p, spec.stars))
        found.records += _learned(measured, table, found.notes) if spec.learned else []
    found.notes.append(f"{spec.level} level; 95 % intervals by bootstrap over documents.")
    return found


def figure_record(
    figure: AgreementFigure, p: float | None, stars: Sequence[tuple[float, str]] = (), **own: Any
) -> Record:
    """The record of a correlation, marked by the first of ``stars`` that ``p`` lies below; fields that are its ``own`` win."""
    kept = ("dataset", "human", "level", "coefficient", "documents", "systems")
    about = {"p": p, **{name: getattr(figure, name) for name in kept}, **own.pop("about", {})}
    mark = next((mark for most, mark in stars if p is not None and p < most), "")
    column = f"{figure.dataset} {figure.human} {LETTERS[figure.coefficient]}"
    record = Record(figure.metric, column, figure.value, figure.low, figure.high, figure.n, reason=figure.reason or "")
    return replace(record, **{"mark": mark, "about": about, **own})


def _better(measured: Measured, table: lv.ScoreTable, human: str, metric: str) -> float | None:
    """One-sided p of Williams' test that ``metric`` agrees better with people than the row that the table names."""
    base, spec = measured.spec.against, measured.spec
    if metric == base or base not in table.metrics:
        return None
    block = lv.make_block(table, [table.human[human], table.metrics[metric], table.metrics[base]])
    if block.values.shape[1] < 4:
        return None
    pairs = [(0, 1), (0, 2), (1, 2)]
    r12, r13, r23 = map(float, lv.block_correlations(block, spec.level, spec.coefficients[0], pairs))
    test = None if np.isnan([r12, r13, r23]).any() else williams(r12, r13, r23, block.values.shape[1])
    return None if test is None else test.p_one


def _learned(measured: Measured, table: lv.ScoreTable, notes: list[str]) -> list[Record]:
    """The learned metric of the table's rows: each alone and all, fitted and with equal weights, on n random halves.

    Where one of the paper's columns did not run, of all rows that did.
    """
    lacking = [label for label in measured.spec.learned if label not in table.metrics]
    section = f"{table.dataset}: learned metric, held out"
    wanted = [label for label in table.metrics if label not in measured.extra] if lacking else measured.spec.learned
    columns = {label: table.metrics[label] for label in wanted if np.isfinite(table.metrics[label]).any()}
    documents = [table.document_names[code] for code in table.documents]
    sets = [{label: columns[label]} for label in columns] if len(columns) > 1 else []
    found = []
    try:
        if not columns:
            raise InputError("none of its metrics ran")
        for subset, equal in [*((subset, False) for subset in [*sets, columns]), (columns, True)]:
            learned = fit_learned(subset, table.human, documents, equal=equal, splits=SPLITS, seed=measured.seed)
            held, row = learned.held_out, "equal weights" if equal else " + ".join(subset)
            assert held is not None
            figures = {"mean": held.mean, "sd": held.sd}
            figures |= {f"weight of {name}": float(own) for name, own in zip(subset, learned.weights, strict=True)}
            found += [Record(row, name, value, n=held.splits, section=section) for name, value in figures.items()]
    except InputError as error:
        return [Record("learned", "mean", section=section, reason=str(error))]
    if lacking:
        notes.append(
            f"{table.dataset}: the learned metric is of all metrics that ran, for {', '.join(lacking)} did not."
        )
    return found


def ranks(measured: Measured) -> Found:
    """Average rank of each metric over the data sets (1: best), against references and against documents, by each coefficient."""
    found: dict[str, dict[str, Record]] = {}
    figures = {table.dataset: _figures(measured, table, 0) for table in measured.tables}
    for side in ("ref", "doc"):
        for coefficient in measured.spec.coefficients:
            values: dict[str, dict[str, float | None]] = {}
            for dataset, every in figures.items():
                of: dict[str, list[float | None]] = {}
                for figure in every:
                    prefix, colon, rest = figure.metric.partition(":")
                    if figure.coefficient == coefficient and (not colon or prefix == side):
                        of.setdefault(rest or figure.metric, []).append(figure.value)
                for label, own in of.items():
                    known = [value for value in own if value is not None]
                    mean = sum(known) / len(own) if len(known) == len(own) else None
                    values.setdefault(dataset, {})[label] = mean
            column = f"{LETTERS[coefficient]}({side})"
            for each in average_ranks(values, ties="min"):
                found.setdefault(each.metric, {})[column] = Record(each.metric, column, each.rank)
    labels = dict.fromkeys(label.rpartition(":")[2] for label in measured.signatures)
    return Found([record for label in labels for record in found.get(label, {}).values()])


def sampling(measured: Measured) -> Found:
    """Pearson over systems against the number of articles, mean and standard deviation of 50 draws."""
    found = Found()
    for table in measured.tables:
        for human in table.human:
            own = [
                Record(str(size.articles), label, size.mean, section=f"{table.dataset} {human}", about={"sd": size.sd})
                for label in table.metrics
                for size in article_sampling(table, label, human, seed=measured.seed)
            ]
            found.records += sorted(own, key=lambda record: int(record.row))
            if not own:
                found.notes.append(f"{table.dataset}, {human}: too few articles or systems to draw from")
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
        names, people = table.system_names, {f"people: {name}": values for name, values in table.human.items()}
        # A metric's mean is drawn against that of the first human score.
        first = _system_means(table, next(iter(people.values())))
        for column, values in {**people, **table.metrics}.items():
            for system, mean, of_people in zip(names, _system_means(table, values), first, strict=True):
                about = {} if column in people else {"people": of_people}
                found.records.append(Record(system, column, mean, section=table.dataset, about=about))
    return found


def statistics(measured: Measured) -> Found:
    """Systems, lengths in words, and the systems' scores: a column for each data set and human score."""
    found = Found()
    for source, table in zip(measured.sources, measured.tables, strict=True):
        rows = source.rows
        references = {row.document_id: row.references for row in rows}
        documents = {row.document_id: row.documents for row in rows}
        articles = [len({row.document_id for row in rows if row.system == name}) for name in table.system_names]
        for human, values in table.human.items():
            means = np.array([mean for mean in _system_means(table, values) if mean is not None])
            figures = {
                "systems": len(means),
                "reference-length": _mean_words(references.values()),
                "summary-length": _mean_words([row.summary for row in rows]),
                "document-length": _mean_words(documents.values()),
                "lowest-system": float(means.min()) if len(means) else None,
                "highest-system": float(means.max()) if len(means) else None,
                "sd-of-systems": float(means.std(ddof=1)) if len(means) > 1 else None,
                "articles-a-system": float(np.mean(articles)) if articles else None,
            }
            found.records += [Record(name, f"{table.dataset} {human}", value) for name, value in figures.items()]
    return found


def _mean_words(texts: Iterable[str | Sequence[str]]) -> float | None:
    counts = [word_count(text) for each in texts for text in ([each] if isinstance(each, str) else each)]
    return float(np.mean(counts)) if counts else None


def examples(measured: Measured) -> Found:
    """The scores of one article's summaries, and by how many per cent each lies from the first one's."""
    found, table = Found(), measured.tables[0]
    rows = measured.sources[0].rows
    own = [k for k, row in enumerate(rows) if row.document_id == rows[0].document_id]
    for label, values in table.metrics.items():
        for k in own:
            start = values[own[0]]
            mark = f" ({number(100 * (values[k] / start - 1), 0, sign=True)} %)" if start and k != own[0] else ""
            found.records.append(Record(rows[k].system, label, _scaled(label, values[k]), mark=mark))
    found.texts = [("reference", " ".join(rows[0].references)), *((rows[k].system, rows[k].summary) for k in own)]
    return found


def disagreements(measured: Measured) -> Found:
    """The two summaries on whose rank two metrics differ most, one each way, with marks of the metrics' quarters."""
    from scipy.stats import rankdata

    found, (first, second) = Found(), ("ROUGE-L", "SMS")
    for source, table in zip(measured.sources, measured.tables, strict=True):
        if first not in table.metrics or second not in table.metrics:
            found.notes.append(f"{table.dataset}: no {first} or no {second}")
            continue
        values = np.stack([*table.human.values(), *table.metrics.values()])
        whole = np.flatnonzero(np.isfinite(values).all(axis=0))
        if len(whole) < lv.MIN_ROWS:
            found.notes.append(f"{table.dataset}: fewer than {lv.MIN_ROWS} summaries have all scores")
            continue
        apart = rankdata(table.metrics[second][whole]) - rankdata(table.metrics[first][whole])
        for place, k in enumerate((whole[int(apart.argmax())], whole[int(apart.argmin())]), start=1):
            name = table.dataset
            found.records += [Record(str(place), key, float(own[k]), section=name) for key, own in table.human.items()]
            for label, column in table.metrics.items():
                low, high = np.quantile(column[whole], (0.25, 0.75))
                mark = "↑" if column[k] >= high else "↓" if column[k] <= low else ""
                found.records.append(Record(str(place), label, _scaled(label, column[k]), section=name, mark=mark))
            row = source.rows[k]
            found.texts += [
                (f"{place}, reference", " ".join(row.references)),
                (f"{place}, {table.dataset} {row.document_id}, {row.system}", row.summary),
            ]
    return found


def _scaled(label: str, value: float) -> float | None:
    """On the papers' scale: ROUGE × 100, mover's similarities × 1000 (Clark et al. 2019, footnote 1)."""
    return None if np.isnan(value) else float(value) * (100 if label.startswith("ROUGE") else 1000)


KINDS: dict[str, Callable[[Measured], Found]] = {
    kind.__name__: kind for kind in (correlations, ranks, sampling, systems, statistics, examples, disagreements)
}

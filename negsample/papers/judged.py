"""A table on people's judgments: its data, scored by every row's metric (each kept, so that a rerun goes on), and what each kind
of table makes of the scores."""

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.eval.agreement import levels as lv
from negsample.eval.agreement.columns import TRIVIAL
from negsample.eval.agreement.figures import AgreementFigure, agreement, article_sampling, average_ranks
from negsample.eval.agreement.significance import williams
from negsample.eval.judgments import Source, load_sources
from negsample.eval.judgments.collect import is_mean
from negsample.eval.metrics.base import score_judged
from negsample.eval.metrics.learned import SPLITS, fit_learned
from negsample.io.files import atomic_json
from negsample.papers.declared import Declared, Record, Table
from negsample.records import Judged
from negsample.registry import suggestion
from negsample.scoring.scorer import Scorer, make_metric
from negsample.seeds import digest
from negsample.sentences import split_sentences
from negsample.terminal import number
from negsample.text import word_count, word_tokens

LETTERS = {"pearson": "P", "spearman": "S", "kendall": "τ"}


@dataclass(frozen=True)
class Asked:
    """What was asked of a table: the options of ``negsample tables``, whose help says what they are."""

    data: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    human: tuple[str, ...] = ()
    config: str | None = None
    rouge_alone: bool = False
    keep_models: bool = False
    bootstrap: int = 1000
    seed: int | None = None
    smoke: bool = False


@dataclass(frozen=True)
class Measured:
    """``tables``: a data set each, its metrics by the rows' labels, higher is better; ``sources``: their judged rows.

    ``signatures``: label → signature. ``not_run``: label → why. ``extra``: labels that are not in the paper. ``notes``: what was
    left out.
    """

    spec: Declared
    sources: tuple[Source, ...]
    tables: tuple[lv.ScoreTable, ...]
    bootstrap: int = 1000
    seed: int = 0
    signatures: dict[str, str] = field(default_factory=dict)
    not_run: dict[str, str] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def table(
        self, records: Sequence[Record], *, notes: Sequence[str] = (), signatures: Mapping[str, str] = {}, **facts: Any
    ) -> Table:
        """What came of the table, with what was left out and more ``notes``; ``facts`` as `Table` has them."""
        counts = "; ".join(f"{source.name}: {len(source.rows)} summaries ({source.spec})" for source in self.sources)
        told, known = [*self.notes, *notes], {**self.signatures, **signatures}
        if self.extra:
            told.append(f"Not in the paper: {', '.join(self.extra)}.")
        if stood := [f"{name} = {part}" for name, part in self.spec.parts.items() if part]:
            told.append(f"Stood for: {', '.join(stood)}.")
        facts = {"about": f"{counts}; seed {self.seed}.", **facts}
        return self.spec.table(records, notes=told, not_run=self.not_run, signatures=known, **facts)


def judged_sources(spec: Declared, data: Sequence[str]) -> list[Source]:
    """Load the judgments, without the systems that the paper leaves out of a data set, which is told."""
    found = []
    for source in load_sources(data):
        left = spec.without.get(source.rows[0].dataset, ())
        rows = tuple(row for row in source.rows if row.system not in left)
        if not rows:
            raise InputError(f"{source.spec}: no summary is left without system {', '.join(left)}")
        if gone := sorted({row.system for row in source.rows}.intersection(left)):
            told = f"left out: system {', '.join(gone)} ({len(source.rows) - len(rows)} summaries)"
            source = replace(source, rows=rows, missing=(*source.missing, told))
        found.append(source)
    return found


def measure(
    spec: Declared,
    sources: Sequence[Source],
    asked: Asked,
    out: Path,
    say: Callable[[str], None] = print,
    models: Mapping[str, Callable[[], Scorer]] = {},
) -> Measured:
    """Score the judged rows of ``sources`` by the metrics of ``spec`` and by ``models`` (label → what loads it).

    What is in ``out/scores`` already is not done again. A row whose metric can't be made (its encoder is not there) is told
    and left out. Tables of correlations have the trivial metrics besides. Raises InputError for an unknown human score, a
    model that can't be loaded, and where not one metric could be made.
    """
    people: dict[str, list[str]] = {}
    for source in sources:
        known = list(dict.fromkeys(name for row in source.rows for name in row.scores if not is_mean(name)))
        for name in asked.human:
            if name not in known:
                raise InputError(f"--human {name}: no judgments have that score; {suggestion(name, known)}")
        people[source.spec] = [*asked.human] or [name for name in spec.human if name in known] or known
    metrics, not_run = spec.metrics()
    extra = tuple(name for name in TRIVIAL if name != "cosine") if spec.kind == "correlations" else ()
    makers: dict[str, Callable[[], Scorer]] = dict(models)
    makers |= {
        label: partial(make_metric, text) for label, text in {**metrics, **{name: name for name in extra}}.items()
    }
    rows = [row for source in sources for row in source.rows]
    texts = digest(*((row.documents, row.summary, row.references) for row in rows)).hex()
    columns: dict[str, np.ndarray] = {}
    signatures: dict[str, str] = {}
    notes: list[str] = []
    for place, (label, make) in enumerate(makers.items(), start=1):
        say(f"{place}/{len(makers)} {label}")
        try:
            scorer = make()
            signatures[label] = scorer.signature
            values, told = _kept(out / "scores" / f"{digest(label, size=8).hex()}.json", texts, label, scorer, rows)
            notes += told
            columns[label] = values if scorer.higher_is_better else -values
        except InputError as error:
            if label in models or label in signatures:
                raise
            not_run[label] = str(error)
    if spec.rows and not (columns.keys() - set(extra)):
        raise InputError(f"{spec.name}: not one of its metrics could be made: {'; '.join(not_run.values())}")
    say(f"{spec.kind} of {len(rows)} summaries")
    tables, start = [], 0
    for source in sources:
        part = slice(start, start + len(source.rows))
        start = part.stop
        own = {label: values[part] for label, values in columns.items()}
        tables.append(lv.judged_table(source.name, source.rows, people[source.spec], own))
        notes += [f"{source.name}: {line}" for line in source.missing]
    found = tuple(sources), tuple(tables), asked.bootstrap, asked.seed or 0
    return Measured(spec, *found, signatures, not_run, extra, tuple(notes))


def _kept(path: Path, texts: str, label: str, scorer: Scorer, rows: Sequence[Judged]) -> tuple[np.ndarray, list[str]]:
    """The scores of ``rows``, float [n], and what is missing or cut: from ``path`` where they are kept for the same ``texts``."""
    key, found = digest(scorer.signature, texts).hex(), None
    # One that was cut short is done again.
    with suppress(ValueError, FileNotFoundError):
        found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict) or found.get("key") != key:
        scored = score_judged(scorer, rows)
        lines = [f"no score for {count} × {why}" for why, count in Counter(filter(None, scored.reasons)).items()]
        if cut := int(scored.cut.sum()):
            lines.append(f"{cut} of {len(rows)} summaries: longer with their document than the model reads, and cut")
        plain = [float(value) if np.isfinite(value) else None for value in scored.scores]
        found = {"key": key, "row": label, "values": plain, "notes": lines}
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_json(path, found)
    return np.array(found["values"], dtype=np.float64), [f"{label}: {line}" for line in found["notes"]]


# --- the kinds of tables


def correlations(measured: Measured) -> Table:
    """A row a metric, a column for each data set, human score and coefficient: value, marks, 95 % interval."""
    records = correlation_records(measured)
    notes = [f"{measured.spec.level} level; 95 % intervals: documents resampled."]
    for table in measured.tables if measured.spec.learned else ():
        records += _learned(measured, table, notes)
    return measured.table(records, notes=notes)


def correlation_records(measured: Measured) -> list[Record]:
    """A record for each metric (and, where people are compared, human score), data set, human score and coefficient."""
    spec, records = measured.spec, []
    for table in measured.tables:
        people = dict(table.human) if spec.between_people else {}
        for figure in _figures(measured, table, measured.bootstrap, people):
            p = _better(measured, table, figure.human, figure.metric) if spec.against else figure.p
            # A human score agrees with itself, as is printed.
            records.append(figure_record(figure, None if figure.human == figure.metric else p, spec.stars))
    return records


def _figures(
    measured: Measured, table: lv.ScoreTable, bootstrap: int, more: Mapping[str, np.ndarray] = {}
) -> list[AgreementFigure]:
    """The agreement of every metric, and of ``more`` columns before them, at the table's level by its coefficients."""
    spec, table = measured.spec, replace(table, metrics={**more, **table.metrics})
    levels, coefficients = [spec.level], spec.coefficients
    return agreement(table, levels=levels, coefficients=coefficients, bootstrap=bootstrap, seed=measured.seed)


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
            figures |= {f"weight of {name}": own for name, own in zip(subset, learned.weights, strict=True)}
            found += [Record(row, name, value, n=held.splits, section=section) for name, value in figures.items()]
    except InputError as error:
        return [Record("learned", "mean", section=section, reason=str(error))]
    if lacking:
        notes.append(f"{table.dataset}: learned of all metrics that ran, for {', '.join(lacking)} did not.")
    return found


def ranks(measured: Measured) -> Table:
    """Average rank of each metric over the data sets (1: best), against references and against documents, by each coefficient."""
    found: dict[str, list[Record]] = {label.rpartition(":")[2]: [] for label in measured.signatures}
    figures = {table.dataset: _figures(measured, table, 0) for table in measured.tables}
    for side, coefficient in itertools.product(("ref", "doc"), measured.spec.coefficients):
        values: dict[str, dict[str, float | None]] = {}
        for dataset, every in figures.items():
            of: dict[str, list[float]] = {}
            for figure in every:
                prefix, colon, rest = figure.metric.partition(":")
                if figure.coefficient == coefficient and (not colon or prefix == side):
                    of.setdefault(rest or figure.metric, []).append(np.nan if figure.value is None else figure.value)
            values[dataset] = {label: float(np.mean(own)) for label, own in of.items()}
        for each in average_ranks(values, ties="min"):
            found[each.metric].append(Record(each.metric, f"{LETTERS[coefficient]}({side})", each.rank))
    return measured.table([record for own in found.values() for record in own])


def sampling(measured: Measured) -> Table:
    """Pearson over systems against the number of articles, mean and standard deviation of 50 draws."""
    records, notes = [], []
    for table, human in ((each, name) for each in measured.tables for name in each.human):
        own = [
            Record(str(size.articles), label, size.mean, section=f"{table.dataset} {human}", about={"sd": size.sd})
            for label in table.metrics
            for size in article_sampling(table, label, human, seed=measured.seed)
        ]
        records += sorted(own, key=lambda record: int(record.row))
        if not own:
            notes.append(f"{table.dataset}, {human}: too few articles or systems to draw from")
    return measured.table(records, notes=notes)


def _system_means(table: lv.ScoreTable, values: np.ndarray) -> list[float | None]:
    """The mean of a column over the rows of each system that have a value, by the order of the system names."""
    known = np.isfinite(values)
    own = [values[(table.systems == code) & known] for code in range(len(table.system_names))]
    return [float(part.mean()) if len(part) else None for part in own]


def systems(measured: Measured) -> Table:
    """Each system's mean human score and mean similarity."""
    records = []
    for table in measured.tables:
        people = {f"people: {name}": values for name, values in table.human.items()}
        # A metric's mean is drawn against that of the first human score.
        first = _system_means(table, next(iter(people.values())))
        for column, values in {**people, **table.metrics}.items():
            for system, mean, of_people in zip(table.system_names, _system_means(table, values), first, strict=True):
                about = {} if column in people else {"people": of_people}
                records.append(Record(system, column, mean, section=table.dataset, about=about))
    return measured.table(records)


def statistics(measured: Measured) -> Table:
    """Of systems, lengths in words, and the systems' scores what is printed: a column for each data set and human score."""
    records, printed = [], {record.row for record in measured.spec.printed_records()}
    for source, table in zip(measured.sources, measured.tables, strict=True):
        by_document = {row.document_id: row for row in source.rows}.values()
        articles = [len({row.document_id for row in source.rows if row.system == name}) for name in table.system_names]
        for human, values in table.human.items():
            means = np.array([mean for mean in _system_means(table, values) if mean is not None])
            words = Counter(word for row in source.rows for word in word_tokens(row.summary))
            figures = {
                "summaries": len(source.rows),
                "words": words.total(),
                "types": len(words),
                "systems": len(means),
                "reference-length": _mean_words(text for row in by_document for text in row.references),
                "summary-length": _mean_words(row.summary for row in source.rows),
                "summary-sentences": float(np.mean([len(split_sentences(row.summary)) for row in source.rows])),
                "document-length": _mean_words(text for row in by_document for text in row.documents),
                "lowest-system": float(means.min()) if len(means) else None,
                "highest-system": float(means.max()) if len(means) else None,
                "sd-of-systems": float(means.std(ddof=1)) if len(means) > 1 else None,
                "articles-a-system": float(np.mean(articles)) if articles else None,
            }
            column = f"{table.dataset} {human}"
            records += [Record(name, column, value) for name, value in figures.items() if name in printed]
    return measured.table(records)


def _mean_words(texts: Iterable[str]) -> float | None:
    counts = list(map(word_count, texts))
    return float(np.mean(counts)) if counts else None


def examples(measured: Measured) -> Table:
    """The scores of one article's summaries, and by how many per cent each lies from the first one's."""
    records, rows = [], measured.sources[0].rows
    own = [k for k, row in enumerate(rows) if row.document_id == rows[0].document_id]
    for label, values in measured.tables[0].metrics.items():
        for k in own:
            start = values[own[0]]
            mark = f" ({number(100 * (values[k] / start - 1), 0, sign=True)} %)" if start and k != own[0] else ""
            records.append(Record(rows[k].system, label, _scaled(label, values[k]), mark=mark))
    texts = (("reference", " ".join(rows[0].references)), *((rows[k].system, rows[k].summary) for k in own))
    return measured.table(records, texts=texts, digits=2)


def disagreements(measured: Measured) -> Table:
    """The two summaries on whose rank two metrics differ most, one each way, with marks of the metrics' quarters."""
    from scipy.stats import rankdata

    records, notes, texts, (first, second) = [], [], [], ("ROUGE-L", "SMS")
    for source, table in zip(measured.sources, measured.tables, strict=True):
        name = table.dataset
        if not {first, second} <= table.metrics.keys():
            notes.append(f"{name}: no {first} or no {second}")
            continue
        whole = np.flatnonzero(np.isfinite([*table.human.values(), *table.metrics.values()]).all(axis=0))
        if len(whole) < lv.MIN_ROWS:
            notes.append(f"{name}: fewer than {lv.MIN_ROWS} summaries have all scores")
            continue
        apart = rankdata(table.metrics[second][whole]) - rankdata(table.metrics[first][whole])
        for place, k in enumerate((whole[int(apart.argmax())], whole[int(apart.argmin())]), start=1):
            records += [Record(str(place), key, float(own[k]), section=name) for key, own in table.human.items()]
            for label, column in table.metrics.items():
                low, high = np.quantile(column[whole], (0.25, 0.75))
                mark = "↑" if column[k] >= high else "↓" if column[k] <= low else ""
                records.append(Record(str(place), label, _scaled(label, column[k]), section=name, mark=mark))
            row = source.rows[k]
            texts.append((f"{place}, reference", " ".join(row.references)))
            texts.append((f"{place}, {name} {row.document_id}, {row.system}", row.summary))
    return measured.table(records, notes=notes, texts=tuple(texts), digits=2)


def _scaled(label: str, value: float) -> float | None:
    """On the papers' scale: ROUGE × 100, mover's similarities × 1000 (Clark et al. 2019, footnote 1)."""
    return None if np.isnan(value) else float(value) * (100 if label.startswith("ROUGE") else 1000)


KINDS: dict[str, Callable[[Measured], Table]] = {
    kind.__name__: kind for kind in (correlations, ranks, sampling, systems, statistics, examples, disagreements)
}

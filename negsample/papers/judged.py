"""What a table on people's judgments is made of: its data, scored by every row's metric, each kept so that a rerun goes on."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.eval.agreement.columns import TRIVIAL
from negsample.eval.agreement.correlate import Source, load_sources
from negsample.eval.agreement.levels import ScoreTable, judged_table
from negsample.eval.judgments.collect import is_mean
from negsample.eval.metrics.base import score_judged
from negsample.io.files import atomic_json
from negsample.papers.declared import Declared
from negsample.papers.records import Record, Table
from negsample.progress import Bar
from negsample.records import Judged
from negsample.registry import suggestion
from negsample.scoring.metrics import make_metric
from negsample.scoring.scorer import Scorer
from negsample.seeds import digest


@dataclass(frozen=True)
class Asked:
    """What was asked of a table: the options of ``negsample tables``, whose help says what they are."""

    data: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    config: str | None = None
    parts: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    human: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    models: str | None = None
    keep_models: bool = False
    precision: str = "float32"
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
    tables: tuple[ScoreTable, ...]
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
        told, known = [*self.notes, *notes], {**self.signatures, **signatures}
        if self.extra:
            told.append(f"Not in the paper: {', '.join(self.extra)}.")
        if stood := [f"{name} = {part}" for name, part in self.spec.parts.items() if part]:
            told.append(f"Stood for: {', '.join(stood)}.")
        return self.spec.table(records, notes=told, not_run=self.not_run, signatures=known, **facts)


def measure(
    spec: Declared,
    sources: Sequence[Source],
    asked: Asked,
    out: Path,
    models: Mapping[str, Callable[[], Scorer]] = {},
) -> Measured:
    """Score the judged rows of ``sources`` by the metrics of ``spec`` and by ``models`` (label → what loads it).

    What is in ``out/scores`` already is not done again. A row whose metric can't be made (its encoder is not there) is told
    and left out. Tables of correlations have the trivial metrics besides. Raises InputError for an unknown human score, a
    model that can't be loaded, and where not one metric could be made.
    """
    people = [_people(source.rows, asked.human, spec.human) for source in sources]
    metrics, not_run = spec.metrics()
    extra = tuple(name for name in TRIVIAL if name != "cosine") if spec.kind == "correlations" else ()
    makers: dict[str, Callable[[], Scorer]] = dict(models)
    makers |= {label: partial(make_metric, text) for label, text in metrics.items()}
    makers |= {name: partial(make_metric, name) for name in extra}
    rows = [row for source in sources for row in source.rows]
    texts = digest(*((row.documents, row.summary, row.references) for row in rows)).hex()
    columns: dict[str, np.ndarray] = {}
    signatures: dict[str, str] = {}
    notes: list[str] = []
    with Bar(spec.name, total=len(makers)) as bar:
        for label, make in makers.items():
            bar.advance(0, note=label)
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
            bar.advance()
    if spec.rows and not (columns.keys() - set(extra)):
        raise InputError(f"{spec.name}: not one of its metrics could be made: {'; '.join(not_run.values())}")
    tables, start = [], 0
    for source, scores_of in zip(sources, people, strict=True):
        part = slice(start, start + len(source.rows))
        start = part.stop
        own = {label: values[part] for label, values in columns.items()}
        tables.append(judged_table(source.name, source.rows, scores_of, own))
        notes += [f"{source.name}: {line}" for line in source.missing]
    seed = asked.seed or 0
    return Measured(
        spec, tuple(sources), tuple(tables), asked.bootstrap, seed, signatures, not_run, extra, tuple(notes)
    )


def _kept(path: Path, texts: str, label: str, scorer: Scorer, rows: Sequence[Judged]) -> tuple[np.ndarray, list[str]]:
    """The scores of ``rows``, float [n], and lines on what is missing or cut: from the file ``path`` where an earlier run has
    kept them for the same scorer and ``texts`` (a hash of the rows'), else worked out, and kept."""
    key, found = digest(scorer.signature, texts).hex(), None
    if path.is_file():
        # One that was cut short is done again.
        with suppress(ValueError):
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


def judged_sources(spec: Declared, data: Sequence[str], without: Sequence[str] = ()) -> list[Source]:
    """Load the judgments, without the systems named and those that the paper leaves out of a data set, which is told.

    Raises InputError for a system that there is not.
    """
    sources = load_sources(data)
    known = {row.system for source in sources for row in source.rows}
    for name in without:
        if name not in known:
            raise InputError(f"--without {name}: no judgments have that system; {suggestion(name, sorted(known))}")
    found = []
    for source in sources:
        left = {*spec.without.get(source.rows[0].dataset, ()), *without}
        rows = tuple(row for row in source.rows if row.system not in left)
        if not rows:
            raise InputError(f"{source.spec}: no summary is left without system {', '.join(sorted(left))}")
        gone = sorted({row.system for row in source.rows} & left)
        if gone:
            told = f"left out: system {', '.join(gone)} ({len(source.rows) - len(rows)} summaries)"
            source = replace(source, rows=rows, missing=(*source.missing, told))
        found.append(source)
    return found


def _people(rows: Sequence[Judged], wanted: Sequence[str], of_paper: Sequence[str]) -> list[str]:
    """The human scores to look at: those wanted, else those of the paper, else all but means that were added."""
    known = list(dict.fromkeys(name for row in rows for name in row.scores if not is_mean(name)))
    for name in wanted:
        if name not in known:
            raise InputError(f"--human {name}: no judgments have that score; {suggestion(name, known)}")
    return [*wanted] or [name for name in of_paper if name in known] or known

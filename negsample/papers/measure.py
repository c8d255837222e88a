"""The scores of a table: judged summaries of every data set, by every row's metric, each kept so that a rerun goes on."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from negsample.papers.definition import TableSpec
from negsample.progress import Bar
from negsample.records import Judged
from negsample.registry import suggestion
from negsample.scoring.metrics import make_metric
from negsample.seeds import digest

SCORES = "scores"


@dataclass(frozen=True)
class Settings:
    """``human``: only these human scores; none: the paper's, or all. ``bootstrap``: resamples for the intervals."""

    human: tuple[str, ...] = ()
    bootstrap: int = 1000
    seed: int = 0


@dataclass(frozen=True)
class Measured:
    """``tables``: a data set each, its metrics by the rows' labels, higher is better; ``sources``: their judged rows.

    ``signatures``: label → signature. ``not_run``: label → why. ``extra``: labels that are not in the paper. ``notes``: what was
    left out.
    """

    spec: TableSpec
    settings: Settings
    sources: tuple[Source, ...]
    tables: tuple[ScoreTable, ...]
    signatures: dict[str, str]
    not_run: dict[str, str]
    extra: tuple[str, ...]
    notes: tuple[str, ...]


def measure(spec: TableSpec, sources: Sequence[Source], settings: Settings, out: Path) -> Measured:
    """Score the judged rows of ``sources`` by the metrics of ``spec``; what is in ``out/scores`` already is not done again.

    A row whose metric can't be made (its encoder is not there) is told and left out. Tables of correlations have the trivial
    metrics besides. Raises InputError for an unknown human score, and where not one metric could be made.
    """
    people = [_people(source.rows, settings.human, spec.human) for source in sources]
    metrics, not_run = spec.metrics()
    extra = tuple(name for name in TRIVIAL if name != "cosine") if spec.kind == "correlations" else ()
    metrics |= {name: name for name in extra}
    rows = [row for source in sources for row in source.rows]
    texts = digest(*((row.documents, row.summary, row.references) for row in rows)).hex()
    columns: dict[str, np.ndarray] = {}
    signatures: dict[str, str] = {}
    notes: list[str] = []
    with Bar(spec.name, total=len(metrics)) as bar:
        for label, text in metrics.items():
            bar.advance(0, note=label)
            try:
                metric = make_metric(text)
            except InputError as error:
                not_run[label] = str(error)
                bar.advance()
                continue
            key = digest(metric.signature, texts).hex()
            path = out / SCORES / f"{digest(label, size=8).hex()}.json"
            kept = _kept(path, key)
            if kept is None:
                scores = score_judged(metric, rows)
                kept = {
                    "key": key,
                    "row": label,
                    "signature": metric.signature,
                    "values": [float(value) if np.isfinite(value) else None for value in scores.scores],
                    "missing": dict(Counter(reason for reason in scores.reasons if reason is not None)),
                }
                path.parent.mkdir(exist_ok=True)
                atomic_json(path, kept)
            notes += [f"{label}: no score for {count} × {reason}" for reason, count in kept["missing"].items()]
            values = np.array(kept["values"], dtype=np.float64)
            columns[label] = values if metric.higher_is_better else -values
            signatures[label] = metric.signature
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
    return Measured(spec, settings, tuple(sources), tuple(tables), signatures, not_run, extra, tuple(notes))


def judged_sources(spec: TableSpec, judgments: Sequence[str], without: Sequence[str] = ()) -> list[Source]:
    """Load the judgments, without the systems named and those that the paper leaves out of a data set, which is told.

    Raises InputError for a system that there is not.
    """
    sources = load_sources(judgments)
    known = {row.system for source in sources for row in source.rows}
    for name in without:
        if name not in known:
            raise InputError(f"--without {name}: no judgments have that system; {suggestion(name, sorted(known))}")
    found = []
    for source in sources:
        left = {*(spec.without or {}).get(source.rows[0].dataset, ()), *without}
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


def _kept(path: Path, key: str) -> dict[str, Any] | None:
    """What an earlier run has kept at ``path`` for the same metric and rows, else None."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("key") == key else None

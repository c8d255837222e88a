"""``negsample fit``: an estimator whose score and targets are fitted to people's judgments, and what that is worth."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from negsample.errors import InputError
from negsample.eval.agreement.columns import TRIVIAL
from negsample.eval.agreement.figures import AgreementFigure, agreement
from negsample.eval.agreement.levels import MAIN_COEFFICIENT, ScoreTable, make_table
from negsample.eval.agreement.shares import measure_choices
from negsample.eval.agreement.significance import MetricsComparison, compare_metrics
from negsample.eval.judgments import Unusable, load_judgments
from negsample.eval.learn.inputs import Inputs, Target, further_metrics, inputs, targets_of, together
from negsample.eval.learn.weights import (
    CurvePoint,
    HeldOut,
    Problem,
    TargetFit,
    best_aspect,
    fit_target,
    held_out,
    learning_curve,
    problem,
)
from negsample.eval.metrics.base import score_judged
from negsample.models.fitted import Fitted
from negsample.records import Judged, document_key
from negsample.resampling import check_resamples
from negsample.scoring.scorer import make_metric
from negsample.text import is_blank, word_count

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator

_TUNE = "tune"
FITTED, OVERALL = "fitted", "fitted score"
_COEFFICIENTS = ("spearman", "pearson")
_ALPHA = 0.05


@dataclass(frozen=True)
class Settings:
    """What was asked for. ``targets`` empty: all human scores; ``every_half``: rows of ``half: report`` are fitted too;
    ``references``: further metrics may read them; ``columns``: as of `load_judgments`.
    """

    judgments: str
    metrics: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    references: bool = False
    every_half: bool = False
    columns: tuple[str, ...] = ()
    confidence: float = 0.9
    bootstrap: int = 1000
    seed: int = 0


@dataclass(frozen=True)
class TargetResult:
    """The human score ``human``, called ``name`` among the aspects. ``level``, ``coefficient``: what it is measured by first.

    ``figures``: the fit on documents that it has not seen (`FITTED`; `OVERALL`: the overall score's), beside the estimator
    as it was, trivial baselines and metrics. ``best``: the aspect that agrees best, with which ``against`` compares the
    fit. ``coverage``: the share of held-out summaries whose interval holds people's score, with its own 95 % interval
    (documents resampled). ``left_out``: reason → rows.
    """

    human: str
    name: str
    level: str
    coefficient: str
    fit: TargetFit
    task: Problem
    figures: tuple[AgreementFigure, ...]
    best: str
    against: MetricsComparison
    coverage: tuple[float, float | None, float | None]
    curve: tuple[CurvePoint, ...]
    left_out: dict[str, int]

    @property
    def better(self) -> bool:
        """Whether the fit agrees better with people than the best aspect, beyond noise (paired permutation, p ≤ 0.05)."""
        p = self.against.p_permutation
        return (self.against.difference or 0.0) > 0 and p is not None and p <= _ALPHA

    def figure(self, metric: str, level: str | None = None) -> AgreementFigure:
        """The headline figure of ``metric`` at ``level`` (by default the first one)."""
        level = level or self.level
        wanted = (metric, level, MAIN_COEFFICIENT[level])
        return next(f for f in self.figures if (f.metric, f.level, f.coefficient) == wanted)


@dataclass(frozen=True)
class FitResult:
    """All of it. ``fitted`` goes into the model folder; ``overall`` is the fit of the overall score."""

    settings: Settings
    fitted: Fitted
    overall: TargetFit
    targets: tuple[TargetResult, ...]
    inputs: Inputs
    notes: tuple[str, ...]


def learn(estimator: "Estimator", settings: Settings) -> FitResult:
    """Fit ``estimator`` to judgments. Raises InputError for whatever is wrong with the settings or the file, before the
    long work where it can be seen.
    """
    check_resamples(settings.bootstrap)
    if not 0.5 <= settings.confidence < 1:
        raise InputError(f"--confidence {settings.confidence}: give a number from 0.5 to below 1")
    further_metrics(settings.metrics, settings.references)
    rows, notes = _rows(settings)
    targets, left_out = targets_of(rows, settings.targets)
    found = inputs(estimator, settings.metrics, rows, references=settings.references)
    return learn_from(rows, targets, found, settings, [*notes, *left_out], estimator.aspects)


def _rows(settings: Settings) -> tuple[list[Judged], list[str]]:
    """The rows that are fitted, and what is to be told of them."""
    unusable = Unusable()
    rows = load_judgments(settings.judgments, unusable, settings.columns)
    notes = unusable.lines()
    if not settings.every_half and any(row.half for row in rows):
        mine = [row for row in rows if row.half == _TUNE]
        if not mine:
            raise InputError(f"{settings.judgments}: no row has half: tune; mark some, or fit all rows with --all")
        notes.append(
            f"fitted on the {len(mine)} of {len(rows)} judged summaries that have half: tune (--all takes all)"
        )
        rows = mine
    blank = [row for row in rows if any(map(is_blank, (row.summary, *row.documents)))]
    if blank:
        notes.append(f"{len(blank)} judged summaries left out: a text is blank (document {blank[0].document_id})")
        rows = [row for row in rows if row not in blank]
    return rows, notes


def learn_from(
    rows: Sequence[Judged],
    targets: Sequence[Target],
    found: Inputs,
    settings: Settings,
    notes: Sequence[str] = (),
    aspects: Sequence[str] = (),
) -> FitResult:
    """Fit ``targets`` to the inputs ``found`` of ``rows``, and measure the fits. A target called like one of ``aspects`` (or
    ``score``) is ``people_NAME``.
    """
    ids = [f"{row.dataset}\0{row.document_id}" for row in rows]
    tasks = [problem(found, target, ids) for target in targets]
    if len(targets) > 1:
        tasks.append(problem(found, together(targets), ids))
    fits = [fit_target(task, settings.confidence) for task in tasks]
    apart = [held_out(task, settings.confidence) for task in tasks]
    columns, missed = _baselines(rows)
    names = list(found.directions)
    # What a fit is held against: the score, the aspects and the metrics.
    places = [*range(found.aspects), *range(len(names) - len(found.metrics), len(names))]
    beside = {names[place]: found.values[:, place] for place in places}
    columns = beside | {name: column for name, column in columns.items() if name not in beside}
    if len(targets) > 1:
        columns = {OVERALL: tasks[-1].over_all(apart[-1].sums, len(rows)), **columns}
    table = make_table(
        rows[0].dataset,
        ids,
        [row.system or None for row in rows],
        {target.name: target.values for target in targets},
        columns,
        [word_count(row.summary) for row in rows],
    )
    results = []
    for target, task, fit, held in zip(targets, tasks, fits, apart, strict=False):
        name = f"people_{target.name}" if target.name in {"score", *aspects} else target.name
        results.append(_measured(table, target.name, name, task, fit, held, found, settings, rows))
        if task.pairs is not None:
            _, _, won, lost, tied = task.compared()
            told = f"{len(won)} pairs, {int((won + lost + tied).sum())} choices, {int(tied.sum())} of them ties (half of each)"
            notes = [*notes, f"{target.name}: fitted to {told}, by the logistic loss of differences"]
    # The fitted score is, over the rows, where the unfitted one was, and spreads as far.
    before, overall = tasks[-1].inputs[:, 0], fits[-1].weights
    spread = float(before.std()) or 1.0
    fitted = Fitted(
        score={name: float(weight) for name, weight in zip(names, spread * overall.raw, strict=True) if weight},
        offset=float(before.mean()) + spread * overall.offset,
        targets={one.name: one.fit.named(one.human, names, settings.confidence) for one in results},
        metrics=found.metrics,
        references=settings.references,
        documents=tuple(sorted({document_key(text) for row in rows for text in row.documents})),
        about={
            "judgments": settings.judgments,
            "datasets": sorted({row.dataset for row in rows}),
            "summaries": len(rows),
            "documents": len(set(ids)),
            "half": "all" if settings.every_half else (_TUNE if any(row.half for row in rows) else "none"),
            "human": [target.name for target in targets],
            "seed": settings.seed,
        },
    )
    return FitResult(settings, fitted, fits[-1], tuple(results), found, (*notes, *missed))


def _baselines(rows: Sequence[Judged]) -> tuple[dict[str, np.ndarray], list[str]]:
    """The trivial baselines that can be had, and which can't."""
    columns, missed = dict[str, np.ndarray](), []
    for spec in TRIVIAL:
        try:
            columns[spec] = score_judged(make_metric(spec), rows).scores
        except InputError as error:
            missed.append(f"the baseline {spec} is not in the table: {error}")
    return columns, missed


def _measured(
    table: ScoreTable,
    human: str,
    name: str,
    task: Problem,
    made: TargetFit,
    held: HeldOut,
    found: Inputs,
    settings: Settings,
    rows: Sequence[Judged],
) -> TargetResult:
    values = table.human[human]
    metrics = {FITTED: task.over_all(held.answers, len(values)), **table.metrics}
    table = replace(table, human={human: values}, metrics=metrics)
    coefficient, options = MAIN_COEFFICIENT[task.level], {"bootstrap": settings.bootstrap, "seed": settings.seed}
    figures = agreement(table, coefficients=_COEFFICIENTS, **options)
    best = list(found.directions)[best_aspect(task)]
    two = replace(table, metrics={one: metrics[one] for one in (FITTED, best)})
    if task.pairs is None:
        (against,) = compare_metrics(two, human, level=task.level, **options)
    else:
        figures += measure_choices(table, rows, **options).figures
        (against,) = measure_choices(two, rows, **options).comparisons
    others = np.setdiff1d(np.arange(len(values)), task.rows)
    missing = "no human score", "an input is missing"
    left_out = Counter((found.reasons[row] or missing[1]) if np.isfinite(values[row]) else missing[0] for row in others)
    return TargetResult(
        human,
        name,
        task.level,
        coefficient,
        made,
        task,
        tuple(figures),
        best,
        against,
        held.coverage(task, settings.seed, settings.bootstrap),
        tuple(learning_curve(task, settings.seed, f"{human}: learning curve")),
        dict(left_out),
    )

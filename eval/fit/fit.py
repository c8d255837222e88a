"""``negsample fit``: an estimator whose score and targets are fitted to people's judgments, and what that is worth."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from negsample.errors import InputError
from negsample.eval.agreement.columns import TRIVIAL
from negsample.eval.agreement.figures import AgreementFigure, agreement
from negsample.eval.agreement.levels import MAIN_COEFFICIENT, ScoreTable, make_table
from negsample.eval.agreement.significance import MetricsComparison, compare_metrics
from negsample.eval.fit.inputs import Inputs, further_metrics, inputs
from negsample.eval.fit.learning_curve import CurvePoint, learning_curve
from negsample.eval.fit.people import People, check, people, shown_name, together
from negsample.eval.fit.target import HeldOut, Problem, TargetFit, fit_target, held_out, problem
from negsample.eval.judgments import Unusable, load_judgments
from negsample.eval.metrics.base import score_judged
from negsample.models.fitted import Fitted, FittedTarget
from negsample.records import Judged, document_key
from negsample.resampling import check_resamples, mean_interval
from negsample.scoring.metrics import make_metric
from negsample.seeds import generator
from negsample.text import word_count

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator

TUNE = "tune"
FITTED, OVERALL, UNFITTED = "fitted", "fitted score", "score"
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
    """One target. ``name``: among the aspects; ``level``, ``coefficient``: what it is measured by first.

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
    people: People
    task: Problem
    held: HeldOut
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
    rows: int
    documents: int
    notes: tuple[str, ...]


def fit(estimator: "Estimator", settings: Settings) -> FitResult:
    """Fit ``estimator`` to judgments. Raises InputError for whatever is wrong with the settings or the file, before the
    long work where it can be seen.
    """
    check_resamples(settings.bootstrap)
    if not 0.5 <= settings.confidence < 1:
        raise InputError(f"--confidence {settings.confidence}: give a number from 0.5 to below 1")
    further_metrics(settings.metrics, settings.references)
    rows, notes = _rows(settings)
    targets, left_out = people(rows, settings.targets)
    notes += left_out
    found = inputs(estimator, settings.metrics, rows, references=settings.references)
    return fit_rows(rows, targets, found, settings, notes, estimator.aspects)


def _rows(settings: Settings) -> tuple[list[Judged], list[str]]:
    """The rows that are fitted, and what is to be told of them."""
    unusable = Unusable()
    rows = load_judgments(settings.judgments, unusable, settings.columns)
    notes = unusable.lines()
    if not settings.every_half and any(row.half for row in rows):
        mine = [row for row in rows if row.half == TUNE]
        if not mine:
            raise InputError(f"{settings.judgments}: no row has half: tune; mark some, or fit all rows with --all")
        notes.append(
            f"fitted on the {len(mine)} of {len(rows)} judged summaries that have half: tune (--all takes all)"
        )
        rows = mine
    blank = [row for row in rows if not row.summary.strip() or any(not text.strip() for text in row.documents)]
    if blank:
        notes.append(f"{len(blank)} judged summaries left out: a text is blank (document {blank[0].document_id})")
        rows = [row for row in rows if row not in blank]
    return rows, notes


def fit_rows(
    rows: Sequence[Judged],
    targets: Sequence[People],
    found: Inputs,
    settings: Settings,
    notes: Sequence[str] = (),
    aspects: Sequence[str] = (),
) -> FitResult:
    """Fit ``targets`` to the inputs ``found`` of ``rows``, and measure the fits."""
    ids = [f"{row.dataset}\0{row.document_id}" for row in rows]
    logits = range(found.logits)

    def task(target: People) -> Problem:
        whole = np.isfinite(found.values).all(axis=1)
        check(target.name, np.where(whole, target.values, np.nan), ids)
        return problem(found.values, target.values, target.weights, ids, found.own, logits)

    tasks = [task(target) for target in targets]
    both = together(targets)
    everything = tasks[0] if len(targets) == 1 else task(both)
    seed, confidence = settings.seed, settings.confidence
    fits = [fit_target(each, np.arange(each.data.documents), seed, confidence=confidence) for each in tasks]
    overall = (
        fits[0]
        if len(targets) == 1
        else fit_target(everything, np.arange(everything.data.documents), seed, confidence=confidence)
    )
    apart = [held_out(each, seed, confidence=confidence) for each in tasks]
    apart_overall = apart[0] if len(targets) == 1 else held_out(everything, seed, confidence=confidence)
    beside, more = _baselines(rows, settings)
    columns = _columns(found, beside)
    if len(targets) > 1:
        columns = {OVERALL: _spread_out(apart_overall.sums, everything, len(rows)), **columns}
    results = []
    for target, each, made, held in zip(targets, tasks, fits, apart, strict=True):
        scores = {FITTED: _spread_out(held.answers, each, len(rows)), **columns}
        table = make_table(
            rows[0].dataset,
            ids,
            [row.system or None for row in rows],
            {target.name: target.values},
            scores,
            [word_count(row.summary) for row in rows],
        )
        results.append(_measured(target, each, made, held, table, found, settings, aspects))
    names = [entry.name for entry in results]
    fitted = Fitted(
        score=_named(overall.weights.raw * _as_logit(overall, everything), found),
        offset=_logit_offset(overall, everything),
        targets={
            name: FittedTarget(
                target.name,
                _named(made.weights.raw, found),
                made.weights.offset,
                made.calibration.knots,
                made.calibration.half_width,
                confidence,
            )
            for name, target, made in zip(names, targets, fits, strict=True)
        },
        metrics=found.metrics,
        references=settings.references,
        documents=tuple(sorted({document_key(text) for row in rows for text in row.documents})),
        about=_about(rows, targets, settings),
    )
    return FitResult(settings, fitted, overall, tuple(results), found, len(rows), len(set(ids)), (*notes, *more))


def _spread_out(values: np.ndarray, task: Problem, count: int) -> np.ndarray:
    """``values`` of the task's rows as a column over all rows, NaN elsewhere."""
    column = np.full(count, np.nan)
    column[task.rows] = values
    return column


def _columns(found: Inputs, beside: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the fit is measured beside: the score and the aspects as they were, the metrics, the trivial baselines."""
    names = list(found.directions)
    places = [*range(found.logits), *range(len(names) - len(found.metrics), len(names))]
    own = {names[place]: found.values[:, place] for place in places}
    return own | {name: column for name, column in beside.items() if name not in own}


def _baselines(rows: Sequence[Judged], settings: Settings) -> tuple[dict[str, np.ndarray], list[str]]:
    """The trivial baselines that can be had, and which can't."""
    columns, missed = {}, []
    for spec in TRIVIAL:
        try:
            columns[spec] = score_judged(make_metric(spec), rows).scores
        except InputError as error:
            missed.append(f"the baseline {spec} is not in the table: {error}")
    return columns, missed


def _measured(
    target: People,
    task: Problem,
    made: TargetFit,
    held: HeldOut,
    table: ScoreTable,
    found: Inputs,
    settings: Settings,
    aspects: Sequence[str],
) -> TargetResult:
    level = "summary" if task.data.within else "pooled"
    coefficient = MAIN_COEFFICIENT[level]
    figures = agreement(table, coefficients=_COEFFICIENTS, bootstrap=settings.bootstrap, seed=settings.seed)
    values = {f.metric: f.value for f in figures if (f.level, f.coefficient) == (level, coefficient)}
    own = list(found.directions)[: found.logits]
    best = max(own, key=lambda name: -2.0 if values[name] is None else float(values[name] or 0.0))
    (against,) = compare_metrics(
        replace(table, metrics={name: table.metrics[name] for name in (FITTED, best)}),
        target.name,
        level=level,
        bootstrap=settings.bootstrap,
        seed=settings.seed,
    )
    missing = np.flatnonzero(~np.isfinite(target.values))
    undefined = np.setdiff1d(np.flatnonzero(np.isfinite(target.values)), task.rows)
    left_out = {"no human score": len(missing)} if len(missing) else {}
    for row in undefined:
        reason = found.reasons[row] or "an input is missing"
        left_out[reason] = left_out.get(reason, 0) + 1
    return TargetResult(
        target.name,
        shown_name(target.name, dict.fromkeys(["score", *aspects])),
        level,
        coefficient,
        made,
        target,
        task,
        held,
        tuple(figures),
        best,
        against,
        _coverage(task, held, settings),
        tuple(learning_curve(task, settings.seed, label=f"{target.name}: learning curve")),
        left_out,
    )


def _coverage(task: Problem, held: HeldOut, settings: Settings) -> tuple[float, float | None, float | None]:
    inside = held.covered(task.people)
    per, all_of = np.bincount(task.documents, weights=inside), np.bincount(task.documents)
    low, high = mean_interval(per, generator(settings.seed, "coverage"), settings.bootstrap, all_of)
    return float(inside.mean()), low, high


def _as_logit(made: TargetFit, task: Problem) -> float:
    """What the sum is multiplied by, so that the fitted score spreads over the rows as the unfitted one."""
    spread = made.weights.sums(task.inputs).std()
    return float(task.inputs[:, task.data.aspects[0]].std() / spread) if spread > 1e-9 else 1.0


def _logit_offset(made: TargetFit, task: Problem) -> float:
    sums = made.weights.sums(task.inputs)
    scale = _as_logit(made, task)
    return float(task.inputs[:, task.data.aspects[0]].mean() - scale * (sums.mean() - made.weights.offset))


def _named(weights: np.ndarray, found: Inputs) -> dict[str, float]:
    return {name: float(weight) for name, weight in zip(found.directions, weights, strict=True) if weight}


def _about(rows: Sequence[Judged], targets: Sequence[People], settings: Settings) -> dict[str, Any]:
    return {
        "judgments": settings.judgments,
        "datasets": sorted({row.dataset for row in rows}),
        "summaries": len(rows),
        "documents": len({(row.dataset, row.document_id) for row in rows}),
        "half": "all" if settings.every_half else (TUNE if any(row.half for row in rows) else "none"),
        "human": [target.name for target in targets],
        "seed": settings.seed,
    }

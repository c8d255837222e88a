"""A fit to people's judgments: its page, the plain values of fit.json and fit.csv, and the model card."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from negsample.eval.agreement.columns import TRIVIAL
from negsample.eval.agreement.levels import LEVELS, MAIN_COEFFICIENT, SYMBOLS, level_title
from negsample.eval.judgments import parted
from negsample.eval.learn import FITTED, OVERALL, FitResult, TargetResult
from negsample.eval.metrics.learned import PresetResult
from negsample.eval.report import plots, render, write_files
from negsample.io.files import new_folder
from negsample.io.run_record import Stopwatch, fingerprints, write_run
from negsample.terminal import interval, number, p_text

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator

CSV_COLUMNS = tuple("target metric level coefficient value low high p n documents systems given_length".split())
# A weight below this moves the answer by less than is worth a word.
_SHOWN = 0.02
# Loss of agreement that counts as none when it is told how many judgments are enough.
_ENOUGH = 0.01
CURVES = ("fitted", "the overall score as it was", "the aspect that is best on those fitted")


def write_fit(result: FitResult, estimator: "Estimator", base: str, out: str, watch: Stopwatch) -> bool:
    """Write the model folder ``out``: the estimator (which came from ``base``) with its fit, ``fit/`` with ``report.html``,
    ``fit.json`` and ``fit.csv``, and ``run.json``.
    """
    from negsample.models.fitted import save_fitted
    from negsample.models.language.model_files import called

    plain = fit_json(result)
    rows = ({"target": target.human, **asdict(f)} for target in result.targets for f in target.figures)
    table = ([{name: row[name] for name in CSV_COLUMNS} for row in rows], CSV_COLUMNS)
    with new_folder(out) as folder:
        (folder / "fit").mkdir()
        save_fitted(estimator, result.fitted, folder, fit_card(Path(out).name, result, called(base)))
        whole = write_files(
            folder / "fit", {"fit.json": plain, "fit.csv": table, "report.html": partial(fit_page, result)}
        )
        write_run(
            folder / "run.json",
            watch,
            device=str(estimator.device),
            config=plain["settings"],
            seed=result.settings.seed,
            data=fingerprints([parted(result.settings.judgments)[1]]),
            fitted=dict(result.fitted.about) | {"document_keys": list(result.fitted.documents)},
            base={"model": base, "signature": estimator.signature},
            signatures={metric.name: metric.signature for metric in result.fitted.metrics},
        )
    return whole


def write_preset(result: PresetResult, out: str, watch: Stopwatch, judgments: str, seed: int) -> None:
    """Write ``learned.json`` (``--metric learned:OUT/learned.json``), ``table.csv`` and ``run.json`` in the folder ``out``."""
    rows = [{"columns": name, **asdict(held)} for name, held in result.table.items()]
    with new_folder(out) as folder:
        result.learned.save(folder / "learned.json")
        write_files(folder, {"table.csv": (rows, ("columns", "mean", "sd", "splits", "undefined"))})
        data = fingerprints([parted(judgments)[1]])
        write_run(folder / "run.json", watch, seed=seed, data=data, learned=asdict(result.learned))


def fit_json(result: FitResult) -> dict[str, Any]:
    """Return everything but texts and scores, as JSON takes it."""
    return {
        "settings": asdict(result.settings),
        "summaries": result.fitted.about["summaries"],
        "documents": result.fitted.about["documents"],
        "notes": list(result.notes),
        "overall": {"weights": weights(result, result.overall.weights), "strength": result.overall.weights.strength},
        "targets": [
            {
                **{name: getattr(target, name) for name in ("human", "name", "level", "coefficient", "left_out")},
                "verdict": verdict(target),
                "recommended": target.name if target.better else target.best,
                "weights": weights(result, target.fit.weights),
                "strength": target.fit.weights.strength,
                "half_width": target.fit.half_width,
                "coverage": dict(zip(("value", "low", "high"), target.coverage, strict=True)),
                "against_best_aspect": asdict(target.against),
                "learning_curve": [asdict(point) for point in target.curve],
                "figures": [asdict(figure) for figure in target.figures],
            }
            for target in result.targets
        ],
    }


def weights(result: FitResult, found: Any) -> dict[str, float]:
    """Input → how many spreads of the answer one spread of the input moves it; below 0 where more of it is worse. Largest
    first.
    """
    values, directions = result.inputs.values, result.inputs.directions
    moves = found.raw * values[np.isfinite(values).all(axis=1)].std(axis=0) * list(directions.values())
    moved = dict(zip(directions, moves.tolist(), strict=True))
    return {name: moved[name] for name in sorted(moved, key=lambda name: -abs(moved[name])) if moved[name]}


def in_words(moved: dict[str, float]) -> str:
    """The weights in one line, the smallest left out: ``"coverage ×0.81, repeated_pairs ×−0.14"``."""
    shown = [f"{name} ×{number(value, 2)}" for name, value in moved.items() if abs(value) >= _SHOWN]
    more = len(moved) - len(shown)
    return ", ".join(shown) + (f", and {more} below ×{_SHOWN}" if more else "")


def verdict(target: TargetResult) -> str:
    """Whether the fit is worth having beside the best aspect, and which trivial baselines are better, in two sentences."""
    against = target.against
    symbol = SYMBOLS[target.coefficient]
    if against.difference is None:
        return f"The fit could not be compared with {target.best}: {against.reason}; use {target.best}."
    span = f" ({interval(against.low, against.high, sign=True)})" if against.low is not None else ""
    told = (
        f"{symbol} {number(against.value_first)} against {number(against.value_second)}, difference "
        f"{number(against.difference, sign=True)}{span}, p {p_text(against.p_permutation)}"
    )
    beside = f"{target.best}, the best of the score and aspects that it was fitted from, beyond noise"
    used, name = (FITTED, "the fit") if target.better else (target.best, target.best)
    trivial = [target.figure(baseline) for baseline in ranked(target) if baseline in TRIVIAL]
    higher = [f for f in trivial if f.value is not None and f.value > (target.figure(used).value or 0.0)]
    told_higher = ", ".join(f"{f.metric} {number(f.value)}" for f in higher)
    more = f" Trivial baselines are above {name}: {told_higher}." if higher else ""
    if target.better:
        return f"Better than {beside}: {told}.{more}"
    return f"Not better than {beside} ({told}): use {target.best}.{more}"


def enough(target: TargetResult) -> str:
    """How many judged documents are enough, in one sentence."""
    if not target.curve:
        return "Too few documents for a learning curve."
    last = target.curve[-1]
    point = next(p for p in target.curve if p.mean >= last.mean - _ENOUGH)
    if point is last and len(target.curve) > 1:
        return f"The curve still rises at {last.documents} documents ({last.summaries:.0f} summaries): more judgments would help."
    few = f"{point.documents} documents ({point.summaries:.0f} judged summaries)"
    return f"{few} come within {_ENOUGH} of what {last.documents} give."


def fit_page(result: FitResult) -> str:
    """Return the page, as HTML."""
    return render(
        "learn.html.j2",
        result=result,
        curves=CURVES,
        percent=f"{100 * result.settings.confidence:g} %",
        overall=in_words(weights(result, result.overall.weights)),
        targets=[_target(result, target) for target in result.targets],
    )


def _target(result: FitResult, target: TargetResult) -> dict[str, Any]:
    valued = {f.level for f in target.figures if f.value is not None}
    levels = [level for level in (*LEVELS, "choice") if level in valued]
    levels.sort(key=lambda level: level != target.level)
    tags = {FITTED: "cross-validated", OVERALL: "cross-validated"} | dict.fromkeys(TRIVIAL, "baseline")
    plot = None
    if len(target.curve) > 1:
        # The curve of the fit has a band of one standard deviation; the others stand beside it.
        spots = [[(p.documents, p.mean, p.mean - p.sd, p.mean + p.sd) for p in target.curve]]
        spots += [[(p.documents, *[getattr(p, own)] * 3) for p in target.curve] for own in ("unfitted", "aspect")]
        curves = list(zip(CURVES, spots, strict=True))
        told = f"Agreement with {target.human} on documents left out, by the number of judged documents"
        plot = plots.curve_plot(curves, (-1.0, 1.0), "judged documents", level_title(target.level), told)
    return {
        "about": target,
        "verdict": verdict(target),
        "enough": enough(target),
        "words": in_words(weights(result, target.fit.weights)),
        "levels": [(level, level_title(level)) for level in levels],
        "lines": [
            {"name": name, "tag": tags.get(name, ""), "figures": [target.figure(name, level) for level in levels]}
            for name in ranked(target)
        ],
        "plot": plot,
    }


def ranked(target: TargetResult) -> list[str]:
    """The rows of a target's table, best first."""
    values = {f.metric: target.figure(f.metric).value for f in target.figures}
    return sorted(values, key=lambda name: 2.0 if (value := values[name]) is None else -value)


def fit_card(name: str, result: FitResult, base: str) -> str:
    """The model card, as Markdown."""
    targets = [
        f"`{target.name}` (people's {target.human}): {target.level}-level {MAIN_COEFFICIENT[target.level]} "
        f"{number(target.figure(FITTED).value)} on documents left out; "
        f"{result.settings.confidence:.0%} intervals held {target.coverage[0]:.0%}. {verdict(target)}"
        for target in result.targets
    ]
    overall = in_words(weights(result, result.overall.weights))
    about = result.fitted.about
    return render("learn_card.md.j2", name=name, base=base, about=about, targets=targets, overall=overall)

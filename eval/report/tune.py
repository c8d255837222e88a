"""The page of a search: the best settings, optuna's plots as pictures inside the page, every trial."""

import base64
import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from negsample.eval.report.html import render

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

# Parameters drawn in one plot; more would be too small to read.
_DRAWN = 8
_INCHES = (7.5, 4.2)


@dataclass(frozen=True)
class Picture:
    """A plot: ``source`` is a ``data:`` address, ``caption`` says what it shows."""

    title: str
    caption: str
    source: str


def tune_page(found: Mapping[str, Any], trials: Sequence["FrozenTrial"], command: Sequence[str]) -> str:
    """The page, as HTML. ``found``: the content of ``study.json``; ``trials``: the attempt of each trial that counts."""
    names = list(dict.fromkeys(name for trial in found["trials"] for name in trial["parameters"]))
    sign = -1 if found["direction"] == "maximise" else 1
    finished = [trial for trial in found["trials"] if trial["value"] is not None]
    rows = sorted(finished, key=lambda trial: (sign * trial["value"], trial["trial"]))
    rows += [trial for trial in found["trials"] if trial["value"] is None]
    # The whole title is too long for an axis.
    objective = found["search"]["objective"]
    label = objective.replace("_", " ") if isinstance(objective, str) else "agreement"
    pictures, missing = study_pictures(trials, maximised=sign < 0, objective=label)
    return render(
        "tune.html.j2", command, found=found, names=names, rows=rows, pictures=pictures, missing=missing, text=_text
    )


def _text(value: Any) -> str:
    """A parameter's or figure's value; numbers to four significant digits."""
    if value is None:
        return "–"
    return f"{value:.4g}".replace("-", "−") if isinstance(value, float) else str(value)


def study_pictures(
    trials: Sequence["FrozenTrial"], *, maximised: bool, objective: str
) -> tuple[list[Picture], list[str]]:
    """Optuna's plots of a study, and a line for each that can't be drawn."""
    import matplotlib
    import optuna

    # The plots of optuna go through pyplot, which would look for a screen.
    matplotlib.use("agg")
    with warnings.catch_warnings():
        # Optuna calls its plots experimental.
        warnings.simplefilter("ignore")
        study = _copy(trials, maximised)
        pictures, missing = [], []
        for title, caption, draw in _plots(study, objective):
            try:
                pictures.append(Picture(title, caption, _picture(draw)))
            except (ValueError, RuntimeError, ZeroDivisionError) as error:
                missing.append(f"{title}: {' '.join(str(error).split()) or type(error).__name__}")
    optuna.logging.enable_default_handler()
    return pictures, missing


def _copy(trials: Sequence["FrozenTrial"], maximised: bool) -> "Study":
    """A study of these trials alone, in memory, with the losses that were reported negated given their own sign."""
    import optuna

    optuna.logging.disable_default_handler()
    study = optuna.create_study(direction="maximize" if maximised else "minimize")
    for trial in trials:
        values = {step: -value if maximised else value for step, value in trial.intermediate_values.items()}
        copied = optuna.create_trial(
            state=trial.state,
            value=trial.value,
            params=trial.params,
            distributions=trial.distributions,
            intermediate_values=values,
        )
        copied.datetime_start, copied.datetime_complete = trial.datetime_start, trial.datetime_complete
        study.add_trial(copied)
    return study


def _plots(study: "Study", objective: str) -> list[tuple[str, str, Any]]:
    """Title, caption and function of each plot that the study has the trials for."""
    import optuna
    from optuna.trial import TrialState
    from optuna.visualization import matplotlib as draw

    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if not complete:
        return []
    varied: dict[str, set[Any]] = {}
    for trial in complete:
        for name, value in trial.params.items():
            varied.setdefault(name, set()).add(value)
    names = [name for name, values in varied.items() if len(values) > 1][:_DRAWN]
    plots: list[tuple[str, str, Any]] = [
        (
            "History",
            "The value of each completed trial, and the best so far.",
            lambda: draw.plot_optimization_history(study, target_name=objective),
        )
    ]
    if len(complete) > 1 and names:
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        plots += [
            (
                "Importance",
                "How much of the variation of the value each parameter explains (fANOVA), among parameters that every "
                "trial has; a guide where trials are few.",
                lambda: draw.plot_param_importances(study, evaluator=evaluator, target_name="importance"),
            ),
            (
                "Slices",
                "The value against each parameter.",
                lambda: draw.plot_slice(study, params=names, target_name=objective),
            ),
            (
                "Parallel coordinates",
                "Each completed trial as a line through its parameters.",
                lambda: draw.plot_parallel_coordinate(study, params=names, target_name=objective),
            ),
        ]
    if any(trial.intermediate_values for trial in study.get_trials(deepcopy=False)):
        plots.append(
            (
                "Epochs",
                "Validation loss by epoch; a line that ends early is a trial that was pruned, or stopped by itself.",
                lambda: draw.plot_intermediate_values(study),
            )
        )
    plots.append(("Time line", "When each trial ran.", lambda: draw.plot_timeline(study)))
    return plots


def _picture(draw: Any) -> str:
    """The drawing as a ``data:`` address; SVG with its text as text."""
    import matplotlib
    from matplotlib import pyplot

    with matplotlib.rc_context({"svg.hashsalt": "negsample", "svg.fonttype": "none"}):
        try:
            axes = draw()
            figure = axes.figure if hasattr(axes, "figure") else axes.flat[0].figure
            width = max(_INCHES[0], 2.1 * (axes.size if hasattr(axes, "size") else 1))
            figure.set_size_inches(width, _INCHES[1])
            stream = io.BytesIO()
            figure.savefig(stream, format="svg", bbox_inches="tight", metadata={"Date": None})
        finally:
            pyplot.close("all")
    return "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode("ascii")

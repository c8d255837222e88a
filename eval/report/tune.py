"""The page of a search: the best settings, optuna's plots as pictures inside the page, every trial."""

import base64
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from negsample.eval.report import plots
from negsample.eval.report.page import render

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

# Parameters drawn in one plot; more would be too small to read.
_DRAWN = 8
_INCHES = (7.5, 4.2)


def tune_page(found: Mapping[str, Any], trials: Sequence["FrozenTrial"], command: Sequence[str]) -> str:
    """Return the page, as HTML.

    ``found``: the content of ``study.json``; ``trials``: the attempt of each trial that counts.
    """
    names = list(dict.fromkeys(name for trial in found["trials"] for name in trial["parameters"]))
    maximised = found["direction"] == "maximise"
    finished = [trial for trial in found["trials"] if trial["value"] is not None]
    rows = sorted(finished, key=lambda trial: (-trial["value"] if maximised else trial["value"], trial["trial"]))
    rows += [trial for trial in found["trials"] if trial["value"] is None]
    # The whole title is too long for an axis.
    objective = found["search"]["objective"]
    label = objective.replace("_", " ") if isinstance(objective, str) else "agreement"
    pictures, missing = study_pictures(trials, maximised=maximised, objective=label)
    return render("tune.html.j2", command, found=found, names=names, rows=rows, pictures=pictures, missing=missing)


def study_pictures(
    trials: Sequence["FrozenTrial"], *, maximised: bool, objective: str
) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Return optuna's plots of a study, as (title, what it shows, ``data:`` address), and a line for each that can't be
    drawn.
    """
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
                pictures.append((title, caption, _address(draw)))
            except (ValueError, RuntimeError, ZeroDivisionError) as error:
                missing.append(f"{title}: {' '.join(str(error).split()) or type(error).__name__}")
    optuna.logging.enable_default_handler()
    return pictures, missing


def _copy(trials: Sequence["FrozenTrial"], maximised: bool) -> "Study":
    """A study of these trials alone, in memory, with the losses that were reported negated given their own sign."""
    import optuna

    optuna.logging.disable_default_handler()
    study = optuna.create_study(direction="maximize" if maximised else "minimize")
    for trial in map(copy, trials):
        if maximised:
            trial.intermediate_values = {step: -value for step, value in trial.intermediate_values.items()}
        study.add_trial(trial)
    return study


def _plots(study: "Study", objective: str) -> list[tuple[str, str, Callable[[], Any]]]:
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
    found: list[tuple[str, str, Callable[[], Any]]] = [
        (
            "History",
            "The value of each completed trial, and the best so far.",
            lambda: draw.plot_optimization_history(study, target_name=objective),
        )
    ]
    if len(complete) > 1 and names:
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        found += [
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
        found.append(
            (
                "Epochs",
                "Validation loss by epoch; a line that ends early is a trial that was pruned, or stopped by itself.",
                lambda: draw.plot_intermediate_values(study),
            )
        )
    found.append(("Time line", "When each trial ran.", lambda: draw.plot_timeline(study)))
    return found


def _address(draw: Callable[[], Any]) -> str:
    """The drawing as a ``data:`` address; SVG with its text as text."""
    import numpy as np
    from matplotlib import pyplot
    from matplotlib.ticker import NullFormatter

    with plots.style({}):
        try:
            drawn = np.atleast_1d(draw())
            figure = drawn[0].figure
            for axes in drawn:
                # Beside one another the axes have room for the powers of ten alone.
                if len(drawn) > 1:
                    axes.xaxis.set_minor_formatter(NullFormatter())
            figure.set_size_inches(max(_INCHES[0], 2.6 * len(drawn)), _INCHES[1])
            svg = plots.picture(figure, bbox_inches="tight")
        finally:
            pyplot.close("all")
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")

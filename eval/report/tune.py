"""The page of a search: the best settings, optuna's plots as pictures inside the page, every trial."""

import base64
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
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
    sign = -1 if found["direction"] == "maximise" else 1
    order = [(trial["value"] is None, sign * (trial["value"] or 0), trial["trial"]) for trial in found["trials"]]
    rows = [trial for _, trial in sorted(zip(order, found["trials"], strict=True), key=lambda pair: pair[0])]
    # The whole title is too long for an axis.
    objective = found["search"]["objective"]
    label = objective.replace("_", " ") if isinstance(objective, str) else "agreement"
    pictures, missing = study_pictures(trials, maximised=sign < 0, objective=label)
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
    optuna.logging.disable_default_handler()
    study = optuna.create_study(direction="maximize" if maximised else "minimize")
    for trial in map(copy, trials):
        if maximised:
            # Losses were reported negated.
            trial.intermediate_values = {step: -value for step, value in trial.intermediate_values.items()}
        study.add_trial(trial)
    pictures, missing = [], []
    with warnings.catch_warnings():
        # Optuna calls its plots experimental.
        warnings.simplefilter("ignore")
        for title, caption, draw in _plots(study, objective):
            try:
                pictures.append((title, caption, _address(draw)))
            except (ValueError, RuntimeError, ZeroDivisionError) as error:
                missing.append(f"{title}: {' '.join(str(error).split()) or type(error).__name__}")
    optuna.logging.enable_default_handler()
    return pictures, missing


def _plots(study: "Study", objective: str) -> list[tuple[str, str, Callable[[], Any]]]:
    """Title, caption and function of each plot that the study has the trials for."""
    from optuna.importance import FanovaImportanceEvaluator
    from optuna.trial import TrialState
    from optuna.visualization import matplotlib as draw

    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if not complete:
        return []
    every = [name for trial in complete for name in trial.params]
    varied = [name for name in dict.fromkeys(every) if len({trial.params.get(name) for trial in complete}) > 1]
    several, names = len(complete) > 1 and varied, varied[:_DRAWN]
    importance = partial(
        draw.plot_param_importances, study, evaluator=FanovaImportanceEvaluator(seed=0), target_name="importance"
    )
    epochs = any(trial.intermediate_values for trial in study.get_trials(deepcopy=False))
    every_plot = [
        (
            True,
            "History",
            "The value of each completed trial, and the best so far.",
            partial(draw.plot_optimization_history, study, target_name=objective),
        ),
        (
            several,
            "Importance",
            "How much of the variation of the value each parameter explains (fANOVA), among parameters that every trial "
            "has; a guide where trials are few.",
            importance,
        ),
        (
            several,
            "Slices",
            "The value against each parameter.",
            partial(draw.plot_slice, study, params=names, target_name=objective),
        ),
        (
            several,
            "Parallel coordinates",
            "Each completed trial as a line through its parameters.",
            partial(draw.plot_parallel_coordinate, study, params=names, target_name=objective),
        ),
        (
            epochs,
            "Epochs",
            "Validation loss by epoch; a line that ends early is a trial that was pruned, or stopped by itself.",
            partial(draw.plot_intermediate_values, study),
        ),
        (True, "Time line", "When each trial ran.", partial(draw.plot_timeline, study)),
    ]
    return [(title, caption, function) for wanted, title, caption, function in every_plot if wanted]


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

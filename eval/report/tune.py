"""The page of a search: the best settings, optuna's plots as pictures inside the page, every trial."""

import base64
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from negsample.eval.report import plots, render

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

# Parameters drawn in one plot; more would be too small to read.
_DRAWN = 8
_INCHES = (7.5, 4.2)
# Optuna's plots: name, title, what it shows.
_PLOTS = (
    ("optimization_history", "History", "The value of each completed trial, and the best so far."),
    (
        "param_importances",
        "Importance",
        "How much of the variation of the value each parameter explains (fANOVA), among parameters that every trial has; a "
        "guide where trials are few.",
    ),
    ("slice", "Slices", "The value against each parameter."),
    ("parallel_coordinate", "Parallel coordinates", "Each completed trial as a line through its parameters."),
    (
        "intermediate_values",
        "Epochs",
        "Validation loss by epoch; a line that ends early is a trial that was pruned, or stopped by itself.",
    ),
    ("timeline", "Time line", "When each trial ran."),
)


def tune_page(found: Mapping[str, Any], trials: Sequence["FrozenTrial"]) -> str:
    """Return the page, as HTML.

    ``found``: the content of ``study.json``; ``trials``: the attempt of each trial that counts.
    """
    names = list(dict.fromkeys(name for trial in found["trials"] for name in trial["parameters"]))
    sign = -1 if found["direction"] == "maximise" else 1
    rows = sorted(found["trials"], key=lambda one: (one["value"] is None, sign * (one["value"] or 0), one["trial"]))
    # The whole title is too long for an axis.
    objective = found["search"]["objective"]
    label = objective.replace("_", " ") if isinstance(objective, str) else "agreement"
    pictures, missing = study_pictures(trials, maximised=sign < 0, objective=label)
    return render("tune.html.j2", found=found, names=names, rows=rows, pictures=pictures, missing=missing)


def study_pictures(
    trials: Sequence["FrozenTrial"], *, maximised: bool, objective: str
) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Return optuna's plots of a study, as (title, what it shows, ``data:`` address), and a line for each that can't be
    drawn.
    """
    import matplotlib
    import optuna
    from optuna.visualization import matplotlib as draw

    # The plots of optuna go through pyplot, which would look for a screen.
    matplotlib.use("agg")
    optuna.logging.disable_default_handler()
    study = optuna.create_study(direction="maximize" if maximised else "minimize")
    for trial in map(copy, trials):
        if maximised:
            # Losses were reported negated.
            trial.intermediate_values = {step: -value for step, value in trial.intermediate_values.items()}
        study.add_trial(trial)
    complete = [trial for trial in trials if trial.state == optuna.trial.TrialState.COMPLETE]
    names = dict.fromkeys(name for trial in complete for name in trial.params)
    varied = [name for name in names if len({trial.params.get(name) for trial in complete}) > 1]
    options: dict[str, dict[str, Any]] = {"optimization_history": {"target_name": objective}, "timeline": {}}
    if len(complete) > 1 and varied:
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        options["param_importances"] = {"evaluator": evaluator, "target_name": "importance"}
        for name in ("slice", "parallel_coordinate"):
            options[name] = {"params": varied[:_DRAWN], "target_name": objective}
    if any(trial.intermediate_values for trial in trials):
        options["intermediate_values"] = {}
    pictures, missing = [], []
    with warnings.catch_warnings():
        # Optuna calls its plots experimental.
        warnings.simplefilter("ignore")
        for name, title, caption in _PLOTS if complete else ():
            if name not in options:
                continue
            function = partial(getattr(draw, f"plot_{name}"), study, **options[name])
            try:
                pictures.append((title, caption, _address(function)))
            except (ValueError, RuntimeError, ZeroDivisionError) as error:
                missing.append(f"{title}: {' '.join(str(error).split()) or type(error).__name__}")
    optuna.logging.enable_default_handler()
    return pictures, missing


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

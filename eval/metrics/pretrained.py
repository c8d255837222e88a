"""Options of the metrics that use a transformers model with a trained head."""

from negsample.errors import InputError
from negsample.eval.metrics.base import number
from negsample.models.language.head_models import HeadModel


def pick_window(model: HeadModel, window: int | str, smallest: int) -> int:
    """Tokens read at a time: the model's longest input, or ``window`` if not 0; InputError outside the range."""
    asked = number("window", window, 0, 10**9) or model.window
    if not smallest <= asked <= model.window:
        raise InputError(f"option window={asked}: this model reads {smallest} to {model.window} tokens at a time")
    return asked


def need_model(metric: str, model: str, task: str) -> str:
    """``model``; InputError where it is blank, for no weights of this kind come with the package."""
    if not model:
        raise InputError(f"metric {metric!r} needs {task}: give {metric}(model=FOLDER) or a hub id (none is packaged)")
    return model

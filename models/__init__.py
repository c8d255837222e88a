"""Networks and encoders: features in, scores out. ``load`` makes of a folder or a name whatever scores."""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator


def load(model: str | Path | None = None, device: str | None = None, precision: str = "float32") -> "Estimator":
    """The estimator in the folder ``model``, or ``org/name[@revision]`` of the hub, on ``device`` ("cpu", "cuda:1", …; a GPU
    where there is one), whether or not it was fitted to people's scores. No network access for a folder; no pickle.

    Without ``model``, or for ``"ready"``, it is the ready one (``negsample.models.ready``). ``precision``: ``"bf16"`` lets
    the pretrained networks (encoder, judge, the network of ``cls``) compute in bfloat16, which moves scores a little; a
    language model stays at its own. Raises InputError where the folder is damaged, newer than this code, or of another
    kind, where the hub has no such model, and for ``"bf16"`` where the device has no instructions for it.
    """
    from negsample.models.estimator import Estimator
    from negsample.models.folder import PERCENTILES, load_folder, read_percentiles
    from negsample.models.hub import model_path
    from negsample.models.language.networks import pick_device
    from negsample.models.precision import check_precision

    check_precision(precision, pick_device(device))
    if model is None or (str(model) == "ready" and not Path(model).exists()):
        from negsample.models import ready

        return Estimator(*ready.ready_parts(precision), device, precision, read_percentiles(ready.PERCENTILES), "ready")
    folder = Path(model).expanduser()
    if not folder.exists():
        folder = model_path(model)
    parts, description = load_folder(folder, precision)
    kind = Estimator
    if "fitted" in description:
        from negsample.models.fitted import FittedEstimator

        kind = FittedEstimator
    return kind(parts, description, device, precision, read_percentiles(folder / PERCENTILES), str(folder.resolve()))


@lru_cache(maxsize=4)
def load_once(model: str | None = None, precision: str = "float32") -> "Estimator":
    """As ``load``, once in a process: for what asks for the same model again and again."""
    return load(model, precision=precision)

"""What a language model says of a summary's fluency, for the aspect *form* (optional: no such model is packaged)."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.models.language.language_models import SMALLEST_WINDOW, LanguageModel, lm_kind, load_lm
from negsample.models.language.model_files import copy_model, model_folder

_REMEMBERED = 8192
# Nats a token; a smaller spread would be that of texts that are nearly the same, and blow up every other mark.
_LEAST_SPREAD = 0.1


class Fluency:
    """Marks of texts under a language model: the mean log probability of a token, on the scale of real text.

    ``source``: the folder that ``lm`` was read from. ``centre`` and ``scale``, in nats a token: what ``calibrate`` found
    over real texts.
    """

    def __init__(self, lm: LanguageModel, source: Path, centre: float = 0.0, scale: float = 1.0) -> None:
        self.lm, self.source, self.centre, self.scale = lm, source, centre, scale
        self._known: OrderedDict[str, float] = OrderedDict()

    def means(self, texts: Sequence[str]) -> np.ndarray:
        """Mean log probability of a token of each text, white space folded: float64 [n], NaN where no token is predicted.

        Raises InputError where the language model answers with something that is no number.
        """
        texts = [" ".join(text.split()) for text in texts]
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        for text, losses in zip(new, self.lm.losses(new), strict=True):
            if not np.isfinite(losses).all():
                raise InputError(f"{self.source}: this language model's answers are no numbers; take another for lm")
            self._known[text] = -float(losses.mean()) if losses.size else np.nan
        found = np.array([self._known[text] for text in texts], np.float64)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found

    def marks(self, texts: Sequence[str]) -> np.ndarray:
        """``means`` on the scale of real text, float32 [n]; 0, the mark of ordinary text, where nothing is predicted."""
        return np.nan_to_num((self.means(texts) - self.centre) / self.scale).astype(np.float32)

    def calibrate(self, texts: Sequence[str]) -> None:
        """Take the mean and spread over ``texts``, those with a token, as the centre and the scale of marks.

        Of one text the mean alone is taken: the scale stays one nat.
        """
        means = self.means(texts)
        means = means[np.isfinite(means)]
        if means.size:
            self.centre = float(means.mean())
        if means.size > 1:
            self.scale = max(float(means.std()), _LEAST_SPREAD)

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the language model and its tokenizer into ``folder``; returns what ``load_fluency`` needs."""
        copy_model(self.source, folder)
        return {
            "kind": self.lm.kind,
            "fingerprint": self.lm.head.fingerprint,
            "centre": self.centre,
            "scale": self.scale,
        }


def new_fluency(model: str) -> Fluency:
    """Fluency under the masked or causal language model ``model``, a folder or hub id, not yet calibrated.

    Raises InputError where it is no language model, cannot be loaded, or reads fewer than 8 tokens at a time.
    """
    folder = model_folder(model)
    lm = load_lm(lm_kind(model), str(folder), shared=False)
    if lm.head.window < SMALLEST_WINDOW:
        raise InputError(
            f"lm={model}: it reads {lm.head.window} tokens at a time; take one that reads {SMALLEST_WINDOW}"
        )
    return Fluency(lm, folder)


def load_fluency(folder: Path, saved: Mapping[str, Any]) -> Fluency:
    """What ``Fluency.save`` wrote, with what it returned. Raises InputError where a file is missing, damaged or changed."""
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder / 'config.json'} is missing; copy the model again")
    lm = load_lm(saved["kind"], str(folder), shared=False)
    if lm.head.fingerprint != saved["fingerprint"]:
        raise InputError(f"{folder}: damaged or changed (its hash is not the one in config.json); copy the model again")
    return Fluency(lm, folder, saved["centre"], saved["scale"])

"""Pooled token vectors of any Hugging Face encoder; contextual word vectors in the role of ELMo in Sun & Nenkova 2019 §3."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.models.encoders.base import as_texts
from negsample.models.language.model_files import copy_model, fingerprint, fingerprint_parts, model_folder
from negsample.models.language.packaged import minilm_folder
from negsample.models.language.transformer_models import (
    Batch,
    Layers,
    TokenModel,
    choice,
    encode_texts,
    load_model,
)

_LAYERS = re.compile(r"(?P<one>-?\d+)|(?P<join>mean|concat)\((?P<several>-?\d+(?:,-?\d+)*)\)")


@dataclass(frozen=True, eq=False)
class TokenPooling:
    """Mean or maximum over a text's token vectors of one layer, or of several, averaged or joined end to end.

    Padding never counts; the tokens that the tokenizer adds ([CLS], [SEP], <s>) count only with ``special``. A text
    without a token of its own is a zero row, counted in ``counts["zero_vectors"]``; a text beyond the model's longest
    input loses its end, counted in ``counts["truncated"]``.
    """

    folder: Path
    model: TokenModel
    pool: str
    layers: Layers
    special: bool
    fingerprint: str
    packaged: bool
    name: str = "hf"
    unit: str = "sentence"
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def dim(self) -> int:
        return self.model.width * (len(self.layers.numbers) if self.layers.join == "concat" else 1)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        from negsample.models.encoders.pooling import POOLINGS

        def pooled(batch: Batch) -> Any:
            mask = batch.mask if self.special else batch.mask & ~batch.special
            self.counts["zero_vectors"] -= int(mask.any(dim=1).sum())
            return POOLINGS[self.pool](batch.hidden, mask)

        texts = as_texts(texts)
        self.counts["zero_vectors"] += len(texts)
        return encode_texts(self.model, texts, self.counts, self.dim, pooled, self.layers)

    def in_bf16(self) -> "TokenPooling":
        model = self.model.in_bf16()
        return replace(self, model=model, fingerprint=model.mark(self.fingerprint))

    def save(self, folder: Path) -> dict[str, Any]:
        options: dict[str, Any] = {"pool": self.pool, "layer": self.layers.option, "special": self.special}
        options["max_length"] = self.model.limit
        if not self.packaged:
            copy_model(self.folder, folder / "model")
            options["model"] = "model"
        files = [] if self.packaged else ["model"]
        return {"name": self.name, "options": options, "files": files, "fingerprint": self.fingerprint}


def make(
    model: str = "",
    pool: str = "mean",
    layer: int | str = -1,
    special: bool = False,
    max_length: int = 0,
    revision: str = "",
    device: str = "auto",
) -> TokenPooling:
    """Token vectors of ``model``, a folder or hub id (default: the packaged MiniLM-L6).

    ``pool``: ``mean`` or ``max`` (ELMo-a and ELMo-m of Sun & Nenkova 2019); ``layer``: −1 the last, −2 the one before,
    0 the embeddings; or several, ``mean(1,2,3)`` averaged (as Clark et al. 2019, §4, take ELMo's three) or
    ``concat(1,2,3)`` joined end to end (Sun & Nenkova's 3,072 dimensions); ``special``: pool the added tokens too;
    ``max_length``: tokens, 0 for the model's own; ``revision``: of a hub id.
    Raises InputError where the model cannot be found or loaded, or has no such layer.
    """
    choice("pool", pool, ("mean", "max"))
    folder = model_folder(model, revision) if model else minilm_folder()
    loaded = load_model(folder, device, max_length)
    layers = _read_layers(layer, int(loaded.network.config.num_hidden_layers), folder)
    return pooled(folder, loaded, pool, layers, special, packaged=not model)


def _read_layers(layer: int | str, depth: int, folder: Path) -> Layers:
    """The layers that ``layer`` names of a network of ``depth`` layers and its embeddings, which are layer 0."""
    match = _LAYERS.fullmatch(str(layer).replace(" ", ""))
    if match is None:
        raise InputError(f"layer={layer}: write one number, or several as mean(1,2,3) or concat(1,2,3)")
    numbers = [int(number) for number in (match["one"] or match["several"]).split(",")]
    for number in numbers:
        if not -depth - 1 <= number <= depth:
            raise InputError(
                f"layer={layer}: {folder} has layers 0 (embeddings) to {depth}; choose {-depth - 1} to {depth}"
            )
    # One layer has one name in fingerprints: counted from the end.
    return Layers(tuple(n if n < 0 else n - depth - 1 for n in numbers), match["join"] or "mean")


def pooled(
    folder: Path, model: TokenModel, pool: str, layers: Layers, special: bool, *, packaged: bool
) -> TokenPooling:
    """The encoder over ``model``, which was loaded from ``folder``."""
    options = {"pool": pool, "layer": layers.option, "special": special, "max_length": model.limit}
    digest = model.mark(fingerprint("hf", options, fingerprint_parts(folder)))
    return TokenPooling(folder, model, pool, layers, special, digest, packaged)

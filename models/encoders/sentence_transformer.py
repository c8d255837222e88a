"""Sentence-transformers models (Reimers and Gurevych, 2019), run with transformers alone.

A folder in that library's layout lists its stages in ``modules.json``: a transformer, a pooling, and perhaps dense
layers and a normalisation. A folder without that list is a plain model under mean pooling, as the library takes it.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.io.files import copy_file
from negsample.models.encoders.base import as_texts
from negsample.models.encoders.hf import TokenPooling, pooled
from negsample.models.language.model_files import (
    copy_model,
    fingerprint,
    fingerprint_parts,
    model_folder,
    one_line,
    weights,
)
from negsample.models.language.packaged import minilm_folder
from negsample.models.language.transformer_models import LAST, Batch, TokenModel, encode_texts, load_model

_ACTIVATIONS = ("Tanh", "Identity", "ReLU", "GELU", "SiLU", "Sigmoid", "ELU", "LeakyReLU")
# Pooling → its flag in the older form of the configuration.
_LEGACY = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}


@dataclass(frozen=True)
class Layout:
    """What ``modules.json`` says: ``transformer`` is a path in the folder, ``poolings`` are joined end to end,
    ``after`` are (kind, path) of what follows the pooling, ``prompt`` stands before every text."""

    transformer: str
    poolings: tuple[str, ...]
    after: tuple[tuple[str, str], ...]
    prompt: str
    max_length: int
    lower: bool


@dataclass(frozen=True, eq=False)
class SentenceTransformer:
    """Sentence vectors as the library's ``encode`` gives them (its default prompt included).

    A text beyond ``max_seq_length`` tokens loses its end and is counted in ``counts["truncated"]``.
    """

    folder: Path
    layout: Layout
    model: TokenModel
    stages: tuple[Callable[[Any], Any], ...]
    dim: int
    fingerprint: str
    packaged: bool
    name: str = "sentence-transformer"
    unit: str = "sentence"
    counts: Counter[str] = field(default_factory=Counter)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        def vectors_of(batch: Batch) -> Any:
            return self.sentence_vectors(batch.hidden, batch.mask)

        return encode_texts(self.model, self.as_read(texts), self.counts, self.dim, vectors_of)

    def as_read(self, texts: Sequence[str]) -> list[str]:
        """Return ``texts`` as the tokenizer is given them: after the prompt, in lower case where the model wants that."""
        read = [self.layout.prompt + text for text in as_texts(texts)]
        return [text.lower() for text in read] if self.layout.lower else read

    def sentence_vectors(self, hidden: Any, mask: Any) -> Any:
        """Return the vectors [b, dim] of texts with the token vectors ``hidden`` [b, t, width] and ``mask`` [b, t]."""
        import torch

        from negsample.models.encoders.pooling import POOLINGS

        vectors = torch.cat([POOLINGS[name](hidden, mask) for name in self.layout.poolings], dim=1)
        for stage in self.stages:
            vectors = stage(vectors)
        return vectors

    @property
    def shared(self) -> tuple[TokenPooling, Callable[[np.ndarray], np.ndarray]] | None:
        """Encoder ``hf`` over the same network, and the normalisation: where these vectors are its means at unit length."""
        layout = self.layout
        plain = layout.poolings == ("mean",) and not layout.prompt and not layout.lower
        if not plain or [kind for kind, _ in layout.after] != ["Normalize"]:
            return None
        source = pooled(self.folder / layout.transformer, self.model, "mean", LAST, True, packaged=self.packaged)
        return replace(source, counts=self.counts), unit_rows

    def in_bf16(self) -> "SentenceTransformer":
        model = self.model.in_bf16()
        return replace(self, model=model, fingerprint=model.mark(self.fingerprint))

    def save(self, folder: Path) -> dict[str, Any]:
        options: dict[str, Any] = {"max_length": self.model.limit}
        if not self.packaged:
            _copy(self.folder, folder / "model", self.layout)
            options["model"] = "model"
        files = [] if self.packaged else ["model"]
        return {"name": self.name, "options": options, "files": files, "fingerprint": self.fingerprint}


def make(model: str = "", max_length: int = 0, revision: str = "", device: str = "auto") -> SentenceTransformer:
    """The model in the folder or under the hub id ``model`` (default: the packaged MiniLM-L6, 384-d).

    ``max_length``: tokens a text, 0 for the model's own; ``revision``: of a hub id.
    Raises InputError where the model cannot be found or loaded, or has a stage of a kind not known here.
    """
    import torch

    folder = model_folder(model, revision) if model else minilm_folder()
    layout = read_layout(folder)
    loaded = load_model(folder / layout.transformer, device, max_length or layout.max_length)
    dim = loaded.width * len(layout.poolings)
    stages: list[Callable[[Any], Any]] = []
    parts = list(fingerprint_parts(folder / layout.transformer))
    for kind, path in layout.after:
        if kind == "Dense":
            stage, dim = _dense(folder / path, dim, loaded.device)
            stages.append(stage)
            parts += [(f"{path}/{label}", data) for label, data in fingerprint_parts(folder / path)]
        else:
            stages.append(torch.nn.functional.normalize)
    options = {"poolings": layout.poolings, "after": layout.after, "prompt": layout.prompt, "lower": layout.lower}
    digest = fingerprint("sentence-transformer", {**options, "max_length": loaded.limit}, parts)
    return SentenceTransformer(folder, layout, loaded, tuple(stages), dim, digest, packaged=not model)


def read_layout(folder: Path) -> Layout:
    """The layout of a sentence-transformers folder, or that of a plain model.

    Raises InputError for damaged JSON and for stages this project does not run (static tables, images, routers).
    """
    listed = _read_json(folder / "modules.json")
    modules = [(str(entry["type"]).rpartition(".")[2], str(entry.get("path", ""))) for entry in listed or []]
    modules = modules or [("Transformer", ""), ("Pooling", "")]
    kinds = [kind for kind, _ in modules]
    unknown = sorted({*kinds[2:]} - {"Dense", "Normalize"})
    if kinds[:2] != ["Transformer", "Pooling"] or unknown:
        raise InputError(
            f"{folder}/modules.json: stages {', '.join(kinds)}; only Transformer, Pooling, Dense, Normalize run here"
        )
    transformer, pooling = modules[0][1], modules[1][1]
    poolings, with_prompt = _read_poolings(folder / pooling / "config.json" if pooling else None)
    lengths = [_read_json(path) or {} for path in sorted((folder / transformer).glob("sentence_*_config.json"))]
    length = lengths[0] if lengths else {}
    general = _read_json(folder / "config_sentence_transformers.json") or {}
    prompt = (general.get("prompts") or {}).get(general.get("default_prompt_name") or "", "")
    if prompt and not with_prompt:
        raise InputError(f"{folder}: pools without its default prompt, which is not supported here; use another model")
    return Layout(
        transformer,
        poolings,
        tuple(modules[2:]),
        str(prompt),
        int(length.get("max_seq_length") or 0),
        bool(length.get("do_lower_case", False)),
    )


def _read_poolings(path: Path | None) -> tuple[tuple[str, ...], bool]:
    """Names of the poolings, and whether a prompt's tokens take part; both forms of the configuration are read."""
    config = (_read_json(path) if path else None) or {}
    given = config.get("pooling_mode") or [name for name, flag in _LEGACY.items() if config.get(flag)] or ["mean"]
    poolings = (given,) if isinstance(given, str) else tuple(given)
    unknown = set(poolings) - set(_LEGACY)
    if unknown:
        raise InputError(
            f"{path}: pooling {sorted(unknown)[0]!r} is not known; use a model with mean, max or cls pooling"
        )
    return poolings, bool(config.get("include_prompt", True))


def _read_json(path: Path) -> Any:
    """The file's JSON, or None where there is no file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: damaged JSON ({one_line(error)}); download the model again") from error


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Each row at length 1, a row of zeros as it is; float32 [n, d]."""
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    return vectors / np.maximum(lengths, np.float32(1e-12))[:, None]


def _dense(folder: Path, width: int, device: str) -> tuple[Callable[[Any], Any], int]:
    """The dense layer in ``folder`` as a function [b, width] → [b, out], and out."""
    import torch

    config = _read_json(folder / "config.json") or {}
    activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh")).rpartition(".")[2]
    if activation not in _ACTIVATIONS or config.get("use_residual"):
        raise InputError(f"{folder}: a dense layer with {activation} or a residual is not supported; use another model")
    state = weights(folder)
    weight = state.get("linear.weight")
    if weight is None or weight.shape[1] != width:
        raise InputError(f"{folder}: expected linear.weight for vectors of {width}; download the model again")
    linear = torch.nn.Linear(width, weight.shape[0], bias="linear.bias" in state, dtype=torch.float32)
    linear.load_state_dict({key.removeprefix("linear."): state[key] for key in state if key.startswith("linear.")})
    layer = torch.nn.Sequential(linear, getattr(torch.nn, activation)()).eval().requires_grad_(False).to(device)
    return layer, int(weight.shape[0])


def _copy(source: Path, target: Path, layout: Layout) -> None:
    """Copy the transformer, the dense layers and the files ``read_layout`` reads."""
    copy_model(source / layout.transformer, target / layout.transformer)
    listed = _read_json(source / "modules.json") or []
    for name in ["modules.json", "config_sentence_transformers.json", *(f"{m['path']}/config.json" for m in listed)]:
        if (source / name.lstrip("/")).is_file():
            copy_file(source / name.lstrip("/"), target / name.lstrip("/"))
    for kind, path in layout.after:
        if kind == "Dense":
            copy_model(source / path, target / path)
        elif not (target / path).exists():
            (target / path).mkdir(parents=True)

"""Vectors from a transformers network: pooled token vectors of any encoder (``hf``), and sentence-transformers models.

A folder in the layout of that library (Reimers and Gurevych, 2019) lists its stages in ``modules.json``: a transformer, a
pooling, and perhaps dense layers and a normalisation. A folder without that list is a plain model under mean pooling,
as the library takes it. The library itself would cost a second a command, and makes up weights that are missing.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from negsample.errors import InputError
from negsample.io.files import copy_file
from negsample.models.encoders import as_texts
from negsample.models.language import model_files
from negsample.models.language.networks import Pretrained, choice, load_network, token_batches
from negsample.models.precision import check_precision, to_bf16

# As sentence-transformers names them; older files of it have a flag for each (pooling_mode_mean_tokens, …_cls_token).
POOLINGS = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
_ACTIVATIONS = ("Tanh", "Identity", "ReLU", "GELU", "SiLU", "Sigmoid", "ELU", "LeakyReLU")
_LAYERS = re.compile(r"(?P<one>-?\d+)|(?P<join>mean|concat)\((?P<several>-?\d+(?:,-?\d+)*)\)")
# Texts whose tokens are in memory at a time.
_CHUNK = 4096


class Batch(NamedTuple):
    """Token vectors of some of the texts: ``rows`` [b] their numbers, ``hidden`` [b, t, width], ``mask`` [b, t] true
    for tokens, ``special`` [b, t] true for the tokens that the tokenizer added."""

    rows: list[int]
    hidden: Any
    mask: Any
    special: Any


@dataclass(frozen=True, eq=False)
class TransformerEncoder:
    """Token vectors under ``poolings`` joined end to end, then through ``stages``.

    ``layers``: whose vectors are taken, counted from the end (−1: the last); of several ``join`` makes ``mean`` or ``concat``.
    Padding never counts; the tokens that the tokenizer adds ([CLS], [SEP], <s>) count only with ``special``. ``prompt``
    stands before every text, and with ``lower`` a text is read in lower case. A text without a token that counts is a
    zero row; a text beyond the model's longest input loses its end, counted in ``counts["truncated"]``. ``folder``: the
    network's; ``root``, where it and ``files`` lie, which ``save`` copies (None: packaged, nothing is copied).
    """

    name: str
    folder: Path
    model: Pretrained
    poolings: tuple[str, ...]
    dim: int
    fingerprint: str
    options: Mapping[str, Any]
    root: Path | None
    files: tuple[str, ...] = ()
    layers: tuple[int, ...] = (-1,)
    join: str = "mean"
    special: bool = True
    stages: tuple[Callable[[Any], Any], ...] = ()
    prompt: str = ""
    lower: bool = False
    unit: str = "sentence"
    counts: Counter[str] = field(default_factory=Counter)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        import torch

        texts = self.as_read(texts)
        result = np.zeros((len(texts), self.dim), dtype=np.float32)
        with torch.inference_mode():
            for batch in self.batches(texts):
                mask = batch.mask if self.special else batch.mask & ~batch.special
                result[batch.rows] = self.sentence_vectors(batch.hidden, mask).float().cpu().numpy()
        return result

    def as_read(self, texts: Sequence[str]) -> list[str]:
        """Return ``texts`` as the tokenizer is given them: after the prompt, in lower case where the model wants that."""
        read = [self.prompt + text for text in as_texts(texts)]
        return [text.lower() for text in read] if self.lower else read

    def sentence_vectors(self, hidden: Any, mask: Any) -> Any:
        """Return the vectors [b, dim] of texts with the token vectors ``hidden`` [b, t, width] and ``mask`` [b, t]."""
        import torch

        vectors = torch.cat([pooled(name, hidden, mask) for name in self.poolings], dim=1)
        for stage in self.stages:
            vectors = stage(vectors)
        return vectors

    def batches(self, texts: Sequence[str]) -> Iterator[Batch]:
        """Yield token vectors for ``texts`` (as ``as_read`` gives them), batches of like length.

        A text without a single token is in no batch. Call it inside ``torch.inference_mode()``.
        """
        import torch

        model, last = self.model, self.layers == (-1,)
        for start in range(0, len(texts), _CHUNK):
            chunk = list(texts[start : start + _CHUNK])
            masks = {"return_special_tokens_mask": True, "return_attention_mask": True}
            tokens = model.tokenizer(chunk, truncation=True, max_length=model.limit, **masks)
            lengths = [len(ids) for ids in tokens["input_ids"]]
            # Those that fill the longest input may have more tokens than that.
            full = [text for text, size in zip(chunk, lengths, strict=True) if size >= model.limit]
            whole = model.tokenizer(full, verbose=False)["input_ids"] if full else []
            self.counts["truncated"] += sum(len(ids) > model.limit for ids in whole)
            for rows, inputs in token_batches(tokens, model.tokenizer, model.device):
                special = inputs.pop("special_tokens_mask").bool()
                output = model.network(**inputs, output_hidden_states=not last)
                every = (output.last_hidden_state,) if last else output.hidden_states
                states = [every[number] for number in self.layers]
                hidden = torch.cat(states, dim=-1) if self.join == "concat" else torch.stack(states).mean(dim=0)
                yield Batch([start + row for row in rows], hidden, inputs["attention_mask"].bool(), special)

    def in_bf16(self) -> "TransformerEncoder":
        """A copy that computes in bfloat16. Raises InputError where the device has no instructions for it."""
        check_precision("bf16", self.model.device)
        network = deepcopy(self.model.network)
        to_bf16(network)
        digest = model_files.fingerprint("bf16", {}, [("float32", self.fingerprint.encode())])
        return replace(self, model=replace(self.model, network=network), fingerprint=digest)

    def save(self, folder: Path) -> dict[str, Any]:
        saved: dict[str, Any] = {"name": self.name, "options": dict(self.options), "files": []}
        saved["fingerprint"] = self.fingerprint
        if self.root is None:
            return saved
        model_files.copy_model(self.folder, folder / "model" / self.folder.relative_to(self.root))
        for name in self.files:
            copy = copy_file if (self.root / name).is_file() else model_files.copy_model
            if (self.root / name).exists():
                copy(self.root / name, folder / "model" / name)
        return saved | {"options": {**self.options, "model": "model"}, "files": ["model"]}


def pooled(name: str, hidden: Any, mask: Any) -> Any:
    """``hidden`` [b, t, d] under ``mask`` [b, t] (true: counts) and the pooling ``name`` → [b, d]; an empty row gives zeros."""
    import torch

    some = mask.any(dim=1, keepdim=True)
    if name == "max":
        return hidden.masked_fill(~mask[..., None], -torch.inf).amax(dim=1).where(some, 0.0)
    if name in ("cls", "lasttoken"):
        places = torch.arange(mask.shape[1], device=mask.device)
        place = mask.int().argmax(dim=1) if name == "cls" else (places * mask).amax(dim=1)
        return hidden[torch.arange(len(hidden), device=hidden.device), place] * some
    weights = (mask.cumsum(dim=1) * mask if name == "weightedmean" else mask).to(hidden.dtype)
    size = weights.sum(dim=1, keepdim=True).clamp(min=1e-9)
    return torch.einsum("btd,bt->bd", hidden, weights) / (size.sqrt() if name == "mean_sqrt_len_tokens" else size)


def make_hf(
    model: str = "",
    pool: str = "mean",
    layer: int | str = -1,
    special: bool = False,
    max_length: int = 0,
    revision: str = "",
    device: str = "auto",
) -> TransformerEncoder:
    """Pooled token vectors of ``model``, a folder or hub id (default: the packaged MiniLM-L6); in the role of ELMo in Sun &
    Nenkova 2019 §3.

    ``pool``: ``mean`` or ``max`` (ELMo-a and ELMo-m of Sun & Nenkova 2019); ``layer``: −1 the last, −2 the one before, 0 the
    embeddings; or several, ``mean(1,2,3)`` averaged (as Clark et al. 2019, §4, take ELMo's three) or ``concat(1,2,3)`` joined
    end to end (Sun & Nenkova's 3,072 dimensions); ``special``: pool the added tokens too; ``max_length``: tokens, 0 for the
    model's own; ``revision``: of a hub id. Raises InputError where the model cannot be found or loaded, or has no such layer.
    """
    choice("pool", pool, ("mean", "max"))
    folder = model_files.model_folder(model, revision) if model else model_files.minilm_folder()
    loaded = load_network(folder, device=device, limit=max_length)
    layers, join = _read_layers(layer, int(loaded.network.config.num_hidden_layers), folder)
    # One layer, or several, have one name in fingerprints.
    named = layers[0] if len(layers) == 1 else f"{join}({','.join(map(str, layers))})"
    options = {"pool": pool, "layer": named, "special": special, "max_length": loaded.limit}
    digest = model_files.fingerprint("hf", options, model_files.fingerprint_parts(folder))
    dim = loaded.width * (len(layers) if join == "concat" else 1)
    made = TransformerEncoder("hf", folder, loaded, (pool,), dim, digest, options, folder if model else None)
    return replace(made, layers=layers, join=join, special=special)


def _read_layers(layer: int | str, depth: int, folder: Path) -> tuple[tuple[int, ...], str]:
    """The layers that ``layer`` names of a network of ``depth`` layers, counted from the end, and how they are joined."""
    match = _LAYERS.fullmatch(str(layer).replace(" ", ""))
    if match is None:
        raise InputError(f"layer={layer}: write one number, or several as mean(1,2,3) or concat(1,2,3)")
    numbers = [int(number) for number in (match["one"] or match["several"]).split(",")]
    if not -depth - 1 <= min(numbers) <= max(numbers) <= depth:
        there = f"layers 0 (embeddings) to {depth}; choose {-depth - 1} to {depth}"
        raise InputError(f"layer={layer}: {folder} has {there}")
    return tuple(n if n < 0 else n - depth - 1 for n in numbers), match["join"] or "mean"


def make_sentence_transformer(
    model: str = "", max_length: int = 0, revision: str = "", device: str = "auto"
) -> TransformerEncoder:
    """Sentence vectors as sentence-transformers' ``encode`` gives them, the model's default prompt included.

    ``model``: a folder or hub id (default: the packaged MiniLM-L6, 384-d). ``max_length``: tokens a text, 0 for the
    model's own; ``revision``: of a hub id. Raises InputError where the model cannot be found or loaded, has damaged JSON,
    or a stage that does not run here (static tables, images, routers).
    """
    import torch

    folder = model_files.model_folder(model, revision) if model else model_files.minilm_folder()
    listed = _read_json(folder / "modules.json") or [{"type": "Transformer"}, {"type": "Pooling"}]
    modules = [(str(entry["type"]).rpartition(".")[2], str(entry.get("path", ""))) for entry in listed]
    (first, transformer), (second, pooling), *after = [*modules, ("", ""), ("", "")][: max(2, len(modules))]
    if (first, second) != ("Transformer", "Pooling") or {kind for kind, _ in after} - {"Dense", "Normalize"}:
        kinds = ", ".join(kind for kind, _ in modules)
        raise InputError(f"{folder}/modules.json: stages {kinds}; only Transformer, Pooling, Dense, Normalize run here")
    poolings, with_prompt = _read_poolings(folder / pooling / "config.json" if pooling else None)
    general = _read_json(folder / "config_sentence_transformers.json") or {}
    prompt = str((general.get("prompts") or {}).get(general.get("default_prompt_name") or "", ""))
    if prompt and not with_prompt:
        raise InputError(f"{folder}: pools without its default prompt, which is not supported here; use another model")
    lengths = [_read_json(path) or {} for path in sorted((folder / transformer).glob("sentence_*_config.json"))]
    length = lengths[0] if lengths else {}
    lower = bool(length.get("do_lower_case", False))
    limit = max_length or int(length.get("max_seq_length") or 0)
    loaded = load_network(folder / transformer, device=device, limit=limit)
    dim = loaded.width * len(poolings)
    stages: list[Callable[[Any], Any]] = []
    parts = list(model_files.fingerprint_parts(folder / transformer))
    for kind, path in after:
        if kind == "Dense":
            stage, dim = _dense(folder / path, dim, loaded.device)
            stages.append(stage)
            parts += [(f"{path}/{label}", data) for label, data in model_files.fingerprint_parts(folder / path)]
        else:
            stages.append(torch.nn.functional.normalize)
    what = {"poolings": poolings, "after": tuple(after), "prompt": prompt, "lower": lower, "max_length": loaded.limit}
    files = ["modules.json", "config_sentence_transformers.json", *(f"{path}/config.json" for _, path in modules[1:])]
    files += [path for kind, path in after if kind == "Dense"]
    name, options = "sentence-transformer", {"max_length": loaded.limit}
    digest, root = model_files.fingerprint(name, what, parts), folder if model else None
    made = TransformerEncoder(name, folder / transformer, loaded, poolings, dim, digest, options, root, tuple(files))
    return replace(made, stages=tuple(stages), prompt=prompt, lower=lower)


def _read_poolings(path: Path | None) -> tuple[tuple[str, ...], bool]:
    """Names of the poolings, and whether a prompt's tokens take part."""
    config = (_read_json(path) if path else None) or {}
    flags = [
        name for name in POOLINGS if any(config.get(f"pooling_mode_{name}{end}") for end in ("", "_token", "_tokens"))
    ]
    given = config.get("pooling_mode") or flags or ["mean"]
    poolings = (given,) if isinstance(given, str) else tuple(given)
    if unknown := sorted(set(poolings) - set(POOLINGS)):
        raise InputError(f"{path}: pooling {unknown[0]!r} is not known; use a model with mean, max or cls pooling")
    return poolings, bool(config.get("include_prompt", True))


def _read_json(path: Path) -> Any:
    """The file's JSON, or None where there is no file."""
    with model_files.telling(path, "damaged JSON", "download the model again"), suppress(FileNotFoundError):
        return json.loads(path.read_text(encoding="utf-8"))
    return None


def _dense(folder: Path, width: int, device: str) -> tuple[Callable[[Any], Any], int]:
    """The dense layer in ``folder`` as a function [b, width] → [b, out], and out."""
    import torch

    config = _read_json(folder / "config.json") or {}
    activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh")).rpartition(".")[2]
    if activation not in _ACTIVATIONS or config.get("use_residual"):
        raise InputError(f"{folder}: a dense layer with {activation} or a residual is not supported; use another model")
    state = model_files.weights(folder)
    weight = state.get("linear.weight")
    if weight is None or weight.shape[1] != width:
        raise InputError(f"{folder}: expected linear.weight for vectors of {width}; download the model again")
    linear = torch.nn.Linear(width, weight.shape[0], bias="linear.bias" in state, dtype=torch.float32)
    linear.load_state_dict({key.removeprefix("linear."): state[key] for key in state if key.startswith("linear.")})
    layer = torch.nn.Sequential(linear, getattr(torch.nn, activation)()).eval().requires_grad_(False).to(device)
    return layer, int(weight.shape[0])

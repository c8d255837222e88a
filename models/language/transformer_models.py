"""Hugging Face models as this project uses them: found, loaded quietly, fingerprinted, copied, run over texts."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.io.files import replacing
from negsample.models.encoders.base import copy_file, pick_device

# Everything a tokenizer or a configuration is read from; other files of a folder change no vector.
_SUPPORT = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "bpe.codes",
    "*.model",
    "sentence_*_config.json",
)
_DOWNLOADED = ["*.json", "*.txt", "*.model", "*.codes", "*.safetensors", "[0-9]*_*/pytorch_model.bin"]
_NOT_DOWNLOADED = ["onnx/*", "openvino/*", "coreml/*"]

_CHUNK = 4096
_MOST_ROWS = 64
MOST_TOKENS = 16384


def model_folder(model: str, revision: str = "") -> Path:
    """The local folder of ``model``: itself if it is one, else the hub id's snapshot, fetched unless it is there whole.

    Raises InputError where neither exists, or the hub cannot be reached.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    if path.exists() or model.startswith(("/", ".", "~")) or model.count("/") > 1 or not model:
        raise InputError(f"{model!r} is no folder; give a model's folder or a hub id such as owner/name")
    from huggingface_hub import snapshot_download

    def fetch(patterns: list[str], local: bool) -> Path:
        return Path(
            snapshot_download(
                model,
                revision=revision or None,
                local_files_only=local,
                allow_patterns=patterns,
                ignore_patterns=_NOT_DOWNLOADED,
            )
        )

    with quiet():
        try:
            folder = fetch(_DOWNLOADED, local=True)
            if _is_whole(folder):
                return folder
        except (OSError, ValueError):
            pass
        try:
            folder = fetch(_DOWNLOADED, local=False)
            return folder if _is_whole(folder) else fetch([*_DOWNLOADED, "*pytorch_model*.bin"], local=False)
        # The hub's client raises errors of its own, of httpx and of the operating system.
        except Exception as error:
            raise InputError(
                f"{model!r} is no folder, and cannot be fetched from the hub ({one_line(error)}); "
                "check the id and the network, or give a folder"
            ) from error


def _is_whole(folder: Path) -> bool:
    return any((part / "config.json").is_file() and _weight_names(part) for part in (folder, folder / "0_Transformer"))


def _weight_names(folder: Path) -> list[str]:
    """The weight files transformers would read from ``folder``, sorted; [] where there are none."""
    for single in ("model.safetensors", "pytorch_model.bin"):
        if (folder / single).is_file():
            return [single]
        index = folder / f"{single}.index.json"
        if index.is_file():
            try:
                names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
            except (ValueError, KeyError, AttributeError) as error:
                raise InputError(f"{index}: no list of weight files ({one_line(error)}); download it again") from error
            missing = [name for name in names if not (folder / name).is_file()]
            if missing:
                raise InputError(f"{folder / missing[0]} is missing; download the model again")
            return names
    return []


def _need_weights(folder: Path) -> list[str]:
    names = _weight_names(folder)
    if not names:
        raise InputError(f"{folder} has no model.safetensors and no pytorch_model.bin; give a whole model folder")
    return names


def weights(folder: Path) -> dict[str, Any]:
    """Every tensor of the folder's weight files, by name, on the CPU. Pickled code is never run.

    Raises InputError where there are none or a file is damaged.
    """
    import torch
    from safetensors.torch import load_file

    tensors: dict[str, Any] = {}
    for name in _need_weights(folder):
        try:
            if name.endswith(".safetensors"):
                tensors.update(load_file(str(folder / name)))
            else:
                tensors.update(torch.load(folder / name, map_location="cpu", weights_only=True))
        # A damaged file raises what its reader happens to trip over.
        except Exception as error:
            raise InputError(f"{folder / name}: damaged ({one_line(error)}); download the model again") from error
    return tensors


def fingerprint_parts(folder: Path) -> Iterator[tuple[str, Any]]:
    """What a folder's vectors depend on: tensors by name and value (not by file format), tokenizer, configuration."""
    import torch

    for name, tensor in sorted(weights(folder).items()):
        yield f"{name} {tensor.dtype} {tuple(tensor.shape)}", tensor.contiguous().flatten().view(torch.uint8).numpy()
    for path in _support_files(folder):
        yield path.name, path.read_bytes()


def _support_files(folder: Path) -> list[Path]:
    return sorted({path for pattern in _SUPPORT for path in folder.glob(pattern) if path.is_file()})


def copy_model(source: Path, target: Path) -> None:
    """Copy weights, tokenizer and configuration; weights that lie in pickles are written as safetensors."""
    from safetensors.torch import save_file

    for path in _support_files(source):
        copy_file(path, target / path.name)
    names = _need_weights(source)
    if names[0].endswith(".safetensors"):
        for name in names:
            copy_file(source / name, target / name)
        if names != ["model.safetensors"]:
            index = "model.safetensors.index.json"
            copy_file(source / index, target / index)
        return
    # Tensors that share memory (tied weights) must be stored apart: the format has no sharing.
    tensors = {name: tensor.clone().contiguous() for name, tensor in weights(source).items()}
    target.mkdir(parents=True, exist_ok=True)
    with replacing(target / "model.safetensors") as stream:
        save_file(tensors, stream.name, metadata={"format": "pt"})


@dataclass(frozen=True, eq=False)
class TokenModel:
    """A tokenizer and the network that reads its tokens; ``limit`` is the longest input in tokens, special ones too."""

    tokenizer: Any
    network: Any
    limit: int
    device: str

    @property
    def width(self) -> int:
        return int(self.network.config.hidden_size)


def load_model(folder: Path, device: str = "auto", limit: int = 0) -> TokenModel:
    """Tokenizer and encoder network of a local folder, in float32, without network access and without remote code.

    Of an encoder–decoder only the encoder is kept. ``limit`` shortens the longest input (0: the model's own).
    Raises InputError where the folder is no model, weights are missing or damaged, or it needs code of its own.
    """
    import torch
    from transformers import (
        MODEL_FOR_TEXT_ENCODING_MAPPING,
        AutoConfig,
        AutoModel,
        AutoModelForTextEncoding,
        AutoTokenizer,
    )

    place = pick_device(device)
    _need_weights(folder)
    local = {"local_files_only": True, "trust_remote_code": False}
    with quiet():
        try:
            config = AutoConfig.from_pretrained(folder, **local)
            tokenizer = AutoTokenizer.from_pretrained(folder, **local)
            encoder_only = config.is_encoder_decoder and type(config) in MODEL_FOR_TEXT_ENCODING_MAPPING
            network, info = (AutoModelForTextEncoding if encoder_only else AutoModel).from_pretrained(
                folder, config=config, dtype=torch.float32, output_loading_info=True, **local
            )
        # transformers passes on OSError, ValueError, KeyError, RuntimeError and the readers' own errors.
        except Exception as error:
            raise InputError(
                f"{folder}: transformers cannot load it ({one_line(error)}); give a whole model"
            ) from error
    # A pooler on the [CLS] token is not used here, and many published encoders leave it out.
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key)
    if missing:
        raise InputError(f"{folder}: {len(missing)} weights are missing, such as {missing[0]}; give a whole model")
    if config.is_encoder_decoder and not encoder_only:
        network = network.get_encoder()
    longest = min(tokenizer.model_max_length, learnt_positions(network))
    return TokenModel(tokenizer, network.eval().to(place), min(limit or longest, longest), place)


def learnt_positions(network: Any) -> int:
    """How many tokens the network has learnt positions for; RoBERTa's table begins after its padding index."""
    import torch

    most = getattr(network.config, "max_position_embeddings", None) or -1
    if most < 0:
        return 1 << 30
    tables = (getattr(module, "position_embeddings", None) for module in network.modules())
    offsets = [t.padding_idx + 1 for t in tables if isinstance(t, torch.nn.Embedding) and t.padding_idx is not None]
    return int(most) - max(offsets, default=0)


@dataclass(frozen=True, eq=False)
class Batch:
    """Token vectors of some of the texts: ``rows`` [b] their numbers, ``hidden`` [b, t, width], ``mask`` [b, t] true
    for tokens, ``special`` [b, t] true for the tokens that the tokenizer added."""

    rows: list[int]
    hidden: Any
    mask: Any
    special: Any


def run_batches(model: TokenModel, texts: Sequence[str], counts: Counter[str], layer: int = -1) -> Iterator[Batch]:
    """Token vectors of layer ``layer`` (0: embeddings; −1: last) for ``texts``, batches of like length.

    A text longer than ``model.limit`` loses its end and is counted in ``counts["truncated"]``. A text without a single
    token is in no batch. Call it inside ``torch.inference_mode()``.
    """
    import torch

    fields = ["input_ids", "attention_mask", *({"token_type_ids"} & set(model.tokenizer.model_input_names))]
    # Padded places are masked: a tokenizer without a padding token may pad with any.
    padding = {"input_ids": model.tokenizer.pad_token_id or 0, "token_type_ids": model.tokenizer.pad_token_type_id}
    for start in range(0, len(texts), _CHUNK):
        chunk = list(texts[start : start + _CHUNK])
        tokens = model.tokenizer(
            chunk, truncation=True, max_length=model.limit, return_special_tokens_mask=True, return_attention_mask=True
        )
        counts["truncated"] += _truncated(model, chunk, tokens["input_ids"])
        lengths = [len(ids) for ids in tokens["input_ids"]]
        order = sorted((n for n in range(len(chunk)) if lengths[n]), key=lambda n: lengths[n])
        for rows in like_lengths(order, lengths, model.device):
            longest = max(lengths[row] for row in rows)
            tensors = {
                name: torch.full((len(rows), longest), padding.get(name, 0), dtype=torch.long)
                for name in [*fields, "special_tokens_mask"]
            }
            for number, row in enumerate(rows):
                for name, tensor in tensors.items():
                    tensor[number, : lengths[row]] = torch.tensor(tokens[name][row])
            special = tensors.pop("special_tokens_mask").bool()
            inputs = {name: tensor.to(model.device) for name, tensor in tensors.items()}
            output = model.network(**inputs, output_hidden_states=layer != -1)
            hidden = output.last_hidden_state if layer == -1 else output.hidden_states[layer]
            mask = inputs["attention_mask"].bool()
            yield Batch([start + row for row in rows], hidden, mask, special.to(model.device))


def like_lengths(
    order: list[int], lengths: Sequence[int], device: str, most_tokens: int = MOST_TOKENS
) -> Iterator[list[int]]:
    """Runs of ``order`` (rows, ascending in length): at most 64 rows (256 on a GPU) and ``most_tokens`` padded tokens, but
    one row at least."""
    most_rows = _MOST_ROWS if device == "cpu" else 4 * _MOST_ROWS
    start = 0
    for stop in range(1, len(order) + 1):
        full = stop - start == most_rows
        if stop == len(order) or full or lengths[order[stop]] * (stop + 1 - start) > most_tokens:
            yield order[start:stop]
            start = stop


def _truncated(model: TokenModel, texts: list[str], ids: list[list[int]]) -> int:
    """How many of ``texts`` have more tokens than the limit."""
    full = [text for text, row in zip(texts, ids, strict=True) if len(row) >= model.limit]
    if not full:
        return 0
    return sum(len(row) > model.limit for row in model.tokenizer(full, verbose=False)["input_ids"])


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and no advice from transformers and huggingface_hub while the block runs."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
    from transformers.utils import logging

    verbosity, bar, hub_bar = (
        logging.get_verbosity(),
        logging.is_progress_bar_enabled(),
        not are_progress_bars_disabled(),
    )
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    disable_progress_bars()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()
        if hub_bar:
            enable_progress_bars()


def one_line(error: BaseException) -> str:
    """An error's message on one line, at most 160 characters."""
    return " ".join(str(error).split())[:160] or type(error).__name__


def to_rows(result: np.ndarray, batch: Batch, vectors: Any) -> None:
    """Write ``vectors`` [b, dim] into the rows of ``result`` that ``batch`` stands for."""
    result[batch.rows] = vectors.float().cpu().numpy()

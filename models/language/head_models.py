"""Transformers models with a trained head: to answer questions, or to model language."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from negsample.errors import InputError
from negsample.models.language.model_files import fingerprint, fingerprint_parts, model_folder
from negsample.models.language.transformer_models import learnt_positions, pick_device, read_model

# Read at a time by a model that has neither a longest input nor a tokenizer that names one. Larger "limits" are ways
# of saying that there is none.
_DEFAULT_WINDOW = 512
_NO_LIMIT = 1 << 20


@dataclass(frozen=True, eq=False)
class HeadModel:
    """A network with its head, in float32 and in evaluation mode, and its fast tokenizer.

    ``window``: the longest input in tokens, special ones included. ``fingerprint``: 64 hex digits of weights, tokenizer
    and configuration.
    """

    network: Any
    tokenizer: Any
    window: int
    device: str
    fingerprint: str


def read_head(kind: str, model: str, device: str = "auto") -> HeadModel:
    """Return the model in the folder or hub id ``model``, loaded by transformers' class ``kind`` (``AutoModelFor…``).

    Raises InputError where there is no such model, as ``read_model`` does, and where its tokenizer is a slow one.
    """
    place = pick_device(device)
    folder = model_folder(model)
    # Before transformers sees the folder: this names a missing or damaged file.
    digest = fingerprint(kind, {}, fingerprint_parts(folder))
    network, tokenizer = read_model(folder, kind)
    if not tokenizer.is_fast:
        raise InputError(f"{model}: its tokenizer does not say where tokens stand in the text; add a tokenizer.json")
    known = [int(limit) for limit in (learnt_positions(network), tokenizer.model_max_length) if limit <= _NO_LIMIT]
    return HeadModel(network.to(place), tokenizer, min(known, default=_DEFAULT_WINDOW), place, digest)


def special_frame(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens that the model expects before and after a text."""
    ids = tokenizer("a")["input_ids"]
    special = tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
    inner = [place for place, mark in enumerate(special) if not mark]
    if not inner:
        return ids, []
    return ids[: inner[0]], ids[inner[-1] + 1 :]


load_head = lru_cache(maxsize=2)(read_head)
"""``read_head``, remembered: two metrics that name the same model share it."""

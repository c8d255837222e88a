"""Transformers models with a trained head: to answer questions, or to model language."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.models.language.transformer_models import MOST_TOKENS, like_lengths

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


@lru_cache(maxsize=2)
def load_head(kind: str, model: str, device: str = "auto") -> HeadModel:
    """``read_head``, remembered: two metrics that name the same model share it."""
    return read_head(kind, model, device)


def read_head(kind: str, model: str, device: str = "auto") -> HeadModel:
    """The model in the folder or hub id ``model``, loaded by transformers' class ``kind`` (``AutoModelFor…``).

    Remote code is never run. Raises InputError where there is no such model, it needs code of its own, or it lacks the
    head that ``kind`` asks for (transformers would make up weights).
    """
    import transformers

    from negsample.models.encoders.base import fingerprint, pick_device
    from negsample.models.language.transformer_models import fingerprint_parts, model_folder, one_line, quiet

    place = pick_device(device)
    folder = model_folder(model)
    # Before transformers sees the folder: this names a missing or damaged file.
    digest = fingerprint(kind, {}, fingerprint_parts(folder))
    local = {"local_files_only": True, "trust_remote_code": False}
    with quiet():
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **local)
            network, info = getattr(transformers, kind).from_pretrained(
                folder, dtype="float32", output_loading_info=True, **local
            )
        # transformers passes on OSError, ValueError, KeyError, RuntimeError and the readers' own errors.
        except Exception as error:
            raise InputError(f"{model}: transformers cannot load it as {kind} ({one_line(error)})") from error
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key)
    if missing:
        raise InputError(f"{model}: {len(missing)} weights that {kind} needs are missing, such as {missing[0]}; "
                         "give a model trained for this task")  # fmt: skip
    if not tokenizer.is_fast:
        raise InputError(f"{model}: its tokenizer does not say where tokens stand in the text; add a tokenizer.json")
    return HeadModel(network.eval().to(place), tokenizer, _longest(network, tokenizer), place, digest)


def _longest(network: Any, tokenizer: Any) -> int:
    from negsample.models.language.transformer_models import learnt_positions

    known = [int(limit) for limit in (learnt_positions(network), tokenizer.model_max_length) if limit <= _NO_LIMIT]
    return min(known, default=_DEFAULT_WINDOW)


def clean(text: str) -> str:
    """The text with lone surrogates, which no tokenizer takes, replaced by U+FFFD; its length stays."""
    return (
        text if text.isascii() else "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in text)
    )


def batches(lengths: Sequence[int], device: str, most_tokens: int = MOST_TOKENS) -> Iterator[list[int]]:
    """Row numbers in groups of like length (``like_lengths``), rows of one length in their order."""
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row], row))
    return like_lengths(order, lengths, device, most_tokens)


def padded(rows: Sequence[Sequence[int]], fill: int, device: str) -> tuple[Any, Any]:
    """(ids, mask), int64 tensors [b, longest]: ``rows`` filled up on the right with ``fill``, which the mask hides."""
    import torch

    width = max(map(len, rows))
    ids = np.full((len(rows), width), fill, dtype=np.int64)
    mask = np.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
        mask[place, : len(row)] = 1
    return torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)

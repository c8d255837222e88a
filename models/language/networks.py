"""Pretrained transformers networks with their tokenizers: loaded quietly from local files, whole or as an empty shell."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.models.batching import like_lengths, pad
from negsample.models.language import model_files

KINDS = {
    "masked": "AutoModelForMaskedLM",
    "causal": "AutoModelForCausalLM",
    "encoder-decoder": "AutoModelForSeq2SeqLM",
    "question-answering": "AutoModelForQuestionAnswering",
}
"""Kind of a network with a trained head → the class that loads it."""
_LOCAL = {"local_files_only": True, "trust_remote_code": False}
# Read at a time by a network that has neither a longest input nor a tokenizer that names one. Larger "limits" are ways
# of saying that there is none.
_DEFAULT_WINDOW = 512
_NO_LIMIT = 1 << 20
# Tokens of a batch on a CPU, whose states then stay in its cache; padded ones that cost as much as a batch of their own.
_CPU_TOKENS, _GPU_TOKENS, _PADDING = 1024, 16384, 32


def choice(name: str, value: str, allowed: Sequence[str]) -> str:
    """``value`` if it is one of ``allowed``, else raise InputError."""
    if value not in allowed:
        raise InputError(f"{name}={value!r} is not known; choose one of {', '.join(allowed)}")
    return value


def pick_device(device: Any = "auto") -> str:
    """The name of the torch device to run on; ``"auto"`` (or None) is a GPU where there is one.

    Raises InputError, with what there is here, for any other than that.
    """
    import torch

    there = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
    there[1:1] = ["cuda"] * (len(there) > 1) + ["mps"] * torch.backends.mps.is_available()
    if device is None or device == "auto":
        return "cuda" if "cuda" in there else "cpu"
    if str(device) not in there:
        raise InputError(f"device={str(device)!r} is not there; choose one of auto, {', '.join(there)}")
    return str(device)


@dataclass(frozen=True, eq=False)
class Pretrained:
    """A network in evaluation mode and its tokenizer; what it answers with is float32, whatever it computes in.

    ``limit``: the longest input in tokens, special ones included. ``kind``: one of ``KINDS``, or empty: an encoder, without a
    head. ``fingerprint``: 64 hex digits of weights, tokenizer and configuration, of a network with a head.
    """

    network: Any
    tokenizer: Any
    limit: int
    device: str
    kind: str = ""
    fingerprint: str = ""

    @property
    def width(self) -> int:
        return int(self.network.config.hidden_size)

    @cached_property
    def projects_plainly(self) -> bool:
        """Whether the logits are the last layer of the base model's states, with nothing (a cap, a scale) behind it."""
        import torch

        last = self.network.get_output_embeddings()
        if not isinstance(last, torch.nn.Linear):
            return False
        ids = torch.tensor([[1, 2, 3]], device=self.device)
        with torch.inference_mode():
            told = self.network(input_ids=ids).logits
            found = last(self.network.base_model(input_ids=ids).last_hidden_state)
            return told.shape == found.shape and bool(torch.allclose(told, found, rtol=1e-4, atol=1e-4))

    @property
    def window(self) -> int:
        """Tokens read at a time: ``limit``, and 512 where there is none."""
        return self.limit if self.limit <= _NO_LIMIT else _DEFAULT_WINDOW


def load_network(
    model: str | Path, kind: str = "", device: str = "auto", limit: int = 0, *, only_reads: bool = True
) -> Pretrained:
    """The network in the folder or hub id ``model``, in float32; ``limit`` shortens its longest input (0: its own).

    ``kind``: one of ``KINDS``; by default the network without a head, and of an encoder–decoder only the encoder.
    ``only_reads``: its linear layers may be packed (``negsample.models.kernels``). No code that comes with it is run. Raises
    InputError where it can't be had or loaded so, its weights are damaged or missing (transformers would make them up),
    or, of those with a head, its tokenizer is a slow one.
    """
    import torch
    import transformers

    from negsample.models.kernels import pack

    place = pick_device(device)
    folder = model if isinstance(model, Path) else model_files.model_folder(model)
    model_files.need_weights(folder)
    # Before transformers sees the folder: this names a missing or damaged file.
    digest = model_files.fingerprint(KINDS[kind], {}, model_files.fingerprint_parts(folder)) if kind else ""
    named = f" as {KINDS[kind]}" if kind else ""
    with model_files.quiet(), model_files.telling(folder, f"transformers cannot load it{named}", "give a whole model"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **_LOCAL)
        config = transformers.AutoConfig.from_pretrained(folder, **_LOCAL)
        has_encoder = config.is_encoder_decoder and type(config) in transformers.MODEL_FOR_TEXT_ENCODING_MAPPING
        plain = "AutoModelForTextEncoding" if has_encoder else "AutoModel"
        loader = getattr(transformers, KINDS[kind] if kind else plain)
        network, info = loader.from_pretrained(
            folder, config=config, dtype=torch.float32, output_loading_info=True, **_LOCAL
        )
    # A pooler on the [CLS] token is not used here, and many published encoders leave it out.
    if missing := sorted(key for key in info["missing_keys"] if "pooler" not in key):
        what, advice = (f" that {KINDS[kind]} needs", "model trained for this task") if kind else ("", "whole model")
        raise InputError(f"{folder}: {len(missing)} weights{what} are missing, such as {missing[0]}; give a {advice}")
    if kind and not tokenizer.is_fast:
        raise InputError(f"{model}: its tokenizer does not say where tokens stand in the text; add a tokenizer.json")
    if config.is_encoder_decoder and not has_encoder and not kind:
        network = network.get_encoder()
    longest = min(tokenizer.model_max_length, _learnt_positions(network))
    network = network.eval().to(place)
    if only_reads:
        pack(network)
    return Pretrained(network, tokenizer, min(limit or longest, longest), place, kind, digest)


shared_network = lru_cache(maxsize=2)(load_network)
"""``load_network``, remembered: two metrics that name the same model share it."""


def _learnt_positions(network: Any) -> int:
    """How many tokens the network has learnt positions for; RoBERTa's table begins after its padding index."""
    import torch

    most = getattr(network.config, "max_position_embeddings", None) or -1
    if most < 0:
        return 1 << 30
    tables = (getattr(module, "position_embeddings", None) for module in network.modules())
    offsets = [t.padding_idx + 1 for t in tables if isinstance(t, torch.nn.Embedding) and t.padding_idx is not None]
    return int(most) - max(offsets, default=0)


def load_pretrained(name: str, attention: str = "sdpa") -> tuple[Any, Any, int]:
    """(network, tokenizer, longest input in tokens) to be fine-tuned, in float32 on the CPU, its pooler left out.

    ``name`` is ``minilm`` (the packaged one), a folder, or a hub id. Raises InputError as ``load_network`` does.
    """
    made = load_network(model_files.minilm_folder() if name == "minilm" else name, device="cpu", only_reads=False)
    made.network.set_attn_implementation(attention)
    # No head uses the layer, which nothing would train.
    made.network.pooler = None
    return made.network, made.tokenizer, made.limit


def load_shell(folder: Path, attention: str = "sdpa") -> tuple[Any, Any]:
    """(network with no trained weights, tokenizer) from the config and tokenizer files in ``folder``; no request goes out.

    Raises InputError where a file is missing or damaged.
    """
    import torch
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    told = model_files.telling(folder, "the encoder's files are damaged or missing", "copy the model again")
    # The weights drawn here are thrown away, and must not move anybody's random state.
    with told, model_files.quiet(), torch.random.fork_rng(devices=[]):
        tokenizer = AutoTokenizer.from_pretrained(str(folder), **_LOCAL)
        config = AutoConfig.from_pretrained(str(folder), **_LOCAL)
        network = AutoModel.from_config(config, attn_implementation=attention, dtype=torch.float32)
    network.pooler = None
    return network, tokenizer


def padded(rows: Sequence[Sequence[int]], fill: int, device: str) -> tuple[Any, Any]:
    """Return (ids, mask), int64 tensors [b, longest]: ``rows`` filled up on the right with ``fill``, which the mask hides."""
    import torch

    ids, mask = pad([np.array(row, np.int64) for row in rows], fill)
    return torch.from_numpy(ids).to(device), torch.from_numpy(mask.astype(np.int64)).to(device)


def token_batches(read: Mapping[str, Any], tokenizer: Any, device: str) -> Iterator[tuple[list[int], dict[str, Any]]]:
    """Batches of texts that ``tokenizer`` has ``read``, not padded: their numbers [b], and what a network is given, int64 [b, t].

    Those of a batch have about as many tokens; a text without a single one is in none.
    """
    # Padded places are masked: a tokenizer without a padding token may pad with any.
    fills = {"input_ids": tokenizer.pad_token_id or 0, "token_type_ids": tokenizer.pad_token_type_id}
    fields = [name for name in (*tokenizer.model_input_names, "special_tokens_mask") if name in read]
    lengths = [len(ids) for ids in read["input_ids"]]
    most = _CPU_TOKENS if device == "cpu" else _GPU_TOKENS
    for rows in like_lengths(lengths, device, most, padding=_PADDING):
        yield rows, {name: padded([read[name][row] for row in rows], fills.get(name, 0), device)[0] for name in fields}

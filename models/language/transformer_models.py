"""Transformers models as this project uses them: loaded quietly from local files, and run over texts in batches."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.models.batching import like_lengths, pad
from negsample.models.language.model_files import fingerprint, need_weights, one_line, quiet

_CHUNK = 4096
_LOCAL = {"local_files_only": True, "trust_remote_code": False}


def choice(name: str, value: str, allowed: Sequence[str]) -> str:
    """Return ``value`` if it is one of ``allowed``, else raise InputError."""
    if value not in allowed:
        raise InputError(f"{name}={value!r} is not known; choose one of {', '.join(allowed)}")
    return value


def pick_device(device: str = "auto") -> str:
    """Return the torch device to run on: ``"auto"`` is ``"cuda"`` where there is one, else ``"cpu"``."""
    import torch

    choice("device", device.partition(":")[0], ("auto", "cpu", "cuda"))
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device={device!r}, but torch sees no GPU here; use device=cpu or device=auto")
    return device


@dataclass(frozen=True, eq=False)
class TokenModel:
    """A tokenizer and the network that reads its tokens; ``limit`` is the longest input in tokens, special ones too.

    ``precision``: in which the network computes (``negsample.models.precision``); what it answers with is float32.
    """

    tokenizer: Any
    network: Any
    limit: int
    device: str
    precision: str = "float32"

    @property
    def width(self) -> int:
        return int(self.network.config.hidden_size)

    def in_bf16(self) -> "TokenModel":
        """Return a copy that computes in bfloat16. Raises InputError where the device has no instructions for it."""
        from negsample.models.precision import check_precision, to_bf16

        check_precision("bf16", self.device)
        network = deepcopy(self.network)
        to_bf16(network)
        return replace(self, network=network, precision="bf16")

    def mark(self, digest: str) -> str:
        """Return the fingerprint of an encoder over this network; ``digest`` is that in float32."""
        if self.precision == "float32":
            return digest
        return fingerprint(self.precision, {}, [("float32", digest.encode())])


def read_model(folder: Path, kind: str = "") -> tuple[Any, Any]:
    """Return (network in float32 and evaluation mode, tokenizer) of a local folder; no request goes out, no remote code runs.

    ``kind`` is the transformers class that loads it (``AutoModelFor…``); by default the network without a head, and of an
    encoder–decoder only the encoder. Raises InputError where the folder is no model, needs code of its own, or weights
    are damaged or missing (transformers would make them up).
    """
    import torch
    import transformers

    need_weights(folder)
    with quiet():
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **_LOCAL)
            config = transformers.AutoConfig.from_pretrained(folder, **_LOCAL)
            has_encoder = config.is_encoder_decoder and type(config) in transformers.MODEL_FOR_TEXT_ENCODING_MAPPING
            loader = getattr(transformers, kind or ("AutoModelForTextEncoding" if has_encoder else "AutoModel"))
            network, info = loader.from_pretrained(
                folder, config=config, dtype=torch.float32, output_loading_info=True, **_LOCAL
            )
        # transformers passes on OSError, ValueError, KeyError, RuntimeError and the readers' own errors.
        except Exception as error:
            what = f" as {kind}" if kind else ""
            raise InputError(
                f"{folder}: transformers cannot load it{what} ({one_line(error)}); give a whole model"
            ) from error
    # A pooler on the [CLS] token is not used here, and many published encoders leave it out.
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key)
    if missing:
        what, advice = (f" that {kind} needs", "model trained for this task") if kind else ("", "whole model")
        raise InputError(f"{folder}: {len(missing)} weights{what} are missing, such as {missing[0]}; give a {advice}")
    if config.is_encoder_decoder and not has_encoder and not kind:
        network = network.get_encoder()
    return network.eval(), tokenizer


def load_model(folder: Path, device: str = "auto", limit: int = 0) -> TokenModel:
    """Return the tokenizer and encoder network of a local folder; ``limit`` shortens the longest input (0: its own).

    Raises InputError as ``read_model`` does.
    """
    place = pick_device(device)
    network, tokenizer = read_model(folder)
    longest = min(tokenizer.model_max_length, learnt_positions(network))
    return TokenModel(tokenizer, network.to(place), min(limit or longest, longest), place)


def learnt_positions(network: Any) -> int:
    """Return how many tokens the network has learnt positions for; RoBERTa's table begins after its padding index."""
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


@dataclass(frozen=True)
class Layers:
    """Layers of a network, counted from the end (−1: the last), and how their vectors are joined: ``mean`` or ``concat``."""

    numbers: tuple[int, ...] = (-1,)
    join: str = "mean"

    @property
    def option(self) -> int | str:
        """How a specification names them: a number, or ``mean(-3,-1)``."""
        return self.numbers[0] if len(self.numbers) == 1 else f"{self.join}({','.join(map(str, self.numbers))})"


LAST = Layers()


def run_batches(
    model: TokenModel, texts: Sequence[str], counts: Counter[str], layers: Layers = LAST
) -> Iterator[Batch]:
    """Yield token vectors of ``layers`` for ``texts``, batches of like length.

    A text longer than ``model.limit`` loses its end and is counted in ``counts["truncated"]``. A text without a single
    token is in no batch. Call it inside ``torch.inference_mode()``.
    """
    import torch

    fields = ["input_ids", "attention_mask", *({"token_type_ids"} & set(model.tokenizer.model_input_names))]
    # Padded places are masked: a tokenizer without a padding token may pad with any.
    fills = {"input_ids": model.tokenizer.pad_token_id or 0, "token_type_ids": model.tokenizer.pad_token_type_id}
    for start in range(0, len(texts), _CHUNK):
        chunk = list(texts[start : start + _CHUNK])
        tokens = model.tokenizer(
            chunk, truncation=True, max_length=model.limit, return_special_tokens_mask=True, return_attention_mask=True
        )
        counts["truncated"] += _truncated(model, chunk, tokens["input_ids"])
        for rows in like_lengths([len(ids) for ids in tokens["input_ids"]], model.device):
            inputs = {
                name: padded([tokens[name][row] for row in rows], fills.get(name, 0), model.device)[0]
                for name in [*fields, "special_tokens_mask"]
            }
            special = inputs.pop("special_tokens_mask").bool()
            output = model.network(**inputs, output_hidden_states=layers.numbers != LAST.numbers)
            if layers.numbers == LAST.numbers:
                hidden = output.last_hidden_state
            else:
                states = [output.hidden_states[number] for number in layers.numbers]
                hidden = torch.cat(states, dim=-1) if layers.join == "concat" else torch.stack(states).mean(dim=0)
            yield Batch([start + row for row in rows], hidden, inputs["attention_mask"].bool(), special)


def encode_texts(
    model: TokenModel,
    texts: Sequence[str],
    counts: Counter[str],
    dim: int,
    vectors_of: Callable[[Batch], Any],
    layers: Layers = LAST,
) -> np.ndarray:
    """Return ``vectors_of`` [b, dim] of every batch of ``run_batches``, a row of zeros for a text without a token.

    float32 [len(texts), dim].
    """
    import torch

    result = np.zeros((len(texts), dim), dtype=np.float32)
    with torch.inference_mode():
        for batch in run_batches(model, texts, counts, layers):
            result[batch.rows] = vectors_of(batch).float().cpu().numpy()
    return result


def padded(rows: Sequence[Sequence[int]], fill: int, device: str) -> tuple[Any, Any]:
    """Return (ids, mask), int64 tensors [b, longest]: ``rows`` filled up on the right with ``fill``, which the mask hides."""
    import torch

    ids, mask = pad([np.array(row, np.int64) for row in rows], fill)
    return torch.from_numpy(ids).to(device), torch.from_numpy(mask.astype(np.int64)).to(device)


def _truncated(model: TokenModel, texts: list[str], ids: list[list[int]]) -> int:
    """Return how many of ``texts`` have more tokens than the limit."""
    full = [text for text, row in zip(texts, ids, strict=True) if len(row) >= model.limit]
    if not full:
        return 0
    return sum(len(row) > model.limit for row in model.tokenizer(full, verbose=False)["input_ids"])

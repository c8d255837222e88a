"""Language models: where the one that ``lm`` names lies, and −log P of the tokens of a text, alone or given another."""

import copy
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.io.files import file_digest
from negsample.models.batching import like_lengths
from negsample.models.embedding_cache import cache_root
from negsample.models.language.model_files import gemma_file, model_folder, quiet, reason_of
from negsample.models.language.networks import Pretrained, load_network, padded, shared_network
from negsample.terminal import say
from negsample.text import readable

PACKAGED = "packaged"
_GGUF = "gguf:"
PROMPTS = {"causal": "{document}\n\nTL;DR:\n", "encoder-decoder": "{document}"}
"""What a model of each kind reads before the summary by default."""
# Tokens that a model must be able to read at a time.
SMALLEST_WINDOW = 8
# A beginning that several texts share is read once where it has so many tokens.
_WORTH_SHARING = 64
# Padded tokens of a batch, beside the shared ones; where the whole vocabulary's logits must be kept, so many of those.
_MOST_TOKENS = 4096
_MOST_LOGITS = 512
# Padded tokens that are cheaper than a batch more, which copies the shared ones.
_PADDING = 64
# Entries of the vocabulary, and places, whose logits are computed together: they stay in the processor's cache.
_VOCABULARY_BLOCK, _PLACES = 2048, 512
# Tokens of shared beginnings that are kept at a time, copies for each text of a batch included.
_MOST_SHARED = 1 << 15
# Masked rows in memory at a time.
_CHUNK = 4096


def load_lm(
    lm: str, kind: str = "", device: str = "auto", *, shared: bool = True, only_reads: bool = True
) -> Pretrained:
    """The language model ``lm``: ``packaged``, ``gguf:FILE``, a folder, or a hub id; ``shared``: remembered for who asks again.

    ``kind``: ``masked``, ``causal`` or ``encoder-decoder``; by default what its configuration says. Raises InputError
    where there is none, it cannot be loaded as one, has no mask token, or (causal) its predictions look ahead.
    """
    folder = lm_folder(lm)
    load = shared_network if shared else load_network
    model = load(folder, kind or lm_kind(lm, folder), device, only_reads=only_reads)
    if model.kind == "masked" and model.tokenizer.mask_token_id is None:
        raise InputError(f"{lm}: its tokenizer has no mask token; give a masked language model")
    if model.kind == "causal" and not _looks_back_only(model):
        raise InputError(f"{lm}: its predictions depend on later tokens; give a causal language model")
    return model


def lm_folder(lm: str) -> Path:
    """The local folder of ``lm``: ``packaged``, ``gguf:FILE``, a folder, or a hub id.

    A GGUF file is read by transformers, its weights made float32, and kept under the cache's root, so that the minute
    that takes is spent once. Raises InputError where there is none or it can't be read.
    """
    if lm == PACKAGED:
        with tempfile.TemporaryDirectory() as scratch:
            return _converted(gemma_file(Path(scratch)))
    if lm.startswith(_GGUF):
        path = Path(lm.removeprefix(_GGUF)).expanduser()
        if not path.is_file():
            raise InputError(f"lm={lm}: there is no file {path}; give gguf:FILE")
        return _converted(path)
    return model_folder(lm)


def _converted(path: Path) -> Path:
    import torch
    import transformers

    target = cache_root() / "gguf" / file_digest(path).hex()[:32]
    if (target / "config.json").is_file():
        return target
    say(f"negsample: reading {path.name} and keeping it in {target} (once; about a minute)", error=True)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(dir=target.parent, prefix=".", ignore_cleanup_errors=True)
    except OSError as error:
        raise InputError(f"{target}: can't be written ({error}); set NEGSAMPLE_CACHE to another folder") from None
    with scratch as made, quiet():
        try:
            place, file = path.parent, path.name
            tokenizer = transformers.AutoTokenizer.from_pretrained(place, gguf_file=file)
            network = transformers.AutoModelForCausalLM.from_pretrained(place, gguf_file=file, dtype=torch.float32)
            # What is written is no longer quantised.
            if hasattr(network.config, "quantization_config"):
                del network.config.quantization_config
            network.hf_quantizer = None  # type: ignore[assignment]
            network.save_pretrained(made)
            tokenizer.save_pretrained(made)
            if not (target / "config.json").is_file():
                Path(made).rename(target)
        # transformers and gguf raise errors of many kinds.
        except Exception as error:
            raise InputError(
                f"{path}: transformers cannot read this GGUF file ({reason_of(error)}); give another, or a model's folder"
            ) from error
    return target


def lm_kind(lm: str, folder: Path) -> str:
    """``masked``, ``causal`` or ``encoder-decoder``, as the configuration in ``folder`` says; ``lm``: its name in messages.

    Raises InputError where it is none of them.
    """
    try:
        told = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        name = str(told["architectures"][0])
    except (OSError, ValueError, LookupError, TypeError):
        told, name = {}, "nothing that its config.json names"
    if name.endswith("ForMaskedLM"):
        return "masked"
    if name.endswith(("ForCausalLM", "LMHeadModel")):
        return "causal"
    if name.endswith("ForConditionalGeneration") and told.get("is_encoder_decoder"):
        return "encoder-decoder"
    raise InputError(
        f"{lm}: made as {name}, no masked or causal language model and no encoder–decoder; give a language model (gpt2, "
        "facebook/bart-large-cnn, roberta-base, …)"
    )


def _looks_back_only(model: Pretrained) -> bool:
    """Whether the first token's logits stay as they are when the last token changes."""
    import torch

    ids = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 2]], device=model.device)
    with torch.inference_mode():
        first = model.network(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[:, 0].float()
    return bool(torch.allclose(first[0], first[1], rtol=1e-4, atol=1e-4))


def special_frame(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens that the model expects before and after a text."""
    read = tokenizer("a", return_special_tokens_mask=True)
    ids, inner = read["input_ids"], [place for place, mark in enumerate(read["special_tokens_mask"]) if not mark]
    return (ids[: inner[0]], ids[inner[-1] + 1 :]) if inner else (ids, [])


def framed(model: Pretrained, prompt: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tokens before and after ``{document}`` in ``prompt``, with the special ones that the model expects there."""
    before, after = (
        model.tokenizer(part, add_special_tokens=False, verbose=False)["input_ids"]
        for part in prompt.split("{document}")
    )
    begin = model.tokenizer.bos_token_id
    decodes = model.kind == "encoder-decoder"
    first, last = special_frame(model.tokenizer) if decodes else ([] if begin is None else [begin], [])
    return (*first, *before), (*after, *last)


@dataclass(frozen=True)
class Asked:
    """What is asked: −log P of ``target``, after ``shared`` (read once for all that have the same) and then ``own``.

    Token ids. For an encoder–decoder ``shared`` + ``own`` is the encoder's input. For a causal model they have a token.
    """

    shared: tuple[int, ...]
    own: tuple[int, ...]
    target: tuple[int, ...]


def token_losses(model: Pretrained, texts: Sequence[str], window: int = 0) -> list[np.ndarray]:
    """For each text −log P of every token, in nats, float64 [tokens]; ``window``: tokens read at a time (0: all it can).

    A masked model: each token masked in turn, given all others in its window (Salazar et al. 2020, §2.1). A causal one:
    each token given those before it; where the model has no beginning token, from the second on.
    """
    window = window or model.window
    read = model.tokenizer(list(map(readable, texts)), add_special_tokens=False, verbose=False) if texts else {}
    tokens: list[list[int]] = read.get("input_ids", [])
    if model.kind == "masked":
        losses = _masked(model, window, tokens)
        return [np.array([next(losses) for _ in ids], np.float64) for ids in tokens]
    begin = model.tokenizer.bos_token_id
    rows = [ids if begin is None else [begin, *ids] for ids in tokens]
    asked, owners = [], []
    for number, ids in enumerate(rows):
        start, done = 0, 1
        while done < len(ids):
            stop = min(start + window, len(ids))
            # Tokens before ``done`` had their turn in the window before, half of which is read again.
            asked.append(Asked((), tuple(ids[start:done]), tuple(ids[done:stop])))
            owners.append(number)
            start, done = start + window // 2, stop
    parts: list[list[np.ndarray]] = [[np.zeros(0)] for _ in texts]
    for owner, losses_of in zip(owners, losses_given(model, asked), strict=True):
        parts[owner].append(losses_of)
    return [np.concatenate(own) for own in parts]


def _masked(model: Pretrained, window: int, tokens: Sequence[Sequence[int]]) -> Iterator[float]:
    """−log P of every token of all texts, in order, each masked in the middle of a window of its own."""
    import torch

    before, after = special_frame(model.tokenizer)
    room = window - len(before) - len(after)
    places = [(ids, place) for ids in tokens for place in range(len(ids))]
    for start in range(0, len(places), _CHUNK):
        rows, at = [], []
        for ids, place in places[start : start + _CHUNK]:
            # The token stands in the middle of its window, or as near to it as the text's ends allow.
            begin = min(max(place - room // 2, 0), max(len(ids) - room, 0))
            rows.append([*before, *ids[begin : begin + room], *after])
            at.append(len(before) + place - begin)
        targets = [row[place] for row, place in zip(rows, at, strict=True)]
        losses = np.zeros(len(rows))
        with torch.inference_mode():
            for batch in like_lengths([len(row) for row in rows], model.device, _MOST_TOKENS):
                for k in batch:
                    rows[k][at[k]] = model.tokenizer.mask_token_id
                ids, mask = padded([rows[k] for k in batch], model.tokenizer.pad_token_id or 0, model.device)
                inputs = {"input_ids": ids, "attention_mask": mask}
                where = [(row, at[k]) for row, k in enumerate(batch)]
                losses[batch] = _losses_at(model, inputs, where, [targets[k] for k in batch])
        yield from losses.tolist()


def losses_given(model: Pretrained, asked: Sequence[Asked]) -> list[np.ndarray]:
    """Return for each of ``asked`` −log P of every target token given those before it, in nats: float64 [tokens].

    ``model`` is a causal model or an encoder–decoder (BARTScore, Yuan et al. 2021, is the mean of the latter). The answer
    does not depend on what else is asked (to about 1e-5).
    """
    import torch

    groups: dict[tuple[int, ...], list[int]] = {}
    for number, one in enumerate(asked):
        groups.setdefault(one.shared if len(one.shared) >= _WORTH_SHARING else (), []).append(number)
    decode = model.kind == "encoder-decoder"
    answers = [np.zeros(0)] * len(asked)
    with torch.inference_mode():
        plain = not decode and model.projects_plainly
        for shared, numbers in groups.items():
            rows = [asked[number] for number in numbers]
            for row, losses in _decoded(model, rows) if decode else _continued(model, shared, rows, plain):
                answers[numbers[row]] = losses
    return answers


def _continued(
    model: Pretrained, shared: tuple[int, ...], rows: Sequence[Asked], plain: bool
) -> Iterator[tuple[int, np.ndarray]]:
    """A causal model reads ``shared``, but for its last token, once; its keys and values are copied for each row."""
    import torch

    given = [one.own if shared else (*one.shared, *one.own) for one in rows]
    inputs = [[*shared[-1:], *own, *one.target[:-1]] for own, one in zip(given, rows, strict=True)]
    before = None
    if shared:
        ids = torch.tensor([shared[:-1]], device=model.device)
        before = model.network.base_model(input_ids=ids, use_cache=True)["cache"]
    known = max(0, len(shared) - 1)
    most = _MOST_TOKENS if plain else _MOST_LOGITS
    lengths = [len(row) if one.target else 0 for row, one in zip(inputs, rows, strict=True)]
    for batch in like_lengths(lengths, model.device, most, max(1, _MOST_SHARED // (known + 1)), _PADDING):
        ids, mask = padded([inputs[row] for row in batch], model.tokenizer.pad_token_id or 0, model.device)
        more: dict[str, Any] = {}
        if before is not None:
            more["cache"] = copy.deepcopy(before)
            more["cache"].batch_repeat_interleave(len(batch))
            mask = torch.cat([mask.new_ones(len(batch), known), mask], dim=1)
        firsts = [len(inputs[row]) - len(rows[row].target) for row in batch]
        targets = [rows[row].target for row in batch]
        found = _answers(model, {"input_ids": ids, "attention_mask": mask, **more}, firsts, targets, plain)
        yield from zip(batch, found, strict=True)


def _decoded(model: Pretrained, rows: Sequence[Asked]) -> Iterator[tuple[int, np.ndarray]]:
    """An encoder–decoder reads each different input once, and decodes the targets from it."""
    import torch
    from transformers.modeling_outputs import BaseModelOutput

    start = model.network.config.decoder_start_token_id
    fill = model.tokenizer.pad_token_id or 0
    sources: dict[tuple[int, ...], list[int]] = {}
    for row, one in enumerate(rows):
        sources.setdefault((*one.shared, *one.own), []).append(row)
    for source, numbers in sources.items():
        ids = torch.tensor([source], device=model.device)
        encoded = model.network.get_encoder()(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        lengths = [len(rows[row].target) for row in numbers]
        for chosen in like_lengths(lengths, model.device, _MOST_LOGITS):
            batch = [numbers[k] for k in chosen]
            targets = [rows[row].target for row in batch]
            given, mask = padded([[start, *target[:-1]] for target in targets], fill, model.device)
            inputs = {
                "encoder_outputs": BaseModelOutput(encoded.expand(len(batch), -1, -1)),
                "attention_mask": mask.new_ones(len(batch), len(source)),
                "decoder_input_ids": given,
                "decoder_attention_mask": mask,
            }
            yield from zip(batch, _answers(model, inputs, [0] * len(batch), targets, False), strict=True)


def _answers(
    model: Pretrained, inputs: dict[str, Any], firsts: list[int], targets: list[tuple[int, ...]], plain: bool
) -> list[np.ndarray]:
    """The losses of each row's ``targets``, which are foretold from the place ``firsts`` on."""
    places = [(row, first + i) for row, first in enumerate(firsts) for i in range(len(targets[row]))]
    losses = _losses_at(model, inputs, places, [token for target in targets for token in target], plain)
    return np.split(losses, np.cumsum([len(target) for target in targets])[:-1])


def _losses_at(
    model: Pretrained, inputs: dict[str, Any], places: list[tuple[int, int]], targets: list[int], plain: bool = False
) -> np.ndarray:
    """−log P of each of ``targets`` at its place (row, position) of the batch ``inputs``; float64 [k]."""
    import torch

    wanted = torch.tensor(targets, device=model.device)
    row, place = torch.tensor(places, device=model.device).T
    if plain:
        hidden = model.network.base_model(**inputs, use_cache=False).last_hidden_state
        losses = _blockwise_losses(model.network.get_output_embeddings(), hidden[row, place], wanted)
    else:
        logits = _logits_at(model.network, inputs, row, place)
        losses = torch.nn.functional.cross_entropy(logits.float(), wanted, reduction="none")
    return losses.cpu().double().numpy()


def _blockwise_losses(projection: Any, hidden: Any, targets: Any) -> Any:
    """log Σ exp of the logits minus the target's, [k] of ``hidden`` [k, d]: the logits of a large vocabulary never stand
    in memory together."""
    import torch

    from negsample.models.kernels import linear

    weight, bias = projection.weight, projection.bias
    total = None
    for start in range(0, len(weight), _VOCABULARY_BLOCK):
        block = slice(start, start + _VOCABULARY_BLOCK)
        own = weight[block], None if bias is None else bias[block]
        part = torch.cat([torch.logsumexp(linear(rows, *own).float(), dim=-1) for rows in hidden.split(_PLACES)])
        total = part if total is None else torch.logaddexp(total, part)
    chosen = (hidden.float() * weight[targets].float()).sum(dim=-1)
    return total - (chosen if bias is None else chosen + bias[targets].float())


def _logits_at(network: Any, inputs: dict[str, Any], row: Any, place: Any) -> Any:
    """Logits [k, vocabulary] at the places ``(row, place)`` [k] of the batch ``inputs``.

    The last layer, the widest, is given the vectors of those places only: at all of them it would take gigabytes of memory.
    """
    last = network.get_output_embeddings()
    hook = last.register_forward_pre_hook(lambda _, given: (given[0][row, place],)) if last is not None else None
    try:
        logits = network(**inputs).logits
    finally:
        if hook is not None:
            hook.remove()
    # A model that multiplies by its embeddings without calling that layer gives the logits of all places.
    return logits if logits.dim() == 2 else logits[row, place]

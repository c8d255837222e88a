"""−log P of a text's tokens given what stands before it: read in a row by a causal model, or by an encoder–decoder."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from negsample.models.batching import like_lengths
from negsample.models.language.head_models import HeadModel, special_frame
from negsample.models.language.transformer_models import padded

PROMPTS = {"causal": "{document}\n\nTL;DR:\n", "encoder-decoder": "{document}"}
"""What a model of each kind reads before the summary by default."""
# A beginning that several texts share is read once where it has so many tokens.
_WORTH_SHARING = 64
# Padded tokens of a batch, beside the shared ones; where the whole vocabulary's logits must be kept, so many of those.
_MOST_TOKENS = 4096
_MOST_LOGITS = 512
# Entries of the vocabulary whose logits are computed together: they stay in the processor's cache.
_VOCABULARY_BLOCK = 8192
# Tokens of shared beginnings that are kept at a time, copies for each text of a batch included.
_MOST_SHARED = 1 << 15


@dataclass(frozen=True)
class Asked:
    """What is asked: −log P of ``target``, after ``shared`` (read once for all that have the same) and then ``own``.

    Token ids. For an encoder–decoder ``shared`` + ``own`` is the encoder's input. For a causal model they have a token.
    """

    shared: tuple[int, ...]
    own: tuple[int, ...]
    target: tuple[int, ...]


def framed(head: HeadModel, prompt: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tokens before and after ``{document}`` in ``prompt``, with the special ones that the model expects there."""
    before, after = (
        head.tokenizer(part, add_special_tokens=False, verbose=False)["input_ids"]
        for part in prompt.split("{document}")
    )
    begin = head.tokenizer.bos_token_id
    first, last = (
        special_frame(head.tokenizer)
        if head.network.config.is_encoder_decoder
        else ([] if begin is None else [begin], [])
    )
    return (*first, *before), (*after, *last)


def losses_given(head: HeadModel, asked: Sequence[Asked]) -> list[np.ndarray]:
    """Return for each of ``asked`` −log P of every target token given those before it, in nats: float64 [tokens].

    ``head`` is a causal model or an encoder–decoder (BARTScore, Yuan et al. 2021, is the mean of the latter). The answer
    does not depend on what else is asked (to about 1e-5).
    """
    import torch

    groups: dict[tuple[int, ...], list[int]] = {}
    for number, one in enumerate(asked):
        groups.setdefault(one.shared if len(one.shared) >= _WORTH_SHARING else (), []).append(number)
    decode = bool(head.network.config.is_encoder_decoder)
    answers = [np.zeros(0)] * len(asked)
    with torch.inference_mode():
        plain = not decode and _projects_plainly(head)
        for shared, numbers in groups.items():
            rows = [asked[number] for number in numbers]
            run = _decoded(head, rows) if decode else _continued(head, shared, rows, plain)
            for row, losses in run:
                answers[numbers[row]] = losses
    return answers


def _continued(
    head: HeadModel, shared: tuple[int, ...], rows: Sequence[Asked], plain: bool
) -> Iterator[tuple[int, np.ndarray]]:
    """A causal model reads ``shared``, but for its last token, once; its keys and values are copied for each row."""
    import torch

    given = [one.own if shared else (*one.shared, *one.own) for one in rows]
    inputs = [[*shared[-1:], *own, *one.target[:-1]] for own, one in zip(given, rows, strict=True)]
    before, name = None, "cache"
    if shared:
        ids = torch.tensor([shared[:-1]], device=head.device)
        output = head.network.base_model(input_ids=ids, use_cache=True)
        name = name if name in output else "past_key_values"  # as transformers called it before 5.20
        before = output[name]
    known = max(0, len(shared) - 1)
    most = _MOST_TOKENS if plain else _MOST_LOGITS
    lengths = [len(row) if one.target else 0 for row, one in zip(inputs, rows, strict=True)]
    for batch in like_lengths(lengths, head.device, most, max(1, _MOST_SHARED // (known + 1))):
        ids, mask = padded([inputs[row] for row in batch], head.tokenizer.pad_token_id or 0, head.device)
        more: dict[str, Any] = {}
        if before is not None:
            state = copy.deepcopy(before)
            state.batch_repeat_interleave(len(batch))
            more[name] = state
            mask = torch.cat([mask.new_ones(len(batch), known), mask], dim=1)
        places = [
            (k, len(inputs[row]) - len(rows[row].target) + i)
            for k, row in enumerate(batch)
            for i in range(len(rows[row].target))
        ]
        yield from _answers(head, batch, rows, places, plain, {"input_ids": ids, "attention_mask": mask, **more})


def _decoded(head: HeadModel, rows: Sequence[Asked]) -> Iterator[tuple[int, np.ndarray]]:
    """An encoder–decoder reads each different input once, and decodes the targets from it."""
    import torch
    from transformers.modeling_outputs import BaseModelOutput

    start = head.network.config.decoder_start_token_id
    fill = head.tokenizer.pad_token_id or 0
    sources: dict[tuple[int, ...], list[int]] = {}
    for row, one in enumerate(rows):
        sources.setdefault((*one.shared, *one.own), []).append(row)
    for source, numbers in sources.items():
        ids = torch.tensor([source], device=head.device)
        encoded = head.network.get_encoder()(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        lengths = [len(rows[row].target) for row in numbers]
        for chosen in like_lengths(lengths, head.device, _MOST_LOGITS):
            batch = [numbers[k] for k in chosen]
            given, mask = padded([[start, *rows[row].target[:-1]] for row in batch], fill, head.device)
            inputs = {
                "encoder_outputs": BaseModelOutput(encoded.expand(len(batch), -1, -1)),
                "attention_mask": mask.new_ones(len(batch), len(source)),
                "decoder_input_ids": given,
                "decoder_attention_mask": mask,
            }
            places = [(k, i) for k, row in enumerate(batch) for i in range(len(rows[row].target))]
            yield from _answers(head, batch, rows, places, False, inputs)


def _answers(
    head: HeadModel,
    batch: Sequence[int],
    rows: Sequence[Asked],
    places: Sequence[tuple[int, int]],
    plain: bool,
    inputs: dict[str, Any],
) -> Iterator[tuple[int, np.ndarray]]:
    import torch

    targets = torch.tensor([token for row in batch for token in rows[row].target], device=head.device)
    row, place = torch.tensor(places, device=head.device).T
    if plain:
        hidden = head.network.base_model(**inputs, use_cache=False).last_hidden_state
        losses = _blockwise_losses(head.network.get_output_embeddings(), hidden[row, place], targets)
    else:
        logits = logits_at(head.network, inputs, row, place)
        losses = torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none")
    counts = [len(rows[number].target) for number in batch]
    yield from zip(batch, np.split(losses.double().cpu().numpy(), np.cumsum(counts)[:-1]), strict=True)


def _blockwise_losses(projection: Any, hidden: Any, targets: Any) -> Any:
    """log Σ exp of the logits minus the target's, [k] of ``hidden`` [k, d]: the logits of a large vocabulary never stand
    in memory together."""
    import torch
    from torch.nn.functional import linear

    weight, bias = projection.weight, projection.bias
    total = None
    for start in range(0, len(weight), _VOCABULARY_BLOCK):
        block = slice(start, start + _VOCABULARY_BLOCK)
        part = torch.logsumexp(linear(hidden, weight[block], None if bias is None else bias[block]).float(), dim=-1)
        total = part if total is None else torch.logaddexp(total, part)
    chosen = (hidden.float() * weight[targets].float()).sum(dim=-1)
    return total - (chosen if bias is None else chosen + bias[targets].float())


def _projects_plainly(head: HeadModel) -> bool:
    """Whether the logits are the last layer of the base model's states, with nothing (a cap, a scale) behind it."""
    import torch

    last = head.network.get_output_embeddings()
    if not isinstance(last, torch.nn.Linear):
        return False
    ids = torch.tensor([[1, 2, 3]], device=head.device)
    told = head.network(input_ids=ids).logits
    found = last(head.network.base_model(input_ids=ids).last_hidden_state)
    return told.shape == found.shape and bool(torch.allclose(told, found, rtol=1e-4, atol=1e-4))


def logits_at(network: Any, inputs: dict[str, Any], row: Any, place: Any) -> Any:
    """Logits [k, vocabulary] at the places ``(row, place)`` [k] of the batch ``inputs``.

    The last layer, the widest, is given the vectors of those places only; at all places it would take gigabytes of
    memory, and half of the time or more of a small masked model.
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

"""Perplexity of the summary under a language model (P2 §2.2.1): masked, each token in turn, or causal."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.base import Item, Metric, Scores, choice, collect, describe
from negsample.eval.metrics.pretrained import (
    HeadModel,
    batches,
    clean,
    load_head,
    need_model,
    padded,
    pick_window,
)

_SMALLEST_WINDOW = 8
# Inputs in memory at a time; padded tokens in a batch, for each may have logits of a vocabulary's width (200 kB).
_CHUNK = 4096
_MOST_TOKENS = 4096


def mlm(*, model: str = "", value: str = "perplexity", window: int | str = 0, device: str = "auto") -> Metric:
    """``mlm``: pseudo-perplexity of the summary, exp(−1/N·Σ_t log P(w_t | the other tokens)); ≥ 1, lower is better.

    Each of the N tokens is masked in turn (Wang & Cho 2019; Salazar et al. 2020, §2.1). ``model``: folder or hub id of
    a masked language model (P2: BERT base); none is packaged. ``value``: ``perplexity``, or ``loss``, its logarithm.
    ``window``: tokens read at a time (0: as many as the model can); in a longer text each token is read in the middle
    of a window of its own. Cost: N inputs of up to ``window`` tokens a summary. Missing where it has no token.
    """
    need_model("mlm", model, "a masked language model")
    value = choice("value", value, ("perplexity", "loss"))
    head = load_head("AutoModelForMaskedLM", model, device)
    if head.tokenizer.mask_token_id is None:
        raise InputError(f"{model}: its tokenizer has no mask token; give a masked language model")
    return _metric("mlm", model, head, value, window, masked_losses)


def perplexity(*, model: str = "", value: str = "perplexity", window: int | str = 0, device: str = "auto") -> Metric:
    """``perplexity``: exp(−1/N·Σ_t log P(w_t | the tokens before it)) under a causal model; ≥ 1, lower is better.

    ``model``: folder or hub id of a causal language model; none is packaged. The first token is predicted from the
    model's beginning-of-sequence token; where it has none, the first token is not counted. ``value``, ``window``: as
    for ``mlm``; a longer text is read in windows that overlap by half, so that every token has at least half a window
    before it (or all that there is). Missing where no token can be predicted.
    """
    need_model("perplexity", model, "a causal language model")
    value = choice("value", value, ("perplexity", "loss"))
    head = load_head("AutoModelForCausalLM", model, device)
    if not _looks_back_only(head):
        raise InputError(f"{model}: its predictions depend on later tokens; give a causal language model, or use mlm")
    return _metric("perplexity", model, head, value, window, causal_losses)


def _metric(
    name: str,
    model: str,
    head: HeadModel,
    value: str,
    window: int | str,
    losses: Callable[[HeadModel, int, Sequence[str]], list[np.ndarray]],
) -> Metric:
    size = pick_window(head, window, _SMALLEST_WINDOW)
    canonical, signature = describe(
        name, {"model": (model, ""), "value": (value, "perplexity"), "window": (int(window), 0)}
    )
    signature = f"{signature}|read:{size}|weights:{head.fingerprint[:12]}"
    score = partial(_score, head=head, window=size, value=value, losses=losses)
    return Metric(canonical, signature, False, frozenset(), score)


def _score(
    items: Sequence[Item],
    *,
    head: HeadModel,
    window: int,
    value: str,
    losses: Callable[[HeadModel, int, Sequence[str]], list[np.ndarray]],
) -> Scores:
    texts = list(dict.fromkeys(item.summary for item in items))
    means: dict[str, float | str] = {}
    for text, found in zip(texts, losses(head, window, texts), strict=True):
        loss = float(found.mean()) if found.size else math.nan
        if not found.size:
            means[text] = "the summary has no token to predict"
        elif value == "loss":
            means[text] = loss
        else:
            means[text] = math.exp(loss) if loss < 700 else "the perplexity is too large for a number"
    return collect(means[item.summary] for item in items)


class _Input(NamedTuple):
    """One row for the model: its ``ids``; from its logits at ``places`` the ``targets`` are predicted, the losses of
    tokens ``first``, ``first`` + 1, … of text ``text``."""

    text: int
    first: int
    ids: list[int]
    places: Sequence[int]
    targets: Sequence[int]


def masked_losses(head: HeadModel, window: int, texts: Sequence[str]) -> list[np.ndarray]:
    """For each text −log P of every token, masked in turn, given all others in its window; float64 [tokens] each."""
    tokens = _tokens(head, texts)
    before, after = _frame(head.tokenizer)
    room = window - len(before) - len(after)
    mask = head.tokenizer.mask_token_id

    def inputs() -> Iterator[_Input]:
        for text, ids in enumerate(tokens):
            for place, target in enumerate(ids):
                # The token stands in the middle of its window, or as near to it as the text's ends allow.
                begin = min(max(place - room // 2, 0), max(len(ids) - room, 0))
                row = [*before, *ids[begin : begin + room], *after]
                row[len(before) + place - begin] = mask
                yield _Input(text, place, row, (len(before) + place - begin,), (target,))

    return _losses(head, inputs(), [len(ids) for ids in tokens])


def causal_losses(head: HeadModel, window: int, texts: Sequence[str]) -> list[np.ndarray]:
    """For each text −log P of every token given those before it; without a beginning token, from the second on."""
    tokens = _tokens(head, texts)
    begin_id = head.tokenizer.bos_token_id
    rows = [ids if begin_id is None else [begin_id, *ids] for ids in tokens]

    def inputs() -> Iterator[_Input]:
        for text, ids in enumerate(rows):
            begin, done = 0, 1
            while done < len(ids):
                stop = min(begin + window, len(ids))
                # Position k predicts token k + 1; tokens before ``done`` had their turn in the window before.
                places = range(done - 1 - begin, stop - 1 - begin)
                yield _Input(text, done - 1, ids[begin:stop], places, ids[done:stop])
                begin, done = begin + window // 2, stop

    return _losses(head, inputs(), [max(len(ids) - 1, 0) for ids in rows])


def _tokens(head: HeadModel, texts: Sequence[str]) -> list[list[int]]:
    """Token ids of each text, without special tokens and uncut."""
    if not texts:
        return []
    read = head.tokenizer([clean(text) for text in texts], add_special_tokens=False, verbose=False)
    return read["input_ids"]


def _frame(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens that the model expects before and after a text."""
    ids = tokenizer("a")["input_ids"]
    special = tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
    inner = [place for place, mark in enumerate(special) if not mark]
    if not inner:
        return ids, []
    return ids[: inner[0]], ids[inner[-1] + 1 :]


def _losses(head: HeadModel, inputs: Iterator[_Input], sizes: Sequence[int]) -> list[np.ndarray]:
    """−log P of every target, put in its place: float64 [size] for each text; run in batches of like length."""
    import torch

    results = [np.full(size, np.nan) for size in sizes]
    fill = head.tokenizer.pad_token_id or 0
    pending: list[_Input] = []

    def run() -> None:
        for rows in batches([len(entry.ids) for entry in pending], head.device, _MOST_TOKENS):
            chosen = [pending[row] for row in rows]
            ids, mask = padded([entry.ids for entry in chosen], fill, head.device)
            row = torch.tensor([k for k, entry in enumerate(chosen) for _ in entry.places], device=head.device)
            place = torch.tensor([place for entry in chosen for place in entry.places], device=head.device)
            target = torch.tensor([target for entry in chosen for target in entry.targets], device=head.device)
            logits = _logits_at(head.network, ids, mask, row, place)
            loss = torch.nn.functional.cross_entropy(logits.float(), target, reduction="none")
            values = iter(loss.double().cpu().numpy())
            for entry in chosen:
                for offset in range(len(entry.targets)):
                    results[entry.text][entry.first + offset] = next(values)
        pending.clear()

    with torch.inference_mode():
        for entry in inputs:
            pending.append(entry)
            if len(pending) == _CHUNK:
                run()
        run()
    return results


def _logits_at(network: Any, ids: Any, mask: Any, row: Any, place: Any) -> Any:
    """Logits [k, vocabulary] at the places ``(row, place)`` [k] of the batch ``ids`` [b, t].

    The last layer, the widest, is given the vectors of those places only; at all places it would take gigabytes of
    memory, and half of the time or more of a small masked model.
    """
    last = network.get_output_embeddings()
    hook = last.register_forward_pre_hook(lambda _, given: (given[0][row, place],)) if last is not None else None
    try:
        logits = network(input_ids=ids, attention_mask=mask).logits
    finally:
        if hook is not None:
            hook.remove()
    # A model that multiplies by its embeddings without calling that layer gives the logits of all places.
    return logits if logits.dim() == 2 else logits[row, place]


def _looks_back_only(head: HeadModel) -> bool:
    """Whether the first token's logits stay as they are when the last token changes."""
    import torch

    ids = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 2]], device=head.device)
    with torch.inference_mode():
        first = head.network(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[:, 0].float()
    return bool(torch.allclose(first[0], first[1], rtol=1e-4, atol=1e-4))

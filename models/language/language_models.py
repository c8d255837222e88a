"""Masked and causal language models: −log P of every token of texts of any length."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from negsample.errors import InputError
from negsample.models.batching import like_lengths
from negsample.models.language.conditional import logits_at
from negsample.models.language.head_models import HeadModel, load_head, read_head, special_frame
from negsample.models.language.model_files import model_folder
from negsample.models.language.transformer_models import padded
from negsample.text import readable

KINDS = {
    "masked": "AutoModelForMaskedLM",
    "causal": "AutoModelForCausalLM",
    "encoder-decoder": "AutoModelForSeq2SeqLM",
}
"""Kind of language model → the class that loads it."""
# Tokens that a model must be able to read at a time.
SMALLEST_WINDOW = 8
# Inputs in memory at a time; padded tokens in a batch, for each may have logits of a vocabulary's width (200 kB).
_CHUNK = 4096
_MOST_TOKENS = 4096


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A model of ``kind`` (``masked`` or ``causal``) with its head and tokenizer."""

    kind: str
    head: HeadModel

    def losses(self, texts: Sequence[str], window: int = 0) -> list[np.ndarray]:
        """For each text −log P of every token, in nats, float64 [tokens]; ``window``: tokens read at a time (0: all it can).

        ``masked``: each token masked in turn, given all others in its window (Salazar et al. 2020, §2.1). ``causal``:
        each token given those before it; where the model has no beginning token, from the second on.
        """
        measure = masked_losses if self.kind == "masked" else causal_losses
        return measure(self.head, window or self.head.window, texts)


def load_lm(kind: str, model: str, device: str = "auto", *, shared: bool = True) -> LanguageModel:
    """The language model of ``kind`` in the folder or hub id ``model``; ``shared``: remembered for who asks again.

    Raises InputError where it cannot be loaded as one, has no mask token, or (causal) its predictions look ahead.
    """
    head = (load_head if shared else read_head)(KINDS[kind], model, device)
    if kind == "masked" and head.tokenizer.mask_token_id is None:
        raise InputError(f"{model}: its tokenizer has no mask token; give a masked language model")
    if kind == "causal" and not _looks_back_only(head):
        raise InputError(f"{model}: its predictions depend on later tokens; give a causal language model")
    return LanguageModel(kind, head)


def lm_kind(model: str) -> str:
    """``masked``, ``causal`` or ``encoder-decoder``, as the configuration in the folder or hub id ``model`` says.

    Raises InputError where it is none of them.
    """
    folder = model_folder(model)
    try:
        told = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{model}: its config.json cannot be read ({error}); give a language model") from None
    made_for = told.get("architectures") if isinstance(told, dict) else None
    name = str(made_for[0]) if isinstance(made_for, list) and made_for else ""
    if name.endswith("ForMaskedLM"):
        return "masked"
    if name.endswith(("ForCausalLM", "LMHeadModel")):
        return "causal"
    if name.endswith("ForConditionalGeneration") and told.get("is_encoder_decoder"):
        return "encoder-decoder"
    raise InputError(
        f"{model}: made as {name or 'nothing that its config.json names'}, which is no masked or causal language model "
        "and no encoder–decoder; give one (gpt2, facebook/bart-large-cnn, roberta-base, …)"
    )


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
    before, after = special_frame(head.tokenizer)
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
    read = head.tokenizer([readable(text) for text in texts], add_special_tokens=False, verbose=False)
    return read["input_ids"]


def _losses(head: HeadModel, inputs: Iterator[_Input], sizes: Sequence[int]) -> list[np.ndarray]:
    """−log P of every target, put in its place: float64 [size] for each text; run in batches of like length."""
    import torch

    results = [np.full(size, np.nan) for size in sizes]
    fill = head.tokenizer.pad_token_id or 0
    pending: list[_Input] = []

    def run() -> None:
        for rows in like_lengths([len(entry.ids) for entry in pending], head.device, _MOST_TOKENS):
            chosen = [pending[row] for row in rows]
            ids, mask = padded([entry.ids for entry in chosen], fill, head.device)
            row = torch.tensor([k for k, entry in enumerate(chosen) for _ in entry.places], device=head.device)
            place = torch.tensor([place for entry in chosen for place in entry.places], device=head.device)
            target = torch.tensor([target for entry in chosen for target in entry.targets], device=head.device)
            logits = logits_at(head.network, {"input_ids": ids, "attention_mask": mask}, row, place)
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


def _looks_back_only(head: HeadModel) -> bool:
    """Whether the first token's logits stay as they are when the last token changes."""
    import torch

    ids = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 2]], device=head.device)
    with torch.inference_mode():
        first = head.network(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[:, 0].float()
    return bool(torch.allclose(first[0], first[1], rtol=1e-4, atol=1e-4))

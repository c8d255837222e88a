"""A small fine-tuned encoder that reads a text alone and marks its form and its coherence.

Form is a matter of each sentence: it is read sentence by sentence. Coherence is read over the whole text.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from negsample.io.files import file_digest
from negsample.models.align.words import pieces
from negsample.models.encoders import as_texts
from negsample.models.language.model_files import check_weights, load_weights
from negsample.models.language.networks import load_pretrained, load_shell, token_batches
from negsample.recent import Recent

MARKS = ("form", "coherence")
# Tokens that the judge reads at a time; a longer text is read in stretches of whole sentences.
MAX_TOKENS = 256
# Sentences and longer stretches.
_REMEMBERED = 32768


class JudgeNetwork(nn.Module):
    """Mean of the encoder's last states → dropout → one mark for each of ``MARKS``, not bounded.

    ``centre`` and ``scale`` (buffers, [2]) bring the marks to about mean 0 and spread 1 over real text; ``calibrate`` sets them.
    """

    centre: Tensor
    scale: Tensor

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        # A few hundred steps over ever new stretches don't overfit, and the encoder's dropout is a fifth of their time.
        for module in encoder.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        self.dropout = nn.Dropout(0.1)
        self.out = nn.Linear(encoder.config.hidden_size, len(MARKS))  # type: ignore[union-attr, arg-type]
        self.register_buffer("centre", torch.zeros(len(MARKS)))
        self.register_buffer("scale", torch.ones(len(MARKS)))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **rest: Tensor) -> Tensor:
        """Token ids and mask int64 [B, L] → marks float32 [B, 2]."""
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask, **rest).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(states.dtype)
        mean = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
        return (self.out(self.dropout(mean)).float() - self.centre) / self.scale

    def calibrate(self, marks: Sequence[Tensor]) -> None:
        """Take the mean and spread of ``marks`` (of real text, as ``forward`` gives them now; [n] for each mark) out of all
        later marks. A mark of fewer than two texts stays as it is."""
        for column, own in enumerate(marks):
            if len(own) > 1:
                self.centre[column] += own.mean() * self.scale[column]
                self.scale[column] *= own.std().clamp(min=1e-3)


class Judge:
    """The trained network with its tokenizer; what it has read is remembered, for systems share sentences."""

    def __init__(self, network: JudgeNetwork, tokenizer: Any, fingerprint: str = "") -> None:
        self.network, self.tokenizer, self.fingerprint = network.eval(), tokenizer, fingerprint
        self._known: Recent[str, np.ndarray] = Recent(_REMEMBERED)

    def readings(self, texts: Sequence[str]) -> np.ndarray:
        """``SOURCES["judge"]`` of each text: mean mark of form of its sentences, the lowest of them, and mark of coherence (the
        mean over the stretches of one beyond ``MAX_TOKENS``); float32 [n, 3], 0 for a text without a sentence."""
        sentences = [[piece.text for piece in pieces(text)] for text in texts]
        stretches = [self._stretches(own) for own in sentences]
        parts = list(dict.fromkeys(part for own in (*sentences, *stretches) for part in own))
        known = dict(zip(parts, self._known.values(parts, self._run), strict=True))
        found = np.zeros((len(texts), 3), np.float32)
        for row, own, longer in zip(found, sentences, stretches, strict=True):
            if own:
                form = np.array([known[part][0] for part in own])
                row[:] = form.mean(), form.min(), np.mean([known[part][1] for part in longer])
        return found

    def _stretches(self, parts: list[str]) -> list[str]:
        """The sentences ``parts`` joined to texts of at most as many tokens as are read at a time."""
        if not parts:
            return []
        sizes = [len(ids) for ids in self.tokenizer(as_texts(parts), add_special_tokens=False)["input_ids"]]
        stretches: list[list[str]] = []
        used = limit = longest(self.tokenizer)
        for part, size in zip(parts, sizes, strict=True):
            if used + size > limit - 2:
                stretches.append([])
                used = 0
            stretches[-1].append(part)
            used += size
        return [" ".join(stretch) for stretch in stretches]

    @torch.inference_mode()
    def _run(self, texts: list[str]) -> np.ndarray:
        result = np.zeros((len(texts), len(MARKS)), np.float32)
        if texts:
            read = self.tokenizer(as_texts(texts), truncation=True, max_length=longest(self.tokenizer))
            for rows, inputs in token_batches(read, self.tokenizer, str(self.network.centre.device)):
                result[rows] = self.network(**inputs).cpu().numpy()
        return result

    def save(self, folder: Path) -> dict[str, Any]:
        """Write weights, configuration and tokenizer into ``folder``; returns what ``load_judge`` checks."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        self.network.encoder.config.save_pretrained(folder)  # type: ignore[union-attr, operator]
        self.tokenizer.save_pretrained(folder)
        tensors = {name: tensor.contiguous() for name, tensor in self.network.state_dict().items()}
        save_file(tensors, str(folder / "model.safetensors"))
        self.fingerprint = file_digest(folder / "model.safetensors").hex()
        return {"fingerprint": self.fingerprint}


def tokenize(tokenizer: Any, texts: Sequence[str]) -> dict[str, Tensor]:
    """The network's arguments for ``texts``, cut at ``longest`` and padded, to a multiple of 16 if it is one.

    Few lengths: for each new shape of a matrix a CPU prepares, and keeps, a program of its own.
    """
    limit = longest(tokenizer)
    how = {"padding": True, "truncation": True, "max_length": limit, "pad_to_multiple_of": None if limit % 16 else 16}
    return dict(tokenizer(as_texts(texts), **how, return_tensors="pt"))


def longest(tokenizer: Any) -> int:
    """Tokens that a judge with this tokenizer reads at a time."""
    return min(MAX_TOKENS, int(tokenizer.model_max_length))


def new_judge(encoder: Any, attention: str, seed: int) -> Judge:
    """A judge that starts from the weights of the sentence-transformer ``encoder``. Raises InputError."""
    model, tokenizer, _ = load_pretrained(str(encoder.folder), attention)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Judge(JudgeNetwork(model), tokenizer)


def load_judge(folder: Path, fingerprint: str, attention: str = "sdpa") -> Judge:
    """The judge that ``Judge.save`` wrote. Raises InputError where a file is missing, damaged or changed."""
    check_weights(folder, fingerprint)
    model, tokenizer = load_shell(folder, attention)
    network = JudgeNetwork(model)
    load_weights(network, folder, fingerprint)
    return Judge(network, tokenizer, fingerprint)

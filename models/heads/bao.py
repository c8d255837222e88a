"""The heads of Bao et al. (2021 §4.2): over encoded rows fully connected, convolutional, recurrent; over both texts ``cls``."""

from typing import Any

import torch
from torch import Tensor, nn

# A frame is long where it has so many times more rows than there are kernels.
_LONG = 2
# Units of the recurrence, by what a row stands for.
UNITS = {"sentence": 128, "word": 25}


def masked(rows: Tensor, mask: Tensor) -> Tensor:
    """``rows`` [B, N, d] with zeros where ``mask`` [B, N] is false, whatever stood there (NaN as well)."""
    return rows.masked_fill(~mask.unsqueeze(-1), 0.0)


def framed(document: Tensor, gap: int, summary: Tensor, tail: int) -> Tensor:
    """The papers' fixed frame, [B, N + gap + M + tail, d]: the document's rows, ``gap`` rows of zeros, the summary's, ``tail``
    rows of zeros."""
    batch, _, dim = document.shape
    return torch.cat(
        [document, document.new_zeros(batch, gap, dim), summary, document.new_zeros(batch, tail, dim)], dim=1
    )


class Fc(nn.Module):
    """Fully connected: the frame flattened → 128 → 1.

    logit = w · ReLU(W x + b) + c, where x is the frame [max_document + max_summary, dim] read row by row.
    """

    takes = "rows"

    def __init__(
        self, dim: int, max_document: int, max_summary: int, unit: str = "sentence", hidden: int = 128
    ) -> None:
        super().__init__()
        self.max_document = max_document
        self.max_summary = max_summary
        self.hidden = nn.Linear((max_document + max_summary) * dim, hidden)
        self.output = nn.Linear(hidden, 1)

    def forward(self, document: Tensor, summary: Tensor, document_mask: Tensor, summary_mask: Tensor) -> Tensor:
        """Return logits [B] of document rows [B, N, dim] and summary rows [B, M, dim] with their masks."""
        frame = framed(
            masked(document, document_mask),
            self.max_document - document.shape[1],
            masked(summary, summary_mask),
            self.max_summary - summary.shape[1],
        )
        return self.output(self.hidden(frame.flatten(1)).relu()).squeeze(-1)


class Cnn(nn.Module):
    """Convolutional: 128 kernels of 5 rows → ReLU → maximum over the frame → 1.

    logit = w · max_t ReLU(K x[t:t + width] + b) + c, over all windows that lie inside the frame.

    The frame is [max_document + max_summary, dim], zeros after each text; where that is fewer rows than a kernel has,
    zeros are added at its end. Windows over padding count, as in the paper: they add the same value for every example.
    """

    takes = "rows"

    def __init__(
        self, dim: int, max_document: int, max_summary: int, unit: str = "sentence", kernels: int = 128, width: int = 5
    ) -> None:
        super().__init__()
        self.max_document = max_document
        self.max_summary = max_summary
        self.width = width
        self.convolution = nn.Conv1d(dim, kernels, width)
        self.output = nn.Linear(kernels, 1)

    def forward(self, document: Tensor, summary: Tensor, document_mask: Tensor, summary_mask: Tensor) -> Tensor:
        """Return logits [B] of document rows [B, N, dim] and summary rows [B, M, dim] with their masks."""
        length = max(self.max_document + self.max_summary, self.width)
        gap = self.max_document - document.shape[1]
        tail = length - self.max_document - summary.shape[1]
        # In a run of zeros as long as a kernel one window sees nothing else and none reaches over both ends: a longer
        # run only repeats that window, which the maximum does not notice, so it need not be computed.
        frame = framed(
            masked(document, document_mask), min(gap, self.width), masked(summary, summary_mask), min(tail, self.width)
        )
        return self.output(self._strongest(frame).relu()).squeeze(-1)

    def _strongest(self, frame: Tensor) -> Tensor:
        """What each kernel gives at the window where it gives most; [B, kernels]."""
        if frame.shape[1] < _LONG * self.convolution.out_channels or not torch.is_grad_enabled():
            return self.convolution(frame.transpose(1, 2)).amax(dim=2)
        # Only the strongest window has a gradient. Where windows are many (rows of words), finding it without one and
        # computing that window again halves the time of a training step.
        with torch.no_grad():
            place = self.convolution(frame.transpose(1, 2)).argmax(dim=2)
        example = torch.arange(len(frame), device=frame.device).unsqueeze(1)
        windows = frame.unfold(1, self.width, 1)[example, place]
        return torch.einsum("bkdw,kdw->bk", windows, self.convolution.weight) + self.convolution.bias  # type: ignore[operator]


class Lstm(nn.Module):
    """Recurrent: one LSTM layer over the real rows → last state → 1.

    logit = w · h + c, h the state after the document's rows and then the summary's, with no padding between.

    h has ``units`` numbers (0: 128, or 25 where a row stands for a word). An example without any row has the state zero.
    """

    takes = "rows"

    def __init__(self, dim: int, max_document: int, max_summary: int, unit: str = "sentence", units: int = 0) -> None:
        super().__init__()
        size = units or UNITS[unit]
        self.recurrence = nn.LSTM(dim, size, batch_first=True)
        self.output = nn.Linear(size, 1)

    def forward(self, document: Tensor, summary: Tensor, document_mask: Tensor, summary_mask: Tensor) -> Tensor:
        """Return logits [B] of document rows [B, N, dim] and summary rows [B, M, dim] with their masks."""
        rows, lengths = _joined(document, summary, document_mask, summary_mask)
        # The state at the last real row does not depend on the rows after it. Running on through the padding costs
        # less than packing where it matters: a training step on 32 texts of 1,146 words took 0.4 s against 5.6 s.
        states, _ = self.recurrence(rows)
        last = (lengths - 1).clamp(min=0)
        state = states[torch.arange(len(rows), device=rows.device), last]
        state = state.masked_fill((lengths == 0).unsqueeze(1), 0.0)
        return self.output(state).squeeze(-1)


def _joined(document: Tensor, summary: Tensor, document_mask: Tensor, summary_mask: Tensor) -> tuple[Tensor, Tensor]:
    """The real rows of each example at its start, [B, longest, d], and how many there are, [B]."""
    # The recurrence runs over padding rows as well: were they NaN, the gradient would be.
    both = torch.cat([masked(document, document_mask), masked(summary, summary_mask)], dim=1)
    documents, summaries = document_mask.sum(1), summary_mask.sum(1)
    lengths = documents + summaries
    if both.shape[1] == 0:
        return both.new_zeros(len(both), 1, both.shape[2]), lengths
    place = torch.arange(max(int(lengths.max()), 1), device=both.device).expand(len(both), -1)
    in_summary = place >= documents.unsqueeze(1)
    source = torch.where(in_summary, place - documents.unsqueeze(1) + document.shape[1], place)
    source = source.clamp(max=both.shape[1] - 1)
    return both.gather(1, source.unsqueeze(-1).expand(-1, -1, both.shape[2])), lengths


class Cls(nn.Module):
    """[CLS] of ``[CLS] document [SEP] summary [SEP]`` → 128 → 1 (Bao et al. 2021 §3.1).

    ``encoder`` is a transformers model whose output has ``last_hidden_state``. ``freeze`` keeps its weights as they are.
    """

    takes = "tokens"

    def __init__(self, encoder: nn.Module, hidden: int = 128, freeze: bool = False) -> None:
        super().__init__()
        self.encoder = encoder
        self.hidden = nn.Linear(encoder.config.hidden_size, hidden)  # type: ignore[union-attr, arg-type]
        self.out = nn.Linear(hidden, 1)
        self.frozen = freeze
        if freeze:
            encoder.requires_grad_(False)

    def train(self, mode: bool = True) -> "Cls":
        """As ``nn.Module.train``; a frozen encoder stays without dropout."""
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **rest: Any) -> Tensor:
        """Token ids and mask int64 [B, L] (and token types where the encoder has them) → logits float32 [B]."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            states = self.encoder(input_ids=input_ids, attention_mask=attention_mask, **rest).last_hidden_state
        return self.out(torch.relu(self.hidden(states[:, 0]))).squeeze(-1).float()

"""Convolutional head (Bao et al. 2021 §4.2): 128 kernels of 5 rows → ReLU → maximum over the frame → 1."""

import torch
from torch import Tensor, nn

from negsample.models.heads.frame import framed, masked

# A frame is long where it has so many times more rows than there are kernels.
_LONG = 2


class Cnn(nn.Module):
    """logit = w · max_t ReLU(K x[t:t + width] + b) + c, over all windows that lie inside the frame.

    The frame is [max_document + max_summary, dim], zeros after each text; where that is fewer rows than a kernel has,
    zeros are added at its end. Windows over padding count, as in the paper: they add the same value for every example.
    """

    takes = "rows"

    def __init__(self, dim: int, max_document: int, max_summary: int, kernels: int = 128, width: int = 5) -> None:
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

"""The fixed frame of the papers: document rows padded to one length, then summary rows padded to another."""

import torch
from torch import Tensor


def masked(rows: Tensor, mask: Tensor) -> Tensor:
    """``rows`` [B, N, d] with zeros where ``mask`` [B, N] is false, whatever stood there (NaN as well)."""
    return rows.masked_fill(~mask.unsqueeze(-1), 0.0)


def framed(document: Tensor, gap: int, summary: Tensor, tail: int) -> Tensor:
    """[B, N + gap + M + tail, d]: the document's rows, ``gap`` rows of zeros, the summary's, ``tail`` rows of zeros."""
    batch, _, dim = document.shape
    return torch.cat(
        [document, document.new_zeros(batch, gap, dim), summary, document.new_zeros(batch, tail, dim)], dim=1
    )

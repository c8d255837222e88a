"""Losses between logits and labels, one value an example, so that any sharing-out of a batch adds up to the same."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(logits [B], labels [B], documents int [B]) → losses [B]."""


def bce(logits: Tensor, labels: Tensor, documents: Tensor) -> Tensor:
    """Binary cross-entropy of ``sigmoid(logits)`` with labels in [0, 1] (Bao et al. 2021 §3.2, cross pairing)."""
    return functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")


def mse(logits: Tensor, labels: Tensor, documents: Tensor) -> Tensor:
    """Squared error of ``sigmoid(logits)`` with labels in [0, 1] (Bao et al. 2021 §3.2, mutation)."""
    return (torch.sigmoid(logits) - labels) ** 2


def ranking(logits: Tensor, labels: Tensor, documents: Tensor) -> Tensor:
    """Within a document, a better-labelled example should score higher than a worse one (see docs/recipes.md).

    An example's loss is its squared error (which anchors the scale that differences alone leave open) plus the mean of
    log(1 + exp(worse − it)) over the examples of its document with a lower label; just the former where there are none.
    """
    order = torch.argsort(documents, stable=True)
    _, sizes = torch.unique_consecutive(documents[order], return_counts=True)
    # One row a document, padded: [G, K]. Pairs are then compared within rows only, never across the whole split.
    width = int(sizes.max())
    real = torch.arange(width, device=logits.device) < sizes[:, None]
    scores = torch.zeros(real.shape, dtype=logits.dtype, device=logits.device).masked_scatter(real, logits[order])
    grades = torch.zeros(real.shape, dtype=labels.dtype, device=logits.device).masked_scatter(real, labels[order])
    better = (grades[:, :, None] > grades[:, None, :]) & real[:, :, None] & real[:, None, :]
    margins = functional.softplus(scores[:, None, :] - scores[:, :, None]) * better
    mean = margins.sum(2) / better.sum(2).clamp(min=1)
    losses = torch.zeros_like(logits).scatter(0, order, mean[real])
    return losses + mse(logits, labels, documents)


LOSSES: dict[str, Loss] = {"bce": bce, "mse": mse, "ranking": ranking}
# Losses that compare the examples of a document with each other, which must then stand in one batch.
GROUPED = frozenset({"ranking"})

"""Losses between logits and labels, one value an example."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional


def bce(logits: Tensor, labels: Tensor) -> Tensor:
    """Binary cross-entropy of ``sigmoid(logits)`` with labels in [0, 1] (P3 §3.2, cross pairing). [B] and [B] → [B]."""
    return functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")


def mse(logits: Tensor, labels: Tensor) -> Tensor:
    """Squared error of ``sigmoid(logits)`` with labels in [0, 1] (P3 §3.2, mutation). [B] and [B] → [B]."""
    return (torch.sigmoid(logits) - labels) ** 2


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"bce": bce, "mse": mse}

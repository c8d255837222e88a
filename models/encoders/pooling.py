"""Pooling of token vectors: hidden [b, t, d] and mask [b, t] (true: counts) → [b, d]; an empty row gives zeros."""

from collections.abc import Callable
from typing import Any

import torch


def _mean(hidden: Any, mask: Any) -> Any:
    return _weighted(hidden, mask.to(hidden.dtype))


def _weighted(hidden: Any, weights: Any) -> Any:
    return torch.einsum("btd,bt->bd", hidden, weights) / weights.sum(dim=1, keepdim=True).clamp(min=1e-9)


def _mean_sqrt(hidden: Any, mask: Any) -> Any:
    return _mean(hidden, mask) * mask.sum(dim=1, keepdim=True).to(hidden.dtype).sqrt()


def _position_weighted(hidden: Any, mask: Any) -> Any:
    return _weighted(hidden, mask.cumsum(dim=1).to(hidden.dtype) * mask)


def _max(hidden: Any, mask: Any) -> Any:
    top = hidden.masked_fill(~mask[..., None], -torch.inf).amax(dim=1)
    return torch.where(mask.any(dim=1, keepdim=True), top, torch.zeros_like(top))


def _first(hidden: Any, mask: Any) -> Any:
    return _pick(hidden, mask, mask.int().argmax(dim=1))


def _last(hidden: Any, mask: Any) -> Any:
    places = torch.arange(mask.shape[1], device=mask.device)
    return _pick(hidden, mask, torch.where(mask, places, -1).amax(dim=1).clamp(min=0))


def _pick(hidden: Any, mask: Any, places: Any) -> Any:
    rows = torch.arange(len(hidden), device=hidden.device)
    return hidden[rows, places] * mask.any(dim=1, keepdim=True)


# Named as sentence-transformers names them in its pooling configuration.
POOLINGS: dict[str, Callable[[Any, Any], Any]] = {
    "cls": _first,
    "max": _max,
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_sqrt,
    "weightedmean": _position_weighted,
    "lasttoken": _last,
}

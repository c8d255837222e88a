"""Linear layers of pretrained networks that only read: float32 products by oneDNN, their weights packed once.

PyTorch hands float32 products to MKL, which reaches half of what AMD's processors can do; oneDNN, which PyTorch has as
well, nearly all of it (docs/scale.md). The maker's name decides, not a probe, which may find otherwise in the next process:
scores of two processes would differ in their last digits.
"""

import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from negsample.errors import InputError

VARIABLE = "NEGSAMPLE_KERNELS"
_CHOICES = ("auto", "torch", "onednn")
# Makers of processors at which MKL is not at its best.
_SLOW_MKL = ("AuthenticAMD", "HygonGenuine")
# Smaller products gain nothing: rows that a layer is given, numbers of its weight.
_LEAST_ROWS, _LEAST_WEIGHT = 8, 1 << 14


def packs() -> bool:
    """Whether layers are packed here. Raises InputError where ``NEGSAMPLE_KERNELS`` is none of auto, torch and onednn."""
    asked = os.environ.get(VARIABLE) or "auto"
    if asked not in _CHOICES:
        raise InputError(f"{VARIABLE}={asked} is not known; choose one of {', '.join(_CHOICES)}")
    there = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return there and (asked == "onednn" or (asked == "auto" and _slow_mkl()))


@cache
def _slow_mkl() -> bool:
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        told = platform.processor()
    return any(maker in told for maker in _SLOW_MKL)


class _Kept:
    """A weight, packed, and the state that it was packed in. A copy, also in another process, has none: it can't be copied."""

    packed: Tensor | None = None
    state: tuple[int, int] = (-1, -1)

    def __init__(self, weight: Tensor | None = None) -> None:
        if weight is not None:
            # Held, so that no other weight can come to lie where it lay.
            self._source = weight.detach()
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self._source)
            self.state = _state(weight)

    def __deepcopy__(self, memo: Any) -> "_Kept":
        return _Kept()

    def __reduce__(self) -> Any:
        return _Kept, ()


def _state(weight: Tensor) -> tuple[int, int]:
    """Changes when the weight is written to, or replaced by another."""
    return weight._version, weight.data_ptr()


class Packed(nn.Linear):
    """A linear layer as any other, with the same state; beside its weight is the packed one.

    That is read where nothing is learned and the weight is what it was: trained, moved, converted, under autocast, or for
    a few rows, this is ``nn.Linear``.
    """

    kept: _Kept

    def forward(self, input: Tensor) -> Tensor:
        """[.., in] → [.., out]."""
        plain = (
            torch.is_grad_enabled()
            or self.kept.packed is None
            or self.kept.state != _state(self.weight)
            or input.dtype != torch.float32
            or not input.is_cpu
            or input.numel() < _LEAST_ROWS * self.in_features
            or torch.is_autocast_enabled("cpu")
        )
        if plain:
            return functional.linear(input, self.weight, self.bias)
        return torch.ops.mkldnn._linear_pointwise(input, self.kept.packed, self.bias, "none", [], "")


def pack(network: nn.Module) -> nn.Module:
    """``network``, its linear layers in float32 on the CPU packed in place, where ``packs`` says so; for what only reads."""
    if packs():
        for module in network.modules():
            # A subclass may be read by its weight, not called.
            if type(module) is nn.Linear and _can_be_packed(module.weight):
                module.__class__ = Packed
                module.__dict__["kept"] = _Kept(module.weight)
    return network


def _can_be_packed(weight: Tensor) -> bool:
    plain = weight.dtype == torch.float32 and weight.is_cpu and not weight.is_inference()
    return plain and weight.numel() >= _LEAST_WEIGHT


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``functional.linear`` by the kernels of ``pack``, without a copy of ``weight``; only inside ``torch.inference_mode()``."""
    if packs() and _can_be_packed(weight) and rows.dtype == torch.float32 and len(rows) >= _LEAST_ROWS:
        return torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return functional.linear(rows, weight, bias)

"""``precision=bf16``: pretrained networks computed in bfloat16, where the processor has instructions for it.

bfloat16 has float32's range and 8 bits of precision. What a network answers with is float32, so that pooling, normalising,
comparing and heads are computed as ever.
"""

import logging
import time
from functools import cache

import torch
from torch import nn

from negsample.errors import InputError
from negsample.models import kernels

logger = logging.getLogger(__name__)

# What torch calls the instructions: of x86 (AVX-512, AMX) and of ARM.
_CPU_FLAGS = ("avx512_bf16", "amx_bf16", "bf16")


def check_precision(precision: str, device: str | torch.device) -> None:
    """Raise InputError for an unknown ``precision``, and for bf16 on a ``device`` without instructions for it.

    Without them bfloat16 is emulated, many times slower than float32. With them a CPU may still be slower, which a warning
    tells: AVX-512 BF16 of Intel's is.
    """
    if precision not in ("float32", "bf16"):
        raise InputError(f"precision={precision!r} is not known; choose float32 or bf16")
    if precision == "bf16" and not has_bf16(device):
        known = "AVX-512 BF16, AMX, ARM BF16, or a GPU from NVIDIA's Ampere on"
        told = f"this {torch.device(device).type} has no bfloat16 instructions ({known}), and would be far slower"
        raise InputError(f"precision=bf16: {told}; leave it at float32")
    if precision == "bf16" and torch.device(device).type == "cpu" and (gain := bf16_gain()) < 1:
        logger.warning("precision=bf16: float32 is %.1f times as fast on this processor; leave it at float32", 1 / gain)


@cache
def bf16_gain() -> float:
    """How many times as fast as in float32 the CPU is in bfloat16: a layer of MiniLM's size, the least time of each."""
    rows, full = torch.ones(256, 384), torch.ones(1536, 384)
    half = full.bfloat16()
    best = [float("inf")] * 2
    with torch.inference_mode():
        for turn in range(12):
            begin = time.thread_time()
            _ = kernels.linear(rows.bfloat16(), half, None).float() if turn % 2 else kernels.linear(rows, full, None)
            best[turn % 2] = min(best[turn % 2], time.thread_time() - begin)
    return best[0] / best[1]


def has_bf16(device: str | torch.device) -> bool:
    """Whether ``device`` (a CPU, or a GPU that torch calls ``cuda``) multiplies bfloat16 itself."""
    device = torch.device(device)
    if device.type == "cuda":
        with torch.cuda.device(device):
            return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and any(torch.cpu.get_capabilities().get(flag, False) for flag in _CPU_FLAGS)


def to_bf16(network: nn.Module) -> None:
    """Convert the linear layers of a transformers ``network`` in place: their products are nearly all of its time.

    What is added up, normalised and weighed by attention stays float32: with all of it in bfloat16 vectors differ three
    times as much. Each layer takes and answers float32, so that callers see no difference.
    """
    for module in network.modules():
        # A subclass may be read by its weight, not called.
        if type(module) in (nn.Linear, kernels.Packed):
            module.to(torch.bfloat16)
            module.register_forward_pre_hook(lambda module, given: (given[0].bfloat16(),))
            module.register_forward_hook(lambda module, given, answer: answer.float())

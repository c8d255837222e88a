"""The optimiser and learning rate of the training loop and of the judge's (head ``align`` has an Adam of its own)."""

from typing import Any

import torch
from torch import nn

from negsample.train.config import Optimisation


def make_optimizer(network: nn.Module, plan: Optimisation) -> torch.optim.Optimizer:
    """Return the optimiser that ``plan`` names, over the parameters that are trained; biases and norms don't decay."""
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": plan.weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if plan.optimizer == "rmsprop":
        # Bao et al. 2021 don't give the decay: 0.9 is Tieleman and Hinton's, and Keras' default. PyTorch's is 0.99, whose
        # first steps are three times as long: ``fc`` over 700 words saturates at once and gives every pair one score.
        return torch.optim.RMSprop(groups, lr=plan.learning_rate, alpha=0.9)
    return torch.optim.AdamW(groups, lr=plan.learning_rate)


def set_learning_rate(optimizer: torch.optim.Optimizer, plan: Optimisation, step: int, steps: int) -> None:
    """Set the rate of ``step`` (from 0) of ``steps``: rising linearly over the warm-up, then constant or falling to 0."""
    warm = int(plan.warmup * steps)
    rate = plan.learning_rate
    if step < warm:
        rate = plan.learning_rate * (step + 1) / warm
    elif plan.schedule == "linear":
        rate = plan.learning_rate * max(0.0, (steps - step) / max(1, steps - warm))
    for group in optimizer.param_groups:
        group["lr"] = rate

"""The ``cls`` head: [CLS] of ``[CLS] document [SEP] summary [SEP]`` → 128 → 1 (Bao et al. 2021 §3.1, §4.2)."""

from typing import Any

import torch
from torch import Tensor, nn


class Cls(nn.Module):
    """A pretrained encoder, the state of its first token, and a small network on top.

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

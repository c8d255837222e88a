"""Small networks that can only rise in their inputs."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

# softplus of this is 1.
_ONE = math.log(math.e - 1)


class Monotone(nn.Module):
    """y = bias + Σ p_k x_k + Σ_h q_h tanh(Σ_k r_hk x_k + c_h), every p, q, r > 0 through softplus: never falls in any x.

    ``inputs`` numbers in, one out. As made, p_k = 1/inputs and q is next to nothing: the plain mean of the inputs;
    or their mean weighted by ``weights``, all above 0.
    """

    made: Tensor

    def __init__(self, inputs: int, hidden: int = 4, weights: Sequence[float] | None = None) -> None:
        super().__init__()
        self.inputs = inputs
        # Relative to their mean; what softplus makes of the first gains.
        made = torch.tensor(weights or [1.0] * inputs)
        self.register_buffer("made", made / made.mean(), persistent=False)
        self.gains = nn.Parameter(torch.log(torch.expm1(self.made)))
        self.outer = nn.Parameter(torch.full((hidden,), -6.0))
        self.inner = nn.Parameter(torch.full((hidden, inputs), _ONE) + 0.1 * torch.randn(hidden, inputs))
        self.offsets = nn.Parameter(torch.linspace(-1.0, 1.0, hidden))
        self.bias = nn.Parameter(torch.zeros(()))

    def weights(self) -> Tensor:
        """The weights p of the linear part, [inputs], all above 0."""
        return functional.softplus(self.gains) / self.inputs

    def forward(self, x: Tensor) -> Tensor:
        """[.., inputs] → [..]."""
        inner = torch.tanh(x @ (functional.softplus(self.inner) / self.inputs).T + self.offsets)
        return self.bias + x @ self.weights() + inner @ functional.softplus(self.outer)

    def drift(self) -> Tensor:
        """How far this is from the mean as made, of weights w: mean of (n p / w − 1)² + Σ q²; training is held back by it."""
        linear = ((functional.softplus(self.gains) / self.made - 1) ** 2).mean()
        return linear + (functional.softplus(self.outer) ** 2).sum()

"""The ``align`` head: a monotone network for each aspect over alignment features, and a monotone mix of the aspects."""

import math
from collections.abc import Collection, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from negsample.models.align.alignment import SALIENCE
from negsample.models.align.aspects import ASPECTS, MATCH_CENTRES, MATCH_SCALES, MATCHES, feature_set

# Standardised features bend towards this bound: one odd value must not decide a score.
_MOST = 4.0
# How far the untrained aspects of the summaries of one document spread (machine-made summaries of news; no human score
# went into it), so that each counts in the mix as its weight says.
_SPREADS = {"coverage": 0.75, "support": 0.96, "coherence": 0.44, "form": 0.60}
# How much each aspect, and the weakest of them, counts in the mix as made (docs/kinds.md).
_MIX = {"coverage": 4.0, "support": 1.0, "coherence": 0.5, "form": 1.0, "weakest": 0.5}
# What an untrained head takes for salience: likeness to the whole document, and an early place.
_PRIOR = (0.0, 0.5, 0.0, 3.0, 0.0, 0.0)

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


class Align(nn.Module):
    """Logits of the overall score and of ``ASPECTS``.

    Coverage: salience, a softmax over the document's sentences of a small network, weights how well each is matched.
    ``sources``: what gives features beside the alignment (``features.SOURCES``). Each aspect rises only in the features
    that speak for it (falls in those of direction −1); the overall score rises in every aspect, and in the weakest of
    them. With salience held, more similarity to the document never lowers anything. As made, an aspect is the mean of
    its features (weighted by ``Feature.weight``), and the score that of the aspects and the weakest one (``_MIX``).
    """

    takes = "align"
    outputs = ("score", *ASPECTS)

    direction: Tensor
    centre: Tensor
    scale: Tensor
    match_centre: Tensor
    match_scale: Tensor
    prior: Tensor
    spread: Tensor

    def __init__(self, sources: Collection[str] = (), hidden: int = 8) -> None:
        super().__init__()
        features = feature_set(sources)
        # The constants go into the model's file: later ones do not change what a trained head answers.
        self.register_buffer("direction", torch.tensor([float(f.direction) for f in features]))
        self.register_buffer("centre", torch.tensor([f.centre for f in features]))
        self.register_buffer("scale", torch.tensor([f.scale for f in features]))
        self.register_buffer("match_centre", torch.from_numpy(MATCH_CENTRES))
        self.register_buffer("match_scale", torch.from_numpy(MATCH_SCALES))
        self.register_buffer("prior", torch.tensor(_PRIOR))
        self.register_buffer("spread", torch.tensor([_SPREADS[aspect] for aspect in ASPECTS]))
        self._directions = {f.name: f.direction for f in features}
        self._columns = [[i for i, f in enumerate(features) if aspect in f.aspects] for aspect in ASPECTS]
        last = nn.Linear(hidden, len(MATCHES))
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.salience = nn.Sequential(nn.Linear(SALIENCE, hidden), nn.Tanh(), last)
        weights = [
            [features[i].weight for i in columns] + [1.0] * (len(MATCHES) if aspect == "coverage" else 0)
            for aspect, columns in self._named()
        ]
        self.aspects = nn.ModuleList(Monotone(len(own), weights=own) for own in weights)
        self.mix = Monotone(len(ASPECTS) + 1, weights=[*_MIX.values()])

    def _named(self) -> Sequence[tuple[str, list[int]]]:
        return list(zip(ASPECTS, self._columns, strict=True))

    def sentence_weights(self, salience: Tensor, mask: Tensor) -> Tensor:
        """Weights [B, N, 3] of the document's sentences, each column adding up to 1 over N (0 where there is none)."""
        logits = (salience @ self.prior).unsqueeze(-1) + self.salience(salience)
        weights = torch.softmax(logits.masked_fill(~mask.unsqueeze(-1), -1e4), dim=1)
        return weights * mask.unsqueeze(-1)

    def forward(self, features: Tensor, salience: Tensor, matches: Tensor, mask: Tensor, present: Tensor) -> Tensor:
        """Logits [B, 5]: the overall score, then ``ASPECTS``; NaN for an aspect that is not ``present`` (bool [B, 4]).

        ``features`` [B, F]; ``salience`` [B, N, 6] and ``matches`` [B, N, 3] of the document's sentences, ``mask``
        bool [B, N].
        """
        x, c = self.standardised(features, salience, matches, mask)
        logits = []
        for (aspect, columns), network in zip(self._named(), self.aspects, strict=True):
            parts = x[:, columns]
            logits.append(network(torch.cat([parts, c], dim=1) if aspect == "coverage" else parts))
        aspects = torch.stack(logits, dim=1)
        alike = (aspects.detach() if self.training else aspects) / self.spread
        # A fault in one aspect is not made up for by the others: readers notice the worst.
        overall = self.mix(torch.cat([alike, alike.min(dim=1, keepdim=True).values], dim=1))
        return torch.cat([overall.unsqueeze(1), aspects.masked_fill(~present, float("nan"))], dim=1)

    def standardised(self, features: Tensor, salience: Tensor, matches: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The named features [B, F] and the salience-weighted matches [B, 3]: about mean 0 and spread 1, bounded, and each
        turned so that more is better. Arguments as of ``forward``.
        """
        x = _bounded((features - self.centre) / self.scale * self.direction)
        covered = (self.sentence_weights(salience, mask) * matches).sum(1)
        return x, _bounded((covered - self.match_centre) / self.match_scale)

    @property
    def input_directions(self) -> dict[str, int]:
        """What ``inputs`` has beside the logits, in order: name → −1 where more of what it is called is worse, else +1."""
        return self._directions | {f"{name}_match": 1 for name in MATCHES}

    def inputs(self, features: Tensor, salience: Tensor, matches: Tensor, mask: Tensor, present: Tensor) -> Tensor:
        """``forward`` [B, 5] and ``standardised`` in one [B, 5 + F + 3]: what may be weighed anew."""
        beside = self.standardised(features, salience, matches, mask)
        return torch.cat([self(features, salience, matches, mask, present), *beside], dim=1)

    def drift(self) -> Tensor:
        """How far the head is from what it was made as: summed over the aspects, the mix and salience's last weights."""
        held = self.mix.drift() + self.salience[-1].weight.square().sum()  # type: ignore[operator, union-attr]
        return sum((network.drift() for network in self.aspects), start=held)  # type: ignore[operator, misc]


def untrained(sources: Collection[str] = (), seed: int = 0) -> Align:
    """The head as it is made: the equal-weight sum. ``seed`` is for the hidden units, which weigh next to nothing."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Align(sources).eval()


def _bounded(x: Tensor) -> Tensor:
    return _MOST * torch.tanh(x / _MOST)

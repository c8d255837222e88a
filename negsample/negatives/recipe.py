"""Recipes: which kinds of negatives are made, and how often each."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.negatives import NEGATIVES
from negsample.registry import parse, suggestion
from negsample.settings import convert, read_mapping

_HINT = "write a line 'kind: weight' for each kind"


@dataclass(frozen=True)
class Recipe:
    """Kinds of negatives and their weights, which need not add up to 1.

    Raises InputError for an unknown kind, a weight that is not a finite number ≥ 0 (or its text, such as ``1e-1``, which YAML
    1.1 takes for one), or weights that are all 0.
    """

    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        weights: dict[str, float] = {}
        for kind, given in self.weights.items():
            if kind not in NEGATIVES:
                raise InputError(f"no negative is called {kind!r}; {suggestion(str(kind), NEGATIVES.names())}")
            weights[kind] = convert(given, float, f"the weight of {kind!r}")
            if weights[kind] < 0:
                raise InputError(f"the weight of {kind!r} is {given!r}; give a number that is 0 or more")
        total = sum(weights.values())
        if not 0 < total < math.inf:
            raise InputError(f"the weights add up to {total:g}; give a number above 0 to one of {', '.join(NEGATIVES)}")
        object.__setattr__(self, "weights", {kind: weight for kind, weight in sorted(weights.items()) if weight})

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that have a weight, sorted."""
        return tuple(self.weights)

    @property
    def graded(self) -> bool:
        """Whether labels are shares (learned by mean squared error) and not just 0 and 1 (cross-entropy)."""
        return any(getattr(NEGATIVES.get(kind), "graded", True) for kind in self.kinds)

    def order(self, rng: np.random.Generator) -> list[str]:
        """The kind drawn for one negative, then the others in random order, to be tried where it is impossible."""
        kinds, total = list(self.kinds), math.fsum(self.weights.values())
        if len(kinds) == 1:
            return kinds
        first = kinds[rng.choice(len(kinds), p=[self.weights[kind] / total for kind in kinds])]
        rest = [kind for kind in kinds if kind != first]
        return [first, *(rest[place] for place in rng.permutation(len(rest)))]

    def __str__(self) -> str:
        """One line for signatures, which ``parse_recipe`` reads back: ``crosspair`` or ``mix(add=1,delete=2)``."""
        if len(self.kinds) == 1:
            return self.kinds[0]
        parts = (f"{kind}={str(weight).removesuffix('.0')}" for kind, weight in self.weights.items())
        return f"mix({','.join(parts)})"


def parse_recipe(spec: str | Mapping[str, Any]) -> Recipe:
    """Return the recipe that ``spec`` describes.

    ``spec`` is the name of a kind, ``"mix:FILE"`` (YAML, a line ``kind: weight`` for each kind), the line that ``str``
    gives for a recipe, or a mapping of kind to weight. Raises InputError where it is none of these or is wrong.
    """
    if not isinstance(spec, str | Mapping):
        raise InputError(f"recipe {spec!r}: give the name of a kind, mix:FILE, or kinds with weights")
    where = "recipe" if isinstance(spec, Mapping) else f"recipe {spec}"
    if isinstance(spec, Mapping):
        weights = spec
    elif spec in NEGATIVES:
        weights = {spec: 1.0}
    else:
        named = parse(spec, "recipe")
        if named.name != "mix" or not (named.arguments or named.options):
            raise InputError(f"no recipe is called {spec!r}; {suggestion(spec, [*NEGATIVES.names(), 'mix:FILE'])}")
        weights = dict(named.options) or read_mapping(Path(named.arguments[0]), where, _HINT)
        if not weights:
            raise InputError(f"{where}: {_HINT}")
    try:
        return Recipe(weights)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None

"""Recipes: which kinds of negatives are made, and how often each."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.negatives import NEGATIVES
from negsample.registry import suggestion
from negsample.settings import read_mapping
from negsample.spec import parse

_HINT = "write a line 'kind: weight' for each kind"


@dataclass(frozen=True)
class Recipe:
    """Kinds of negatives and their weights, which need not add up to 1.

    Raises InputError for an unknown kind, a weight that is not a finite number ≥ 0, or weights that are all 0.
    """

    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        _check(self.weights)
        weights = {kind: float(weight) for kind, weight in sorted(self.weights.items()) if weight}
        object.__setattr__(self, "weights", weights)

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
        kinds = list(self.kinds)
        if len(kinds) == 1:
            return kinds
        total = math.fsum(self.weights.values())
        first = kinds[rng.choice(len(kinds), p=[self.weights[kind] / total for kind in kinds])]
        rest = [kind for kind in kinds if kind != first]
        return [first, *(rest[place] for place in rng.permutation(len(rest)))]

    def __str__(self) -> str:
        """One line for signatures, which ``parse_recipe`` reads back: ``crosspair`` or ``mix(add=1,delete=2)``."""
        if len(self.kinds) == 1:
            return self.kinds[0]
        return f"mix({','.join(f'{kind}={_number(weight)}' for kind, weight in self.weights.items())})"


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
        given = {kind: _as_number(weight) for kind, weight in named.options.items()}
        weights = given or read_mapping(Path(named.arguments[0]), where, _HINT)
        if not weights:
            raise InputError(f"{where}: {_HINT}")
    try:
        return Recipe(weights)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _as_number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _check(weights: Mapping[Any, Any]) -> None:
    for kind, weight in weights.items():
        if kind not in NEGATIVES:
            raise InputError(f"no negative is called {kind!r}; {suggestion(str(kind), NEGATIVES.names())}")
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not (number and math.isfinite(weight) and weight >= 0):
            raise InputError(f"the weight of {kind!r} is {weight!r}; give a number that is 0 or more")
    if not any(weights.values()):
        raise InputError(f"no kind has a weight above 0; give one to at least one of {', '.join(NEGATIVES)}")
    if math.isinf(sum(map(float, weights.values()))):
        raise InputError("the weights are too large to be added up; give smaller ones")


def _number(weight: float) -> str:
    return str(int(weight)) if weight == int(weight) and weight < 1e15 else repr(weight)

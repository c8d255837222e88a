"""Recipes: which kinds of negatives are made, and how often each."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.io.files import failure
from negsample.negatives import NEGATIVES
from negsample.registry import suggestion

_WRITTEN_MIX = re.compile(r"mix\((.*)\)")


@dataclass(frozen=True)
class Recipe:
    """Kinds of negatives and their weights, which need not add up to 1.

    Raises InputError for an unknown kind, a weight that is not a finite number ≥ 0, or weights that are all 0.
    """

    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        checked = _checked(self.weights, "recipe")
        object.__setattr__(self, "weights", dict(sorted((kind, weight) for kind, weight in checked.items() if weight)))

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
    """The recipe that ``spec`` describes.

    ``spec`` is the name of a kind, ``"mix:FILE"`` (YAML, a line ``kind: weight`` for each kind), the line that ``str``
    gives for a recipe, or a mapping of kind to weight. Raises InputError where it is none of these or is wrong.
    """
    if isinstance(spec, Mapping):
        return Recipe(_checked(spec, "recipe"))
    if not isinstance(spec, str):
        raise InputError(f"recipe {spec!r}: give the name of a kind, mix:FILE, or kinds with weights")
    if spec.startswith("mix:"):
        return Recipe(_read_mix(Path(spec.removeprefix("mix:"))))
    written = _WRITTEN_MIX.fullmatch(spec)
    if written:
        return Recipe(_checked(dict(part.partition("=")[::2] for part in written[1].split(",")), spec, text=True))
    if spec not in NEGATIVES:
        raise InputError(f"no recipe is called {spec!r}; {suggestion(spec, [*NEGATIVES.names(), 'mix:FILE'])}")
    return Recipe({spec: 1.0})


def _read_mix(path: Path) -> dict[str, float]:
    import yaml

    from negsample.io.yaml_text import load_yaml

    try:
        value = load_yaml(path.read_text("utf-8-sig"))
    except OSError as error:
        raise failure(f"recipe mix:{path}", error) from error
    except UnicodeDecodeError:
        raise InputError(f"recipe mix:{path}: not UTF-8; save the file as UTF-8") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark is not None else ""
        raise InputError(f"recipe mix:{path}{place}: not YAML; write a line 'kind: weight' for each kind") from error
    if not isinstance(value, Mapping):
        raise InputError(f"recipe mix:{path}: write a line 'kind: weight' for each kind")
    return _checked(value, f"recipe mix:{path}")


def _checked(weights: Mapping[Any, Any], where: str, text: bool = False) -> dict[str, float]:
    checked: dict[str, float] = {}
    for kind, weight in weights.items():
        if kind not in NEGATIVES:
            raise InputError(f"{where}: no negative is called {kind!r}; {suggestion(str(kind), NEGATIVES.names())}")
        try:
            number = float(weight) if text or not isinstance(weight, str | bool) else math.nan
        except (TypeError, ValueError):
            number = math.nan
        if not (math.isfinite(number) and number >= 0):
            raise InputError(f"{where}: the weight of {kind!r} is {weight!r}; give a number that is 0 or more")
        checked[kind] = number
    if not any(checked.values()):
        raise InputError(f"{where}: no kind has a weight above 0; give one to at least one of {', '.join(NEGATIVES)}")
    if math.isinf(sum(checked.values())):
        raise InputError(f"{where}: the weights are too large to be added up; give smaller ones")
    return checked


def _number(weight: float) -> str:
    return str(int(weight)) if weight == int(weight) and weight < 1e15 else repr(weight)

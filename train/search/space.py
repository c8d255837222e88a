"""The search space of ``negsample tune``: which settings are tried, in which range, and under which condition.

Every entry becomes one Optuna parameter. A setting may have several entries with different conditions, each a parameter
of its own (``learning_rate[head=cls]``), since a sampler learns nothing from values of ranges that differ.
"""

import json
import math
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from negsample.errors import InputError
from negsample.negatives.recipe import parse_recipe
from negsample.registry import check_keys, suggestion
from negsample.train.config import TrainConfig, make_config

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import BaseTrial

_RANGE = ("choices", "low", "high", "log", "step", "when")
_TYPES = typing.get_type_hints(TrainConfig)
# Accelerate settles the precision once for a process; a worker runs many trials.
_FIXED = ("mixed_precision",)


@dataclass(frozen=True)
class Entry:
    """One searched value: ``field`` of ``TrainConfig``, or the weight of the kind ``part`` in its recipe.

    ``name`` is the Optuna parameter and ``distribution`` what it is drawn from; ``choices`` maps what the storage holds
    of a choice to the choice, and is empty for a range. ``when``: field → allowed values; without all of them the entry
    is not drawn.
    """

    name: str
    field: str
    part: str
    distribution: "BaseDistribution"
    choices: Mapping[Any, Any]
    when: Mapping[str, Sequence[Any]]

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Return whether the condition is met by ``values``; a field that is not among them has its default."""
        return all(values.get(key, getattr(TrainConfig, key)) in allowed for key, allowed in self.when.items())

    def extremes(self) -> list[Any]:
        """Return every choice, or both ends of the range."""
        drawn: Any = self.distribution
        return list(self.choices.values()) if self.choices else [drawn.low, drawn.high]

    def suggest(self, trial: "BaseTrial") -> Any:
        """Return the value that the sampler of ``trial`` draws."""
        from optuna.distributions import IntDistribution

        drawn: Any = self.distribution
        if self.choices:
            return self.choices[trial.suggest_categorical(self.name, drawn.choices)]
        suggest: Any = trial.suggest_int if isinstance(drawn, IntDistribution) else trial.suggest_float
        return suggest(self.name, drawn.low, drawn.high, log=drawn.log, step=drawn.step)


@dataclass(frozen=True)
class Space:
    """The entries in the order in which they are drawn; ``weights``: fixed weights of a searched recipe."""

    entries: tuple[Entry, ...]
    weights: Mapping[str, float]

    def fields(self) -> set[str]:
        """Return the settings that differ between trials."""
        return {entry.field for entry in self.entries}

    def draw(self, trial: "BaseTrial", train: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of one trial: ``train`` and a value for each entry whose condition holds.

        Of several entries for one field the first whose condition holds is drawn.
        """
        values, recipe, drawn = dict(train), dict(self.weights), set()
        for entry in self.entries:
            if entry.field in drawn or not entry.holds(values):
                continue
            value = entry.suggest(trial)
            if entry.part:
                recipe[entry.part] = value
            else:
                values[entry.field] = value
                drawn.add(entry.field)
        if recipe:
            values["recipe"] = recipe
        return values


def read_space(given: Any, train: Mapping[str, Any], where: str) -> Space:
    """Return the space that the mapping ``given`` describes, beside the fixed settings ``train``.

    ``field: {choices: […]}`` or ``field: {low, high, log, step}``, with ``when: {other: value or list}``; a list of
    these for one field: the first whose condition holds. ``recipe`` may map kinds of negatives to ranges or fixed
    weights. A condition names a fixed field or one that stands above it. Raises InputError, which begins with ``where``.
    """
    if not isinstance(given, dict) or not given:
        raise InputError(f"{where}: space must map settings to what is tried, such as head: {{choices: [fc, lstm]}}")
    entries: list[Entry] = []
    weights: dict[str, float] = {}
    for field, spec in given.items():
        at = f"{where}: space: {field}"
        if field not in _TYPES:
            raise InputError(f"{at}: no such setting; {suggestion(str(field), list(_TYPES))}")
        if field in train:
            raise InputError(f"{at}: stands under train as well; leave it out of one of them")
        if field in _FIXED:
            raise InputError(f"{at}: can't differ between trials of one process; put it under train")
        if field == "recipe" and isinstance(spec, dict) and not set(spec) & set(_RANGE):
            parts, weights = _mixture(spec, at)
            entries += parts
            continue
        several = isinstance(spec, list) and len(spec) > 1
        for one in spec if isinstance(spec, list) else [spec]:
            entry = _entry(field, one, at, several=several)
            for value in entry.extremes():
                _check_value(field, value, train, at)
            entries.append(entry)
    _check_conditions(entries, where)
    return Space(tuple(entries), weights)


def _mixture(spec: Mapping[str, Any], at: str) -> tuple[list[Entry], dict[str, float]]:
    """Return entries and fixed weights of a recipe whose kinds have ranges."""
    entries = [
        _entry("recipe", value, f"{at}: {kind}", part=kind) for kind, value in spec.items() if type(value) is dict
    ]
    fixed = {kind: _number(value, f"{at}: {kind}") for kind, value in spec.items() if type(value) is not dict}
    if not entries:
        raise InputError(f"{at}: no weight has a range; put a fixed recipe under train")
    lowest = {entry.part: min(_number(value, f"{at}: {entry.part}") for value in entry.extremes()) for entry in entries}
    for kind, weight in {**fixed, **lowest}.items():
        if weight < 0:
            raise InputError(f"{at}: {kind}: {weight:g} is below 0; a weight is 0 or more")
    try:
        parse_recipe(dict.fromkeys(spec, 1.0))
    except InputError as error:
        raise InputError(f"{at}: {error}") from None
    return entries, fixed


def _entry(field: str, spec: Any, at: str, *, part: str = "", several: bool = False) -> Entry:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if not isinstance(spec, dict):
        raise InputError(f"{at}: give {{choices: […]}} or {{low: …, high: …}}, not {spec!r}")
    check_keys(spec, _RANGE, at)
    options = {key: value for key, value in spec.items() if key != "when" and value is not None}
    when = _when(spec.get("when"), at)
    name = f"recipe.{part}" if part else field
    if several:
        if not when:
            raise InputError(f"{at}: one of several ranges needs a condition: add when: {{head: …}} to each")
        told = [f"{key}={'|'.join(map(str, values))}" for key, values in when.items()]
        name += f"[{','.join(told)}]"
    choices: dict[Any, Any] = {}
    kind: Any = CategoricalDistribution
    if "choices" in options:
        choices = _choices(options["choices"], at)
        options["choices"] = list(choices)
    else:
        types = (float,) if part else typing.get_args(_TYPES[field]) or (_TYPES[field],)
        if int not in types and float not in types:
            raise InputError(f"{at}: is not a number; give choices: […]")
        kind = IntDistribution if int in types else FloatDistribution
        if not isinstance(options.get("log", False), bool):
            raise InputError(f"{at}: log must be true or false, not {options['log']!r}")
        for key in {"low", "high", "step"} & set(options):
            options[key] = _number(options[key], f"{at}: {key}")
            if int in types and not options[key].is_integer():
                raise InputError(f"{at}: takes whole numbers; give a whole {key}, not {options[key]:g}")
    try:
        return Entry(name, field, part, kind(**options), choices, when)
    except (TypeError, ValueError) as error:
        raise InputError(f"{at}: {error}") from None


def _choices(given: Any, at: str) -> dict[Any, Any]:
    """Return what the storage holds of each choice (plain values, JSON text for the others) → the choice."""
    if not isinstance(given, list):
        raise InputError(f"{at}: choices must be a list, not {given!r}")
    found: dict[Any, Any] = {}
    for choice in given:
        plain = choice is None or isinstance(choice, bool | int | float | str)
        label = choice if plain else json.dumps(choice, ensure_ascii=False, default=str)
        if label in found:
            raise InputError(f"{at}: {choice!r} is given twice")
        found[label] = choice
    return found


def _number(value: Any, at: str) -> float:
    try:
        # YAML 1.1 reads "1e-5" as text.
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{at} must be a number, not {value!r}")
    return number


def _when(given: Any, at: str) -> dict[str, list[Any]]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not given:
        raise InputError(f"{at}: when must map a setting to a value or a list of values, such as {{head: cls}}")
    for key in given:
        if key not in _TYPES:
            raise InputError(f"{at}: when: no setting is called {key!r}; {suggestion(str(key), list(_TYPES))}")
    return {key: value if isinstance(value, list) else [value] for key, value in given.items()}


def _check_value(field: str, value: Any, train: Mapping[str, Any], at: str) -> None:
    """Raise InputError where ``field`` can never have ``value``, whatever the other settings are."""
    from negsample.models.build import takes

    # Whether an align head may have no epoch depends on the head, which may be drawn.
    settings = {key: entry for key, entry in train.items() if key not in ("head", "epochs")}
    make_config({**settings, "head": "align", field: value}, at)
    try:
        if field == "recipe":
            parse_recipe(value)
        elif field == "head":
            takes(value)
    except InputError as error:
        raise InputError(f"{at}: {error}") from None


def _check_conditions(entries: Sequence[Entry], where: str) -> None:
    """Raise InputError for a condition on what is drawn after it, or on a value that is never drawn."""
    searched = {entry.field for entry in entries}
    known: dict[str, list[Any] | None] = {}
    for entry in entries:
        at = f"{where}: space: {entry.name}: when"
        for key, values in entry.when.items():
            if key in searched and key not in known:
                raise InputError(f"{at}: {key} stands below; move it above {entry.field}")
            drawn = known.get(key)
            never = [value for value in values if drawn is not None and value not in drawn]
            if never:
                raise InputError(f"{at}: {key} is never {never[0]!r}; it is one of {', '.join(map(str, drawn or ()))}")
        if entry.choices and not entry.part:
            known[entry.field] = [*(known.get(entry.field) or []), *entry.choices.values()]
        else:
            known.setdefault(entry.field, None)

"""The search space of ``negsample tune``: which settings are tried, in which range, and under which condition.

Every entry becomes one Optuna parameter. A setting may have several entries with different conditions, each a parameter
of its own (``learning_rate[head=cls]``), since a sampler learns nothing from values of ranges that differ.
"""

import json
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import BaseTrial

from negsample.errors import InputError
from negsample.models.build import takes
from negsample.negatives.recipe import parse_recipe
from negsample.registry import check_keys, distinct
from negsample.settings import convert, field_types
from negsample.train.config import TrainConfig, make_config

_TYPES = field_types(TrainConfig)
# What the file says of a setting: ``choices``, or numbers from ``low`` to ``high``; ``when`` others have values named.
_NUMBERS = ("low", "high", "step")
_KEYS: dict[str, Any] = {"choices": list[Any], "log": bool, "when": dict[str, Any], **dict.fromkeys(_NUMBERS)}


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
    distribution: BaseDistribution
    choices: Mapping[Any, Any]
    when: Mapping[str, Sequence[Any]]

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Return whether the condition is met by ``values``; a field that is not among them has its default."""
        return all(values.get(key, getattr(TrainConfig, key)) in allowed for key, allowed in self.when.items())

    def suggest(self, trial: BaseTrial) -> Any:
        """Return the value that the sampler of ``trial`` draws."""
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

    def draw(self, trial: BaseTrial, train: Mapping[str, Any]) -> dict[str, Any]:
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


def read_space(given: Mapping[str, Any], train: Mapping[str, Any]) -> Space:
    """Return the space that ``given`` describes, beside the fixed settings ``train``.

    ``field: {choices: […]}`` or ``field: {low, high, log, step}``, with ``when: {other: value or list}``; a list of
    these for one field: the first whose condition holds. ``recipe`` may map kinds of negatives to ranges or fixed
    weights. A condition names a fixed field or one that stands above it. Raises InputError, which begins with ``space``.
    """
    if not given:
        raise InputError("space must map settings to what is tried, such as head: {choices: [fc, lstm]}")
    check_keys(given, _TYPES, "space")
    entries: list[Entry] = []
    weights: dict[str, float] = {}
    for field, spec in given.items():
        at = f"space: {field}"
        if field in train:
            raise InputError(f"{at}: stands under train as well; leave it out of one of them")
        if field == "mixed_precision":
            # Accelerate settles it once for a process.
            raise InputError(f"{at}: can't differ between trials of one process; put it under train")
        if field == "recipe" and isinstance(spec, dict) and not set(spec) & set(_KEYS):
            for kind, value in spec.items():
                if isinstance(value, dict):
                    entries.append(_entry(field, value, train, f"{at}: {kind}", part=kind))
                else:
                    _check_value(field, kind, value, train, at)
                    weights[kind] = float(value)
            if len(weights) == len(spec):
                raise InputError(f"{at}: no weight has a range; put a fixed recipe under train")
        else:
            specs = spec if isinstance(spec, list) else [spec]
            entries += [_entry(field, one, train, at, several=len(specs) > 1) for one in specs]
    _check_conditions(entries)
    return Space(tuple(entries), weights)


def _entry(field: str, spec: Any, train: Mapping[str, Any], at: str, *, part: str = "", several: bool = False) -> Entry:
    number = float if part else _TYPES[field]
    kinds = _KEYS | dict.fromkeys(_NUMBERS, number)
    check_keys(given := convert(spec, dict, at), kinds, at)
    options = {key: convert(value, kinds[key], f"{at}: {key}") for key, value in given.items() if value is not None}
    tried, when = options.pop("choices", []), options.pop("when", {})
    check_keys(when, _TYPES, f"{at}: when")
    when = {key: value if isinstance(value, list) else [value] for key, value in when.items()}
    name = f"recipe.{part}" if part else field
    if several:
        if not when:
            raise InputError(f"{at}: one of several ranges needs a condition: add when: {{head: …}} to each")
        told = [f"{key}={'|'.join(map(str, values))}" for key, values in when.items()]
        name += f"[{','.join(told)}]"
    types = typing.get_args(number) or (number,)
    kind: Any = CategoricalDistribution if tried else IntDistribution if int in types else FloatDistribution
    if not tried and int not in types and float not in types:
        raise InputError(f"{at}: is not a number; give choices: […]")
    # What the storage holds of a choice: plain values as they are, JSON text for the others.
    plain = (type(None), bool, int, float, str)
    labels = [one if isinstance(one, plain) else json.dumps(one, default=str) for one in tried]
    choices = dict(zip(distinct(labels, f"{at}: choices:"), tried, strict=True))
    try:
        entry = Entry(name, field, part, kind(**options, **({"choices": labels} if labels else {})), choices, when)
    except (TypeError, ValueError) as error:
        raise InputError(f"{at}: {error}") from None
    for value in tried or (options["low"], options["high"]):
        _check_value(field, part, value, train, at)
    return entry


def _check_value(field: str, part: str, value: Any, train: Mapping[str, Any], at: str) -> None:
    """Raise InputError where ``field`` (or the weight ``part``) can't have ``value``, whatever the other settings are."""
    if part:
        # Beside another kind, a weight may be 0.
        field, value = "recipe", {"crosspair": 1.0, "delete": 1.0, part: value}
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


def _check_conditions(entries: Sequence[Entry]) -> None:
    """Raise InputError for a condition on what is drawn after it, or on a value that is never drawn."""
    searched = {entry.field for entry in entries}
    known: dict[str, list[Any]] = {}
    for entry in entries:
        at = f"space: {entry.name}: when"
        for key, values in entry.when.items():
            if key in searched and key not in known:
                raise InputError(f"{at}: {key} stands below; move it above {entry.field}")
            never = [value for value in values if known.get(key) and value not in known[key]]
            if never:
                raise InputError(f"{at}: {key} is never {never[0]!r}; it is one of {', '.join(map(str, known[key]))}")
        known.setdefault(entry.field, []).extend(() if entry.part else entry.choices.values())

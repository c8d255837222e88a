"""The search space of ``negsample tune``: which settings are tried, in which range, and under which condition.

Every entry becomes one optuna parameter. A setting may have several entries with different conditions, each a parameter
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
    from optuna.trial import BaseTrial

_RANGE = ("choices", "low", "high", "log", "step", "when")
_TYPES = typing.get_type_hints(TrainConfig)
# Accelerate settles the precision once for a process; a worker runs many trials.
_FIXED = ("mixed_precision",)


@dataclass(frozen=True)
class Entry:
    """One searched value: ``field`` of ``TrainConfig``, or the weight of the kind ``part`` in its recipe.

    ``name`` is the optuna parameter. Either ``labels`` and ``choices`` (what the storage holds, and what it stands
    for), or a range [``low``, ``high``], of whole numbers where ``whole``, searched on a logarithmic scale or in
    ``step``s. ``when``: field → allowed values; without all of them the entry is not drawn.
    """

    name: str
    field: str
    part: str = ""
    labels: tuple[Any, ...] = ()
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    log: bool = False
    step: float | None = None
    when: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether the condition is met by ``values``; a field that is not among them has its default."""
        return all(values.get(key, getattr(TrainConfig, key)) in allowed for key, allowed in self.when)

    def weights(self) -> tuple[float, float]:
        """The lowest and the highest weight of ``part``; of a range without steps, the low end is not among them."""
        if self.choices:
            weights = [float(choice) for choice in self.choices]
            return min(weights), max(weights)
        return self.high if self.low == 0 and self.step is None else self.low, self.high

    def suggest(self, trial: "BaseTrial") -> Any:
        """The value that the sampler of ``trial`` draws."""
        if self.choices:
            label = trial.suggest_categorical(self.name, list(self.labels))
            return self.choices[self.labels.index(label)]
        if self.whole:
            return trial.suggest_int(self.name, int(self.low), int(self.high), log=self.log, step=int(self.step or 1))
        return trial.suggest_float(self.name, self.low, self.high, log=self.log, step=self.step)


@dataclass(frozen=True)
class Space:
    """The entries in the order in which they are drawn; ``weights``: fixed weights of a searched recipe."""

    entries: tuple[Entry, ...]
    weights: tuple[tuple[str, float], ...] = ()

    def fields(self) -> set[str]:
        """The settings that differ between trials."""
        return {entry.field for entry in self.entries}

    def choices(self, field: str) -> list[Any]:
        """Every choice that ``field`` has under any condition."""
        return [choice for entry in self.entries if entry.field == field for choice in entry.choices]

    def graded(self, train: Mapping[str, Any]) -> set[bool]:
        """Whether a trial's recipe has graded labels: ``{True}`` or ``{False}`` where all trials agree, else both.

        A weight drawn from a range without steps is taken to be above 0. Raises InputError for a wrong recipe in
        ``train``.
        """
        entries = [entry for entry in self.entries if entry.field == "recipe"]
        unset = parse_recipe(train.get("recipe", TrainConfig.recipe)).graded
        if not entries or not entries[0].part:
            found = {parse_recipe(choice).graded for choice in self.choices("recipe")}
            return found if any(not entry.when for entry in entries) else found | {unset}
        always = {kind for kind, weight in self.weights if weight > 0}
        ever = always | {entry.part for entry in entries if entry.weights()[1] > 0}
        always |= {entry.part for entry in entries if not entry.when and entry.weights()[0] > 0}
        graded = {kind for kind in ever if parse_recipe(kind).graded}
        found = {True} if graded else set()
        if not graded & always and ever - graded:
            found.add(False)
        if not self.weights and all(entry.when for entry in entries):
            found.add(unset)
        return found

    def draw(self, trial: "BaseTrial", train: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of one trial: ``train`` and a value for each entry whose condition holds.

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
    """The space that the mapping ``given`` describes, beside the fixed settings ``train``.

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
            parts, fixed = _mixture(spec, at)
            entries += parts
            weights.update(fixed)
            continue
        several = spec if isinstance(spec, list) else [spec]
        if not several:
            raise InputError(f"{at}: nothing to choose from")
        entries += [_entry(field, one, train, at, several=len(several) > 1) for one in several]
    _check_conditions(entries, where)
    return Space(tuple(entries), tuple(weights.items()))


def _entry(field: str, spec: Any, train: Mapping[str, Any], at: str, *, several: bool = False) -> Entry:
    _check_keys(spec, at)
    when = _when(spec.get("when"), at)
    name = field
    if several:
        if not when:
            raise InputError(f"{at}: one of several ranges needs a condition: add when: {{head: …}} to each")
        told = ",".join(f"{key}={'|'.join(map(str, values))}" for key, values in when)
        name = f"{field}[{told}]"
    if "choices" in spec:
        labels, choices = _choices(spec, at)
        for choice in choices:
            _check_value(field, choice, train, at)
        return Entry(name, field, labels=labels, choices=choices, when=when)
    allowed = typing.get_args(_TYPES[field]) or (_TYPES[field],)
    if int not in allowed and float not in allowed:
        raise InputError(f"{at}: is not a number; give choices: […]")
    entry = _range(name, field, "", spec, whole=int in allowed, when=when, at=at)
    for value in (entry.low, entry.high):
        _check_value(field, int(value) if entry.whole else value, train, at)
    return entry


def _mixture(spec: Mapping[str, Any], at: str) -> tuple[list[Entry], dict[str, float]]:
    """Entries and fixed weights of a recipe whose kinds have ranges."""
    entries, fixed = [], {}
    try:
        parse_recipe(dict.fromkeys(spec, 1.0))
    except InputError as error:
        raise InputError(f"{at}: {error}") from None
    for kind, value in spec.items():
        if isinstance(value, dict):
            _check_keys(value, f"{at}: {kind}")
            when = _when(value.get("when"), at)
            name = f"recipe.{kind}"
            if "choices" in value:
                labels, choices = _choices(value, f"{at}: {kind}")
                if any(_number(choice, f"{at}: {kind}: choices") < 0 for choice in choices):
                    raise InputError(f"{at}: {kind}: a weight is 0 or more")
                entries.append(Entry(name, "recipe", kind, labels=labels, choices=choices, when=when))
            else:
                entry = _range(name, "recipe", kind, value, whole=False, when=when, at=f"{at}: {kind}")
                if entry.low < 0:
                    raise InputError(f"{at}: {kind}: low is {entry.low}; a weight is 0 or more")
                entries.append(entry)
        else:
            fixed[kind] = _number(value, f"{at}: {kind}")
    if not entries:
        raise InputError(f"{at}: no weight has a range; put a fixed recipe under train")
    return entries, fixed


def _check_keys(spec: Any, at: str) -> None:
    if not isinstance(spec, dict):
        raise InputError(f"{at}: give {{choices: […]}} or {{low: …, high: …}}, not {spec!r}")
    check_keys(spec, _RANGE, at)
    if "choices" in spec and set(spec) & {"low", "high", "log", "step"}:
        raise InputError(f"{at}: has choices and a range; give one of them")


def _choices(spec: Mapping[str, Any], at: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What the storage holds of each choice (plain values, JSON text for the others), and the choices."""
    choices = spec["choices"]
    if not isinstance(choices, list) or not choices:
        raise InputError(f"{at}: choices must be a list with at least one entry, not {choices!r}")
    labels: list[Any] = []
    for choice in choices:
        plain = choice is None or isinstance(choice, bool | int | float | str)
        label = choice if plain else json.dumps(choice, ensure_ascii=False, default=str)
        if label in labels:
            raise InputError(f"{at}: {choice!r} is given twice")
        labels.append(label)
    return tuple(labels), tuple(choices)


def _range(name: str, field: str, part: str, spec: Mapping[str, Any], *, whole: bool, when: Any, at: str) -> Entry:
    missing = [key for key in ("low", "high") if key not in spec]
    if missing:
        raise InputError(f"{at}: {missing[0]} is missing; give low and high, or choices: […]")
    low, high = (_number(spec[key], f"{at}: {key}") for key in ("low", "high"))
    step = None if spec.get("step") is None else _number(spec["step"], f"{at}: step")
    log = spec.get("log", False)
    if not isinstance(log, bool):
        raise InputError(f"{at}: log must be true or false, not {log!r}")
    if low > high:
        raise InputError(f"{at}: low {low:g} is above high {high:g}")
    if log and (low <= 0 or step is not None):
        raise InputError(f"{at}: a logarithmic range needs low above 0 and no step")
    if step is not None and step <= 0:
        raise InputError(f"{at}: step must be above 0, not {step:g}")
    if whole and any(value != int(value) for value in (low, high, step or 1)):
        raise InputError(f"{at}: takes whole numbers; give whole low, high and step")
    return Entry(name, field, part, low=low, high=high, whole=whole, log=log, step=step, when=when)


def _number(value: Any, at: str) -> float:
    try:
        # YAML 1.1 reads "1e-5" as text.
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{at} must be a number, not {value!r}")
    return number


def _when(given: Any, at: str) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    if given is None:
        return ()
    if not isinstance(given, dict) or not given:
        raise InputError(f"{at}: when must map a setting to a value or a list of values, such as {{head: cls}}")
    for key in given:
        if key not in _TYPES:
            raise InputError(f"{at}: when: no setting is called {key!r}; {suggestion(str(key), list(_TYPES))}")
    return tuple((key, tuple(value) if isinstance(value, list) else (value,)) for key, value in given.items())


def _check_value(field: str, value: Any, train: Mapping[str, Any], at: str) -> None:
    """InputError where ``field`` can never have ``value``, whatever the other settings are."""
    settings = {key: entry for key, entry in train.items() if key not in ("head", "epochs")}
    # Whether an align head may have no epoch depends on the head, which is drawn.
    make_config({**settings, "head": "align", field: value}, at)
    try:
        if field == "recipe":
            parse_recipe(value)
        elif field == "head":
            from negsample.models.build import takes

            takes(value)
    except InputError as error:
        raise InputError(f"{at}: {error}") from None


def _check_conditions(entries: Sequence[Entry], where: str) -> None:
    """Conditions look at what is drawn before them, and only at values that can be drawn."""
    searched = {entry.field for entry in entries}
    known: dict[str, list[Any] | None] = {}
    for entry in entries:
        for key, values in entry.when:
            if key in searched and key not in known:
                raise InputError(f"{where}: space: {entry.name}: when: {key} stands below; move it above {entry.field}")
            drawn = known.get(key)
            for value in values if drawn is not None else ():
                if value not in drawn:  # type: ignore[operator]
                    raise InputError(
                        f"{where}: space: {entry.name}: when: {key} is never {value!r}; it is one of "
                        f"{', '.join(map(str, drawn or ()))}"
                    )
        if entry.choices and not entry.part:
            known[entry.field] = [*(known.get(entry.field) or []), *entry.choices]
        else:
            known.setdefault(entry.field, None)

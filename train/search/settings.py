"""The file that ``negsample tune --config`` reads: fixed settings, search space, objective, sampler and pruner.

Every entry of the space becomes one Optuna parameter. A setting may have several entries with different conditions, each a
parameter of its own (``learning_rate[head=cls]``), since a sampler learns nothing from values of ranges that differ.
"""

import dataclasses
import json
import typing
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from optuna.trial import BaseTrial

from negsample.errors import InputError
from negsample.models.build import takes
from negsample.negatives.recipe import parse_recipe
from negsample.registry import check_keys, distinct, suggestion
from negsample.seeds import seed_from
from negsample.settings import Settings, convert, field_types, make_settings, number, read_file
from negsample.train.config import Reading, TrainConfig, make_config
from negsample.train.job import loss_of

# What a trial is worth by its validation split, in words.
OBJECTIVES = {
    "validation_loss": "validation loss",
    "accuracy": "validation accuracy",
    "pearson": "validation Pearson r",
}
_METHODS = {
    "sampler": {"tpe": "TPESampler", "random": "RandomSampler", "qmc": "QMCSampler"},
    "pruner": {
        "none": "NopPruner",
        "median": "MedianPruner",
        "percentile": "PercentilePruner",
        "successive-halving": "SuccessiveHalvingPruner",
        "hyperband": "HyperbandPruner",
    },
}
# Trials drawn in memory to see what a search holds, and whether sampler and pruner work (TPE does after ten trials).
_TRIED, _TRIED_BY_METHODS, _STEPS = 100, 14, 5
# Settings that decide which examples the validation split holds.
_EXAMPLES = {*field_types(Reading), "recipe", "negatives", "vocabulary", "labels", "label", "aspects"}
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

    def suggest(self, trial: BaseTrial) -> Any:
        """The value that the sampler of ``trial`` draws."""
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
        """The settings that differ between trials."""
        return {entry.field for entry in self.entries}

    def draw(self, trial: BaseTrial, train: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of one trial: ``train`` and a value for each entry whose condition holds.

        Of several entries for one field the first whose condition holds is drawn.
        """
        values, recipe, drawn = dict(train), dict(self.weights), set()
        for entry in self.entries:
            # A field that is not among the values has its default.
            held = (values.get(key, getattr(TrainConfig, key)) in allowed for key, allowed in entry.when.items())
            if entry.field in drawn or not all(held):
                continue
            if entry.part:
                recipe[entry.part] = entry.suggest(trial)
            else:
                values[entry.field] = entry.suggest(trial)
                drawn.add(entry.field)
        return {**values, "recipe": recipe} if recipe else values


def read_space(given: Mapping[str, Any], train: Mapping[str, Any]) -> Space:
    """The space that ``given`` describes, beside the fixed settings ``train``.

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


@dataclass(frozen=True)
class Agreement(Settings):
    """Agreement with people as the objective: files of judgments, the human score of each (or of all), level, coefficient."""

    judgments: tuple[str, ...] = ()
    human: tuple[str, ...] = ()
    level: Literal["summary", "system", "pooled"] = "summary"
    coefficient: Literal["spearman", "pearson", "kendall"] = "spearman"

    def check(self) -> None:
        if missing := [key for key in ("judgments", "human") if not getattr(self, key)]:
            raise InputError(f"{missing[0]} is missing; give a name or a list of names")
        if len(self.human) not in (1, len(self.judgments)):
            raise InputError(
                f"human has {len(self.human)} scores for {len(self.judgments)} files; give one, or one a file"
            )

    def files(self) -> list[tuple[str, str]]:
        """Each file of judgments with its human score."""
        human = self.human * len(self.judgments) if len(self.human) == 1 else self.human
        return list(zip(self.judgments, human, strict=True))


@dataclass(frozen=True)
class Search(Settings):
    """What is searched, and how.

    ``train``: fixed settings; ``space``: what is tried (``read_space``); ``objective``: a name in ``OBJECTIVES``, or
    ``{agreement: …}``; all but ``validation_loss`` are maximised; ``sampler`` and ``pruner``: a name, or a mapping with
    ``name`` and Optuna's own options; ``seed``.
    """

    train: dict[str, Any] = dataclasses.field(default_factory=dict)
    space: dict[str, Any] = dataclasses.field(default_factory=dict)
    objective: str | dict[str, Any] = ""
    sampler: str | dict[str, Any] = "tpe"
    pruner: str | dict[str, Any] | None = None
    seed: int = number(0, least=0, most=2**63 - 1)

    def check(self) -> None:
        make_config({key: value for key, value in self.train.items() if key != "epochs" or value != 0}, "train")
        losses, graded = self._tried
        if self.agreement is None and self.objective not in OBJECTIVES:
            told = f"{', '.join(OBJECTIVES)} or agreement: {{judgments: [FILE], human: NAME}}"
            raise InputError(f"objective must be {told}, not {self.objective!r}")
        if self.objective == "accuracy" and graded == {True}:
            raise InputError(
                "objective: accuracy is not defined for graded labels, and every recipe here has them; choose pearson "
                "or agreement"
            )
        compared = {"objective": self.objective == "validation_loss", "pruner": self.method("pruner")[0] != "none"}
        if len(losses) > 1 and (key := next((key for key, value in compared.items() if value), None)):
            raise InputError(
                f"{key}: validation losses of different loss functions can't be compared ({', '.join(sorted(losses))}); "
                f"fix loss under train, or choose another {key} (pruner: none)"
            )
        _check_methods(self)

    @cached_property
    def searched(self) -> Space:
        """What is tried."""
        return read_space(self.space, self.train)

    @cached_property
    def agreement(self) -> Agreement | None:
        """Agreement with people, where that is the objective."""
        if not isinstance(self.objective, dict) or list(self.objective) != ["agreement"]:
            return None
        asked = self.objective["agreement"]
        if not isinstance(asked, dict):
            raise InputError(f"objective: agreement must be key: value lines, not {asked!r}")
        return make_settings(Agreement, asked, "objective: agreement")

    @property
    def maximised(self) -> bool:
        """Whether a higher value of the objective is better."""
        return self.objective != "validation_loss"

    def title(self) -> str:
        """The objective in words."""
        if (asked := self.agreement) is None:
            return OBJECTIVES[str(self.objective)]
        sets = ", ".join(f"{Path(file).name} ({human})" for file, human in asked.files())
        return f"agreement with people, {asked.level}-level {asked.coefficient}, {sets}, half: tune"

    def content(self) -> dict[str, Any]:
        """What must be the same for all workers, as it is read from JSON."""
        return cast("dict[str, Any]", json.loads(json.dumps(self.as_dict(), default=str)))

    def notes(self) -> list[str]:
        """What a reader of the results must know."""
        notes, examples = [], ", ".join(sorted(self.searched.fields() & _EXAMPLES))
        if examples and self.agreement is None:
            notes.append(
                f"Trials differ in {examples}, so each is measured on validation examples of its own: a trial may be "
                "better only because its examples are easier. Agreement with people is the same measure for all."
            )
        if self.objective == "accuracy" and True in self._tried[1]:
            notes.append(
                "Trials whose recipe has graded labels have no accuracy, and fail; pearson and agreement measure all."
            )
        if examples and self.method("pruner")[0] != "none":
            notes.append("The pruner compares validation losses on different examples.")
        return notes

    def method(self, kind: Literal["sampler", "pruner"]) -> tuple[str, dict[str, Any]]:
        """Name and options; without a ``pruner`` it is ``median`` where validation losses can be compared."""
        given = self.sampler if kind == "sampler" else self.pruner
        if given is None:
            given = "none" if len(self._tried[0]) > 1 or self.searched.fields() & _EXAMPLES else "median"
        options = {"name": given} if isinstance(given, str) else dict(given)
        name, known = options.pop("name", None), list(_METHODS[kind])
        if name not in known:
            raise InputError(f"{kind}: none is called {name!r}; {suggestion(str(name), known)}")
        return str(name), options

    def make_sampler(self, number: int) -> BaseSampler:
        """The sampler of trial ``number``: its random stream depends on the seed and the number, on no worker."""
        name, options = self.method("sampler")
        seeds: dict[str, Any] = {"seed": seed_from(self.seed, "sampler", number) % 2**32}
        if name == "qmc":
            # The sequence is one for the whole study; what it does not cover is drawn independently.
            options = {"warn_independent_sampling": False, **options}
            seeds = {"seed": self.seed % 2**32, "independent_sampler": optuna.samplers.RandomSampler(**seeds)}
        return cast("BaseSampler", getattr(optuna.samplers, _METHODS["sampler"][name])(**options, **seeds))

    def make_pruner(self) -> BasePruner:
        """The pruner, which compares validation losses of epochs."""
        name, options = self.method("pruner")
        return cast("BasePruner", getattr(optuna.pruners, _METHODS["pruner"][name])(**options))

    @cached_property
    def _tried(self) -> tuple[set[str], set[bool]]:
        """Trials drawn at random: the losses that they are trained by, and whether their labels are graded.

        Raises InputError where none of them can be trained.
        """
        losses: set[str] = set()
        graded: set[bool] = set()
        refused = None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        for _ in range(_TRIED):
            try:
                config = make_config(self.searched.draw(study.ask(), self.train), "train and space").resolved()
                recipe = config.recipe_of()
                losses.add(loss_of(config, recipe))
                graded.add(recipe is None or recipe.graded)
            except InputError as error:
                # Others may do: this one would fail, with the reason.
                refused = error
        if not losses:
            raise InputError(f"no trial can be trained: {refused}")
        return losses, graded


def read_search(path: str | Path) -> Search:
    """The search that a YAML file describes. Raises InputError for whatever is wrong in it, naming the place."""
    with warnings.catch_warnings():
        # Optuna warns of options that it may change.
        warnings.simplefilter("ignore")
        return make_settings(Search, read_file(path, "tune"), str(path))


def _check_methods(search: Search) -> None:
    """Raise InputError where sampler or pruner can't do with their options: Optuna finds some of it when they work."""
    kind: Literal["sampler", "pruner"] = "pruner"
    try:
        study = optuna.create_study(pruner=search.make_pruner())
        for trial_number in range(_TRIED_BY_METHODS):
            kind = "sampler"
            study.sampler = search.make_sampler(trial_number)
            trial = study.ask()
            value = trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)
            kind = "pruner"
            for step in range(_STEPS):
                trial.report(value, step)
                trial.should_prune()
            study.tell(trial, value)
    except InputError:
        raise
    except Exception as error:
        name, options = search.method(kind)
        told = ", ".join(f"{key}: {value!r}" for key, value in options.items()) or "none"
        raise InputError(f"{kind} {name}, options {told}: {' '.join(str(error).split())}") from None

"""The file that ``negsample tune --config`` reads: fixed settings, search space, objective, sampler and pruner."""

import dataclasses
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler

from negsample.errors import InputError
from negsample.negatives.recipe import parse_recipe
from negsample.registry import check_keys, suggestion
from negsample.seeds import seed_from
from negsample.settings import convert, field_types, read_file
from negsample.train.config import Reading, make_config
from negsample.train.job import loss_of
from negsample.train.search.space import Space, read_space

_KEYS = ("train", "space", "objective", "sampler", "pruner", "seed")
OBJECTIVES = ("validation_loss", "accuracy", "pearson", "agreement")
_SAMPLERS = {"tpe": "TPESampler", "random": "RandomSampler", "qmc": "QMCSampler"}
_PRUNERS = {
    "none": "NopPruner",
    "median": "MedianPruner",
    "percentile": "PercentilePruner",
    "successive-halving": "SuccessiveHalvingPruner",
    "hyperband": "HyperbandPruner",
}
# Trials drawn in memory to see what a search holds, and whether sampler and pruner work (TPE does after ten trials).
_TRIED, _TRIED_BY_METHODS, _STEPS = 100, 14, 5
# Settings that decide which examples the validation split holds.
_EXAMPLES = {*field_types(Reading), "recipe", "negatives", "vocabulary"}


@dataclass(frozen=True)
class Agreement:
    """Agreement with people as the objective: files of judgments, the human score of each, level and coefficient."""

    judgments: tuple[str, ...]
    human: tuple[str, ...]
    level: str = "summary"
    coefficient: str = "spearman"


@dataclass(frozen=True)
class Search:
    """What is searched, and how. ``train``: fixed settings; ``given``: the file's content, as plain values.

    ``objective``: a name in ``OBJECTIVES``; all but ``validation_loss`` are maximised. ``sampler`` and ``pruner``: a
    name and optuna's own options for it. ``notes``: what a reader of the results must know.
    """

    train: Mapping[str, Any]
    space: Space
    objective: str
    agreement: Agreement | None
    sampler: tuple[str, Mapping[str, Any]]
    pruner: tuple[str, Mapping[str, Any]]
    seed: int
    given: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def maximised(self) -> bool:
        """Whether a higher value of the objective is better."""
        return self.objective != "validation_loss"

    def title(self) -> str:
        """The objective in words."""
        if self.agreement is not None:
            asked = self.agreement
            sets = ", ".join(f"{Path(f).name} ({h})" for f, h in zip(asked.judgments, asked.human, strict=True))
            return f"agreement with people, {asked.level}-level {asked.coefficient}, {sets}, half: tune"
        words = {
            "validation_loss": "validation loss",
            "accuracy": "validation accuracy",
            "pearson": "validation Pearson r",
        }
        return words[self.objective]

    def make_sampler(self, number: int) -> BaseSampler:
        """The sampler of trial ``number``: its random stream depends on the seed and the number, on no worker."""
        name, options = self.sampler
        seeds: dict[str, Any] = {"seed": seed_from(self.seed, "sampler", number) % 2**32}
        if name == "qmc":
            # The sequence is one for the whole study; what it does not cover is drawn independently.
            options = {"warn_independent_sampling": False, **options}
            seeds = {"seed": self.seed, "independent_sampler": optuna.samplers.RandomSampler(**seeds)}
        made: BaseSampler = getattr(optuna.samplers, _SAMPLERS[name])(**options, **seeds)
        return made

    def make_pruner(self) -> BasePruner:
        """The pruner, which compares validation losses of epochs."""
        made: BasePruner = getattr(optuna.pruners, _PRUNERS[self.pruner[0]])(**self.pruner[1])
        return made


def read_search(path: str | Path) -> Search:
    """Return the search that a YAML file describes. Raises InputError for whatever is wrong in it, naming the place."""
    values, where = read_file(path, "tune"), str(path)
    check_keys(values, _KEYS, where)
    train = convert(values.get("train") or {}, dict, f"{where}: train")
    make_config({key: value for key, value in train.items() if key != "epochs" or value != 0}, f"{where}: train")
    space = read_space(values.get("space"), train, where)
    objective, agreement = _objective(values.get("objective"), where)
    seed = convert(values.get("seed", 0), int, f"{where}: seed")
    if seed < 0:
        raise InputError(f"{where}: seed must be a whole number, 0 or more, not {seed}")
    sampler = _method("sampler", values.get("sampler") or "tpe", _SAMPLERS, where)
    pruner = _method("pruner", values.get("pruner") or "median", _PRUNERS, where)
    given = json.loads(json.dumps(values, default=str))
    search = Search(train, space, objective, agreement, sampler, pruner, seed, given)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        # Optuna warns of options that it may change.
        warnings.simplefilter("ignore")
        _check_methods(search, where)
        losses, graded = _try(search, where)
    if objective == "accuracy" and graded == {True}:
        raise InputError(
            f"{where}: objective: accuracy is not defined for graded labels, and every recipe here has them; choose "
            "pearson or agreement"
        )
    examples = ", ".join(sorted(space.fields() & _EXAMPLES))
    if values.get("pruner") is None and (len(losses) > 1 or examples):
        search = dataclasses.replace(search, pruner=("none", {}))
    compared = {"objective": objective == "validation_loss", "pruner": search.pruner[0] != "none"}
    for key in compared if len(losses) > 1 else ():
        if compared[key]:
            raise InputError(
                f"{where}: {key}: validation losses of different loss functions can't be compared "
                f"({', '.join(sorted(losses))}); fix loss under train, or choose another {key} (pruner: none)"
            )
    notes = []
    if examples and objective != "agreement":
        notes.append(
            f"Trials differ in {examples}, so each is measured on validation examples of its own: a trial may be better "
            "only because its examples are easier. Agreement with people is the same measure for all."
        )
    if objective == "accuracy" and True in graded:
        notes.append(
            "Trials whose recipe has graded labels have no accuracy, and fail; pearson and agreement measure all."
        )
    if examples and search.pruner[0] != "none":
        notes.append("The pruner compares validation losses on different examples.")
    return dataclasses.replace(search, notes=tuple(notes))


def _check_methods(search: Search, where: str) -> None:
    """Raise InputError where sampler or pruner can't do with their options: Optuna finds some of it when they work."""
    kind, method = "pruner", search.pruner
    try:
        study = optuna.create_study(pruner=search.make_pruner())
        for number in range(_TRIED_BY_METHODS):
            kind, method = "sampler", search.sampler
            study.sampler = search.make_sampler(number)
            trial = study.ask()
            value = trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)
            kind, method = "pruner", search.pruner
            for step in range(_STEPS):
                trial.report(value, step)
                trial.should_prune()
            study.tell(trial, value)
    except Exception as error:
        options = ", ".join(f"{key}: {value!r}" for key, value in method[1].items())
        told = " ".join(str(error).split())
        raise InputError(f"{where}: {kind} {method[0]}, options {options or 'none'}: {told}") from None


def _try(search: Search, where: str) -> tuple[set[str], set[bool]]:
    """Draw trials of ``search`` at random: the losses that they are trained by, and whether their labels are graded.

    Raises InputError where none of them can be trained.
    """
    losses: set[str] = set()
    graded: set[bool] = set()
    refused = None
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(_TRIED):
        values = search.space.draw(study.ask(), search.train)
        try:
            config = make_config(values, "train and space").resolved()
            recipe = parse_recipe(config.recipe)
            losses.add(loss_of(config, recipe))
            graded.add(recipe.graded)
        except InputError as error:
            # Others may do: this one would fail, with the reason.
            refused = error
    if not losses:
        raise InputError(f"{where}: no trial can be trained: {refused}")
    return losses, graded


def _objective(given: Any, where: str) -> tuple[str, Agreement | None]:
    if given in OBJECTIVES[:3]:
        return given, None
    if not isinstance(given, dict) or list(given) != ["agreement"]:
        raise InputError(
            f"{where}: objective must be {', '.join(OBJECTIVES[:3])} or agreement: {{judgments: [FILE], human: NAME}}, "
            f"not {given!r}"
        )
    at = f"{where}: objective: agreement"
    asked = dict(convert(given["agreement"], dict, at))
    check_keys(asked, [field.name for field in dataclasses.fields(Agreement)], at)
    for key in ("judgments", "human"):
        names = [asked.get(key)] if isinstance(asked.get(key), str) else asked.get(key)
        if names is None:
            raise InputError(f"{at}: {key} is missing; give a name or a list of names")
        asked[key] = tuple(convert(names, list[str], f"{at}: {key}"))
    if len(asked["human"]) == 1:
        asked["human"] *= len(asked["judgments"])
    if len(asked["human"]) != len(asked["judgments"]):
        raise InputError(
            f"{at}: {len(asked['judgments'])} files of judgments but {len(asked['human'])} human scores; give one, or "
            "one a file"
        )
    # Which levels and coefficients there are, negsample.eval knows; the command asks it before the first trial.
    files, names = asked.pop("judgments"), asked.pop("human")
    return "agreement", Agreement(files, names, **{key: str(value) for key, value in asked.items()})


def _method(kind: str, given: Any, known: Mapping[str, str], where: str) -> tuple[str, Mapping[str, Any]]:
    """Return name and options of a sampler or pruner; whether Optuna takes the options, ``_check_methods`` sees."""
    options = {"name": given} if isinstance(given, str) else dict(convert(given, dict, f"{where}: {kind}"))
    name = options.pop("name", None)
    if name not in list(known):
        raise InputError(f"{where}: {kind}: none is called {name!r}; {suggestion(str(name), list(known))}")
    return name, options

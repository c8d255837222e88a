"""The file that ``negsample tune --config`` reads: fixed settings, search space, objective, sampler and pruner."""

import dataclasses
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from negsample.errors import InputError
from negsample.negatives.recipe import parse_recipe
from negsample.registry import check_keys, suggestion
from negsample.seeds import seed_from
from negsample.train.config import make_config, read_values
from negsample.train.job import loss_of
from negsample.train.search.space import Space, read_space

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler

_KEYS = ("train", "space", "objective", "sampler", "pruner", "seed")
OBJECTIVES = ("validation_loss", "accuracy", "pearson", "agreement")
_AGREEMENT = ("judgments", "human", "level", "coefficient")
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
_EXAMPLES = (
    "corpus",
    "recipe",
    "negatives",
    "limit",
    "document_field",
    "summary_field",
    "corpus_config",
    "vocabulary",
    "on_bad",
    "seed",
)


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
        return {"validation_loss": "validation loss", "accuracy": "validation accuracy"}.get(
            self.objective, "validation Pearson r"
        )

    def make_sampler(self, number: int) -> "BaseSampler":
        """The sampler of trial ``number``: its random stream depends on the seed and the number, on no worker."""
        import optuna

        name, options = self.sampler
        own = seed_from(self.seed, "sampler", number) % 2**32
        if name == "qmc":
            # The sequence is one for the whole study; what it does not cover is drawn independently.
            independent = optuna.samplers.RandomSampler(seed=own)
            return optuna.samplers.QMCSampler(
                **{"warn_independent_sampling": False, **options}, seed=self.seed, independent_sampler=independent
            )
        made: BaseSampler = getattr(optuna.samplers, _SAMPLERS[name])(**options, seed=own)
        return made

    def make_pruner(self) -> "BasePruner":
        """The pruner, which compares validation losses of epochs."""
        import optuna

        name, options = self.pruner
        made: BasePruner = getattr(optuna.pruners, _PRUNERS[name])(**options)
        return made


def read_search(path: str | Path) -> Search:
    """Return the search that a YAML file describes. Raises InputError for whatever is wrong in it, naming the place."""
    import optuna

    values = read_values(path)
    where = str(path)
    check_keys(values, _KEYS, where)
    train = values.get("train") or {}
    if not isinstance(train, dict):
        raise InputError(f"{where}: train must hold settings as for 'negsample train', not {train!r}")
    make_config({key: value for key, value in train.items() if key != "epochs" or value != 0}, f"{where}: train")
    space = read_space(values.get("space"), train, where)
    objective, agreement = _objective(values.get("objective"), where)
    seed = values.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"{where}: seed must be a whole number, 0 or more, not {seed!r}")
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
    differ = f"validation losses of different loss functions can't be compared ({', '.join(sorted(losses))})"
    if objective == "accuracy" and graded == {True}:
        raise InputError(
            f"{where}: objective: accuracy is not defined for graded labels, and every recipe here has them; choose "
            "pearson or agreement"
        )
    if objective == "validation_loss" and len(losses) > 1:
        raise InputError(f"{where}: objective: {differ}; fix loss under train, or choose another objective")
    examples = ", ".join(sorted(space.fields() & set(_EXAMPLES)))
    if values.get("pruner") is None and (len(losses) > 1 or examples):
        search = dataclasses.replace(search, pruner=("none", {}))
    if search.pruner[0] != "none" and len(losses) > 1:
        raise InputError(f"{where}: pruner: {differ}; set pruner: none, or fix loss under train")
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
    import optuna

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
    import optuna

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
    if refused is not None and not losses:
        raise InputError(f"{where}: no trial can be trained: {refused}")
    return losses, graded


def _objective(given: Any, where: str) -> tuple[str, Agreement | None]:
    if isinstance(given, str) and given in OBJECTIVES[:3]:
        return given, None
    if isinstance(given, dict) and list(given) == ["agreement"]:
        return "agreement", _agreement(given["agreement"], f"{where}: objective: agreement")
    told = "" if given is None else f", not {given!r}"
    raise InputError(
        f"{where}: objective must be {', '.join(OBJECTIVES[:3])} or agreement: {{judgments: [FILE], human: NAME}}{told}"
    )


def _agreement(given: Any, at: str) -> Agreement:
    if not isinstance(given, dict):
        raise InputError(f"{at}: give judgments and human")
    check_keys(given, _AGREEMENT, at)
    files, names = (_names(given.get(key), f"{at}: {key}") for key in ("judgments", "human"))
    if len(names) == 1:
        names = names * len(files)
    if len(names) != len(files):
        raise InputError(
            f"{at}: {len(files)} files of judgments but {len(names)} human scores; give one, or one a file"
        )
    # Which levels and coefficients there are, negsample.eval knows; the command asks it before the first trial.
    asked = {key: str(given[key]) for key in ("level", "coefficient") if key in given}
    return Agreement(tuple(files), tuple(names), **asked)


def _names(given: Any, at: str) -> list[str]:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"{at} is missing or not text; give a name or a list of names")
    return names


def _method(kind: str, given: Any, known: Mapping[str, str], where: str) -> tuple[str, Mapping[str, Any]]:
    """Return name and options of a sampler or pruner; whether Optuna takes the options, ``_check_methods`` sees."""
    values = {"name": given} if isinstance(given, str) else given
    if not isinstance(values, dict) or "name" not in values:
        raise InputError(f"{where}: {kind} must be a name, or {{name: …, option: value}}, not {given!r}")
    options = {key: value for key, value in values.items() if key != "name"}
    name = values["name"]
    if not isinstance(name, str) or name not in known:
        raise InputError(f"{where}: {kind}: none is called {name!r}; {suggestion(str(name), list(known))}")
    return name, options

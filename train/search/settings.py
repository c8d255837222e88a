"""The file that ``negsample tune --config`` reads: fixed settings, search space, objective, sampler and pruner."""

import dataclasses
import json
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler

from negsample.errors import InputError
from negsample.registry import suggestion
from negsample.seeds import seed_from
from negsample.settings import Settings, field_types, make_settings, number, read_file
from negsample.train.config import Reading, make_config
from negsample.train.job import loss_of
from negsample.train.search.space import Space, read_space

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


@dataclass(frozen=True)
class Agreement(Settings):
    """Agreement with people as the objective: files of judgments, the human score of each (or of all), level, coefficient."""

    judgments: tuple[str, ...] = ()
    human: tuple[str, ...] = ()
    level: Literal["summary", "system", "pooled"] = "summary"
    coefficient: Literal["spearman", "pearson", "kendall"] = "spearman"

    def check(self) -> None:
        for key in ("judgments", "human"):
            if not getattr(self, key):
                raise InputError(f"{key} is missing; give a name or a list of names")
        if len(self.human) not in (1, len(self.judgments)):
            raise InputError(
                f"human has {len(self.human)} scores for {len(self.judgments)} files; give one, or one a file"
            )

    def files(self) -> list[tuple[str, str]]:
        """Return each file of judgments with its human score."""
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
    seed: int = number(0, least=0)

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
        """Return the objective in words."""
        if (asked := self.agreement) is None:
            return OBJECTIVES[str(self.objective)]
        sets = ", ".join(f"{Path(file).name} ({human})" for file, human in asked.files())
        return f"agreement with people, {asked.level}-level {asked.coefficient}, {sets}, half: tune"

    def content(self) -> dict[str, Any]:
        """Return what must be the same for all workers, as it is read from JSON."""
        plain: dict[str, Any] = json.loads(json.dumps(self.as_dict(), default=str))
        return plain

    def notes(self) -> list[str]:
        """Return what a reader of the results must know."""
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
        """Return name and options; without a ``pruner`` it is ``median`` where validation losses can be compared."""
        given = self.sampler if kind == "sampler" else self.pruner
        if given is None:
            given = "none" if len(self._tried[0]) > 1 or self.searched.fields() & _EXAMPLES else "median"
        options = {"name": given} if isinstance(given, str) else dict(given)
        name, known = options.pop("name", None), list(_METHODS[kind])
        if name not in known:
            raise InputError(f"{kind}: none is called {name!r}; {suggestion(str(name), known)}")
        return str(name), options

    def make_sampler(self, number: int) -> BaseSampler:
        """Return the sampler of trial ``number``: its random stream depends on the seed and the number, on no worker."""
        name, options = self.method("sampler")
        seeds: dict[str, Any] = {"seed": seed_from(self.seed, "sampler", number) % 2**32}
        if name == "qmc":
            # The sequence is one for the whole study; what it does not cover is drawn independently.
            options = {"warn_independent_sampling": False, **options}
            seeds = {"seed": self.seed, "independent_sampler": optuna.samplers.RandomSampler(**seeds)}
        made: BaseSampler = getattr(optuna.samplers, _METHODS["sampler"][name])(**options, **seeds)
        return made

    def make_pruner(self) -> BasePruner:
        """Return the pruner, which compares validation losses of epochs."""
        name, options = self.method("pruner")
        made: BasePruner = getattr(optuna.pruners, _METHODS["pruner"][name])(**options)
        return made

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
    """Return the search that a YAML file describes. Raises InputError for whatever is wrong in it, naming the place."""
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

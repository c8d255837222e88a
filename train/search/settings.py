"""The file that ``negsample tune --config`` reads: fixed settings, search space, objective, sampler and pruner."""

import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from negsample.errors import InputError
from negsample.registry import check_keys, suggestion
from negsample.seeds import seed_from
from negsample.train.config import make_config, read_values
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
# Types that a value in a file can have, as optuna's annotations name them.
_PLAIN = {"bool": bool, "int": int, "float": float, "str": str, "None": type(None)}
# What samplers check only when they draw.
_LEAST = {"n_ei_candidates": 1, "n_startup_trials": 0, "prior_weight": 0}
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
    """The search that a YAML file describes. Raises InputError for whatever is wrong in it, naming the place."""
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
    graded = _graded(space, train, where)
    if objective == "accuracy" and graded == {True}:
        raise InputError(
            f"{where}: objective: accuracy is not defined for graded labels, and every recipe here has them; choose "
            "pearson or agreement"
        )
    losses_differ, examples_differ = _losses_differ(space, train), bool(space.fields() & set(_EXAMPLES))
    if objective == "validation_loss" and losses_differ:
        raise InputError(
            f"{where}: objective: validation losses of different loss functions can't be compared ({losses_differ}); "
            "fix loss under train, or choose another objective"
        )
    pruner = _method("pruner", values.get("pruner"), _PRUNERS, "pruners", where)
    if pruner is None:
        pruner = ("none" if losses_differ or examples_differ else "median", {})
    elif pruner[0] != "none" and losses_differ:
        raise InputError(
            f"{where}: pruner: compares validation losses, and those of different loss functions can't be compared "
            f"({losses_differ}); set pruner: none, or fix loss under train"
        )
    notes = []
    if examples_differ and objective != "agreement":
        names = ", ".join(sorted(space.fields() & set(_EXAMPLES)))
        notes.append(
            f"Trials differ in {names}, so each is measured on validation examples of its own: a trial may be better "
            "only because its examples are easier. Agreement with people is the same measure for all."
        )
    if objective == "accuracy" and True in graded:
        notes.append(
            "Trials whose recipe has graded labels have no accuracy, and fail; pearson and agreement measure all."
        )
    if pruner[0] != "none" and examples_differ:
        notes.append("The pruner compares validation losses on different examples.")
    sampler = _method("sampler", values.get("sampler"), _SAMPLERS, "samplers", where) or ("tpe", {})
    given = json.loads(json.dumps(values, default=str))
    return Search(train, space, objective, agreement, sampler, pruner, seed, given, tuple(notes))


def _graded(space: Space, train: Mapping[str, Any], where: str) -> set[bool]:
    try:
        return space.graded(train)
    except InputError as error:
        raise InputError(f"{where}: train: {error}") from None


def _losses_differ(space: Space, train: Mapping[str, Any]) -> str:
    """Why trials may have different loss functions; "" where all have one."""
    if "loss" in space.fields():
        return "loss is searched"
    heads = set(space.choices("head"))
    if "align" in heads and len(heads) > 1:
        return "head align has a loss of its own"
    if "recipe" in space.fields() and train.get("loss") is None and train.get("head") != "align" and heads != {"align"}:
        return "recipe is searched, and decides the loss where none is given"
    return ""


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


def _method(
    kind: str, given: Any, known: Mapping[str, str], module: str, where: str
) -> tuple[str, Mapping[str, Any]] | None:
    """Name and options of a sampler or pruner, the options checked against optuna's own."""
    if given is None:
        return None
    values = {"name": given} if isinstance(given, str) else given
    if not isinstance(values, dict) or "name" not in values:
        raise InputError(f"{where}: {kind} must be a name, or {{name: …, option: value}}, not {given!r}")
    options = {key: value for key, value in values.items() if key != "name"}
    name = values["name"]
    if not isinstance(name, str) or name not in known:
        raise InputError(f"{where}: {kind}: none is called {name!r}; {suggestion(str(name), list(known))}")
    import optuna

    factory: Callable[..., Any] = getattr(getattr(optuna, module), known[name])
    parameters = inspect.signature(factory).parameters
    allowed = [key for key in parameters if key not in ("seed", "independent_sampler")]
    for key, value in options.items():
        if key not in allowed:
            raise InputError(f"{where}: {kind} {name}: unknown option {key!r}; {suggestion(str(key), allowed)}")
        _check_option(value, parameters[key], f"{where}: {kind} {name}: {key}")
    try:
        factory(**options)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: {kind} {name}: {error}") from None
    return name, options


def _check_option(value: Any, parameter: inspect.Parameter, at: str) -> None:
    """InputError where ``value`` is not of the type of optuna's ``parameter``, which itself is seldom checked there."""
    told = parameter.annotation
    told = told if isinstance(told, str) else getattr(told, "__name__", str(told))
    # What a function takes and gives stands in brackets.
    names = [name for name in re.findall(r"\w+", re.sub(r"\[.*\]", "", told)) if name in _PLAIN]
    default = type(parameter.default)
    if default in _PLAIN.values():
        names += [name for name, kind in _PLAIN.items() if kind is default and name not in names]
    kinds = [_PLAIN[name] for name in names]
    if type(value) not in kinds and not (type(value) is int and float in kinds):
        if set(names) <= {"None"}:
            raise InputError(f"{at} can't be given in a file; leave it out")
        raise InputError(f"{at} must be {' or '.join(names).replace('None', 'null')}, not {value!r}")
    if parameter.name in _LEAST and value is not None and not value >= _LEAST[parameter.name]:
        raise InputError(f"{at} must be at least {_LEAST[parameter.name]}, not {value!r}")

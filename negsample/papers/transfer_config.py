"""What an experiment of many trainings is made of: read from YAML, checked before anything is read or trained."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from negsample.errors import InputError
from negsample.models.build import takes
from negsample.models.encoders import ENCODERS
from negsample.negatives.recipe import Recipe, parse_recipe
from negsample.registry import check_keys, distinct, suggestion
from negsample.settings import Settings, convert, field_types, make_settings, read_file
from negsample.spec import parse
from negsample.train.config import Reading, TrainConfig, make_config
from negsample.train.job import loss_of

MIXTURE = "mixture"
DOMAIN_KEYS = tuple(key for key in field_types(Reading) if key != "seed")
# What neither ``train`` nor a head may say.
_SPLITS = ("train_split", "validation_split", "test_split")
_ELSEWHERE = ("corpus", "corpus_config", "document_field", "summary_field", *_SPLITS, "recipe")
# What must be the same for all heads, since they learn from and are tested on the same examples.
COMMON = ("limit", "sample", "on_bad", "negatives", "redraws", "vocabulary", "seed", "log_examples")
_Sizes = tuple[int | Literal["all"], ...]


@dataclass(frozen=True)
class HeadSetting:
    """A head, with the ``TrainConfig`` fields that are its own, and the training pairs that a source is cut to (None: all)."""

    label: str
    settings: Mapping[str, Any]
    sizes: tuple[int | None, ...]


@dataclass(frozen=True)
class Source:
    """What a model is trained on: the training splits of ``domains``; ``left_out`` names the domain it does without."""

    name: str
    domains: tuple[str, ...]
    left_out: str = ""


@dataclass(frozen=True)
class TransferConfig(Settings):
    """Sources × targets × recipes × heads × sizes × seeds, the keys of a YAML file; docs/transfer.md describes them.

    The fields are as given; ``domains``, ``mixes`` and ``labelled_heads`` are what they mean.
    """

    sources: dict[str, Any] = dataclasses.field(default_factory=dict)
    targets: list[str] | dict[str, Any] | None = None
    recipes: tuple[Any, ...] = ("crosspair",)
    heads: tuple[Any, ...] = ("fc",)
    sizes: _Sizes = ("all",)
    mixture: bool = False
    leave_one_out: bool = False
    few_shot: tuple[int, ...] = ()
    seeds: tuple[int, ...] = ()
    keep_models: bool = False
    train: dict[str, Any] = dataclasses.field(default_factory=dict)

    def check(self) -> None:
        for key in self.train:
            if key in (*_ELSEWHERE, "head"):
                raise InputError(f"train: {key} is said in sources, targets, recipes or heads; leave it out here")
        if self.common.labels:
            raise InputError("train: labels: an experiment is on damaged summaries; negsample train learns from labels")
        if not self.sources:
            raise InputError("sources: give at least one, such as sources: {news: cnn_dailymail}")
        _check_sizes(self.sizes, "sizes")
        _check_sizes(self.few_shot, "few_shot")
        distinct(list(self.seeds), "seeds:")
        distinct([str(recipe) for recipe in self.mixes], "recipes:")
        labels = [head.label for head in self.labelled_heads]
        distinct(labels, "heads: the label", "give one of them a label of its own")
        if (self.mixture or self.leave_one_out) and len(self.sources) < 2:
            raise InputError(f"{MIXTURE if self.mixture else 'leave_one_out'} needs two sources or more; there is one")
        if not (self.domains and self.target_names):
            raise InputError("targets: name one, or leave targets out to test on the sources")
        names = [source.name for source in self.all_sources()]
        distinct(names, "sources: the name", "a mixture is called so; choose another name")
        for own, recipe in (
            (self.config_of(head, each, 0), each) for head in self.labelled_heads for each in self.mixes
        ):
            loss_of(own, recipe)
            if takes(own.head) in ("rows", "align"):
                ENCODERS.get(parse(str(own.encoder)).name)

    @cached_property
    def common(self) -> TrainConfig:
        """The settings that all have in common."""
        return make_config(self.train, "train")

    @cached_property
    def mixes(self) -> tuple[Recipe, ...]:
        """The recipes, read."""
        return tuple(map(parse_recipe, self.recipes))

    @cached_property
    def labelled_heads(self) -> tuple[HeadSetting, ...]:
        """The heads, each with its own settings."""
        return tuple(map(self._head, self.heads))

    @cached_property
    def domains(self) -> dict[str, Reading]:
        """What is read of each source and target, by name."""
        found = {name: self._domain(entry, f"sources: {name}") for name, entry in self.sources.items()}
        for name in self.targets or () if isinstance(self.targets, list) else ():
            if name not in found:
                raise InputError(
                    f"targets: {name!r} is no source; {suggestion(name, list(found))} "
                    "(a domain that is only tested on: write targets as name: corpus lines)"
                )
        for name, entry in self.targets.items() if isinstance(self.targets, dict) else ():
            if found.setdefault(name, own := self._domain(entry, f"targets: {name}")) != own:
                raise InputError(f"targets: {name} is not what the source of this name is; give it another name")
        return found

    @property
    def target_names(self) -> list[str]:
        """What is tested on."""
        return distinct(list(self.sources if self.targets is None else self.targets), "targets:")

    def domain(self, name: str) -> TrainConfig:
        """Return the common settings with the corpora of a domain."""
        return dataclasses.replace(self.common, **self.domains[name].as_dict())

    def all_sources(self) -> list[Source]:
        """Return what models are trained on: each source, then the mixture, then all but each target."""
        every = tuple(self.sources)
        left = [name for name in self.target_names if name in every] if self.leave_one_out else []
        return [
            *(Source(name, (name,)) for name in every),
            *([Source(MIXTURE, every)] if self.mixture else []),
            *(Source(f"all but {own}", tuple(name for name in every if name != own), own) for own in left),
        ]

    def config_of(self, head: HeadSetting, recipe: Recipe, seed: int) -> TrainConfig:
        """Return everything that decides a training, but for what it is trained on."""
        return dataclasses.replace(self.common, **head.settings, recipe=dict(recipe.weights), seed=seed).resolved()

    def all_seeds(self) -> tuple[int, ...]:
        """Return the seeds of networks and order of examples."""
        return self.seeds or (self.common.seed,)

    def _domain(self, entry: Any, at: str) -> Reading:
        values = dict(entry) if isinstance(entry, Mapping) else {"corpus": entry}
        check_keys(values, DOMAIN_KEYS, at)
        if not values.get("corpus"):
            raise InputError(f"{at}: no corpus; give a name, file, folder or hub id")
        shared = {key: getattr(self.common, key) for key in ("limit", "sample", "on_bad", "seed")}
        found = make_settings(Reading, {**shared, **values}, at)
        if "-" in distinct(found.corpora(), f"{at}: corpus"):
            raise InputError(f"{at}: standard input can be read once only; give a file")
        return found

    def _head(self, entry: Any) -> HeadSetting:
        values = dict(entry) if isinstance(entry, Mapping) else {"head": entry}
        if not isinstance(values.get("head"), str):
            raise InputError(f"heads: {entry!r} names no head; give one, such as fc, or {{head: cls, epochs: 2}}")
        label = str(values.pop("label", values["head"]))
        at, sizes = f"heads: {label}", values.pop("sizes", None)
        given = self.sizes if sizes is None else convert(sizes, _Sizes, f"{at}: sizes")
        _check_sizes(given, f"{at}: sizes")
        for key in values:
            if key in (*_ELSEWHERE, *COMMON):
                raise InputError(f"{at}: {key} must be the same for all heads; train, a domain or recipes say it")
        takes(values["head"])
        # What ``train`` says may not suit this head (such as epochs: 0), so the two are checked together.
        together = make_config({**self.common.as_dict(), **values}, at)
        own = {key: getattr(together, key) for key in values}
        return HeadSetting(label, own, tuple(None if size == "all" else int(size) for size in given))


def read_transfer(path: str | Path) -> TransferConfig:
    """Return the experiment that a YAML file (or a packaged one, by its bare name) describes. Raises InputError."""
    return make_settings(TransferConfig, read_file(path, "transfer"), str(path))


def _check_sizes(sizes: _Sizes, at: str) -> None:
    """Raise InputError for a number of pairs that is below 2 or given twice."""
    for size in distinct(list(sizes), f"{at}:"):
        if size != "all" and int(size) < 2:
            raise InputError(f"{at}: {size} pairs are too few; give 2 or more")

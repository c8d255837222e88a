"""What a transfer experiment is made of: read from YAML, checked before anything is read or trained."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.models.build import takes
from negsample.models.encoders import ENCODERS, parse_spec
from negsample.negatives.recipe import Recipe, parse_recipe
from negsample.registry import check_keys, distinct, suggestion
from negsample.settings import convert, field_types, read_file
from negsample.train.config import Reading, TrainConfig, make_config
from negsample.train.job import loss_of

DOMAIN_KEYS = tuple(key for key in field_types(Reading) if key != "seed")
MIXTURE = "mixture"
# What neither ``train`` nor a head may say.
_ELSEWHERE = ("corpus", "corpus_config", "document_field", "summary_field", "recipe")
# What must be the same for all heads, since they learn from and are tested on the same examples.
_COMMON = ("limit", "sample", "on_bad", "negatives", "redraws", "vocabulary", "seed", "log_examples")
_FLAGS = ("mixture", "leave_one_out", "keep_models")
# What a domain says of its corpora: the fields ``DOMAIN_KEYS`` of a TrainConfig; several corpora are one mixed domain.
Domain = Mapping[str, Any]


@dataclass(frozen=True)
class HeadSetting:
    """A head with the settings that are its own: ``settings`` are TrainConfig fields, ``head`` among them.

    ``label`` names it in tables; ``sizes``, where given, take the place of the experiment's.
    """

    label: str
    settings: Mapping[str, Any]
    sizes: tuple[int | None, ...] | None = None


@dataclass(frozen=True)
class Source:
    """What a model is trained on: the training splits of ``domains``; ``left_out`` names the domain it does without."""

    name: str
    domains: tuple[str, ...]
    left_out: str = ""


@dataclass(frozen=True)
class TransferConfig:
    """Sources × targets × recipes × heads × sizes × seeds, as the keys of a YAML file say; docs/transfer.md describes them.

    ``sizes`` are training pairs that a source is cut to (Bao et al. 2021, Table 4), None: all. ``train`` has the settings
    common to all; its ``seed`` decides splits and negatives, ``seeds`` networks and order of examples.
    """

    sources: Mapping[str, Domain]
    targets: Mapping[str, Domain]
    recipes: tuple[Recipe, ...]
    heads: tuple[HeadSetting, ...]
    sizes: tuple[int | None, ...] = (None,)
    mixture: bool = False
    leave_one_out: bool = False
    few_shot: tuple[int, ...] = ()
    seeds: tuple[int, ...] = (0,)
    keep_models: bool = False
    train: TrainConfig = field(default_factory=TrainConfig)

    @property
    def domains(self) -> dict[str, Domain]:
        """Sources and targets by name."""
        return {**self.sources, **self.targets}

    def domain(self, name: str) -> TrainConfig:
        """Return the common settings with the corpora of a domain."""
        return dataclasses.replace(self.train, **self.domains[name])

    def all_sources(self) -> list[Source]:
        """Return what models are trained on: each source, then the mixture, then all but each target."""
        found = [Source(name, (name,)) for name in self.sources]
        if self.mixture:
            found.append(Source(MIXTURE, tuple(self.sources)))
        if self.leave_one_out:
            for left in self.targets:
                if left in self.sources:
                    rest = tuple(name for name in self.sources if name != left)
                    found.append(Source(f"all but {left}", rest, left))
        return found

    def config_of(self, head: HeadSetting, recipe: Recipe, seed: int) -> TrainConfig:
        """Return everything that decides a training, but for what it is trained on."""
        config = dataclasses.replace(self.train, **head.settings, recipe=dict(recipe.weights), seed=seed)
        return config.resolved()

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, as they go to JSON."""
        return {
            **{entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)},
            "sources": {name: dict(domain) for name, domain in self.sources.items()},
            "targets": {name: dict(domain) for name, domain in self.targets.items()},
            "recipes": [dict(recipe.weights) for recipe in self.recipes],
            "heads": [{"label": head.label, **head.settings, "sizes": head.sizes} for head in self.heads],
            "train": {key: value for key, value in self.train.as_dict().items() if key not in (*_ELSEWHERE, "head")},
        }


def read_transfer(path: str | Path) -> TransferConfig:
    """Return the experiment that a YAML file (or a packaged one, by its bare name) describes. Raises InputError."""
    return make_transfer(read_file(path, "transfer"), str(path))


def make_transfer(values: Mapping[str, Any], where: str = "configuration") -> TransferConfig:
    """Return a checked experiment from plain values with the keys of ``TransferConfig``.

    Raises InputError for an unknown key (with the nearest known one), a wrong type, a name given twice, or nothing to do.
    """
    check_keys(values, [entry.name for entry in dataclasses.fields(TransferConfig)], where)
    given = convert(values.get("train") or {}, dict, f"{where}: train")
    for key in given:
        if key in (*_ELSEWHERE, "head"):
            raise InputError(f"{where}: train: {key} is said in sources, targets, recipes or heads; leave it out here")
    train = make_config(given, f"{where}: train")
    sources = _domains(values.get("sources"), train, f"{where}: sources")
    if not sources:
        raise InputError(f"{where}: no sources; give at least one, such as sources: {{news: cnn_dailymail}}")
    recipes = [parse_recipe(entry) for entry in _list(values.get("recipes"), f"{where}: recipes") or ["crosspair"]]
    distinct([str(recipe) for recipe in recipes], f"{where}: recipes:")
    given_heads = _list(values.get("heads"), f"{where}: heads") or ["fc"]
    heads = [_head(entry, train, f"{where}: heads") for entry in given_heads]
    distinct([head.label for head in heads], f"{where}: heads: the label", "give one of them a label of its own")
    config = TransferConfig(
        sources=sources,
        targets=_targets(values.get("targets"), sources, train, f"{where}: targets"),
        recipes=tuple(recipes),
        heads=tuple(heads),
        sizes=_sizes(values.get("sizes"), f"{where}: sizes") or (None,),
        few_shot=_numbers(values.get("few_shot"), f"{where}: few_shot", 2),
        seeds=_numbers(values.get("seeds"), f"{where}: seeds", None) or (train.seed,),
        train=train,
        **{key: convert(values[key], bool, f"{where}: {key}") for key in _FLAGS if values.get(key) is not None},
    )
    if (config.mixture or config.leave_one_out) and len(sources) < 2:
        key = MIXTURE if config.mixture else "leave_one_out"
        raise InputError(f"{where}: {key} needs two sources or more; there is one")
    names = [source.name for source in config.all_sources()]
    distinct(names, f"{where}: sources: the name", "a mixture is called so; choose another name")
    for head in heads:
        for recipe in recipes:
            own = config.config_of(head, recipe, 0)
            loss_of(own, recipe)
            if takes(own.head) in ("rows", "align"):
                ENCODERS.get(parse_spec(str(own.encoder))[0])
    return config


def _list(value: Any, where: str) -> list[Any]:
    """Return the entries of a list; a single value is a list of one."""
    entries = list(value) if isinstance(value, list | tuple) else [] if value is None else [value]
    return distinct(entries, f"{where}:")


def _numbers(value: Any, where: str, least: int | None) -> tuple[int, ...]:
    entries = _list(value, where)
    for entry in entries:
        if type(entry) is not int or (least is not None and entry < least):
            raise InputError(f"{where}: {entry!r} is no whole number" + (f" of {least} or more" if least else ""))
    return tuple(entries)


def _sizes(value: Any, where: str) -> tuple[int | None, ...]:
    """Return sizes, None for "all"; () where none are given."""
    entries = [None if entry == "all" else entry for entry in _list(value, where)]
    _numbers([entry for entry in entries if entry is not None], where, 2)
    return tuple(entries)


def _domains(value: Any, train: TrainConfig, where: str) -> dict[str, Domain]:
    given = convert(value or {}, dict, where)
    return {str(name): _domain(entry, train, f"{where}: {name}") for name, entry in given.items()}


def _domain(entry: Any, train: TrainConfig, where: str) -> Domain:
    values = dict(entry) if isinstance(entry, Mapping) else {"corpus": entry}
    check_keys(values, DOMAIN_KEYS, where)
    if not values.get("corpus"):
        raise InputError(f"{where}: no corpus; give a name, file, folder or hub id")
    config = make_config({"limit": train.limit, "sample": train.sample, "on_bad": train.on_bad, **values}, where)
    if "-" in distinct(config.corpora(), f"{where}: corpus"):
        raise InputError(f"{where}: standard input can be read once only; give a file")
    return {key: getattr(config, key) for key in DOMAIN_KEYS}


def _targets(value: Any, sources: Mapping[str, Domain], train: TrainConfig, where: str) -> dict[str, Domain]:
    if value is None:
        return dict(sources)
    if isinstance(value, list):
        for name in _list(value, where):
            if name not in list(sources):
                raise InputError(
                    f"{where}: {name!r} is no source; {suggestion(str(name), list(sources))} "
                    "(a domain that is only tested on: write targets as name: corpus lines)"
                )
        targets = {name: sources[name] for name in value}
    else:
        targets = _domains(value, train, where)
        for name, domain in targets.items():
            if sources.get(name, domain) != domain:
                raise InputError(f"{where}: {name} is not what the source of this name is; give it another name")
    if not targets:
        raise InputError(f"{where}: no target; name one, or leave targets out to test on the sources")
    return targets


def _head(entry: Any, train: TrainConfig, where: str) -> HeadSetting:
    values = dict(entry) if isinstance(entry, Mapping) else {"head": entry}
    if not isinstance(values.get("head"), str):
        raise InputError(f"{where}: {entry!r} names no head; give one, such as fc, or {{head: cls, epochs: 2}}")
    label, sizes = str(values.pop("label", values["head"])), values.pop("sizes", None)
    where = f"{where}: {label}"
    for key in values:
        if key in (*_ELSEWHERE, *_COMMON):
            raise InputError(f"{where}: {key} must be the same for all heads; train, a domain or recipes say it")
    takes(values["head"])
    # What ``train`` says may not suit this head (such as epochs: 0), so the two are checked together.
    together = make_config({**train.as_dict(), **values}, where)
    settings = {key: getattr(together, key) for key in values}
    return HeadSetting(label, settings, _sizes(sizes, f"{where}: sizes") or None)

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
from negsample.registry import check_keys, suggestion
from negsample.train.config import TrainConfig, make_config, read_values
from negsample.train.data.corpora import READING
from negsample.train.job import loss_of

MIXTURE = "mixture"
# What a domain says of its corpora; ``train`` may give defaults for the last two.
DOMAIN_KEYS = READING
# What neither ``train`` nor a head may say, and where it is said.
_ELSEWHERE = {
    "corpus": "sources and targets",
    "corpus_config": "a source or target",
    "document_field": "a source or target",
    "summary_field": "a source or target",
    "recipe": "recipes",
}
# What must be the same for all heads, since they learn from and are tested on the same examples.
_COMMON = ("limit", "on_bad", "negatives", "redraws", "vocabulary", "seed", "log_examples")


@dataclass(frozen=True)
class Domain:
    """A domain: ``data`` are the fields ``DOMAIN_KEYS`` of a TrainConfig; several corpora are one mixed domain."""

    name: str
    data: Mapping[str, Any]

    def config(self, base: TrainConfig) -> TrainConfig:
        """``base`` with the corpora of this domain."""
        return dataclasses.replace(base, **self.data)


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
    """Sources × targets × recipes × heads × sizes × seeds. A YAML file has these keys:

    - ``sources``: name → domain. A domain is a corpus (name, file, folder or hub id, as ``--corpus`` takes it), a list of
      corpora that are mixed, or a mapping with ``corpus`` (one or a list), ``corpus_config``, ``document_field``,
      ``summary_field``, ``limit`` (pairs read of each corpus) and ``on_bad``.
    - ``targets``: names of sources, or a mapping like ``sources`` (a name that is also a source must mean the same).
      Default: the sources.
    - ``recipes``: a list of recipes as ``train`` takes them: a kind, ``mix:FILE``, ``mix(add=1,delete=2)``, or a mapping
      kind → weight. Default: ``[crosspair]``.
    - ``heads``: a list of heads, or of mappings with ``head``, ``label`` (its name in tables; default: the head's),
      ``sizes`` (in place of those below) and any setting of ``train`` that does not change the examples (``encoder``,
      ``epochs``, ``max_length``, …). Default: ``[fc]``.
    - ``sizes``: training pairs that a source is cut to (P3 Table 4), each a number or ``all``. Default: ``[all]``. A
      smaller size is a part of a larger one. A source that has fewer pairs is not trained at that size, and the report
      says so. The test documents are the same for all sizes; P3's grow with the sample.
    - ``mixture``: also train on all sources together (``size`` pairs of their union).
    - ``leave_one_out``: also train, for each target that is a source, on all other sources together.
    - ``few_shot``: numbers n of pairs; each trained model is trained on with n training pairs of each target that it has
      not seen, and tested on that target.
    - ``seeds``: of networks and order of examples (default: ``train``'s ``seed``); figures are means over them.
    - ``keep_models``: keep the model folder of each training.
    - ``train``: settings common to all (fields of TrainConfig but those above). Its ``seed`` decides splits and negatives;
      its ``limit`` and ``on_bad`` hold for domains without their own.

    Splits: each domain is split by document, 80/10/10, as ``negsample train`` splits it. A target is always tested on its
    own test split; documents that occur in the test split of any target, or share a summary with one that does, are
    trained on nowhere. Early stopping goes by the source's own validation split, cut in proportion to the size.
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

    def all_sources(self) -> list[Source]:
        """What models are trained on: each source, then the mixture, then all but each target."""
        found = [Source(name, (name,)) for name in self.sources]
        if self.mixture:
            found.append(Source(MIXTURE, tuple(self.sources)))
        if self.leave_one_out:
            for left in self.targets:
                rest = tuple(name for name in self.sources if name != left)
                if left in self.sources:
                    found.append(Source(f"all but {left}", rest, left))
        return found

    def config_of(self, head: HeadSetting, recipe: Recipe, seed: int) -> TrainConfig:
        """Everything that decides a training, but for what it is trained on."""
        config = dataclasses.replace(self.train, **head.settings, recipe=dict(recipe.weights), seed=seed)
        return config.resolved()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as they go to JSON."""
        return {
            "sources": {name: dict(domain.data) for name, domain in self.sources.items()},
            "targets": {name: dict(domain.data) for name, domain in self.targets.items()},
            "recipes": [dict(recipe.weights) for recipe in self.recipes],
            "heads": [
                {"label": head.label, **head.settings, "sizes": None if head.sizes is None else list(head.sizes)}
                for head in self.heads
            ],
            "sizes": list(self.sizes),
            "mixture": self.mixture,
            "leave_one_out": self.leave_one_out,
            "few_shot": list(self.few_shot),
            "seeds": list(self.seeds),
            "keep_models": self.keep_models,
            "train": {key: value for key, value in self.train.as_dict().items() if key not in (*_ELSEWHERE, "head")},
        }


_KEYS = [entry.name for entry in dataclasses.fields(TransferConfig)]


def read_transfer(path: str | Path) -> TransferConfig:
    """The experiment that a YAML file (or a packaged one, by its bare name) describes. Raises InputError."""
    return make_transfer(read_values(path), str(path))


def make_transfer(values: Mapping[str, Any], where: str = "configuration") -> TransferConfig:
    """A checked experiment from plain values; the format is that of ``TransferConfig``.

    Raises InputError for an unknown key (with the nearest known one), a wrong type, a name given twice, or nothing to do.
    """
    check_keys(values, _KEYS, where)
    given = _mapping(values.get("train"), f"{where}: train")
    for key in given:
        if key in (*_ELSEWHERE, "head"):
            raise InputError(f"{where}: train: {key} is said in {_ELSEWHERE.get(key, 'heads')}; leave it out here")
    train = make_config(given, f"{where}: train")
    sources = _domains(values.get("sources"), train, f"{where}: sources")
    if not sources:
        raise InputError(f"{where}: no sources; give at least one, such as sources: {{news: cnn_dailymail}}")
    config = TransferConfig(
        sources=sources,
        targets=_targets(values.get("targets"), sources, train, f"{where}: targets"),
        recipes=tuple(_recipes(values.get("recipes"), f"{where}: recipes")),
        heads=tuple(_heads(values.get("heads"), train, f"{where}: heads")),
        sizes=_sizes(values.get("sizes"), f"{where}: sizes") or (None,),
        mixture=_flag(values.get("mixture"), f"{where}: mixture"),
        leave_one_out=_flag(values.get("leave_one_out"), f"{where}: leave_one_out"),
        few_shot=_numbers(values.get("few_shot"), f"{where}: few_shot", 2),
        seeds=_numbers(values.get("seeds"), f"{where}: seeds", None) or (train.seed,),
        keep_models=_flag(values.get("keep_models"), f"{where}: keep_models"),
        train=train,
    )
    _check(config, where)
    return config


def _check(config: TransferConfig, where: str) -> None:
    if (config.mixture or config.leave_one_out) and len(config.sources) < 2:
        key = MIXTURE if config.mixture else "leave_one_out"
        raise InputError(f"{where}: {key} needs two sources or more; there is one")
    names = [source.name for source in config.all_sources()]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{where}: sources: {name!r} is what this command calls a mixture; choose another name")
    for head in config.heads:
        for recipe in config.recipes:
            own = config.config_of(head, recipe, 0)
            loss_of(own, recipe)
            if takes(own.head) in ("rows", "align"):
                ENCODERS.get(parse_spec(str(own.encoder))[0])


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: must hold name: value lines, not {value!r}")
    return {str(key): entry for key, entry in value.items()}


def _flag(value: Any, where: str) -> bool:
    if value is None or isinstance(value, bool):
        return bool(value)
    raise InputError(f"{where}: must be true or false, not {value!r}")


def _list(value: Any, where: str) -> list[Any]:
    """The entries of a list; a single value is a list of one."""
    entries = value if isinstance(value, list) else [] if value is None else [value]
    for number, entry in enumerate(entries):
        if entry in entries[:number]:
            raise InputError(f"{where}: {entry!r} is given twice; give it once")
    return entries


def _numbers(value: Any, where: str, least: int | None) -> tuple[int, ...]:
    entries = _list(value, where)
    for entry in entries:
        if not isinstance(entry, int) or isinstance(entry, bool) or (least is not None and entry < least):
            raise InputError(f"{where}: {entry!r} is no whole number" + (f" of {least} or more" if least else ""))
    return tuple(entries)


def _sizes(value: Any, where: str) -> tuple[int | None, ...] | None:
    if value is None:
        return None
    entries = [None if entry in (None, "all") else entry for entry in _list(value, where)]
    _numbers([entry for entry in entries if entry is not None], where, 2)
    return tuple(entries)


def _domains(value: Any, train: TrainConfig, where: str) -> dict[str, Domain]:
    return {name: _domain(name, entry, train, f"{where}: {name}") for name, entry in _mapping(value, where).items()}


def _domain(name: str, entry: Any, train: TrainConfig, where: str) -> Domain:
    values = dict(entry) if isinstance(entry, Mapping) else {"corpus": entry}
    check_keys(values, DOMAIN_KEYS, where)
    if not values.get("corpus"):
        raise InputError(f"{where}: no corpus; give a name, file, folder or hub id")
    config = make_config(values, where)
    if len(set(config.corpora())) < len(config.corpora()):
        raise InputError(f"{where}: a corpus is given twice; give it once")
    if "-" in config.corpora():
        raise InputError(f"{where}: standard input can be read once only; give a file")
    data = {key: getattr(config, key) for key in DOMAIN_KEYS}
    for key in ("limit", "on_bad"):
        if key not in values:
            data[key] = getattr(train, key)
    return Domain(name, data)


def _targets(value: Any, sources: Mapping[str, Domain], train: TrainConfig, where: str) -> dict[str, Domain]:
    if value is None:
        return dict(sources)
    if not isinstance(value, list):
        targets = _domains(value, train, where)
        for name, domain in targets.items():
            if name in sources and sources[name] != domain:
                raise InputError(f"{where}: {name} is not what the source of this name is; give it another name")
    else:
        for name in _list(value, where):
            if name not in sources:
                raise InputError(
                    f"{where}: {name!r} is no source; {suggestion(str(name), list(sources))} "
                    "(a domain that is only tested on: write targets as name: corpus lines)"
                )
        targets = {name: sources[name] for name in value}
    if not targets:
        raise InputError(f"{where}: no target; name one, or leave targets out to test on the sources")
    return targets


def _recipes(value: Any, where: str) -> list[Recipe]:
    recipes = [parse_recipe(entry) for entry in _list(value, where)] or [parse_recipe("crosspair")]
    names = [str(recipe) for recipe in recipes]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{where}: {name} is given twice; give it once")
    return recipes


def _heads(value: Any, train: TrainConfig, where: str) -> list[HeadSetting]:
    heads = [_head(entry, train, where) for entry in _list(value, where) or ["fc"]]
    labels = [head.label for head in heads]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"{where}: two heads are called {label!r}; give one of them a label of its own")
    return heads


def _head(entry: Any, train: TrainConfig, where: str) -> HeadSetting:
    values = dict(entry) if isinstance(entry, Mapping) else {"head": entry}
    if not isinstance(values.get("head"), str):
        raise InputError(f"{where}: {entry!r} names no head; give one, such as fc, or {{head: cls, epochs: 2}}")
    label, sizes = str(values.pop("label", values["head"])), values.pop("sizes", None)
    where = f"{where}: {label}"
    for key in values:
        if key in (*_ELSEWHERE, *_COMMON):
            raise InputError(f"{where}: {key} must be the same for all heads; {_ELSEWHERE.get(key, 'train')} says it")
    takes(values["head"])
    known = [key for key in TrainConfig().as_dict() if key not in (*_ELSEWHERE, *_COMMON)]
    check_keys(values, ["label", "sizes", *known], where)
    # What ``train`` says may not suit this head (such as epochs: 0), so the two are checked together.
    together = make_config({**train.as_dict(), **values}, where)
    return HeadSetting(label, {key: getattr(together, key) for key in values}, _sizes(sizes, f"{where}: sizes"))

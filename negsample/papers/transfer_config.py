"""What an experiment of many trainings is made of: its file, checked before anything is read; its documents and examples.

A document in the test split of any target is in no training and no validation, whatever corpus it is read from.
"""

import dataclasses
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from negsample.errors import InputError
from negsample.io.files import atomic_json, replacing
from negsample.models.build import takes
from negsample.models.encoders import ENCODERS
from negsample.negatives.generate import generate
from negsample.negatives.index import fingerprint, index_of
from negsample.negatives.recipe import Recipe, parse_recipe
from negsample.negatives.split import SPLITS, Shares
from negsample.records import Pair, document_key
from negsample.registry import check_keys, distinct, parse, suggestion
from negsample.seeds import digest
from negsample.settings import Settings, convert, field_types, make_settings, read_file
from negsample.terminal import track
from negsample.train.config import Reading, TrainConfig, make_config
from negsample.train.data import Parting, amounts, make_examples, pairs_of, read_of
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
        for key in ("recipes", "heads"):
            if not getattr(self, key):
                raise InputError(f"{key}: give at least one")
        _check_sizes(self.sizes, "sizes")
        _check_sizes(self.few_shot, "few_shot")
        for seed in distinct(list(self.seeds), "seeds:"):
            make_config({"seed": seed}, "seeds")
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


_TRAIN, _VALIDATION, _TEST, _NONE = range(4)
# Fewer validation documents than this say little about when to stop.
_LEAST_VALIDATION = 8
_CHANGED = "has changed since the experiment was begun; give another folder with --out"
_ROW = np.dtype([("key", "S16"), ("summary", "S16")])


class DomainSplit(NamedTuple):
    """``rows`` [pairs] of (document key, summary hash); ``part`` uint8 [pairs]: 0 training, 1 validation, 2 test."""

    rows: np.ndarray
    part: np.ndarray


class Choice(NamedTuple):
    """What one training reads: document keys, S16, of training and validation; and pairs of training.

    ``left_out``: training documents of the source that are, or share a summary with, test documents of a target.
    """

    train: np.ndarray
    validation: np.ndarray
    train_pairs: int
    left_out: int


def split_domain(config: TrainConfig, folder: Path) -> DomainSplit:
    """Return the split of a domain, as ``negsample train`` splits it; kept in ``folder`` and taken from there, unread.

    Raises InputError where the corpus can't be read, or not be split, or is read again and has changed since.
    """
    path, about = folder / "split.npz", folder / "about.json"
    if path.is_file() and about.is_file():
        with np.load(path, allow_pickle=False) as stored:
            return DomainSplit(stored["rows"], stored["part"])
    skipped: Counter[str] = Counter()
    names, parting = ", ".join(config.corpora()), Parting(config)
    index = index_of(track(pairs_of(config, skipped, parting), f"reading {names}"))
    try:
        part = parting.part(index.key[index.first[:-1]], index.group)[index.document]
    except InputError as error:
        raise InputError(f"{names}: {error}") from error
    facts = {
        **read_of(config, skipped),
        "pairs": len(index.number) + index.duplicates,
        "duplicates": index.duplicates,
        "documents": len(index.group),
        "splits": {name: int(np.sum(part == number)) for number, name in enumerate(SPLITS)},
        "fingerprint": fingerprint(index),
        "split_fingerprints": {name: fingerprint(index, part == number) for number, name in enumerate(SPLITS)},
    }
    key = "split_fingerprints"
    if about.is_file() and json.loads(about.read_text(encoding="utf-8"))[key] != facts[key]:
        raise InputError(f"{names}: {_CHANGED}")
    rows = np.empty(len(index.number), _ROW)
    rows["key"], rows["summary"] = index.key, index.summary
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as handle:
        np.savez(handle, rows=rows, part=part)
    atomic_json(about, facts)
    return DomainSplit(rows, part)


def held_out(targets: Iterable[DomainSplit]) -> np.ndarray:
    """Return the rows of all targets' test splits."""
    return np.concatenate([rows[part == _TEST] for rows, part in targets])


def choose(domains: Sequence[DomainSplit], held: np.ndarray, size: int | None, seed: int) -> Choice | None:
    """Return the documents of a training on ``domains`` together, cut to ``size`` pairs; None where they have fewer.

    Documents come in an order that depends on ``seed`` and document alone, whole, until ``size`` pairs are reached (None:
    all), so a smaller choice is part of a larger one. Validation documents (never those of a training split of another
    of the domains) are cut to an eighth of the training documents, as in an 80/10/10 split, or 8 where that is less.
    """
    training, stopping = (
        np.concatenate([rows["key"][part == own] for rows, part in domains]) for own in (_TRAIN, _VALIDATION)
    )
    free = _without(np.unique(np.concatenate([rows for rows, _ in domains])), held)
    train = free[np.isin(free["key"], training)]
    left_out = len(np.unique(training)) - len(np.unique(train["key"]))
    validation = _without(free[np.isin(free["key"], stopping)], train)
    chosen, pairs = _first(train, seed, size)
    if size is not None and pairs < size:
        return None
    share = Shares().validation / Shares().train
    most = None if size is None else max(_LEAST_VALIDATION, round(share * len(chosen)))
    return Choice(chosen, _first(validation, seed, None, most)[0], pairs, left_out)


def _without(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """``rows`` without the documents that are among ``others`` or share a summary with them."""
    hit = np.isin(rows["key"], others["key"]) | np.isin(rows["summary"], others["summary"])
    return rows[~np.isin(rows["key"], rows["key"][hit])]


def _first(rows: np.ndarray, seed: int, pairs: int | None, documents: int | None = None) -> tuple[np.ndarray, int]:
    """The keys of the first documents of ``rows`` that have ``pairs`` pairs, or are ``documents``, and how many pairs."""
    keys, counts = np.unique(rows["key"], return_counts=True)
    order = sorted(range(len(keys)), key=lambda i: digest(seed, "transfer", keys[i]))
    keys, totals = keys[order], np.cumsum(counts[order])
    most = len(keys) if pairs is None else int(np.searchsorted(totals, pairs)) + 1
    most = min(most, len(keys) if documents is None else documents, len(keys))
    return keys[:most], int(totals[most - 1]) if most else 0


def training_examples(choice: Choice, configs: Sequence[TrainConfig], recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Write ``train`` and ``validation.jsonl.gz`` of the chosen documents to ``folder``, and return what was made.

    Negatives of training draw texts and words from the chosen training documents alone. Raises InputError where the corpora
    (read as ``configs`` say) have changed.
    """
    about = folder / "about.json"
    if about.is_file():
        return json.loads(about.read_text(encoding="utf-8"))
    parts = dict.fromkeys(choice.train.tolist(), _TRAIN) | dict.fromkeys(choice.validation.tolist(), _VALIDATION)

    def chosen() -> Iterator[Pair]:
        for pair in (pair for config in configs for pair in pairs_of(config, Counter())):
            # numpy gives keys back without zero bytes at their end.
            if bytes.fromhex(document_key(pair.document)).rstrip(b"\0") in parts:
                yield pair

    def part(keys: np.ndarray, groups: np.ndarray) -> np.ndarray:
        return np.array([parts.get(key, _NONE) for key in keys.tolist()], np.uint8)

    shutil.rmtree(folder, ignore_errors=True)
    report = generate(chosen(), recipe, folder, **amounts(configs[0]), part=part)
    if report["documents"] != len(parts):
        raise InputError(f"{', '.join(name for config in configs for name in config.corpora())}: {_CHANGED}")
    (folder / "test.jsonl.gz").unlink()
    report["splits"].pop("test")
    atomic_json(about, report)
    return report


def target_examples(config: TrainConfig, recipe: Recipe, domain: Path, folder: Path) -> None:
    """Write ``test.jsonl.gz`` of a domain to ``folder``, as ``negsample train`` would be tested on it, unless it is there.

    ``domain`` is the folder of ``split_domain``. Raises InputError where the corpus has changed since.
    """
    if (folder / "about.json").is_file():
        return
    made = make_examples(config, recipe, folder)
    now = {name: split["fingerprint"] for name, split in made["splits"].items()}
    if now != json.loads((domain / "about.json").read_text(encoding="utf-8"))["split_fingerprints"]:
        raise InputError(f"{', '.join(config.corpora())}: {_CHANGED}")
    for name in ("train", "validation"):
        (folder / f"{name}.jsonl.gz").unlink()
    atomic_json(folder / "about.json", {"fingerprint": made["fingerprint"], **made["splits"]["test"]})

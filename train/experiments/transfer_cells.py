"""One training of a transfer experiment: its folder, what it reads, its network, its scores on the targets."""

import dataclasses
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.io.files import atomic_json
from negsample.io.run_record import Stopwatch
from negsample.io.work_folder import waiting
from negsample.models.build import Parts, load_parts, takes
from negsample.models.evaluation import as_json, by_kind, figures
from negsample.models.folder import load_weights, read_description
from negsample.negatives.recipe import Recipe
from negsample.seeds import digest
from negsample.train.config import TrainConfig
from negsample.train.data.prepare import Split, open_split, prepare_split
from negsample.train.experiments.columns import file_name, read_cell
from negsample.train.experiments.shared_parts import parts_maker
from negsample.train.experiments.transfer_config import HeadSetting, Source, TransferConfig
from negsample.train.experiments.transfer_data import Choice, DomainSplit, choose, target_examples, training_examples
from negsample.train.fit.torch_state import own_state
from negsample.train.job import cut_of, fit_parts, loss_of, make_accelerator, save_model, scores_of


@dataclass(frozen=True)
class Cell:
    """A training: ``size`` pairs (None: all) of ``source``; few-shot: going on with ``shots`` pairs of ``target``."""

    recipe: Recipe
    head: HeadSetting
    source: Source
    size: int | None
    seed: int
    target: str = ""
    shots: int = 0

    @property
    def folder(self) -> Path:
        """Its folder, below that of all cells."""
        size = "all" if self.size is None else str(self.size)
        names = [str(self.recipe), self.head.label, self.source.name, size, f"seed-{self.seed}"]
        names += ["few-shot", self.target, str(self.shots)] if self.shots else []
        return Path(*map(file_name, names))

    @property
    def base(self) -> "Cell":
        """The training that a few-shot cell goes on from; itself for another."""
        return dataclasses.replace(self, target="", shots=0)

    def __str__(self) -> str:
        size = "" if self.size is None else f", {self.size} pairs"
        shots = f", then {self.shots} pairs of {self.target}" if self.shots else ""
        return f"{self.recipe}, {self.head.label}, {self.source.name}{size}, seed {self.seed}{shots}"


@dataclass
class Bench:
    """What the trainings of one process share: the experiment, the splits, and encoders that are loaded.

    ``out`` is the folder of the experiment: figures in ``cells``, the truth of each target in ``tests``, what was read in
    ``domains``, locks in ``locks``, and in ``work`` what is needed until all is done.
    """

    config: TransferConfig
    out: Path
    splits: Mapping[str, DomainSplit]
    held: np.ndarray
    makers: dict[str, Callable[[TrainConfig], Parts]] = field(default_factory=dict)
    choices: dict[tuple[tuple[str, ...], int | None], Choice | None] = field(default_factory=dict)

    def path(self, cell: Cell) -> Path:
        """The folder of a cell."""
        return self.out / "cells" / cell.folder

    def lock(self, cell: Cell) -> Path:
        """The lock file of a cell."""
        return self.out / "locks" / f"{digest(cell.folder, size=12).hex()}.lock"

    def choice(self, cell: Cell) -> Choice | None:
        """The documents that a cell is trained on; None where there are not so many."""
        domains, size = ((cell.target,), cell.shots) if cell.shots else (cell.source.domains, cell.size)
        key = (domains, size)
        if key not in self.choices:
            splits = [self.splits[name] for name in domains]
            self.choices[key] = choose(splits, self.held, size, self.config.train.seed)
        return self.choices[key]

    def make(self, cell: Cell, config: TrainConfig) -> Parts:
        """New parts for a cell."""
        if cell.head.label not in self.makers:
            self.makers[cell.head.label] = parts_maker(config)
        return self.makers[cell.head.label](config)


def read_figures(folder: Path) -> dict[str, Any] | None:
    """``figures.json`` of a cell's folder, None where the cell is not finished. Raises InputError where it is damaged."""
    return read_cell(folder / "figures.json")


def run_cell(bench: Bench, cell: Cell) -> dict[str, Any]:
    """Train a cell, test it, and write its folder; the content of ``figures.json``.

    A few-shot cell needs its base to be finished. Hold the cell's lock. Raises InputError where it can't be trained.
    """
    watch = Stopwatch()
    config = bench.config.config_of(cell.head, cell.recipe, cell.seed)
    choice = bench.choice(cell)
    assert choice is not None
    work = bench.out / "work" / "cells" / cell.folder / "run"
    work.mkdir(parents=True, exist_ok=True)
    try:
        with own_state():
            parts = _load(bench, cell) if cell.shots else bench.make(cell, config)
            _same_encoder(bench, cell, parts)
            data, splits = _training(bench, cell, choice, parts)
            loss = loss_of(config, cell.recipe)
            accelerator = make_accelerator(config)
            facts = fit_parts(accelerator, config, loss, parts, splits, work, say=lambda line: None)
            tests, scores = {}, {}
            for target in [cell.target] if cell.shots else bench.config.targets:
                tests[target] = _test(bench, cell, target, parts)
                with _features_place(bench, cell, target, parts, work) as place:
                    scores[target] = scores_of(accelerator, config, parts, tests[target], place, file_name(target))
    except InputError as error:
        raise InputError(f"{cell}: {error}") from error
    found = {
        **_about(cell),
        "encoder": parts.encoder,
        "loss": loss,
        "train_pairs": choice.train_pairs,
        "train_documents": len(choice.train),
        "validation_pairs": choice.validation_pairs,
        "left_out": choice.left_out,
        "test": {
            # Intervals are worked out once for all cells, where the same resamples make differences paired.
            target: as_json(figures(split.labels, scores[target], split.document_of, resamples=0))
            for target, split in tests.items()
        },
        "by_kind": {target: _by_kind([tests[target]], [scores[target]]) for target in tests},
        "cut": cut_of(parts, {**splits, **{f"test {target}": split for target, split in tests.items()}}),
        "unit": parts.features.unit,
        **facts,
        "training": {key: value for key, value in config.as_dict().items() if key != "corpus"},
        "data": data,
        "seconds": watch.seconds,
    }
    _save(bench, cell, parts, config, found, tests, scores)
    shutil.rmtree(work, ignore_errors=True)
    return found


def _about(cell: Cell) -> dict[str, Any]:
    about = {
        "recipe": str(cell.recipe),
        "head": cell.head.label,
        "source": cell.source.name,
        "domains": list(cell.source.domains),
        "size": cell.size,
        "seed": cell.seed,
    }
    return {**about, "target": cell.target, "shots": cell.shots} if cell.shots else about


def _by_kind(splits: Iterable[Split], scores: Iterable[np.ndarray]) -> dict[str, Any]:
    parts = list(splits)
    kinds = [split.kind_names[kind] for split in parts for kind in split.kinds]
    return by_kind(np.concatenate([split.labels for split in parts]), np.concatenate(list(scores)), kinds)


def model_path(bench: Bench, cell: Cell) -> Path:
    """Where the model of a cell lies: beside its figures where models are kept, else in ``work``."""
    if bench.config.keep_models:
        return bench.path(cell) / "model"
    return bench.out / "work" / "cells" / cell.folder / "model"


def _save(
    bench: Bench,
    cell: Cell,
    parts: Parts,
    config: TrainConfig,
    found: dict[str, Any],
    tests: Mapping[str, Split],
    scores: Mapping[str, np.ndarray],
) -> None:
    folder = bench.path(cell)
    (folder / "scores").mkdir(parents=True, exist_ok=True)
    for target, values in scores.items():
        np.save(folder / "scores" / f"{file_name(target)}.npy", values.astype(np.float32), allow_pickle=False)
    adapted = bool(bench.config.few_shot) and not cell.shots
    if bench.config.keep_models or adapted:
        figures_of = {f"{name}, {target}": f for target, own in found["test"].items() for name, f in own.items()}
        domains = (cell.target,) if cell.shots else cell.source.domains
        corpora = [name for domain in domains for name in bench.config.domains[domain].config(config).corpora()]
        facts = {**found, "test": figures_of, "by_kind": _by_kind(tests.values(), scores.values())}
        data = {**found["data"], "corpora": corpora, "limit": None, "skipped_text": ""}
        save_model(parts, model_path(bench, cell), config, cell.recipe, found["loss"], data, facts)
    atomic_json(folder / "figures.json", found)


def _load(bench: Bench, cell: Cell) -> Parts:
    """The trained parts that a few-shot cell goes on from."""
    folder = model_path(bench, cell.base)
    if not folder.is_dir():
        figures_path = bench.path(cell.base) / "figures.json"
        raise InputError(f"{folder}: the model to go on from is gone; delete {figures_path} to train it again")
    description = read_description(folder)
    parts = load_parts(description, folder, bench.config.train.attention)
    assert parts.network is not None
    load_weights(parts.network, folder, description["weights_sha256"])
    return parts


def _same_encoder(bench: Bench, cell: Cell, parts: Parts) -> None:
    """See that the encoder of a head is the one that its finished cells were trained with."""
    path = bench.out / "encoders" / f"{file_name(cell.head.label)}.json"
    with waiting(bench.out / "locks" / f"encoder-{file_name(cell.head.label)}.lock"):
        if not path.is_file():
            path.parent.mkdir(exist_ok=True)
            atomic_json(path, parts.encoder)
        before = json.loads(path.read_text(encoding="utf-8"))
    if before != parts.encoder:
        raise InputError(
            f"encoder {parts.encoder['name']} has changed since the experiment was begun; give another folder with --out"
        )


def _store(parts: Parts) -> str:
    """Name of the folder for what the features of ``parts`` read: the same for all that read alike."""
    return f"{takes(parts.head)}-{file_name(parts.encoder['name'])}"


def _training(bench: Bench, cell: Cell, choice: Choice, parts: Parts) -> tuple[dict[str, Any], dict[str, Split]]:
    """The training and validation splits of a cell, made once for all heads and seeds; and what they were made of."""
    size = f"{cell.shots} pairs" if cell.shots else "all" if cell.size is None else f"{cell.size} pairs"
    name = cell.target if cell.shots else cell.source.name
    domains = (cell.target,) if cell.shots else cell.source.domains
    folder = bench.out / "work" / "training" / Path(*map(file_name, (str(cell.recipe), name, size)))
    with waiting(folder / "lock"):
        configs = [bench.config.domains[domain].config(bench.config.train) for domain in domains]
        data = training_examples(choice, configs, cell.recipe, folder / "examples")
        splits = {}
        for split in ("train", "validation"):
            store = folder / _store(parts) / split
            prepare_split(folder / "examples" / f"{split}.jsonl.gz", store, parts.features)
            splits[split] = open_split(store)
    return data, splits


def _test_store(bench: Bench, cell: Cell, target: str, parts: Parts) -> Path:
    return bench.out / "work" / "tests" / file_name(str(cell.recipe)) / file_name(target) / _store(parts)


def truth_path(out: Path, recipe: Recipe, target: str) -> Path:
    """Where the truth of a target's test examples lies: a file with ``labels`` float32 [n], ``documents`` int32 [n]."""
    return out / "tests" / file_name(str(recipe)) / f"{file_name(target)}.npz"


def _test(bench: Bench, cell: Cell, target: str, parts: Parts) -> Split:
    """The test split of a target, made once for all that is tested on it."""
    store = _test_store(bench, cell, target, parts)
    config = bench.config.domains[target].config(bench.config.train)
    examples, path = store.parent / "examples", truth_path(bench.out, cell.recipe, target)
    with waiting(store.parent / "lock"):
        target_examples(config, cell.recipe, bench.out / "domains" / file_name(target), examples)
        prepare_split(examples / "test.jsonl.gz", store / "test", parts.features)
        split = open_split(store / "test")
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(".tmp.npz")
            np.savez(draft, labels=split.labels, documents=split.document_of)
            draft.replace(path)
    return split


@contextmanager
def _features_place(bench: Bench, cell: Cell, target: str, parts: Parts, work: Path) -> Iterator[Path]:
    """The folder for what head ``align`` works out of a target: shared, and locked, where it is the same for all cells."""
    if takes(parts.head) == "align" and not parts.options["sources"]:
        store = _test_store(bench, cell, target, parts)
        with waiting(store / "lock"):
            yield store
    else:
        yield work

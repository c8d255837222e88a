"""Transfer between domains: a grid of sources × sizes × recipes × heads, each tested on every target."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.io.files import replacing
from negsample.io.resume import waiting, work_folder
from negsample.io.run_record import Stopwatch
from negsample.models.build import Parts, load_parts, takes
from negsample.models.evaluation import by_kind, figures
from negsample.models.folder import read_description
from negsample.models.language.model_files import load_weights
from negsample.negatives.recipe import Recipe
from negsample.papers.grid import Grid, file_name, read_splits, run_cells
from negsample.papers.transfer_config import HeadSetting, Source, TransferConfig
from negsample.papers.transfer_data import (
    Choice,
    DomainSplit,
    choose,
    held_out,
    split_domain,
    target_examples,
    training_examples,
)
from negsample.train.config import TrainConfig
from negsample.train.data import Split, find_corpora
from negsample.train.fit.loop import SILENT
from negsample.train.job import cut_of, fit_parts, loss_of, make_accelerator, outputs_of, save_model

ARGUMENTS = "transfer-config.json"


@dataclass(frozen=True)
class TransferCell:
    """A training on ``size`` pairs (None: all) of ``source``; few-shot: going on with ``shots`` pairs of ``target``."""

    recipe: Recipe
    head: HeadSetting
    source: Source
    size: int | None
    config: TrainConfig
    target: str = ""
    shots: int = 0

    @property
    def folder(self) -> Path:
        """Its folder, below that of all cells."""
        few = ("few-shot", self.target, str(self.shots)) if self.shots else ()
        size = "all" if self.size is None else str(self.size)
        names = (str(self.recipe), self.head.label, self.source.name, size, f"seed-{self.config.seed}", *few)
        return Path(*map(file_name, names))

    @property
    def base(self) -> Path | None:
        """The folder of the training that a few-shot cell goes on from."""
        return dataclasses.replace(self, target="", shots=0).folder if self.shots else None

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains whose pairs it reads."""
        return (self.target,) if self.shots else self.source.domains

    @property
    def read(self) -> tuple[str, int | None]:
        """What it is trained on now: the name, and so many pairs (None: all)."""
        return (self.target, self.shots) if self.shots else (self.source.name, self.size)

    @property
    def figure(self) -> str:
        """What it is judged by: Pearson's r where its recipe grades, else accuracy."""
        return "pearson" if self.recipe.graded else "accuracy"

    def about(self) -> dict[str, Any]:
        """Return plain values that tell which it is."""
        about = {
            "recipe": str(self.recipe),
            "head": self.head.label,
            "source": self.source.name,
            "domains": list(self.source.domains),
            "size": self.size,
            "seed": self.config.seed,
        }
        return {**about, "target": self.target, "shots": self.shots} if self.shots else about

    @property
    def name(self) -> str:
        """The training, whatever its seed."""
        size = "" if self.size is None else f", {self.size} pairs"
        shots = f", then {self.shots} pairs of {self.target}" if self.shots else ""
        return f"{self.recipe}, {self.head.label}, {self.source.name}{size}{shots}"

    def __str__(self) -> str:
        return f"{self.name}, seed {self.config.seed}"


class Transfer(Grid[TransferCell]):
    """The cells of a transfer experiment, few-shot ones last.

    ``not_run``: the trainings that there can't be → why. Besides the cells, ``out`` has the truth of each target
    in ``tests`` and what was read in ``domains``.
    """

    def __init__(self, settings: TransferConfig, out: Path, splits: Mapping[str, DomainSplit]) -> None:
        self.settings, self.splits = settings, splits
        self.held = held_out(splits[name] for name in settings.target_names)
        self.finished: list[tuple[TransferCell, dict[str, Any]]] = []
        self._choices: dict[tuple[tuple[str, ...], int | None], Choice | None] = {}
        super().__init__(out, [])
        every = [
            TransferCell(recipe, head, source, size, settings.config_of(head, recipe, seed))
            for head in settings.labelled_heads
            for recipe in settings.mixes
            for size in head.sizes
            for source in settings.all_sources()
            for seed in settings.all_seeds()
        ]
        every += [
            dataclasses.replace(base, target=target, shots=shots)
            for base in every
            for target in settings.target_names
            if target not in base.source.domains
            for shots in settings.few_shot
        ]
        possible = {cell.folder for cell in every if self.choice(cell) is not None}
        self.cells = [cell for cell in every if {cell.folder, cell.base or cell.folder} <= possible]
        self.not_run = {
            cell.name: "{} has fewer than {} training pairs".format(*cell.read)
            for cell in every
            if cell.folder not in possible
        }

    def choice(self, cell: TransferCell) -> Choice | None:
        """Return the documents that a cell is trained on; None where there are not so many."""
        key = (cell.domains, cell.read[1])
        if key not in self._choices:
            splits = [self.splits[name] for name in key[0]]
            self._choices[key] = choose(splits, self.held, key[1], self.settings.common.seed)
        return self._choices[key]

    def line(self, cell: TransferCell, found: Mapping[str, Any]) -> str:
        """Say what came of a cell."""
        told = []
        for target, tested in found["test"].items():
            value = tested.get(cell.figure, {}).get("value")
            told.append(f"{target} {'not defined' if value is None else f'{100 * value:.1f}'}")
        return f"{cell}: {', '.join(told)} ({found['seconds']:.0f} s)"

    def parts(self, cell: TransferCell) -> Parts:
        """Return new parts for a training; the trained ones of its base for a few-shot cell."""
        if cell.base is None:
            return super().parts(cell)
        folder = self._model(cell.base)
        if not folder.is_dir():
            kept = self.out / "cells" / cell.base / "figures.json"
            raise InputError(f"{folder}: the model to go on from is gone; delete {kept} to train it again")
        description = read_description(folder)
        parts = load_parts(description, folder, cell.config.attention)
        assert parts.network is not None
        load_weights(parts.network, folder, description["weights_sha256"])
        return parts

    def _model(self, cell: Path) -> Path:
        """Return where the model of a cell lies: beside its figures where models are kept, else in ``work``."""
        place = self.out / "cells" if self.settings.keep_models else self.out / "work" / "cells"
        return place / cell / "model"

    def train(self, cell: TransferCell, parts: Parts, work: Path, watch: Stopwatch) -> dict[str, Any]:
        """Train a cell, test it, save its scores; return the content of its ``figures.json``."""
        config, choice = cell.config, self.choice(cell)
        assert choice is not None
        data, splits = self._training(cell, choice, parts)
        loss = loss_of(config, cell.recipe)
        accelerator = make_accelerator(config)
        facts = fit_parts(accelerator, config, loss, parts, splits, work, SILENT)
        tests, scores = {}, {}
        for target in [cell.target] if cell.shots else self.settings.target_names:
            tests[target], store = self._test(cell, target, parts)
            # The features of head ``align`` are shared, and locked, where they are the same for all cells.
            shared = takes(parts.head) == "align" and not parts.options["sources"]
            with waiting(store / "lock") if shared else nullcontext():
                folder = store if shared else work
                scores[target] = outputs_of(accelerator, config, parts, tests[target], folder, file_name(target))[
                    "score"
                ]
        saved = self.place(cell) / "scores"
        saved.mkdir(parents=True, exist_ok=True)
        for target, values in scores.items():
            np.save(saved / f"{file_name(target)}.npy", values.astype(np.float32), allow_pickle=False)
        found = {
            **cell.about(),
            "encoder": parts.encoder,
            "loss": loss,
            "train_pairs": choice.train_pairs,
            "train_documents": len(choice.train),
            "validation_pairs": choice.validation_pairs,
            "left_out": choice.left_out,
            "test": {
                # Intervals are worked out once for all cells, where the same resamples make differences paired.
                target: figures(split.labels, scores[target], split.document_of, resamples=0)
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
        if self.settings.keep_models or (self.settings.few_shot and not cell.shots):
            tested = {f"{name}, {target}": f for target, own in found["test"].items() for name, f in own.items()}
            corpora = [corpus for name in cell.domains for corpus in self.settings.domain(name).corpora()]
            facts = {**found, "test": tested, "by_kind": _by_kind(tests.values(), scores.values())}
            read = {**data, "corpora": corpora, "limit": None, "sample": None, "skipped_text": ""}
            save_model(parts, self._model(cell.folder), config, cell.recipe, loss, read, facts)
        return found

    def _training(self, cell: TransferCell, choice: Choice, parts: Parts) -> tuple[dict[str, Any], dict[str, Split]]:
        """Return what a cell is trained on was made of, and its splits, made once for all heads and seeds."""
        name, pairs = cell.read
        names = (str(cell.recipe), name, "all" if pairs is None else f"{pairs} pairs")
        folder = self.out / "work" / "training" / Path(*map(file_name, names))
        domains = [self.settings.domain(name) for name in cell.domains]
        with waiting(folder / "lock"):
            data = training_examples(choice, domains, cell.recipe, folder / "examples")
            splits = read_splits(folder / "examples", folder / _store_name(parts), parts, ("train", "validation"))
        return data, splits

    def _test(self, cell: TransferCell, target: str, parts: Parts) -> tuple[Split, Path]:
        """Return the test split of a target, made once for all that is tested on it, and the folder of what was read."""
        folder = self.out / "work" / "tests" / file_name(str(cell.recipe)) / file_name(target)
        examples, store, path = folder / "examples", folder / _store_name(parts), self.truth(cell.recipe, target)
        with waiting(folder / "lock"):
            target_examples(self.settings.domain(target), cell.recipe, domain_folder(self.out, target), examples)
            split = read_splits(examples, store, parts, ("test",))["test"]
            if not path.is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                with replacing(path) as handle:
                    np.savez(handle, labels=split.labels, documents=split.document_of)
        return split, store

    def truth(self, recipe: Recipe, target: str) -> Path:
        """Return the file of a target's test examples, with ``labels`` float32 [n] and ``documents`` int32 [n]."""
        return self.out / "tests" / file_name(str(recipe)) / f"{file_name(target)}.npz"


def _store_name(parts: Parts) -> str:
    """Return the name of the folder for what the features of ``parts`` read: the same for all that read alike."""
    return f"{takes(parts.head)}-{file_name(parts.encoder['name'])}"


def _by_kind(splits: Iterable[Split], scores: Iterable[np.ndarray]) -> dict[str, Any]:
    tests = list(splits)
    kinds = [split.kind_names[kind] for split in tests for kind in split.kinds]
    return by_kind(np.concatenate([split.labels for split in tests]), np.concatenate(list(scores)), kinds)


def domain_folder(out: Path, name: str) -> Path:
    """Return the folder for what was read of a domain, and how it is split."""
    return out / "domains" / file_name(name)


def run_transfer(config: TransferConfig, out: Path, *, say: Callable[[str], None] = print) -> Transfer:
    """Work out every cell of ``config`` in the folder ``out``, with whatever other processes work on it (``run_cells``).

    The grid that is returned has each cell with its ``figures.json`` in ``finished``.

    Raises InputError for a folder begun with another experiment, a corpus that can't be read, split, or trained on in any
    size (the folder is then left as it was found), or a cell that can't be trained, naming it. A corpus that has changed
    since the experiment was begun is noticed, and refused, where examples are still to be made of it: what is finished is
    read from ``out``, and the corpora are not read again.
    """
    what = "a transfer experiment"
    with work_folder(out, config.as_dict(), name=ARGUMENTS, what=what, alone=False, makes=["domains"]):
        grid = open_transfer(config, out)
        if not grid.cells:
            raise InputError(f"nothing can be trained: {': '.join(next(iter(grid.not_run.items())))}")
    for name, reason in grid.not_run.items():
        say(f"not run: {name}: {reason}")
    grid.finished = run_cells(grid, say=say)
    return grid


def open_transfer(config: TransferConfig, out: Path) -> Transfer:
    """Return the grid of ``config``, with the splits of every domain; hold the folder, and they are read once.

    Raises InputError, naming the domain, where its corpus can't be read or split.
    """
    splits, name = {}, ""
    try:
        # Every corpus is looked for before the first one is read to its end.
        for name in config.domains:
            if not (domain_folder(out, name) / "split.npz").is_file():
                find_corpora(config.domain(name))
        for name in config.domains:
            splits[name] = split_domain(config.domain(name), domain_folder(out, name))
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    return Transfer(config, out, splits)

"""Experiments of many trainings in one folder, each done once, gone on with, and shared by processes: sources × sizes × recipes ×
heads, each tested on every target.
"""

import dataclasses
import itertools
import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.io.files import atomic_json, replacing
from negsample.io.run_record import Stopwatch, trying, waiting, work_folder
from negsample.models.build import Parts, load_parts, takes
from negsample.models.evaluation import by_kind, figures
from negsample.models.features.align import AlignFeatures
from negsample.models.features.rows import RowFeatures
from negsample.models.folder import read_description
from negsample.models.language.model_files import load_weights
from negsample.negatives.recipe import Recipe
from negsample.papers.transfer_config import (
    Choice,
    DomainSplit,
    HeadSetting,
    Source,
    TransferConfig,
    choose,
    held_out,
    split_domain,
    target_examples,
    training_examples,
)
from negsample.seeds import digest
from negsample.terminal import say as tell
from negsample.train.config import TrainConfig
from negsample.train.data import Split, find_corpora, open_split, prepare_split
from negsample.train.fit.checkpoint import SILENT
from negsample.train.fit.loop import Run, own_state
from negsample.train.job import (
    cut_of,
    fit_parts,
    head_options,
    loss_of,
    make_accelerator,
    outputs_of,
    parts_of,
    save_model,
)

POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Cell:
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
    def read(self) -> tuple[tuple[str, ...], str, int | None]:
        """What it is trained on now: domains, their name, and so many pairs (None: all)."""
        plain = (self.source.domains, self.source.name, self.size)
        return ((self.target,), self.target, self.shots) if self.shots else plain

    @property
    def figure(self) -> str:
        """What it is judged by: Pearson's r where its recipe grades, else accuracy."""
        return "pearson" if self.recipe.graded else "accuracy"

    @property
    def name(self) -> str:
        """The training, whatever its seed."""
        size = "" if self.size is None else f", {self.size} pairs"
        shots = f", then {self.shots} pairs of {self.target}" if self.shots else ""
        return f"{self.recipe}, {self.head.label}, {self.source.name}{size}{shots}"

    def __str__(self) -> str:
        return f"{self.name}, seed {self.config.seed}"


class Transfer:
    """The cells of an experiment, few-shot ones last, and how each of them is trained.

    ``out`` has figures in ``cells``, locks in ``locks``, the truth of each target in ``tests``, what was read in ``domains``, and
    in ``work`` what is needed until all is done. ``not_run``: the trainings that there can't be → why. ``finished``: each cell
    with its ``figures.json``. One process holds the encoder that it used last.
    """

    def __init__(self, settings: TransferConfig, out: Path) -> None:
        """The domains are read, once: hold ``out``. Raises InputError, naming the domain, where one can't be read or split."""
        self.settings, self.out, self.splits, name = settings, out, dict[str, DomainSplit](), ""
        try:
            # Every corpus is looked for before the first one is read to its end.
            for name in settings.domains:
                if not (domain_folder(out, name) / "split.npz").is_file():
                    find_corpora(settings.domain(name))
            for name in settings.domains:
                self.splits[name] = split_domain(settings.domain(name), domain_folder(out, name))
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
        self.held = held_out(self.splits[name] for name in settings.target_names)
        self.finished: list[tuple[Cell, dict[str, Any]]] = []
        self._choices: dict[tuple[tuple[str, ...], int | None], Choice | None] = {}
        self._last: tuple[Any, Parts] | None = None
        every = [
            Cell(recipe, head, source, size, settings.config_of(head, recipe, seed))
            for head in settings.labelled_heads
            for recipe in settings.mixes
            for size in head.sizes
            for source in settings.all_sources()
            for seed in settings.all_seeds()
        ]
        every += [
            dataclasses.replace(base, target=target, shots=shots)
            for base, target, shots in itertools.product(every, settings.target_names, settings.few_shot)
            if target not in base.source.domains
        ]
        possible = {cell.folder for cell in every if self.choice(cell) is not None}
        self.cells = [cell for cell in every if {cell.folder, cell.base or cell.folder} <= possible]
        self.not_run = {
            cell.name: "{} has fewer than {} training pairs".format(*cell.read[1:])
            for cell in every
            if cell.folder not in possible
        }

    def choice(self, cell: Cell) -> Choice | None:
        """Return the documents that a cell is trained on; None where there are not so many."""
        domains, _, size = cell.read
        if (domains, size) not in self._choices:
            splits = [self.splits[name] for name in domains]
            self._choices[domains, size] = choose(splits, self.held, size, self.settings.common.seed)
        return self._choices[domains, size]

    def place(self, cell: Cell) -> Path:
        """Return the folder of a cell's figures."""
        return self.out / "cells" / cell.folder

    def model(self, cell: Path) -> Path:
        """Return where the model of the cell lies: beside its figures where models are kept, else in ``work``."""
        place = self.out / "cells" if self.settings.keep_models else self.out / "work" / "cells"
        return place / cell / "model"

    def lock(self, cell: Cell) -> Path:
        """Return the lock file of a cell."""
        return self.out / "locks" / f"{digest(cell.folder, size=12).hex()}.lock"

    def truth(self, recipe: Recipe, target: str) -> Path:
        """Return the file of a target's test examples, with ``labels`` float32 [n] and ``documents`` int32 [n]."""
        return self.out / "tests" / file_name(str(recipe)) / f"{file_name(target)}.npz"

    def read(self, cell: Cell) -> dict[str, Any] | None:
        """Return a cell's ``figures.json``, None where it is not finished. Raises InputError for a damaged file."""
        path = self.place(cell) / "figures.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            found = None
        if not isinstance(found, dict) or "test" not in found:
            raise InputError(f"{path}: damaged; delete it, and the cell is worked out again")
        return found

    def run(self, say: Callable[[str], None]) -> None:
        """Train every cell that is not finished, with whatever other processes work on ``out``.

        Each cell is trained by one process, which holds its lock; a process takes the next cell that is neither finished nor
        held, and goes on from the checkpoint of one that has died; this returns when all are finished, whoever finished them.
        Raises InputError, naming the cell, where one can't be trained or its encoder is not that of finished cells.
        """
        finished = {cell.folder: found for cell in self.cells if (found := self.read(cell)) is not None}
        if finished:
            say(f"{len(finished)} of {len(self.cells)} trainings are finished already")
        looks = 0
        while waited := [cell for cell in self.cells if cell.folder not in finished]:
            before = len(finished)
            for cell in (cell for cell in waited if cell.base is None or cell.base in finished):
                found, other = self.read(cell), ", by another process"
                if found is None:
                    with trying(self.lock(cell)) as held:
                        # It may have been finished between the look and the lock.
                        if held and (found := self.read(cell)) is None:
                            found, other = self._train(cell, finished.values()), ""
                if found is not None:
                    finished[cell.folder] = found
                    values = [(name, own.get(cell.figure, {}).get("value")) for name, own in found["test"].items()]
                    told = [f"{name} {'not defined' if x is None else f'{100 * x:.1f}'}" for name, x in values]
                    after = f"{len(found['epochs'])} epochs, {found['seconds']:.0f} s"
                    say(f"{len(finished)}/{len(self.cells)} {cell}: {', '.join(told)} ({after}){other}")
            looks = 0 if len(finished) > before else looks + 1
            if looks:
                time.sleep(POLL_SECONDS)
            # After five seconds, then once a minute.
            if looks * POLL_SECONDS % 60 == 5:
                left = f"waiting for other processes to end their trainings ({len(waited)} left)"
                tell(f"{self.out}: {left}", error=True)
        self.finished = [(cell, finished[cell.folder]) for cell in self.cells]

    def _train(self, cell: Cell, finished: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Train a cell whose lock is held, and write its ``figures.json``."""
        watch = Stopwatch()
        work = self.out / "work" / "cells" / cell.folder / "run"
        work.mkdir(parents=True, exist_ok=True)
        try:
            with own_state():
                parts = self._parts(cell)
                name, mark = parts.encoder["name"], parts.encoder.get("fingerprint")
                if any(own["encoder"] == name and own["encoder_fingerprint"] != mark for own in finished):
                    raise InputError(
                        f"encoder {name} has changed since the experiment was begun; give another folder with --out"
                    )
                found = self.train(cell, parts, work, watch)
        except InputError as error:
            raise InputError(f"{cell}: {error}") from error
        self.place(cell).mkdir(parents=True, exist_ok=True)
        atomic_json(self.place(cell) / "figures.json", found)
        shutil.rmtree(work, ignore_errors=True)
        return found

    def _parts(self, cell: Cell) -> Parts:
        """New parts, over the frozen encoder of the cell before where it is the same; those of its base for a few-shot cell."""
        config = cell.config
        if cell.base is not None:
            folder = self.model(cell.base)
            if not folder.is_dir():
                kept = self.out / "cells" / cell.base / "figures.json"
                raise InputError(f"{folder}: the model to go on from is gone; delete {kept} to train it again")
            description = read_description(folder)
            parts = load_parts(description, folder, config.attention)
            assert parts.network is not None
            load_weights(parts.network, folder, description["weights_sha256"])
            return parts
        key = (takes(config.head), config.encoder, config.lm)
        if key[0] == "tokens":
            return parts_of(config)
        if self._last is None or self._last[0] != key:
            # The one before goes before the next comes.
            self._last = None
            self._last = key, parts_of(config)
        before = self._last[1]
        if isinstance(features := before.features, RowFeatures):
            features = RowFeatures(features.encoder, config.max_document, config.max_summary, features.cache)
        elif isinstance(features, AlignFeatures):
            # One reader for all keeps what the encoder makes of words, in memory alone.
            features = features.untouched()
        return Parts(config.head, head_options(config), features, None, dict(before.encoder))

    def train(self, cell: Cell, parts: Parts, work: Path, watch: Stopwatch) -> dict[str, Any]:
        """Train a cell, test it, save its scores; return the content of its ``figures.json``."""
        config, choice = cell.config, self.choice(cell)
        assert choice is not None
        data, splits = self._training(cell, choice, parts)
        loss = loss_of(config, cell.recipe)
        run = Run(make_accelerator(config), config, loss, parts, splits, work, SILENT)
        facts = fit_parts(run)
        tests: dict[str, Split] = {}
        scores: dict[str, np.ndarray] = {}
        (self.place(cell) / "scores").mkdir(parents=True, exist_ok=True)
        for target in [cell.target] if cell.shots else self.settings.target_names:
            tests[target], store = self._test(cell, target, parts)
            # The features of head ``align`` are shared, and locked, where they are the same for all cells.
            shared = takes(parts.head) == "align" and not parts.options["sources"]
            with waiting(store / "lock") if shared else nullcontext():
                folder, name = store if shared else work, file_name(target)
                scores[target] = outputs_of(dataclasses.replace(run, work=folder), tests[target], name)["score"]
            path = self.place(cell) / "scores" / f"{file_name(target)}.npy"
            np.save(path, scores[target].astype(np.float32), allow_pickle=False)
        labels, values = (np.concatenate(own) for own in ([s.labels for s in tests.values()], list(scores.values())))
        kinds = np.concatenate([split.kind_of for split in tests.values()]).tolist()
        found = {
            "recipe": str(cell.recipe),
            "head": cell.head.label,
            "source": cell.source.name,
            "size": cell.size,
            "target": cell.target,
            "shots": cell.shots,
            "encoder": parts.encoder["name"],
            "encoder_fingerprint": parts.encoder.get("fingerprint"),
            "loss": loss,
            "train_pairs": choice.train_pairs,
            "left_out": choice.left_out,
            # Intervals are worked out once for all cells, where the same resamples make differences paired.
            "test": {
                name: figures(split.labels, scores[name], split.document_of, resamples=0)
                for name, split in tests.items()
            },
            "by_kind": by_kind(labels, values, kinds),
            "cut": cut_of(parts, {**splits, **{f"test {target}": split for target, split in tests.items()}}),
            **facts,
            "training": {key: value for key, value in config.as_dict().items() if key != "corpus"},
            "data": data,
            "seconds": watch.seconds,
        }
        if self.settings.keep_models or (self.settings.few_shot and not cell.shots):
            tested = {f"{name}, {target}": f for target, own in found["test"].items() for name, f in own.items()}
            corpora = [corpus for name in cell.read[0] for corpus in self.settings.domain(name).corpora()]
            read = {**data, "corpora": corpora, "limit": None, "sample": None, "skipped_text": ""}
            save_model(run, self.model(cell.folder), cell.recipe, read, {**found, "test": tested})
        return found

    def _training(self, cell: Cell, choice: Choice, parts: Parts) -> tuple[dict[str, Any], dict[str, Split]]:
        """What a cell is trained on was made of, and its splits, made once for all heads and seeds."""
        domains, name, pairs = cell.read
        names = (str(cell.recipe), name, "all" if pairs is None else f"{pairs} pairs")
        folder = self.out / "work" / "training" / Path(*map(file_name, names))
        with waiting(folder / "lock"):
            configs = [self.settings.domain(name) for name in domains]
            data = training_examples(choice, configs, cell.recipe, folder / "examples")
            return data, _read_splits(folder, parts, ("train", "validation"))

    def _test(self, cell: Cell, target: str, parts: Parts) -> tuple[Split, Path]:
        """The test split of a target, made once for all that is tested on it, and the folder of what was read."""
        folder = self.out / "work" / "tests" / file_name(str(cell.recipe)) / file_name(target)
        path, config = self.truth(cell.recipe, target), self.settings.domain(target)
        with waiting(folder / "lock"):
            target_examples(config, cell.recipe, domain_folder(self.out, target), folder / "examples")
            split = _read_splits(folder, parts, ("test",))["test"]
            if not path.is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                with replacing(path) as handle:
                    np.savez(handle, labels=split.labels, documents=split.document_of)
        return split, _store(folder, parts)


def _store(folder: Path, parts: Parts) -> Path:
    """The folder for what the features of ``parts`` read: the same for all that read alike."""
    return folder / f"{takes(parts.head)}-{file_name(parts.encoder['name'])}"


def _read_splits(folder: Path, parts: Parts, names: Sequence[str]) -> dict[str, Split]:
    """The splits ``names`` of the example files in ``folder``, whose lock is held, read unless they are there."""
    store = _store(folder, parts)
    for name in names:
        prepare_split([folder / "examples" / f"{name}.jsonl.gz"], store / name, parts.features)
    return {name: open_split(store / name) for name in names}


def file_name(spec: str) -> str:
    """Return ``spec`` as the name of a folder: itself where it is simple, else with a hash of what was replaced."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", spec).strip(".-")
    return plain if plain == spec else f"{plain[:60]}-{digest(spec, size=4).hex()}"


def domain_folder(out: Path, name: str) -> Path:
    """Return the folder for what was read of a domain, and how it is split."""
    return out / "domains" / file_name(name)


def run_transfer(config: TransferConfig, out: Path, say: Callable[[str], None] = print) -> Transfer:
    """Work out every cell of ``config`` in the folder ``out``; the grid that is returned has them in ``finished``.

    Raises InputError for a folder begun with another experiment, a corpus that can't be read, split, or trained on in any size,
    an encoder that can't be had (the folder is then left as it was found), a cell that can't be trained, naming it, and a corpus
    that has changed where examples are still to be made of it.
    """
    what = "an experiment"
    with work_folder(out, config.as_dict(), name="experiment.json", what=what, alone=False, makes=["domains"]):
        grid = Transfer(config, out)
        if not grid.cells:
            raise InputError(f"nothing can be trained: {': '.join(next(iter(grid.not_run.items())))}")
        new = [cell.config for cell in grid.cells if grid.read(cell) is None]
        for own in {(takes(each.head), each.encoder): each for each in new}.values():
            make_accelerator(own)
            parts_of(own)
    for name, reason in grid.not_run.items():
        say(f"not run: {name}: {reason}")
    grid.run(say)
    return grid

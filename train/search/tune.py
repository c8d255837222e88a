"""``negsample tune``: trials of a search, trained one after another by each of several workers on one study."""

import contextlib
import gc
import json
import math
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from negsample.errors import InputError
from negsample.io.files import atomic_json, failure
from negsample.models.evaluation import accuracy, is_graded, pearson
from negsample.train.config import make_config
from negsample.train.fit.callbacks import Follow
from negsample.train.job import train
from negsample.train.search.files import best_of, model_folder, write_tables
from negsample.train.search.settings import Search
from negsample.train.search.storage import open_storage, speaking_of
from negsample.train.search.trials import REASON, STOPPED, Pool, Slot, alive, at_work, open_study

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import Trial

# What a trial is worth beside its validation figures: from the folder of its model.
Measure = Callable[[Path], float]


@dataclass(frozen=True)
class Timing:
    """Seconds: between two signs of life of a trial, silence that means death, and between two looks while waiting."""

    alive: float = 15.0
    silent: float = 180.0
    look: float = 2.0


@dataclass(frozen=True)
class Tuned:
    """A study whose trials are all finished: ``slots`` in order, and the best of them, where one was completed."""

    study: "Study"
    slots: tuple[Slot, ...]
    best: Slot | None


class _Lost(Exception):
    """Another worker has ended this trial, having taken this worker for dead."""


def tune(
    search: Search,
    study_name: str,
    url: str,
    trials: int,
    out: Path,
    *,
    measure: Measure | None = None,
    trainer: Callable[..., Any] = train,
    keep_models: bool = False,
    timing: Timing | None = None,
    say: Callable[[str], None] = print,
    command: list[str] | None = None,
) -> Tuned:
    """Run trials of ``search`` until study ``study_name`` in the storage ``url`` holds ``trials`` finished ones.

    Where it holds more already, none is run, and the results are those of all. Any number of workers may do this at
    once, with the same ``search`` and ``trials``; together they run each trial once.
    One that was killed leaves its trial to be run again with the same parameters: at once by a worker with the same
    ``out`` on the same machine, by any other once it has been silent for ``timing.silent`` seconds. Models are trained in
    ``out/trials/N``, and deleted unless best or ``keep_models``. ``measure`` gives the value of a trained model where the
    objective is ``agreement``; ``trainer`` takes the arguments of ``train``.

    A trial goes on from its last checkpoint where that lies in ``out``. Leaves ``best.yaml``, ``trials.csv`` and
    ``study.json`` in ``out``, renewed after each trial. A trial that can't be trained (InputError, out of memory) fails
    with its reason, and the search goes on. ``say`` is told of each trial, and ``command`` stands in each model's
    ``run.json``. Raises InputError for a folder or a study that belongs to something else, and where the storage can't be
    used; no password stands in its message.
    """
    timing = timing or Timing()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError(
            "each worker of a search is one process; start it without accelerate launch, as often as you like"
        )
    # The command line may hold a password.
    trained = partial(trainer, resume=True, command=command or [])
    _claim(out, study_name)
    with speaking_of(url), at_work(out / "workers") as worker:
        storage = open_storage(url)
        study, made = open_study(study_name, storage, maximised=search.maximised, content=search.given)
        study.pruner = search.make_pruner()
        pool = Pool(study, storage, trials, worker, timing.silent)
        pool.fill(made=made)
        run = _Run(search, study, pool, out, measure, trained, keep_models, timing)
        while True:
            slots = pool.tend()
            if all(slot.finished for slot in slots):
                break
            slot = pool.take(slots)
            if slot is None:
                # Another worker's trial is under way; should that worker die, this one runs it.
                time.sleep(timing.look)
                continue
            run.one(slot, storage)
            slots = pool.slots()
            write_tables(out, search, study_name, slots)
            run.tidy(slots)
            say(_line(slot, slots, search))
        run.tidy(slots)
        write_tables(out, search, study_name, slots)
    return Tuned(study, tuple(slots), best_of(slots, search.maximised))


@dataclass(frozen=True)
class _Run:
    """What a worker needs for each of its trials."""

    search: Search
    study: "Study"
    pool: Pool
    out: Path
    measure: Measure | None
    trainer: Callable[..., Any]
    keep_models: bool
    timing: Timing

    def one(self, slot: Slot, storage: Any) -> None:
        """Run one trial that this worker has taken, to its end."""
        import optuna

        identity = self.pool.identity(slot.last)
        self.study.sampler = self.search.make_sampler(slot.number)
        trial = optuna.Trial(self.study, identity)
        try:
            with alive(storage, identity, self.timing.alive) as lost:
                try:
                    value = self._value(trial, slot, lost.is_set)
                except optuna.TrialPruned:
                    self.study.tell(trial, state=optuna.trial.TrialState.PRUNED, skip_if_finished=True)
                except InputError as error:
                    self._fail(trial, str(error))
                except (MemoryError, torch.cuda.OutOfMemoryError) as error:
                    self._fail(trial, f"out of memory {error}")
                else:
                    self.study.tell(trial, value, skip_if_finished=True)
        except (_Lost, optuna.exceptions.UpdateFinishedTrialError):
            shutil.rmtree(model_folder(self.out, slot), ignore_errors=True)
        except BaseException as error:
            # Stopped, or a fault of the program: the trial itself has not been judged.
            why = f"the program failed: {error!r}"[:500] if isinstance(error, Exception) else STOPPED
            with contextlib.suppress(Exception):
                self.pool.give_back(slot.last, why)
            raise
        finally:
            # A network and its optimiser refer to each other, and would fill a GPU until Python looks for such circles.
            if torch.cuda.is_available():
                gc.collect()
                torch.cuda.empty_cache()

    def _fail(self, trial: "Trial", reason: str) -> None:
        import optuna

        trial.set_user_attr(REASON, " ".join(reason.split())[:500])
        self.study.tell(trial, state=optuna.trial.TrialState.FAIL, skip_if_finished=True)

    def _value(self, trial: "Trial", slot: Slot, lost: Callable[[], bool]) -> float:
        """Draw the settings, train, and measure. Raises TrialPruned, InputError, _Lost."""
        import optuna

        search = self.search
        told = set(slot.last.intermediate_values)
        config = make_config(search.space.draw(trial, search.train), f"trial {trial.number}")
        last_epoch = int(config.resolved().epochs or 0) - 1
        folder = model_folder(self.out, slot)
        if len(slot.attempts) == 1:
            shutil.rmtree(folder, ignore_errors=True)

        def after_epoch(epoch: int, loss: float) -> None:
            if lost():
                raise _Lost
            if epoch not in told and math.isfinite(loss):
                # A pruner prefers what the study prefers; a lower loss is better in either case.
                trial.report(-loss if search.maximised else loss, epoch)
            # After its last epoch there is nothing to save, and a value to lose.
            if epoch < last_epoch and trial.should_prune():
                raise optuna.TrialPruned

        held: dict[str, float] = {}

        def after_fit(labels: np.ndarray, scores: np.ndarray) -> None:
            held.update(validation_figures(labels, scores))

        follow = Follow(say=lambda text: None, after_epoch=after_epoch, after_fit=after_fit)
        found = self.trainer(config, folder, follow=follow)
        if found is None:
            # Killed between the end of training and the end of the trial: its validation scores are lost.
            shutil.rmtree(folder)
            found = self.trainer(config, folder, follow=follow)
        losses = [epoch["validation_loss"] for epoch in found["epochs"] if epoch["validation_loss"] is not None]
        if losses:
            held["validation_loss"] = min(losses)
        trial.set_user_attr("figures", held)
        trial.set_user_attr("seconds", found.get("seconds"))
        if search.objective == "agreement":
            assert self.measure is not None
            value = self.measure(folder)
        elif search.objective not in held:
            raise InputError(_UNDEFINED[search.objective])
        else:
            value = held[search.objective]
        if not math.isfinite(value):
            raise InputError(f"{search.title()} is not a number")
        return value

    def tidy(self, slots: list[Slot]) -> None:
        """Delete the models of finished trials that are not the best one."""
        if self.keep_models:
            return
        best = best_of(slots, self.search.maximised)
        for slot in slots:
            if slot.finished and (best is None or slot.number != best.number):
                shutil.rmtree(model_folder(self.out, slot), ignore_errors=True)


_UNDEFINED = {
    "validation_loss": "no epoch has a validation loss",
    "accuracy": "labels lie between 0 and 1, so there is no accuracy; choose objective: pearson",
    "pearson": "validation labels or scores are all the same, so there is no Pearson correlation",
}


def validation_figures(labels: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """``accuracy`` (0/1 labels) and ``pearson`` of the validation split, those that are defined."""
    found = {} if is_graded(labels) else {"accuracy": accuracy(labels, scores)}
    r = pearson(labels, scores)
    return found if math.isnan(r) else {**found, "pearson": r}


def _line(taken: Slot, slots: list[Slot], search: Search) -> str:
    """What is told of a trial that has ended, and of the best so far."""
    # One that another worker has ended may be among those that are not wanted.
    slot = next((slot for slot in slots if slot.number == taken.number), taken)
    best = best_of(slots, search.maximised)
    result = slot.state
    if slot.state == "complete":
        result = f"{slot.last.value:.4f}"
    elif slot.state == "failed":
        result = f"failed: {slot.reason}"
    so_far = f"best {best.last.value:.4f} (trial {best.number})" if best is not None else "none completed yet"
    return f"trial {slot.number}: {result}; {so_far}; {sum(slot.finished for slot in slots)} of {len(slots)} finished"


def _claim(out: Path, study: str) -> None:
    """Make the folder, or see that it belongs to the same study."""
    path = out / "tune.json"
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; give a folder with --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        others = [entry.name for entry in out.iterdir() if not entry.name.startswith(".negsample-")]
    except OSError as error:
        raise failure(str(out), error) from error
    if others and not path.is_file():
        raise InputError(f"{out}: holds something else than a study; give an empty or new folder with --out")
    if not others:
        atomic_json(path, {"study": study})
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))["study"]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: damaged; give another folder with --out") from None
    if before != study:
        raise InputError(f"{out}: belongs to study {before!r}, not {study!r}; give another folder with --out")

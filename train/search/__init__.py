"""``negsample tune``: trials of a search, trained one after another by each of several workers on one study."""

import math
import os
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import torch
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial

from negsample.errors import InputError
from negsample.io.run_record import work_folder
from negsample.models.evaluation import accuracy, is_graded, pearson
from negsample.train.config import make_config
from negsample.train.fit.checkpoint import Callbacks
from negsample.train.job import train
from negsample.train.search import study as studies
from negsample.train.search.settings import Search

# What a trial is worth beside its validation figures: from the folder of its model.
Measure = Callable[[Path], float]


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
    alive: int = 15,
    silent: int = 180,
    say: Callable[[str], None] = print,
) -> list[FrozenTrial]:
    """Run trials of ``search`` until study ``study_name`` in the storage ``url`` holds ``trials`` finished ones.

    Where it holds more already, none is run, and the results are those of all. Any number of workers may do this at
    once, with the same ``search`` and ``trials``; each stops when that many are finished, so there may be some more.
    A worker that was stopped or killed leaves its trial to be run again with the same parameters (killed: in a database
    alone, see ``open_storage``), from its last checkpoint where that lies in ``out``. Models are trained in
    ``out/trials/N``, and deleted unless best or ``keep_models``. ``measure`` gives the value of a trained model where the
    objective is ``agreement``; ``trainer`` takes the arguments of ``train``; ``say`` is told of each trial.

    ``best.yaml``, ``trials.csv`` and ``study.json`` in ``out`` are renewed after each trial. A trial that can't be
    trained (InputError, out of memory) fails with its reason, and the search goes on. Returns the trials. Raises
    InputError for a folder or a study that belongs to something else, and where the storage can't be used.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        advice = "start it without accelerate launch, as often as you like"
        raise InputError(f"each worker of a search is one process; {advice}")
    with studies.speaking_of(url):
        with work_folder(out, {"study": study_name}, name="tune.json", what="a study", alone=False):
            study = studies.open_study(studies.open_storage(url, alive, silent), study_name, search)
        study.pruner = search.make_pruner()
        worker = _Worker(search, study, trials, out, measure, partial(trainer, resume=True), keep_models, say)
        # A network and its optimiser refer to each other, and would fill a GPU until Python looks for such circles.
        collected = torch.cuda.is_available()
        # Optuna's MaxTrialsCallback would count a trial that was run again twice, and look only after the first one.
        while worker.finished() < trials:
            try:
                study.optimize(worker.run, 1, catch=_FAILURES, callbacks=[worker.after], gc_after_trial=collected)
            except (ValueError, AssertionError) as error:
                # Another worker has taken this one for dead, and its trial over, so that Optuna can't end it here.
                if "Cannot tell" not in f"{error} {error.__context__}":
                    raise
        return worker.renew()


# What ends a trial and not the search.
_FAILURES = (InputError, MemoryError, torch.cuda.OutOfMemoryError)


@dataclass(frozen=True)
class _Worker:
    """What a worker needs for each of its trials."""

    search: Search
    study: Study
    wanted: int
    out: Path
    measure: Measure | None
    trainer: Callable[..., Any]
    keep_models: bool
    say: Callable[[str], None]

    def finished(self) -> int:
        """How many trials have come to an end."""
        return sum(trial.state.is_finished() for trial in studies.counted(self.study.get_trials(deepcopy=False)))

    def run(self, trial: Trial) -> float:
        """Run one trial to its end; its value. Where it fails, the reason is kept with it."""
        # Its random stream depends on no worker.
        self.study.sampler = self.search.make_sampler(trial.number)
        trial.set_user_attr(studies.WORKER, {"host": platform.node(), "process": os.getpid()})
        this = self.study.get_trials(deepcopy=False)[trial.number]
        try:
            return self._value(trial, this)
        except optuna.TrialPruned:
            raise
        except Exception as error:
            told = str(error) if isinstance(error, InputError) else f"the program failed: {error!r}"
            if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
                told = f"out of memory {error}"
            trial.set_user_attr(studies.REASON, " ".join(told.split())[:500])
            raise
        except BaseException as error:
            # Stopped: the trial itself has not been judged.
            studies.retry_callback()(self.study, self.study.get_trials(deepcopy=False)[trial.number])
            if not isinstance(error, KeyboardInterrupt):  # at which Optuna itself ends the trial
                self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
            raise

    def _value(self, trial: Trial, this: FrozenTrial) -> float:
        """Draw the settings, train, and measure. Raises TrialPruned and InputError."""
        search = self.search
        told = set(this.intermediate_values)
        config = make_config(search.searched.draw(trial, search.train), f"trial {trial.number}")
        last_epoch = int(config.resolved().epochs or 0) - 1
        first = studies.attempts(this)[0]
        # A copy goes on from the first attempt's checkpoint.
        folder = self.out / "trials" / str(first)
        if first == trial.number:
            shutil.rmtree(folder, ignore_errors=True)

        def after_epoch(epoch: int, loss: float) -> None:
            if epoch not in told and math.isfinite(loss):
                # A pruner prefers what the study prefers; a lower loss is better in either case.
                trial.report(-loss if search.maximised else loss, epoch)
            # After its last epoch there is nothing to save, and a value to lose.
            if epoch < last_epoch and trial.should_prune():
                raise optuna.TrialPruned

        held: dict[str, float] = {}
        callbacks = Callbacks(lambda text: None, after_epoch, lambda *both: held.update(validation_figures(*both)))
        found = self.trainer(config, folder, callbacks=callbacks)
        if found is None:
            # Killed between the end of training and the end of the trial: its validation scores are lost.
            shutil.rmtree(folder)
            found = self.trainer(config, folder, callbacks=callbacks)
        losses = [epoch["validation_loss"] for epoch in found["epochs"] if epoch["validation_loss"] is not None]
        if losses:
            held["validation_loss"] = min(losses)
        trial.set_user_attr("figures", held)
        trial.set_user_attr("seconds", found.get("seconds"))
        value = held.get(str(search.objective), math.nan) if self.measure is None else self.measure(folder)
        if not math.isfinite(value):
            # Labels or scores that are all the same, graded labels, or no epoch with a loss.
            raise InputError(f"{search.title()} is not defined for this trial; choose another objective")
        return value

    def after(self, study: Study, trial: FrozenTrial) -> None:
        """Renew the files, and tell of ``trial``, which has ended, and of the best so far."""
        best = studies.best_of(self.renew(), self.search.maximised)
        value = f"{trial.value:.4f}" if studies.state_of(trial) == "complete" else ""
        result = value or ": ".join(filter(None, (studies.state_of(trial), studies.reason_of(trial))))
        so_far = (
            f"best {best.value:.4f} (trial {studies.attempts(best)[0]})" if best is not None else "none completed yet"
        )
        done = self.finished()
        self.say(f"trial {studies.attempts(trial)[0]}: {result}; {so_far}; {done} of {max(self.wanted, done)} finished")

    def renew(self) -> list[FrozenTrial]:
        """Write the results as they are now, and delete the models of finished trials that are not the best one."""
        trials = studies.counted(self.study.get_trials(deepcopy=False))
        studies.write_results(self.out, self.search, self.study.study_name, trials)
        best = studies.best_of(trials, self.search.maximised)
        for trial in [] if self.keep_models else trials:
            if trial.state.is_finished() and (best is None or trial.number != best.number):
                shutil.rmtree(self.out / "trials" / str(studies.attempts(trial)[0]), ignore_errors=True)
        return trials


def validation_figures(labels: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """``accuracy`` (0/1 labels) and ``pearson`` of the validation split, those that are defined."""
    found = {} if is_graded(labels) else {"accuracy": accuracy(labels, scores)}
    r = pearson(labels, scores)
    return found if math.isnan(r) else {**found, "pearson": r}

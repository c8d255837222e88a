"""The trials of a study as people count them, and the files of a search: ``trials.csv``, ``study.json``, ``best.yaml``.

A trial whose worker died and the copies that were run again are one.
"""

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from optuna.storages import RetryHeartbeatStaleTrialCallback
from optuna.trial import FixedTrial, FrozenTrial

from negsample.io.files import atomic_json, atomic_text
from negsample.train.search.settings import Search

# Attributes of a trial: why it failed, and the process that has it.
REASON, WORKER = "reason", "worker"
_FIGURES = ("validation_loss", "accuracy", "pearson")


@dataclass(frozen=True)
class Slot:
    """One of the trials that were asked for: its attempts, in order. ``number`` is the first attempt's."""

    number: int
    attempts: tuple[FrozenTrial, ...]

    @property
    def last(self) -> FrozenTrial:
        """The attempt that counts."""
        return self.attempts[-1]

    @property
    def state(self) -> str:
        """``waiting``, ``running``, ``complete``, ``pruned`` or ``failed``."""
        return self.last.state.name.lower().replace("fail", "failed")

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.last.state.is_finished()

    @property
    def reason(self) -> str:
        """Why it failed; "" where it did not."""
        # Optuna gives up a trial whose worker has died too often, and says nothing.
        return str(self.last.user_attrs.get(REASON, "its worker was killed")) if self.state == "failed" else ""


def first_attempt(trial: FrozenTrial) -> int:
    """Return the number of the trial that ``trial`` is a copy of, or its own."""
    number = RetryHeartbeatStaleTrialCallback.retried_trial_number(trial)
    return trial.number if number is None else number


def slots_of(trials: Sequence[FrozenTrial], wanted: int) -> list[Slot]:
    """Return the slots of a study's trials, in order: all that are finished, and the first others up to ``wanted``."""
    attempts: dict[int, list[FrozenTrial]] = {}
    for trial in sorted(trials, key=lambda trial: trial.number):
        attempts.setdefault(first_attempt(trial), []).append(trial)
    slots = [Slot(number, tuple(found)) for number, found in sorted(attempts.items())]
    missing = max(0, wanted - sum(slot.finished for slot in slots))
    others = [slot.number for slot in slots if not slot.finished][:missing]
    return [slot for slot in slots if slot.finished or slot.number in others]


def best_of(slots: Sequence[Slot], maximised: bool) -> Slot | None:
    """Return the completed slot with the best value, the earliest of equal ones; None where none was completed."""
    done = [slot for slot in slots if slot.state == "complete"]
    sign = -1 if maximised else 1
    return min(done, key=lambda slot: (sign * float(slot.last.value or 0.0), slot.number), default=None)


def write_results(out: Path, search: Search, study: str, slots: Sequence[Slot]) -> None:
    """Write ``trials.csv``, ``study.json`` and, once a trial is completed, ``best.yaml`` with what it is the best of."""
    plain = study_as_plain(search, study, slots)
    atomic_text(out / "trials.csv", _csv(plain["trials"]))
    atomic_json(out / "study.json", plain)
    best = best_of(slots, search.maximised)
    if best is None:
        return
    finished = sum(slot.finished for slot in slots)
    title = " ".join(f"study {study}, trial {best.number}, best of {finished} by {search.title()}".split())
    settings = search.space.draw(FixedTrial(best.last.params), search.train)
    text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
    atomic_text(out / "best.yaml", f"# {title}: {best.last.value!r}\n{text}")


def _csv(trials: Sequence[Mapping[str, Any]]) -> str:
    """Return a line for each of ``trials`` as ``study.json`` has them; a parameter may be called as another column."""
    names = list(dict.fromkeys(name for trial in trials for name in trial["parameters"]))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["trial", "state", "value", *_FIGURES, "epochs", "seconds", "attempts", *names, "reason"])
    for trial in trials:
        cells = [trial["trial"], trial["state"], trial["value"], *map(trial["validation"].get, _FIGURES)]
        cells += [len(trial["validation_losses"]) or None, trial["seconds"], len(trial["attempts"])]
        writer.writerow([*cells, *map(trial["parameters"].get, names), trial["reason"]])
    return out.getvalue()


def study_as_plain(search: Search, study: str, slots: Sequence[Slot]) -> dict[str, Any]:
    """Return the content of ``study.json``: the search, counts by state, why trials failed, every trial, the best."""
    # Where a high value is best, losses are reported to the pruner with a minus sign.
    sign = -1 if search.maximised else 1
    best = best_of(slots, search.maximised)
    return {
        "study": study,
        "objective": search.title(),
        "direction": "maximise" if search.maximised else "minimise",
        "search": dict(search.given),
        "sampler": {"name": search.sampler[0], **search.sampler[1]},
        "pruner": {"name": search.pruner[0], **search.pruner[1]},
        "notes": list(search.notes),
        "states": dict(Counter(slot.state for slot in slots)),
        "failures": dict(Counter(slot.reason for slot in slots if slot.state == "failed")),
        "interrupted_attempts": sum(len(slot.attempts) - 1 for slot in slots),
        "best": None if best is None else _plain(best, sign),
        "trials": [_plain(slot, sign) for slot in slots],
    }


def _plain(slot: Slot, sign: int) -> dict[str, Any]:
    last = slot.last
    return {
        "trial": slot.number,
        "state": slot.state,
        "value": last.value if slot.state == "complete" else None,
        "parameters": dict(last.params),
        "validation": last.user_attrs.get("figures", {}),
        "validation_losses": [sign * value for _, value in sorted(last.intermediate_values.items())],
        "attempts": [attempt.number for attempt in slot.attempts],
        "worker": last.user_attrs.get(WORKER, {}),
        "seconds": last.user_attrs.get("seconds"),
        "reason": slot.reason or None,
    }

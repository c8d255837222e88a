"""The trials of a study as people count them: a trial whose worker died and the copy that was run again are one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

# Attributes of a trial: why it failed, and the process that has it.
REASON, WORKER = "reason", "worker"
_FINISHED = ("complete", "pruned", "failed")


@dataclass(frozen=True)
class Slot:
    """One of the trials that were asked for: its attempts, in order. ``number`` is the first attempt's."""

    number: int
    attempts: tuple["FrozenTrial", ...]

    @property
    def last(self) -> "FrozenTrial":
        """The attempt that counts."""
        return self.attempts[-1]

    @property
    def state(self) -> str:
        """``waiting``, ``running``, ``complete``, ``pruned`` or ``failed``."""
        name = self.last.state.name.lower()
        return "failed" if name == "fail" else name

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.state in _FINISHED

    @property
    def reason(self) -> str:
        """Why it failed; "" where it did not."""
        # Optuna gives up a trial whose worker has died too often, and says nothing.
        return str(self.last.user_attrs.get(REASON, "its worker was killed")) if self.state == "failed" else ""


def first_attempt(trial: "FrozenTrial") -> int:
    """Return the number of the trial that ``trial`` is a copy of, or its own."""
    from optuna.storages import RetryHeartbeatStaleTrialCallback

    number = RetryHeartbeatStaleTrialCallback.retried_trial_number(trial)
    return trial.number if number is None else number


def slots_of(trials: Sequence["FrozenTrial"], wanted: int) -> list[Slot]:
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


def model_folder(out: Path, number: int) -> Path:
    """Return where the model of the slot ``number`` is trained: a copy goes on from the first attempt's checkpoint."""
    return out / "trials" / str(number)

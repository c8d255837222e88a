"""A study's trials, shared by workers: each of N is run once, and one that a killed worker left is run again.

Optuna's own heartbeat serves databases alone and only ``Study.optimize``, which lets N workers start more than N trials.
Here the N trials wait in the study from the beginning. A worker takes one by turning it from waiting to running, which
every storage does for one worker only. A trial whose worker died is failed, which likewise only one can do, and a copy
of it with the same parameters waits in its place: both together are one *slot*, and N slots are N trials.
"""

import contextlib
import json
import os
import platform
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from negsample.errors import InputError
from negsample.io.files import failure
from negsample.models.store.segments import lock
from negsample.seeds import digest

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.study import Study
    from optuna.trial import FrozenTrial

# Attributes of a trial: the worker that has it, how often that one has shown to be alive, why it was interrupted, and
# (of a copy) the number of the first attempt and how many came before.
WORKER, ALIVE, INTERRUPTED, FIRST, ATTEMPT = "worker", "alive", "interrupted", "first_attempt", "attempts_before"
REASON = "reason"
# A trial that takes its worker with it is given up after so many attempts; those that were stopped are not counted.
ATTEMPTS = 4
SILENT, KILLED, STOPPED = "its worker gave no sign of life", "its worker was killed", "its worker was stopped"


@dataclass(frozen=True)
class Slot:
    """One of the N trials: its attempts, in order. ``number`` is the first attempt's."""

    number: int
    attempts: tuple["FrozenTrial", ...]

    @property
    def last(self) -> "FrozenTrial":
        """The attempt that counts."""
        return self.attempts[-1]

    @property
    def state(self) -> str:
        """``waiting``, ``running``, ``complete``, ``pruned``, ``failed`` or ``interrupted`` (to be run again)."""
        name = self.last.state.name.lower()
        if name != "fail":
            return name
        whys = [attempt.user_attrs.get(INTERRUPTED) for attempt in self.attempts]
        # To be stopped is no fault of the trial's.
        again = whys[-1] is not None and sum(why != STOPPED for why in whys) < ATTEMPTS
        return "interrupted" if again else "failed"

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.state in ("complete", "pruned", "failed")

    @property
    def reason(self) -> str:
        """Why it failed; "" where it did not."""
        attributes = self.last.user_attrs
        return str(attributes.get(REASON) or attributes.get(INTERRUPTED) or "") if self.state == "failed" else ""


def slots_of(trials: Sequence["FrozenTrial"], wanted: int) -> list[Slot]:
    """The slots of a study's trials that count, in order: all that are finished, and the first others up to ``wanted``.

    It depends on nothing but the trials, so all workers see the same: where two have made a copy of one attempt, the
    copy with the lower number counts and the other is never run; likewise for trials beyond ``wanted``.
    """
    chains: dict[int, dict[int, FrozenTrial]] = {}
    for trial in sorted(trials, key=lambda trial: trial.number):
        first = trial.user_attrs.get(FIRST, trial.number)
        chains.setdefault(first, {}).setdefault(trial.user_attrs.get(ATTEMPT, 0), trial)
    slots = [Slot(number, tuple(chain[place] for place in sorted(chain))) for number, chain in sorted(chains.items())]
    missing = wanted - sum(slot.finished for slot in slots)
    others = [slot.number for slot in slots if not slot.finished][: max(0, missing)]
    return [slot for slot in slots if slot.finished or slot.number in others]


@dataclass(frozen=True)
class Worker:
    """This process: a name of its own, and the machine. While it lives it holds the lock file ``folder/NAME.lock``."""

    name: str
    machine: str
    folder: Path

    def facts(self) -> dict[str, Any]:
        """What a trial says of its worker."""
        return {"name": self.name, "machine": self.machine, "host": platform.node(), "process": os.getpid()}


@contextlib.contextmanager
def at_work(folder: Path) -> Iterator[Worker]:
    """This process as a worker whose lock file lies in ``folder``; a killed process holds no lock."""
    name = digest(os.urandom(16), size=5).hex()
    path = folder / f"{name}.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise failure(str(folder), error) from error
    with lock(path) as held:
        try:
            # Without locks (some network file systems) only its signs of life speak for a worker.
            yield Worker(name, _machine() if held else "", folder)
        finally:
            path.unlink(missing_ok=True)


def _machine(boot: Path = Path("/proc/sys/kernel/random/boot_id")) -> str:
    """This machine since it was started: lock files of another say nothing here."""
    try:
        return boot.read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()


class Pool:
    """The study's slots as one worker sees and changes them. ``silent``: seconds without a sign of life that mean death."""

    def __init__(self, study: "Study", storage: "BaseStorage", wanted: int, worker: Worker, silent: float) -> None:
        self._study, self._storage, self._wanted, self._worker = study, storage, wanted, worker
        self._silent = silent
        # Signs of life are counted, not dated: the clocks of two machines may differ.
        self._seen: dict[int, tuple[Any, float]] = {}

    def slots(self) -> list[Slot]:
        """All slots as they are now."""
        return slots_of(self._study.get_trials(deepcopy=False), self._wanted)

    def fill(self, *, made: bool, patience: float = 2.0) -> None:
        """Let trials wait until there are as many slots as wanted.

        The worker that made the study (``made``) does so at once; the others see to what it has left undone.
        """
        import optuna

        count = len(self.slots())
        while count < self._wanted and not made:
            # Workers that wait side by side do not all step in at once.
            time.sleep(patience + int(self._worker.name, 16) % 100 / 100 * patience)
            before, count = count, len(self.slots())
            if count == before:
                break
        for _ in range(self._wanted - count):
            self._study.add_trial(optuna.create_trial(state=optuna.trial.TrialState.WAITING))

    def take(self, slots: Sequence[Slot]) -> Slot | None:
        """The first waiting one of ``slots``, which now is this worker's to run; None where none waits any more."""
        import optuna

        running = optuna.trial.TrialState.RUNNING
        for slot in slots:
            if slot.state != "waiting":
                continue
            with contextlib.suppress(optuna.exceptions.UpdateFinishedTrialError):
                identity = self.identity(slot.last)
                if self._storage.set_trial_state_values(identity, running):
                    self._storage.set_trial_user_attr(identity, WORKER, self._worker.facts())
                    return slot
        return None

    def identity(self, trial: "FrozenTrial") -> int:
        """The storage's own number of a trial."""
        study = self._storage.get_study_id_from_name(self._study.study_name)
        return self._storage.get_trial_id_from_study_id_trial_number(study, trial.number)

    def give_back(self, trial: "FrozenTrial", why: str) -> None:
        """End an attempt of this worker's, or of a dead one's, so that the slot is run again."""
        import optuna

        # The storage lets one worker alone end a trial; the others find it ended.
        with contextlib.suppress(optuna.exceptions.UpdateFinishedTrialError):
            identity = self.identity(trial)
            self._storage.set_trial_user_attr(identity, INTERRUPTED, why)
            self._storage.set_trial_state_values(identity, optuna.trial.TrialState.FAIL)

    def tend(self) -> list[Slot]:
        """All slots, once the attempts of dead workers are ended and a copy of each interrupted one waits in its place."""
        slots = self.slots()
        dead = [(slot, why) for slot in slots if slot.state == "running" and (why := self._dead(slot.last))]
        for slot, why in dead:
            self.give_back(slot.last, why)
        if dead:
            slots = self.slots()
        again = [slot for slot in slots if slot.state == "interrupted"]
        for slot in again:
            self._again(slot)
        return self.slots() if again else slots

    def _again(self, slot: Slot) -> None:
        import optuna

        last = slot.last
        self._study.add_trial(
            optuna.create_trial(
                state=optuna.trial.TrialState.WAITING,
                params=last.params,
                distributions=last.distributions,
                user_attrs={FIRST: slot.number, ATTEMPT: len(slot.attempts)},
                intermediate_values=last.intermediate_values,
            )
        )

    def _dead(self, trial: "FrozenTrial") -> str:
        """Why the worker of a running trial must be dead; "" where it may live."""
        owner = trial.user_attrs.get(WORKER) or {}
        if owner.get("name") == self._worker.name:
            return ""
        path = self._worker.folder / f"{owner.get('name')}.lock"
        if owner.get("machine") and owner["machine"] == self._worker.machine and path.exists():
            with lock(path) as free:
                return KILLED if free else ""
        sign, now = (owner.get("name"), trial.user_attrs.get(ALIVE)), time.monotonic()
        before, since = self._seen.setdefault(trial.number, (sign, now))
        if before != sign:
            self._seen[trial.number] = (sign, now)
            return ""
        return SILENT if now - since > self._silent else ""


@contextlib.contextmanager
def alive(storage: "BaseStorage", identity: int, every: float) -> Iterator[threading.Event]:
    """Show every ``every`` seconds that the trial's worker is alive. The event is set once another has ended the trial."""
    import optuna

    done, lost = threading.Event(), threading.Event()

    def show() -> None:
        count = 0
        while not done.wait(every):
            count += 1
            try:
                storage.set_trial_user_attr(identity, ALIVE, count)
            except optuna.exceptions.UpdateFinishedTrialError:
                lost.set()
                return
            except Exception:
                # A storage that is out of reach for a while may be back at the next sign; the trial goes on meanwhile.
                continue

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield lost
    finally:
        done.set()
        thread.join()


def open_study(name: str, storage: "BaseStorage", *, maximised: bool, content: Any) -> tuple["Study", bool]:
    """The study called ``name``, and whether it was made now. ``content``: plain values that must be equal at every start.

    Raises InputError where a study of that name was begun with other content.
    """
    import optuna

    direction = optuna.study.StudyDirection.MAXIMIZE if maximised else optuna.study.StudyDirection.MINIMIZE
    content = json.loads(json.dumps(content))
    try:
        study = optuna.create_study(storage=storage, study_name=name, direction=direction)
        made = True
    except optuna.exceptions.DuplicatedStudyError:
        study = optuna.load_study(study_name=name, storage=storage)
        made = False
    # Trials are read first: whoever adds them has described the study before.
    used = bool(study.get_trials(deepcopy=False))
    before = study.user_attrs.get("search")
    if before is None:
        if used:
            raise InputError(f"study {name!r} was not begun by negsample tune; give another name with --study")
        study.set_user_attr("search", content)
    elif before != content:
        changed = [key for key in {**before, **content} if before.get(key) != content.get(key)]
        raise InputError(
            f"study {name!r} was begun with another configuration ({', '.join(changed)} differs); give that one, or "
            "another name with --study"
        )
    return study, made

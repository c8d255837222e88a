"""A study of ``negsample tune``: where Optuna keeps it, its trials as people count them, and the files of results."""

import contextlib
import functools
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import optuna
import pandas
import yaml
from optuna.storages import BaseStorage, JournalStorage, RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study, StudyDirection
from optuna.trial import FixedTrial, FrozenTrial, TrialState
from sqlalchemy import event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, InterfaceError, OperationalError, SQLAlchemyError

from negsample.errors import InputError
from negsample.io.files import atomic_json, atomic_text
from negsample.terminal import say
from negsample.train.search.settings import Search

T = TypeVar("T")
# Attributes of a trial: why it failed, and the process that has it.
REASON, WORKER = "reason", "worker"
_JOURNAL = "journal:"
_FORMS = "sqlite:///FILE, postgresql+psycopg://USER@HOST/DATABASE, mysql+pymysql://USER@HOST/DATABASE or journal:FILE"
# So many seconds a worker waits for a database that is locked or away, and for one that has never answered; after how
# many it says so, and says so again; and those between two tries.
PATIENCE, _OPENING, _SAID, _PAUSE = 600.0, 4.0, (5.0, 60.0), 0.3
_STORAGE_ERRORS = (optuna.exceptions.StorageInternalError, SQLAlchemyError)
# What Optuna asks of a database beside a storage's methods.
_INNER = ("_create_new_trial", "_set_trial_param", "_get_trials", "_get_stale_trial_ids", "record_heartbeat")
# A trial that takes its worker with it is given up after so many further attempts.
_RETRIES = 3


def safe_url(url: str) -> str:
    """Return ``url`` without its password and options, for messages and files."""
    if url.startswith((_JOURNAL, "sqlite:")):
        return url
    try:
        return make_url(url).set(query={}).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        return f"{url.partition(':')[0]}:…"


def hide(text: str, url: str) -> str:
    """Return ``text`` with ``url`` made safe, and its password and options starred, wherever they stand in it."""
    text = text.replace(url, safe_url(url))
    with contextlib.suppress(ArgumentError, ValueError):
        parsed = make_url(url)
        for secret in (parsed.password, *(parsed.query.get(key) for key in ("password", "passwd", "pwd"))):
            text = text.replace(str(secret), "***") if secret else text
    return text


@contextlib.contextmanager
def speaking_of(url: str) -> Iterator[None]:
    """Turn errors of the storage at ``url`` inside the block into InputErrors, in which no password stands."""
    try:
        with warnings.catch_warnings():
            # Optuna calls signs of life and trials that are run again experimental.
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    except InputError:
        raise
    except Exception as error:
        # Where the storage has gone Optuna stumbles once more, over what it has not been told.
        found: BaseException | None = error
        while found is not None and not isinstance(found, _STORAGE_ERRORS):
            found = found.__cause__ or found.__context__
        if found is None:
            raise
        told = f"--storage {safe_url(url)}: failed ({_why(found, url)}); start the command again to go on"
        raise InputError(told) from None


def _why(error: BaseException, url: str) -> str:
    return hide(str(error.__cause__ or error), url).splitlines()[0]


def _patiently(call: Callable[[], T], url: str, patience: Callable[[BaseException], float]) -> T:
    """What ``call`` answers, asked again for ``patience(error)`` seconds; on standard error it is said why."""
    begun = time.monotonic()
    tell = begun + _SAID[0]
    while True:
        try:
            return call()
        except _STORAGE_ERRORS as error:
            now = time.monotonic()
            cause = error.__cause__ or error if isinstance(error, optuna.exceptions.StorageInternalError) else error
            if now - begun >= patience(cause):
                raise
            if now >= tell:
                tell = now + _SAID[1]
                say(f"--storage {safe_url(url)}: waiting until it answers ({_why(error, url)})", error=True)
            time.sleep(_PAUSE)


class _Patient(RDBStorage):
    """A database whose methods wait while it is locked by another process, or away for a while."""

    ended = False

    def patience(self, error: BaseException) -> float:
        """The seconds to wait after ``error``; none once it has been given up, or where waiting changes nothing."""
        away = isinstance(error, OperationalError | InterfaceError) and "readonly" not in str(error)
        return 0.0 if self.ended or not away else PATIENCE


def _waiting(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def answer(self: _Patient, *given: Any, **named: Any) -> Any:
        try:
            return _patiently(lambda: call(self, *given, **named), self.url, self.patience)
        except (*_STORAGE_ERRORS, KeyboardInterrupt, SystemExit):
            # What Optuna still asks while it ends is not waited for again.
            self.ended = True
            if call.__name__ == "record_heartbeat":  # in a thread, whose traceback would help nobody
                return None
            raise

    return answer


for _name in (*BaseStorage.__abstractmethods__, *_INNER):
    setattr(_Patient, _name, _waiting(getattr(RDBStorage, _name)))


def open_storage(url: str, alive: int = 15, silent: int = 180) -> BaseStorage:
    """Open the storage at ``url``, as SQLAlchemy takes it, or ``journal:FILE``; made where there is none yet.

    SQLite serves the processes of one machine, other databases several machines, and a journal those that share a file
    system. In a database the worker of a trial shows every ``alive`` seconds that it lives, and the trial of one that has
    not for ``silent`` seconds is run again, by Optuna. A database that is locked, or that restarts, is waited for.

    Raises InputError, without the password, where it can't be opened.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if url.startswith("sqlite:") and url.removeprefix("sqlite:").strip("/") in ("", ":memory:"):
        raise InputError(f"--storage {url}: in memory, so that no other worker finds it; give sqlite:///FILE")
    sqlite = {"connect_args": {"timeout": _SAID[0], "isolation_level": None}}

    def open_database() -> _Patient:
        return _Patient(
            url,
            engine_kwargs=sqlite if url.startswith("sqlite") else {"pool_pre_ping": True},
            heartbeat_interval=alive,
            grace_period=silent,
            heartbeat_stale_trial_callback=retry_callback(_RETRIES),
        )

    def patience(error: BaseException) -> float:
        # Workers that start at once may make the tables at once; all but one then fail, and find them a moment later.
        return PATIENCE if "locked" in str(error) else 0.0 if isinstance(error, ArgumentError) else _OPENING

    try:
        if url.startswith(_JOURNAL):
            return JournalStorage(JournalFileBackend(url.removeprefix(_JOURNAL)))
        storage = _patiently(open_database, url, patience)
    except (ImportError, OSError, ValueError, RuntimeError, SQLAlchemyError, optuna.exceptions.OptunaError) as error:
        raise InputError(f"--storage {safe_url(url)}: can't be opened: {_why(error, url)}; give {_FORMS}") from None
    if url.startswith("sqlite"):
        # Optuna takes a waiting trial by SELECT … FOR UPDATE and UPDATE. SQLite has no FOR UPDATE, and Python's driver begins
        # a transaction only with the UPDATE, so that two workers might both see the trial waiting and both run it.
        event.listen(storage.engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return storage


def retry_callback(most: int | None = None) -> RetryHeartbeatStaleTrialCallback:
    """Return what lets a copy of a trial wait that did not come to its end: at ``most`` so many one after another."""
    return RetryHeartbeatStaleTrialCallback(max_retry=most, inherit_intermediate_values=True)


def open_study(storage: BaseStorage, name: str, search: Search) -> Study:
    """Open the study ``name``, made where there is none. Raises InputError where it was begun with another search."""
    content, direction = search.content(), StudyDirection.MAXIMIZE if search.maximised else StudyDirection.MINIMIZE
    study = optuna.create_study(storage=storage, study_name=name, direction=direction, load_if_exists=True)
    before = study.user_attrs.get("search")
    if before is None:
        if study.get_trials(deepcopy=False):
            raise InputError(f"study {name!r} was not begun by negsample tune; give another name with --study")
        study.set_user_attr("search", content)
    elif before != content:
        changed = ", ".join(key for key in content if before.get(key) != content[key])
        told = f"study {name!r} was begun with another configuration ({changed} differs)"
        raise InputError(f"{told}; give that one, or another name with --study")
    return study


def attempts(trial: FrozenTrial) -> list[int]:
    """The numbers of the trials that ``trial`` is the last of: those that were interrupted, and its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return [*RetryHeartbeatStaleTrialCallback.retry_history(trial), trial.number]


def counted(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """The trials as people count them, in order: of those that were run again, the last attempt alone."""
    interrupted = {number for trial in trials for number in attempts(trial)[:-1]}
    return sorted((trial for trial in trials if trial.number not in interrupted), key=lambda trial: attempts(trial)[0])


def state_of(trial: FrozenTrial) -> str:
    """``waiting``, ``running``, ``complete``, ``pruned`` or ``failed``."""
    return trial.state.name.lower().replace("fail", "failed")


def reason_of(trial: FrozenTrial) -> str:
    """Why a trial failed; "" where it did not."""
    # Optuna gives up a trial whose worker has died too often, and says nothing.
    return str(trial.user_attrs.get(REASON, "its worker was killed")) if trial.state == TrialState.FAIL else ""


def best_of(trials: Sequence[FrozenTrial], maximised: bool) -> FrozenTrial | None:
    """The completed trial with the best value, the earliest of equal ones; None where none was completed."""
    done = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    return min(done, key=lambda trial: (-1 if maximised else 1) * float(trial.value or 0.0), default=None)


def write_results(out: Path, search: Search, study: str, trials: Sequence[FrozenTrial]) -> None:
    """Write ``trials.csv``, ``study.json`` and, once a trial is completed, ``best.yaml`` with what it is the best of."""
    plain = study_as_plain(search, study, trials)
    # Whole numbers stay whole where some trials have none.
    table = pandas.json_normalize(plain["trials"]).convert_dtypes()
    atomic_text(out / "trials.csv", table.to_csv(index=False, lineterminator="\n"))
    atomic_json(out / "study.json", plain)
    if (best := best_of(trials, search.maximised)) is not None:
        finished = sum(trial.state.is_finished() for trial in trials)
        title = f"study {study}, trial {attempts(best)[0]}, best of {finished} by {search.title()}"
        settings = search.searched.draw(FixedTrial(best.params), search.train)
        text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
        atomic_text(out / "best.yaml", f"# {' '.join(title.split())}: {best.value!r}\n{text}")


def study_as_plain(search: Search, study: str, trials: Sequence[FrozenTrial]) -> dict[str, Any]:
    """The content of ``study.json``: the search, counts by state, why trials failed, every trial, the best."""
    # Where a high value is best, losses are reported to the pruner with a minus sign.
    sign = -1 if search.maximised else 1
    plain = {
        trial.number: {
            "trial": attempts(trial)[0],
            "state": state_of(trial),
            "value": trial.value if trial.state == TrialState.COMPLETE else None,
            "parameters": dict(trial.params),
            "validation": trial.user_attrs.get("figures", {}),
            "validation_losses": [sign * value for _, value in sorted(trial.intermediate_values.items())],
            "attempts": attempts(trial),
            "worker": trial.user_attrs.get(WORKER, {}),
            "seconds": trial.user_attrs.get("seconds"),
            "reason": reason_of(trial) or None,
        }
        for trial in trials
    }
    best = best_of(trials, search.maximised)
    return {
        "study": study,
        "objective": search.title(),
        "direction": "maximise" if search.maximised else "minimise",
        "search": search.content(),
        "sampler": search.method("sampler")[0],
        "pruner": search.method("pruner")[0],
        "notes": search.notes(),
        "states": Counter(map(state_of, trials)),
        "failures": Counter(filter(None, map(reason_of, trials))),
        "interrupted_attempts": sum(len(attempts(trial)) - 1 for trial in trials),
        "best": None if best is None else plain[best.number],
        "trials": list(plain.values()),
    }

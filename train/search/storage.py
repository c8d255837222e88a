"""Optuna's storage by URL: a database, or a journal file for a shared file system. Passwords stay out of messages."""

import contextlib
import itertools
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from negsample.errors import InputError

if TYPE_CHECKING:
    from optuna.storages import BaseStorage, RetryHeartbeatStaleTrialCallback
    from optuna.study import Study
    from sqlalchemy.engine import URL

_JOURNAL = "journal:"
_FORMS = "sqlite:///FILE, postgresql://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE or journal:FILE"
# Drivers by dialect, the one that SQLAlchemy takes by default first, and what to install where there is none.
_DRIVERS = {
    "postgresql": (("psycopg2", "psycopg"), "pip install 'negsample[postgres]'"),
    "mysql": (("MySQLdb", "pymysql"), "pip install pymysql"),
}
# Workers that start at once may make the tables at once; all but one then fail, and find them a moment later.
_TRIES = 6
# Each so many seconds SQLite gives up waiting for another process, and is asked again.
_BUSY_SECONDS = 5
# A trial that takes its worker with it is given up after so many attempts.
_RETRIES = 3


def _parse(url: str) -> "URL | None":
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        return None


def safe_url(url: str) -> str:
    """Return ``url`` without its password and options, for messages and files."""
    if url.startswith(_JOURNAL):
        return url
    parsed = _parse(url)
    if parsed is None:
        return url.partition(":")[0] + ":…"
    if parsed.get_backend_name() == "sqlite":
        return url
    return parsed.set(query={}).render_as_string(hide_password=True)


def hide(text: str, url: str) -> str:
    """Return ``text`` with ``url`` made safe, and its password and options starred, wherever they stand in it."""
    text = text.replace(url, safe_url(url))
    parsed = None if url.startswith(_JOURNAL) else _parse(url)
    if parsed is not None:
        options = [value for key, value in parsed.query.items() if key in ("password", "passwd", "pwd")]
        for secret in filter(None, (parsed.password, *options)):
            text = text.replace(str(secret), "***")
    return text


def open_storage(url: str, alive: int = 15, silent: int = 180) -> "BaseStorage":
    """Open the storage at ``url``, made where there is none yet (the database itself must exist).

    ``sqlite:///FILE`` serves the processes of one machine, ``postgresql://…`` and ``mysql://…`` several machines, and
    ``journal:FILE`` those that share a file system. In a database the worker of a trial shows every ``alive`` seconds
    that it lives, and the trial of one that has not for ``silent`` seconds is run again.

    Raises InputError, without the password, where it can't be opened.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if url.startswith(_JOURNAL):
        path = url.removeprefix(_JOURNAL)
        _check_folder(path, url)
        from optuna.storages.journal import JournalFileBackend

        try:
            return optuna.storages.JournalStorage(JournalFileBackend(path))
        except (OSError, ValueError) as error:
            raise InputError(f"{url}: not a journal that can be used ({error})") from None
    scheme, colon, _ = url.partition("://")
    if not colon:
        raise InputError(f"--storage {scheme[:20]!r}: not a storage; give {_FORMS}")
    return _open_database(url, alive, silent)


def _open_database(url: str, alive: int, silent: int) -> "BaseStorage":
    import optuna
    from sqlalchemy import event
    from sqlalchemy.exc import SQLAlchemyError

    safe, parsed = safe_url(url), _parse(url)
    if parsed is None:
        raise InputError(f"--storage {safe}: not a storage; give {_FORMS}")
    options: dict[str, Any] = {"pool_pre_ping": True}
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise InputError(f"--storage {safe}: in memory, so that no other worker finds it; give sqlite:///FILE")
        _check_folder(parsed.database, safe)
        # Transactions are begun by _begin alone.
        options = {"connect_args": {"timeout": _BUSY_SECONDS, "isolation_level": None}}
        # What else may be wrong with the file is told below.
        with contextlib.suppress(sqlite3.Error), contextlib.ExitStack() as stack:
            connection = sqlite3.connect(parsed.database, **options["connect_args"])
            stack.callback(connection.close)
            _begin(connection.execute, safe)
    elif backend in _DRIVERS and parsed.drivername == backend:
        modules, advice = _DRIVERS[backend]
        module = next((name for name in modules if find_spec(name)), None)
        if module is None:
            raise InputError(f"--storage {safe}: no driver for {backend}; {advice}")
        parsed = parsed.set(drivername=f"{backend}+{module.lower()}")
    full = parsed.render_as_string(hide_password=False)
    for number in range(_TRIES):
        try:
            storage = optuna.storages.RDBStorage(
                full,
                engine_kwargs=options,
                heartbeat_interval=alive,
                grace_period=silent,
                heartbeat_stale_trial_callback=retry_callback(_RETRIES),
            )
            break
        except (ImportError, RuntimeError, SQLAlchemyError, optuna.exceptions.OptunaError) as error:
            if number == _TRIES - 1 or isinstance(error, ImportError | RuntimeError):
                why = hide(hide(str(error.__cause__ or error), full), url)
                raise InputError(f"--storage {safe}: can't be opened: {why.splitlines()[0]}") from None
            time.sleep(0.3 * (number + 1))
    if backend == "sqlite":
        event.listen(storage.engine, "begin", lambda connection: _begin(connection.exec_driver_sql, safe))
    return storage


def retry_callback(most: int | None = None) -> "RetryHeartbeatStaleTrialCallback":
    """Return what lets a copy of a trial wait that did not come to its end: at ``most`` so many one after another."""
    from optuna.storages import RetryHeartbeatStaleTrialCallback

    return RetryHeartbeatStaleTrialCallback(max_retry=most, inherit_intermediate_values=True)


def _begin(execute: Callable[[str], Any], storage: str) -> None:
    """Begin a transaction on SQLite that locks the database before it reads, waiting as long as another has it.

    Optuna takes a waiting trial by SELECT … FOR UPDATE and UPDATE. SQLite has no FOR UPDATE, and Python's driver begins
    a transaction only with the UPDATE, so that two workers might both see the trial waiting and both run it.
    """
    from sqlalchemy.exc import OperationalError

    for number in itertools.count():
        try:
            execute("BEGIN IMMEDIATE")
            return
        except (sqlite3.OperationalError, OperationalError) as error:
            if "locked" not in str(error):
                raise
            if number % (60 // _BUSY_SECONDS) == 0:
                print(f"{storage}: the database is locked by another process; waiting", file=sys.stderr, flush=True)


def open_study(storage: "BaseStorage", name: str, *, maximised: bool, content: Mapping[str, Any]) -> "Study":
    """Open the study ``name``, made where there is none. ``content``: plain values that must be equal at every start.

    Raises InputError where a study of that name was begun with other content.
    """
    import optuna

    direction = optuna.study.StudyDirection.MAXIMIZE if maximised else optuna.study.StudyDirection.MINIMIZE
    study = optuna.create_study(storage=storage, study_name=name, direction=direction, load_if_exists=True)
    before = study.user_attrs.get("search")
    if before is None:
        if study.get_trials(deepcopy=False):
            raise InputError(f"study {name!r} was not begun by negsample tune; give another name with --study")
        study.set_user_attr("search", content)
    elif before != content:
        changed = [key for key in {**before, **content} if before.get(key) != content.get(key)]
        raise InputError(
            f"study {name!r} was begun with another configuration ({', '.join(changed)} differs); give that one, or "
            "another name with --study"
        )
    return study


@contextlib.contextmanager
def speaking_of(url: str) -> Iterator[None]:
    """Turn errors of the storage at ``url`` inside the block into InputErrors, in which no password stands."""
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (optuna.exceptions.StorageInternalError, SQLAlchemyError) as error:
        why = hide(str(error.__cause__ or error), url).splitlines()[0]
        raise InputError(f"--storage {safe_url(url)}: failed ({why}); start the command again to go on") from None


def _check_folder(path: str, url: str) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise InputError(f"--storage {url}: there is no folder {folder}; make it first")
    if os.path.isdir(path):
        raise InputError(f"--storage {url}: is a folder; name a file")

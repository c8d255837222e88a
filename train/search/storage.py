"""Optuna's storage by URL: a database, or a journal file for a shared file system. Passwords stay out of messages."""

import contextlib
import itertools
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study
from sqlalchemy import event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, OperationalError, SQLAlchemyError

from negsample.errors import InputError

_JOURNAL = "journal:"
_FORMS = "sqlite:///FILE, postgresql://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE or journal:FILE"
# The driver where there is none of those that SQLAlchemy takes by itself, and what to install where it is missing too.
_DRIVERS = {
    "postgresql": ("psycopg", "; pip install 'negsample[postgres]'"),
    "mysql": ("pymysql", "; pip install pymysql"),
}
# Workers that start at once may make the tables at once; all but one then fail, and find them a moment later.
_TRIES = 6
# Each so many seconds SQLite gives up waiting for another process, and is asked again.
_BUSY_SECONDS = 5
# A trial that takes its worker with it is given up after so many attempts.
_RETRIES = 3


def _parse(url: str) -> URL | None:
    try:
        return None if url.startswith(_JOURNAL) else make_url(url)
    except (ArgumentError, ValueError):
        return None


def safe_url(url: str) -> str:
    """Return ``url`` without its password and options, for messages and files."""
    if url.startswith((_JOURNAL, "sqlite:")):
        return url
    parsed = _parse(url)
    return f"{url.partition(':')[0]}:…" if parsed is None else parsed.set(query={}).render_as_string(hide_password=True)


def hide(text: str, url: str) -> str:
    """Return ``text`` with ``url`` made safe, and its password and options starred, wherever they stand in it."""
    text = text.replace(url, safe_url(url))
    if (parsed := _parse(url)) is not None:
        options = [value for key, value in parsed.query.items() if key in ("password", "passwd", "pwd")]
        for secret in filter(None, (parsed.password, *options)):
            text = text.replace(str(secret), "***")
    return text


def open_storage(url: str, alive: int = 15, silent: int = 180) -> BaseStorage:
    """Open the storage at ``url``, made where there is none yet (the database itself must exist).

    ``sqlite:///FILE`` serves the processes of one machine, ``postgresql://…`` and ``mysql://…`` several machines, and
    ``journal:FILE`` those that share a file system. In a database the worker of a trial shows every ``alive`` seconds
    that it lives, and the trial of one that has not for ``silent`` seconds is run again.

    Raises InputError, without the password, where it can't be opened.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    parsed, safe = _parse(url), safe_url(url)
    path = url.removeprefix(_JOURNAL) if url.startswith(_JOURNAL) else None
    if parsed is not None and parsed.get_backend_name() == "sqlite":
        path = parsed.database
        if not path or path == ":memory:":
            raise InputError(f"--storage {safe}: in memory, so that no other worker finds it; give sqlite:///FILE")
    if path is not None and not (folder := Path(path).absolute().parent).is_dir():
        raise InputError(f"--storage {safe}: there is no folder {folder}; make it first")
    if parsed is not None:
        return _open_database(parsed, safe, alive, silent)
    if path is None:
        raise InputError(f"--storage {safe}: not a storage; give {_FORMS}")
    try:
        return JournalStorage(JournalFileBackend(path))
    except (OSError, ValueError) as error:
        raise InputError(f"{url}: not a journal that can be used ({error})") from None


def _open_database(url: URL, safe: str, alive: int, silent: int) -> BaseStorage:
    options: dict[str, Any] = {"pool_pre_ping": True}
    backend, advice = url.get_backend_name(), ""
    if backend == "sqlite":
        # Transactions are begun by _begin alone.
        options = {"connect_args": {"timeout": _BUSY_SECONDS, "isolation_level": None}}
        # What else may be wrong with the file is told below.
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(str(url.database), **options["connect_args"])) as connection,
        ):
            _begin(connection.execute, safe)
    elif url.drivername in _DRIVERS:
        driver, advice = _DRIVERS[backend]
        try:
            url.get_dialect().import_dbapi()
        except ImportError:
            url = url.set(drivername=f"{backend}+{driver}")
    full = url.render_as_string(hide_password=False)
    for number in range(_TRIES):
        try:
            storage = RDBStorage(
                full,
                engine_kwargs=options,
                heartbeat_interval=alive,
                grace_period=silent,
                heartbeat_stale_trial_callback=retry_callback(_RETRIES),
            )
            break
        except (ImportError, RuntimeError, SQLAlchemyError, optuna.exceptions.OptunaError) as error:
            if number == _TRIES - 1 or isinstance(error, ImportError | RuntimeError):
                why = hide(str(error.__cause__ or error), full).splitlines()[0]
                told = advice if isinstance(error, ImportError) else ""
                raise InputError(f"--storage {safe}: can't be opened: {why}{told}") from None
            time.sleep(0.3 * (number + 1))
    if backend == "sqlite":
        event.listen(storage.engine, "begin", lambda connection: _begin(connection.exec_driver_sql, safe))
    return storage


def retry_callback(most: int | None = None) -> RetryHeartbeatStaleTrialCallback:
    """Return what lets a copy of a trial wait that did not come to its end: at ``most`` so many one after another."""
    return RetryHeartbeatStaleTrialCallback(max_retry=most, inherit_intermediate_values=True)


def _begin(execute: Callable[[str], Any], storage: str) -> None:
    """Begin a transaction on SQLite that locks the database before it reads, waiting as long as another has it.

    Optuna takes a waiting trial by SELECT … FOR UPDATE and UPDATE. SQLite has no FOR UPDATE, and Python's driver begins
    a transaction only with the UPDATE, so that two workers might both see the trial waiting and both run it.
    """
    for number in itertools.count():
        try:
            execute("BEGIN IMMEDIATE")
            return
        except (sqlite3.OperationalError, OperationalError) as error:
            if "locked" not in str(error):
                raise
            if number % (60 // _BUSY_SECONDS) == 0:
                print(
                    f"{storage}: the database is locked by another process; waiting until it is free",
                    file=sys.stderr,
                    flush=True,
                )


def open_study(storage: BaseStorage, name: str, *, maximised: bool, content: Mapping[str, Any]) -> Study:
    """Open the study ``name``, made where there is none. ``content``: plain values that must be equal at every start.

    Raises InputError where a study of that name was begun with other content.
    """
    study = optuna.create_study(
        storage=storage, study_name=name, direction="maximize" if maximised else "minimize", load_if_exists=True
    )
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
    try:
        yield
    except (optuna.exceptions.StorageInternalError, SQLAlchemyError) as error:
        why = hide(str(error.__cause__ or error), url).splitlines()[0]
        raise InputError(f"--storage {safe_url(url)}: failed ({why}); start the command again to go on") from None

"""Optuna's storage by URL: a database, or a journal file for a shared file system. Passwords stay out of messages."""

import contextlib
import os
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from negsample.errors import InputError

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

_JOURNAL = "journal:"
_FORMS = "sqlite:///FILE, postgresql://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE or journal:FILE"
# Drivers by dialect, the one that SQLAlchemy takes by default first, and what to install where there is none.
_DRIVERS = {
    "postgresql": (("psycopg2", "psycopg"), "pip install 'negsample[postgres]'"),
    "mysql": (("MySQLdb", "pymysql"), "pip install pymysql"),
}
# Workers that start at once may make the tables at once; all but one then fail, and find them a moment later.
_TRIES = 6
_BUSY_SECONDS = 120


def safe_url(url: str) -> str:
    """``url`` without its password and options, for messages and files."""
    if url.startswith(_JOURNAL):
        return url
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        return url.partition(":")[0] + ":…"
    if parsed.get_backend_name() == "sqlite":
        return url
    return parsed.set(query={}).render_as_string(hide_password=True)


def hide(text: str, url: str) -> str:
    """``text`` with ``url`` made safe, and its password and options starred, wherever they stand in it."""
    if url.startswith(_JOURNAL):
        return text
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    text = text.replace(url, safe_url(url))
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        return text
    options = [value for key, value in parsed.query.items() if key in ("password", "passwd", "pwd")]
    for secret in (parsed.password, *options):
        if secret:
            text = text.replace(str(secret), "***")
    return text


def open_storage(url: str) -> "BaseStorage":
    """The storage at ``url``, made where there is none yet (the database itself must exist).

    ``sqlite:///FILE`` serves the processes of one machine, ``postgresql://…`` and ``mysql://…`` several machines, and
    ``journal:FILE`` those that share a file system. Raises InputError, without the password, where it can't be opened.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
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
    return _database(url)


def _database(url: str) -> "BaseStorage":
    import optuna
    from optuna.storages import RDBStorage
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError

    safe = safe_url(url)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise InputError(f"--storage {safe}: not a storage; give {_FORMS}") from None
    options: dict[str, Any] = {"pool_pre_ping": True}
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise InputError(f"--storage {safe}: in memory, so that no other worker finds it; give sqlite:///FILE")
        _check_folder(parsed.database, safe)
        options = {"connect_args": {"timeout": _BUSY_SECONDS}}
    elif backend in _DRIVERS and parsed.drivername == backend:
        modules, advice = _DRIVERS[backend]
        module = next((name for name in modules if find_spec(name)), None)
        if module is None:
            raise InputError(f"--storage {safe}: no driver for {backend}; {advice}")
        url = parsed.set(drivername=f"{backend}+{module.lower()}").render_as_string(hide_password=False)
    for number in range(_TRIES):
        try:
            storage = RDBStorage(url, engine_kwargs=options)
            break
        except (ImportError, RuntimeError, SQLAlchemyError, optuna.exceptions.OptunaError) as error:
            if number == _TRIES - 1 or isinstance(error, ImportError | RuntimeError):
                why = hide(hide(str(error.__cause__ or error), url), parsed.render_as_string(hide_password=False))
                raise InputError(f"--storage {safe}: can't be opened: {why.splitlines()[0]}") from None
            time.sleep(0.3 * (number + 1))
    if backend == "sqlite":
        _one_writer(storage.engine)
    return optuna.storages.get_storage(storage)


@contextlib.contextmanager
def speaking_of(url: str) -> Iterator[None]:
    """Errors of the storage at ``url`` inside the block become InputErrors, in which no password stands."""
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (optuna.exceptions.StorageInternalError, SQLAlchemyError) as error:
        why = hide(str(error.__cause__ or error), url).splitlines()[0]
        raise InputError(f"--storage {safe_url(url)}: failed ({why}); start the command again to go on") from None


def _one_writer(engine: Any) -> None:
    """Let each transaction on SQLite lock the database before it reads.

    Optuna takes a waiting trial by SELECT … FOR UPDATE and UPDATE. SQLite has no FOR UPDATE, and Python's driver begins
    a transaction only with the UPDATE, so that two workers might both see the trial waiting and both run it.
    """
    from sqlalchemy import event

    @event.listens_for(engine, "connect")
    def connect(connection: Any, record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    # Connections made before now know nothing of this.
    engine.dispose()


def _check_folder(path: str, url: str) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise InputError(f"--storage {url}: there is no folder {folder}; make it first")
    if os.path.isdir(path):
        raise InputError(f"--storage {url}: is a folder; name a file")

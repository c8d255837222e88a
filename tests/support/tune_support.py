"""A trainer that takes no time, workers in processes of their own, and a real PostgreSQL."""

import contextlib
import json
import multiprocessing
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from negsample.train.search import tune
from negsample.train.search.settings import read_search

SEARCH = """
train: {corpus: none, head: fc}
space:
  learning_rate: {low: 1.0e-5, high: 1.0e-1, log: true}
  batch_size: {choices: [8, 16, 32]}
objective: validation_loss
sampler: random
pruner: {name: median, n_startup_trials: 3}
"""
# A forked worker is there at once; a fresh one would import torch for seconds.
FORK = multiprocessing.get_context("fork")


class Stub:
    """A trainer: three epochs of ``seconds`` each; every start, epoch and end is a line of ``log``."""

    def __init__(self, log: Path, seconds: float = 0.02) -> None:
        self.log, self.seconds = log, seconds

    def __call__(self, config, folder, *, callbacks, **options):
        settings = [config.learning_rate, config.batch_size]
        folder.mkdir(parents=True, exist_ok=True)
        self.write("start", folder, settings)
        # Goes on from its own checkpoint, as train does.
        place = folder / "epoch"
        first = int(place.read_text()) if place.exists() else 0
        losses = [abs(config.learning_rate - 1e-3) + 1 / (epoch + 1) for epoch in range(3)]
        for epoch in range(first, 3):
            self.rest(epoch)
            callbacks.after_epoch(epoch, losses[epoch])
            place.write_text(str(epoch + 1))
            self.write(f"epoch {epoch}", folder, settings)
        self.write("end", folder, settings)
        return {"epochs": [{"validation_loss": loss} for loss in losses], "seconds": 0.1}

    def rest(self, epoch):
        time.sleep(self.seconds)

    def write(self, event, folder, settings):
        line = json.dumps({"event": event, "folder": folder.name, "pid": os.getpid(), "settings": settings})
        with open(self.log, "a", encoding="utf-8") as stream:
            stream.write(line + "\n")

    def lines(self, event=None):
        if not self.log.exists():
            return []
        found = [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]
        return [line for line in found if event in (None, line["event"])]


class Held(Stub):
    """One that never comes to the end of its last epoch."""

    def rest(self, epoch):
        if epoch == 2:
            signal.pause()


def start_worker(config, url, trials, out, stub, silent=600):
    """A worker in a process of its own, on study ``s``, whose silence of so many seconds means that it is dead."""

    def work():
        tune(read_search(config), "s", url, trials, out, trainer=stub, alive=1, silent=silent, say=lambda text: None)

    process = FORK.Process(target=work)
    process.start()
    return process


def wait_for(true):
    """Wait until ``true()``; an error where it does not come true, on the slowest machine."""
    end = time.monotonic() + 600
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def missing_postgres() -> str | None:
    """Why no PostgreSQL can be started here; None where one can."""
    for name in ("initdb", "pg_ctl"):
        if shutil.which(name) is None:
            return f"PostgreSQL's {name} is not on the path"
    if not find_spec("psycopg"):
        return "no driver for PostgreSQL; pip install 'negsample[postgres]'"
    if os.geteuid() == 0 and _unprivileged() is None:
        return "PostgreSQL refuses to run as root, and there is no user postgres or nobody"
    return None


class Server(str):
    """The URL of a server, with functions that ``start`` it and ``stop`` it in the middle of its work."""


def _unprivileged() -> str | None:
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    return None


@contextlib.contextmanager
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of its own with an empty database and a password; its URL. Root starts it as another user."""
    # Not below pytest's folder, which other users can't enter.
    folder = Path(tempfile.mkdtemp(prefix="negsample-pg-"))
    as_user = {}
    if os.geteuid() == 0:
        as_user = {"user": _unprivileged()}
        shutil.chown(folder, as_user["user"])
    password = secrets.token_hex(12)
    secret = folder / "password"
    secret.write_text(password)
    secret.chmod(0o644)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(*command, check=True):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, **as_user)
        assert done.returncode == 0 or not check, done.stderr + done.stdout

    data = str(folder / "data")
    run("initdb", "-D", data, "-U", "tuner", "--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    start = ("pg_ctl", "-D", data, "-l", str(folder / "log"), "-o", options, "-w", "start")
    stop = ("pg_ctl", "-D", data, "-m", "immediate", "stop")
    run(*start)
    server = Server(f"postgresql+psycopg://tuner:{password}@127.0.0.1:{port}/postgres")
    server.start, server.stop = partial(run, *start), partial(run, *stop)
    try:
        yield server
    finally:
        run(*stop, check=False)
        shutil.rmtree(folder, ignore_errors=True)

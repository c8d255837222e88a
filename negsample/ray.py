"""Scoring on Ray: files in, a folder of Parquet parts out, by actors on one machine or many.

Tasks read files into parts, actors score and write them; the driver holds names and counts alone. Not Ray Data: with its
readers a bad line costs the whole file, a part that is done twice gets two names, and how often one is tried has no limit.
"""

import contextlib
import logging
import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from negsample.errors import InputError
from negsample.io.files import atomic_json
from negsample.io.read import NoRecordsError
from negsample.io.run_record import Stopwatch, versions, work_folder
from negsample.scoring.files import CHUNK, Settings
from negsample.scoring.parts import (
    Part,
    Source,
    count_part,
    head_schema,
    output_schema,
    parts_of,
    score_part,
    sources_of,
)
from negsample.scoring.scorer import Scorer
from negsample.scoring.tally import Tally
from negsample.terminal import Bar

SUMMARY = "_SUMMARY.json"
# Times that a part is tried again after its actor has died: what kills every one must not do so for ever.
_RETRIES = 4
# Parts of a file that are read before somebody has time for them.
_AHEAD = 2


class Done(NamedTuple):
    """What a run found: a tally of each input, and why files could not be read to their end (with ``on_bad="skip"``)."""

    tallies: dict[str, Tally]
    unread: dict[str, str]
    signature: str


def score_on_ray(
    load: Callable[[], Scorer],
    inputs: Sequence[str],
    out: Path,
    settings: Settings,
    *,
    address: str | None = None,
    workers: int | None = None,
    size: int = CHUNK,
) -> Done:
    """Score the records of ``inputs`` (files, folders, what fsspec opens) into the folder ``out``.

    ``load`` makes the scorer, once in each actor. ``address`` is a running cluster's (``auto``: this machine's); without it
    one is started here and ended. ``workers``: actors, by default one a GPU, or a CPU where there is none. ``out`` gets a
    Parquet file for each ``size`` records of a file (``parts_of``), as ``negsample score`` writes a table, and
    ``_SUMMARY.json`` at the end. Begun again, a run does what is missing or has changed.

    Raises InputError for the first mistake that is met (bad records are passed over where settings say so, and files that
    are damaged are then read as far as they go and told in ``unread``), and where Ray fails.
    """
    watch = Stopwatch()
    found = {name: sources_of(name) for name in inputs}
    files = [source for own in found.values() for source in own]
    _refuse_overlaps(files, inputs, out)
    scorer = load()
    signature = scorer.signature
    arguments: dict[str, Any] = {"scorer": signature, "columns": [*scorer.columns], "inputs": [*inputs]}
    arguments |= {"settings": asdict(settings), "part": size}
    unread: dict[str, str] = {}
    done: dict[Source, list[Part]] = {source: [] for source in files}
    with work_folder(out, arguments, name="_ARGUMENTS.json", what="scoring", alone=True, kept=["*.parquet"]):
        (out / SUMMARY).unlink(missing_ok=True)
        try:
            with _cluster(address) as (make, room):
                schema = output_schema(_heads(files, settings, unread), scorer, settings)
                # The actors have their own.
                del scorer
                actors = [make.remote(load, out, schema, settings) for _ in range(min(workers or room, room))]
                with Bar("scoring") as bar:
                    for part in _scored(files, settings, size, out, actors, unread):
                        done[part.source].append(part)
                        bar.advance(part.stop - part.start)
        finally:
            # Of workers that have been killed.
            for path in out.glob(".negsample-*.part"):
                path.unlink()
        names = {part.file for own in done.values() for part in own}
        for path in out.glob("*.parquet"):
            if path.name not in names:  # of a file that has changed since
                path.unlink()
        whole, tallies = Tally(), {name: Tally() for name in inputs}
        for name, own in found.items():
            for source in own:
                for part in sorted(done[source], key=lambda part: part.start):
                    count_part(out / part.file, settings, whole, tallies[name])
        summary = {**_figures(whole), "inputs": {name: _figures(tally) for name, tally in tallies.items()}}
        summary |= {"unread": unread, "parts": len(names), "signature": signature}
        atomic_json(out / SUMMARY, summary | {"versions": versions(), "seconds": watch.seconds})
    return Done(tallies, unread, signature)


def _figures(tally: Tally) -> dict[str, Any]:
    counts: dict[str, Any] = {"without_score": dict(tally.bad), "cut": tally.cut}
    counts |= {"replaced": dict(tally.replaced), "removed": dict(tally.removed)}
    return {"n": tally.n, "mean": tally.mean, "interval": tally.interval, **counts}


def _refuse_overlaps(files: Sequence[Source], inputs: Sequence[str], out: Path) -> None:
    """Raises InputError where a file is given twice, or what is written lies among what is read."""
    twice = [name for name, count in Counter(source.name for source in files).items() if count > 1]
    if twice:
        raise InputError(f"{twice[0]}: is given twice; name each input once")
    local = (name for name in inputs if "://" not in name)
    within = next((name for name in local if out.resolve().is_relative_to(Path(name).resolve())), None)
    if within is not None:
        raise InputError(f"{out}: lies in {within}, which is an input; give another folder with -o")


@contextlib.contextmanager
def _cluster(address: str | None) -> Iterator[tuple[Any, int]]:
    """Hold a connection to Ray (one that this process has is used and left): the class of actors, and room for how many."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # What Ray's own processes log of a cluster that isn't there is told by the error.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    ray = _ray()
    ours = not ray.is_initialized()
    try:
        if ours:
            here = {"include_dashboard": False} if address is None else {}
            try:
                ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **here)
            except Exception as error:  # a plain one for a machine too busy to start it within half a minute
                raise InputError(f"Ray can't be {'reached' if address else 'started'}: {_last_line(error)}") from error
        room = ray.cluster_resources()
        each = {"num_gpus": 1} if room.get("GPU", 0) >= 1 else {"num_cpus": 1}
        make = ray.remote(**each, max_restarts=-1, max_task_retries=_RETRIES)(_Worker)
        yield make, max(1, int(room.get("GPU", 0) or room.get("CPU", 1)))
    except ray.exceptions.RayError as error:
        raise InputError(f"Ray failed: {_last_line(error)}; start the same command again to go on") from error
    finally:
        if ours:
            ray.shutdown()


def _ray() -> Any:
    """Ray, whose own types know less than it takes. Raises InputError where it is not installed."""
    try:
        return import_module("ray")
    except ImportError:
        raise InputError("--on ray: Ray is not installed; pip install 'negsample[ray]'") from None


def _last_line(error: Exception) -> str:
    """Of Ray's errors, the line that says what went wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__


def _head(source: Source, settings: Settings) -> Any:
    """Task: the columns of a file, or the error that says why there are none."""
    try:
        return head_schema(source, settings)
    except InputError as error:
        return error


def _read(source: Source, settings: Settings, size: int, out: Path) -> Iterator[Any]:
    """Task: the parts of a file, each with its records, without where it is done already; at last what is damaged."""
    try:
        for part, rows in parts_of(source, settings, size):
            yield part, [] if (out / part.file).exists() else rows
    except NoRecordsError:
        pass
    except InputError as error:
        yield source, error


class _Worker:
    """Actor: scores parts. A mistake in a user's data is an answer; raised, it would be Ray's trace."""

    def __init__(self, load: Callable[[], Scorer], out: Path, schema: Any, settings: Settings) -> None:
        self._load, self._out, self._schema, self._settings = load, out, schema, settings
        self._scorer: Scorer | None = None

    def work(self, read: tuple[Any, Any]) -> tuple[Any, InputError | None]:
        """Score what ``_read`` has read; (part or file, what was wrong)."""
        part, rows = read
        if isinstance(rows, InputError):
            return read
        try:
            # It may have been done by an actor that died before it could answer.
            if rows and not (self._out / part.file).exists():
                if self._scorer is None:
                    self._scorer = self._load()
                score_part(self._scorer, part, rows, self._out, self._schema, self._settings)
        except InputError as error:
            return part, error
        except Exception as error:  # of a model or a metric
            told = f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
            return part, InputError(f"{part.source.name}, records {part.start + 1} to {part.stop}: {told}")
        return part, None


def _heads(files: Sequence[Source], settings: Settings, unread: dict[str, str]) -> list[Any]:
    """The Arrow schemas of all files. Raises InputError."""
    ray = _ray()
    read = ray.remote(_head)
    found = ray.get([read.remote(source, settings) for source in files])
    schemas = []
    for source, head in zip(files, found, strict=True):
        if not isinstance(head, InputError):
            schemas.append(head)
        elif not isinstance(head, NoRecordsError):
            _tell(source, head, settings, unread)
    if not schemas:
        raise found[0]
    return schemas


def _tell(source: Source, error: InputError, settings: Settings, unread: dict[str, str]) -> None:
    if settings.on_bad != "skip":
        raise error
    unread[source.name] = str(error)


def _scored(
    files: Sequence[Source], settings: Settings, size: int, out: Path, actors: Sequence[Any], unread: dict[str, str]
) -> Iterator[Part]:
    """Have the files read, and their parts scored by ``actors``; each part when it is done. Raises InputError."""
    ray = _ray()
    read = ray.remote(num_cpus=0, num_returns="streaming", _generator_backpressure_num_objects=_AHEAD)(_read)
    waiting, idle = deque(files), list(actors)
    reading: list[Any] = []
    busy: dict[Any, Any] = {}
    while waiting or reading or busy:
        while waiting and len(reading) < len(actors):
            reading.append(read.remote(waiting.popleft(), settings, size, out))
        (ready,), _ = ray.wait([*busy, *(reading if idle else ())], num_returns=1, fetch_local=False)
        if ready in busy:
            idle.append(busy.pop(ready))
            found, error = ray.get(ready)
            if isinstance(found, Source):
                _tell(found, error, settings, unread)
            elif error is not None:
                raise error
            else:
                yield found
        elif (part := next(ready, None)) is None:
            reading.remove(ready)
        else:
            actor = idle.pop()
            busy[actor.work.remote(part)] = actor

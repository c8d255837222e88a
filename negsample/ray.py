"""Scoring on Ray: files in, a folder of Parquet parts out, by actors on one machine or many.

A part is the records ``start`` to ``stop`` of one file, and ends where a document ends. Its Parquet file, named after both,
appears whole, so that what is there is done. Tasks read files into parts, actors score and write them; the driver holds names
and counts alone. Not Ray Data: with its readers a bad line costs the whole file, a part that is done twice gets two names, and
how often one is tried has no limit.
"""

import contextlib
import json
import logging
import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from negsample.errors import InputError, RecordError, one_line
from negsample.io.files import atomic_json, has_known_ending, remove_parts
from negsample.io.read import NoRecordsError, Row, is_saved, read_rows
from negsample.io.run_record import Stopwatch, versions, work_folder
from negsample.io.write import open_writer, schema_of, told_schema
from negsample.records import told_document
from negsample.scoring.files import CHUNK, Settings, chunks, kept_fields, records_of, scored_chunks
from negsample.scoring.scorer import Columns, Scorer
from negsample.scoring.tally import Tally, look
from negsample.seeds import digest
from negsample.terminal import Bar

SUMMARY = "_SUMMARY.json"
# Times that a part is tried again after its actor has died: what kills every one must not do so for ever.
_RETRIES = 4
# Parts of a file that are read before somebody has time for them.
_AHEAD = 2
# Records of a file by which it is told what its columns hold.
_HEAD = 1000
# A document with more summaries than this many parts' is cut.
_LONGEST = 4
# What a part counted, among the metadata of its file.
_COUNTS = b"negsample"
_COUNTED = ("cut", "bad", "replaced", "removed", "unread", "kinds", "domains", "unknown")


class Source(NamedTuple):
    """A file, as its name can be opened; ``key`` changes when the file does."""

    name: str
    key: str


class Part(NamedTuple):
    """Records ``start`` to ``stop`` of a file, counted from 0, ``stop`` left out."""

    source: Source
    start: int
    stop: int

    @property
    def file(self) -> str:
        """What its Parquet file is called."""
        stem = self.source.name.rstrip("/").rsplit("/", 1)[-1].split(".")[0][:60]
        return f"{stem}-{self.source.key}-{self.start:012d}-{self.stop:012d}.parquet"


def sources_of(name: str) -> list[Source]:
    """The files that an input means: itself, or those with a known ending in a folder and its folders, by name.

    A name with ``://`` is opened by fsspec. Names that begin with ``_`` or ``.`` are left out of a folder. Raises
    InputError where there is nothing.
    """
    import fsspec

    try:
        files, place = fsspec.core.url_to_fs(name)
        if not files.isdir(place) or is_saved(place):
            return [Source(name, digest(name, files.ukey(place), size=6).hex())]
        found = []
        for path in sorted(files.find(place)):
            inner = path[len(place.rstrip("/")) :].strip("/").split("/")
            if not any(part.startswith(("_", ".")) for part in inner) and has_known_ending(path):
                own = files.unstrip_protocol(path) if "://" in name else path
                found.append(Source(own, digest(own, files.ukey(path), size=6).hex()))
    except Exception as error:  # each file system has its own
        raise _unreadable(name, error) from error
    if not found:
        raise InputError(f"{name}: no file in this folder has a known ending (.parquet, .jsonl, .csv, …)")
    return found


def _unreadable(name: str, error: Exception) -> InputError:
    told = "no such file or folder" if isinstance(error, FileNotFoundError) else one_line(error)
    return InputError(f"{name}: can't be read ({told}); check the name")


def _rows(name: str) -> Iterator[Row]:
    """The records of a file; of a store's the records of a copy that goes again, told by the file's own name."""
    if "://" not in name:
        yield from read_rows(name)
        return
    import fsspec

    with TemporaryDirectory(prefix="negsample-") as folder:
        path = os.path.join(folder, name.rsplit("/", 1)[-1])
        try:
            files, place = fsspec.core.url_to_fs(name)
            files.get_file(place, path)
        except Exception as error:
            raise _unreadable(name, error) from error
        try:
            for row in read_rows(path):
                where, bad = row.where.replace(path, name, 1), row.error
                yield replace(row, where=where, error=bad and RecordError(where, bad.reason, bad.hint))
        except InputError as error:
            raise type(error)(str(error).replace(path, name)) from None


def parts_of(source: Source, settings: Settings, size: int) -> Iterator[tuple[Part, list[Row]]]:
    """The parts of a file: ``size`` records, and what else of their last document follows (up to four times as many).

    Raises InputError where the file can't be read (further), after the part that ends there.
    """
    start, rows, last = 0, list[Row](), None
    damage = None
    try:
        for row in _rows(source.name):
            document = told_document(row.fields, settings.document_field)
            if len(rows) >= size and (document != last or len(rows) >= _LONGEST * size):
                yield Part(source, start, start + len(rows)), rows
                start, rows = start + len(rows), []
            rows.append(row)
            last = document
    except InputError as error:
        damage = error
    if rows:
        yield Part(source, start, start + len(rows)), rows
    if damage is not None:
        raise damage


def head_schema(source: Source, settings: Settings) -> Any:
    """The Arrow schema of what is kept of a file's first thousand records, or the InputError that says why there is none."""
    try:
        _, rows = next(parts_of(source, settings, _HEAD))
        return schema_of(source.name, [kept_fields(row.fields, settings) for row in rows if row.error is None])
    except InputError as error:
        return error


def output_schema(schemas: Sequence[Any], scorer: Scorer, settings: Settings) -> Any:
    """The columns of every part: those of all files, then what scoring adds. Raises InputError where files disagree."""
    import pyarrow as pa

    try:
        kept = pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowException, ValueError) as error:
        told = one_line(error, 300)
        raise InputError(f"the files hold different things in one column ({told}); make them one type") from error
    own = {settings.called(name): pa.string() if name == "reason" else pa.float64() for name in scorer.columns}
    return told_schema(pa.schema([*(field for field in kept if field.name not in own), *own.items()]))


def score_part(scorer: Scorer, part: Part, rows: Sequence[Row], out: Path, schema: Any, settings: Settings) -> None:
    """Score the ``rows`` of a part into its file in the folder ``out``. Raises InputError for a bad record."""
    tally, records = Tally(), list[dict[str, Any]]()
    for chunk, columns in scored_chunks(scorer, chunks(rows), settings):
        tally.add(columns)
        look(chunk, columns.scores, scorer, settings, tally)
        records += records_of(chunk, columns, tally, settings, nested=False)
    counts = json.dumps({name: getattr(tally, name) for name in _COUNTED})
    with open_writer(out / part.file, schema=schema.with_metadata({_COUNTS: counts})) as writer:
        for record in records:
            writer.write(record)


def count_part(path: Path, settings: Settings, *tallies: Tally) -> None:
    """Add what the part in the file ``path`` has to ``tallies``."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        counts = json.loads(file.schema_arrow.metadata[_COUNTS])
        scores = file.read([settings.output_field]).column(0).drop_null().to_numpy()
    for tally in tallies:
        tally.add(Columns(scores, [None] * len(scores), np.zeros(len(scores), bool)))
        tally.cut += counts["cut"]
        for name in _COUNTED[1:]:
            getattr(tally, name).update(counts[name])


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
    import pyarrow.parquet as pq

    watch = Stopwatch()
    found = {name: sources_of(name) for name in inputs}
    files = [source for own in found.values() for source in own]
    twice = [name for name, count in Counter(source.name for source in files).items() if count > 1]
    if twice:
        raise InputError(f"{twice[0]}: is given twice; name each input once")
    local = (name for name in inputs if "://" not in name)
    within = next((name for name in local if out.resolve().is_relative_to(Path(name).resolve())), None)
    if within is not None:
        raise InputError(f"{out}: lies in {within}, which is an input; give another folder with -o")
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
                for path in out.glob("*.parquet"):
                    if pq.read_schema(path) != schema:  # of before a file with other columns came
                        path.unlink()
                # The actors have their own.
                del scorer
                actors = [make.remote(load, out, schema, settings) for _ in range(min(workers or room, room))]
                with Bar("scoring") as bar:
                    for part in _scored(files, settings, size, out, actors, unread):
                        done[part.source].append(part)
                        bar.advance(part.stop - part.start)
        finally:
            # Of workers that have been killed.
            remove_parts(out)
        names = {part.file for own in done.values() for part in own}
        for path in out.glob("*.parquet"):
            if path.name not in names:  # of a file that has changed since
                path.unlink()
        whole, tallies = Tally(), {name: Tally() for name in inputs}
        for name, own in found.items():
            for part in sorted(part for source in own for part in done[source]):
                count_part(out / part.file, settings, whole, tallies[name])
        summary = {**_figures(whole), "inputs": {name: _figures(tally) for name, tally in tallies.items()}}
        summary |= {"unread": unread, "parts": len(names), "signature": signature}
        atomic_json(out / SUMMARY, summary | {"versions": versions(), "seconds": watch.seconds})
    return Done(tallies, unread, signature)


def _figures(tally: Tally) -> dict[str, Any]:
    counts = {"without_score": tally.bad, "cut": tally.cut, "replaced": tally.replaced, "removed": tally.removed}
    return {"n": tally.n, "mean": tally.mean, "interval": tally.interval, **counts}


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
        self._load, self._out, self._schema, self._settings = cache(load), out, schema, settings

    def work(self, read: tuple[Any, Any]) -> tuple[Any, InputError | None]:
        """Score what ``_read`` has read; (part or file, what was wrong)."""
        part, rows = read
        if isinstance(rows, InputError):
            return read
        try:
            # It may have been done by an actor that died before it could answer.
            if rows and not (self._out / part.file).exists():
                score_part(self._load(), part, rows, self._out, self._schema, self._settings)
        except InputError as error:
            return part, error
        except Exception as error:  # of a model or a metric
            told = f"{type(error).__name__}: {one_line(error, 500)}"
            return part, InputError(f"{part.source.name}, records {part.start + 1} to {part.stop}: {told}")
        return part, None


def _heads(files: Sequence[Source], settings: Settings, unread: dict[str, str]) -> list[Any]:
    """The Arrow schemas of all files. Raises InputError."""
    ray = _ray()
    read = ray.remote(head_schema)
    found = ray.get([read.remote(source, settings) for source in files])
    for source, head in zip(files, found, strict=True):
        if isinstance(head, InputError) and not isinstance(head, NoRecordsError):
            _tell(source, head, settings, unread)
    if schemas := [head for head in found if not isinstance(head, InputError)]:
        return schemas
    raise found[0]


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

"""Inputs in parts, each scored and written once by whichever process: what ``negsample.ray`` hands out.

A part is the records ``start`` to ``stop`` of one file, and ends where a document ends. Its Parquet file, named after both,
appears whole, so that what is there is done.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from negsample.errors import InputError, RecordError
from negsample.io.files import has_known_ending
from negsample.io.read import Row, is_saved, read_rows
from negsample.io.write import open_writer, schema_of, told_schema
from negsample.records import told_document
from negsample.scoring.files import Settings, chunks, kept_fields, records_of, scored_chunks
from negsample.scoring.scorer import Columns, Scorer
from negsample.scoring.tally import Tally, look
from negsample.seeds import digest

# Records of a file by which it is told what its columns hold.
_HEAD = 1000
# A document with more summaries than this many parts' is cut.
_LONGEST = 4
# What a part counted, among the metadata of its file.
_COUNTS = b"negsample"
_COUNTED = ("cut", "bad", "replaced", "removed", "unread", "kinds")


@dataclass(frozen=True)
class Source:
    """A file, as its name can be opened; ``key`` changes when the file does."""

    name: str
    key: str


@dataclass(frozen=True)
class Part:
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
    try:
        files, place = _file_system(name)
        if not files.isdir(place) or is_saved(place):
            return [_source(name, files.ukey(place))]
        found = []
        for path in sorted(files.find(place)):
            inner = path[len(place.rstrip("/")) :].strip("/").split("/")
            if not any(part.startswith(("_", ".")) for part in inner) and has_known_ending(path):
                found.append(_source(files.unstrip_protocol(path) if "://" in name else path, files.ukey(path)))
    except Exception as error:  # each file system has its own
        raise _unreadable(name, error) from error
    if not found:
        raise InputError(f"{name}: no file in this folder has a known ending (.parquet, .jsonl, .csv, …)")
    return found


def _source(name: str, state: str) -> Source:
    return Source(name, digest(name, state, size=6).hex())


def _file_system(name: str) -> tuple[Any, str]:
    import fsspec

    files, place = fsspec.core.url_to_fs(name)
    return files, str(place)


def _unreadable(name: str, error: Exception) -> InputError:
    told = "no such file or folder" if isinstance(error, FileNotFoundError) else str(error) or type(error).__name__
    return InputError(f"{name}: can't be read ({' '.join(told.split())[:200]}); check the name")


def _rows(name: str) -> Iterator[Row]:
    """The records of a file; of a store's the records of a copy that goes again, told by the file's own name."""
    if "://" not in name:
        yield from read_rows(name)
        return
    with TemporaryDirectory(prefix="negsample-") as folder:
        path = os.path.join(folder, name.rsplit("/", 1)[-1])
        try:
            files, place = _file_system(name)
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
    """The Arrow schema of what is kept of a file's first thousand records. Raises InputError as ``parts_of`` does."""
    _, rows = next(parts_of(source, settings, _HEAD))
    return schema_of(source.name, [kept_fields(row.fields, settings) for row in rows if row.error is None])


def output_schema(schemas: Sequence[Any], scorer: Scorer, settings: Settings) -> Any:
    """The columns of every part: those of all files, then what scoring adds. Raises InputError where files disagree."""
    import pyarrow as pa

    try:
        kept = pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowException, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"the files hold different things in one column ({reason}); make them one type") from error
    own = {settings.called(name): pa.string() if name == "reason" else pa.float64() for name in scorer.columns}
    return told_schema(pa.schema([*(field for field in kept if field.name not in own), *own.items()]))


def score_part(scorer: Scorer, part: Part, rows: Sequence[Row], out: Path, schema: Any, settings: Settings) -> None:
    """Score the ``rows`` of a part into its file in the folder ``out``. Raises InputError for a bad record."""
    tally, records = Tally(), list[dict[str, Any]]()
    for chunk, columns in scored_chunks(scorer, chunks(rows), settings):
        tally.add(columns)
        look(chunk, scorer, settings, tally)
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

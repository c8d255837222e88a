"""P3's Tables 1 and 2 on one's own corpus: encoders × heads (× kinds of mutation), gone on with when cut short."""

import dataclasses
import json
import multiprocessing
import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.io.files import atomic_json
from negsample.io.run_record import Stopwatch
from negsample.io.work_folder import alone
from negsample.models.build import takes
from negsample.models.encoders import ENCODERS, make_encoder, parse_spec
from negsample.progress import silence
from negsample.registry import suggestion
from negsample.train.config import TrainConfig
from negsample.train.experiments.columns import Column, data_path, grid_examples, read_cell, run_column
from negsample.train.experiments.published import TABLE_1, TABLE_2, Published
from negsample.train.experiments.table_files import figure_of, table_of, write_table

# Run where none are named; the costliest first, so that two processes end at about the same time. Of the two over the
# packaged MiniLM, hf has the vectors before they are made unit length, and both live off one pass over the sentences.
OFFLINE = ("sentence-transformer", "glove", "use-multilingual", "hf:special=true,max_length=256", "glove:unit=sentence")
ROW_HEADS = ("fc", "cnn", "lstm")
# What has to be fetched first, and how it is then given.
DOWNLOADS = {
    "use": "google/universal-sentence-encoder/4 from tfhub.dev (P3's USE-DAN); then use:FOLDER",
    "use-large": "google/universal-sentence-encoder-large/5 from tfhub.dev (P3's USE-Trans); then use-large:FOLDER",
    "infersent": "InferSent's weights and its word vectors; then infersent:weights=FILE,vectors=FILE",
    "word2vec": "word vectors in word2vec's format; then word2vec:FILE",
}
_BERT = (
    "BERT-base or BERT-tiny; then --heads cls encoder=FOLDER (--heads cls alone runs the packaged MiniLM in its role)"
)
# Settings that the grid itself decides.
_OWN = ("head", "recipe", "log_examples")
# Finished cells (``Column.cell``): while there is one, a grid that failed is kept to be gone on with.
_CELLS = "cells/*/*/*/figures.json"


@dataclass(frozen=True)
class TableSpec:
    """One of the paper's tables: a row for each of ``recipes`` and each head; ``figure`` is what a cell holds.

    ``redraws`` is the setting's default here: cross pairing needs no new text, so that new pairs each epoch cost nothing
    to encode, and without them the heads learn the few pairs of a small corpus by heart.
    """

    name: str
    title: str
    recipes: tuple[str, ...]
    figure: str
    published: Published
    redraws: int = 1


TABLES = {
    "p3-table1": TableSpec("p3-table1", "Cross pairing: accuracy (%)", ("crosspair",), "accuracy", TABLE_1, 10),
    "p3-table2": TableSpec(
        "p3-table2", "Mutation: Pearson correlation × 100", ("add", "delete", "replace"), "pearson", TABLE_2
    ),
}


@dataclass(frozen=True)
class Missing:
    """An encoder that was not run, and why."""

    encoder: str
    reason: str

    @classmethod
    def download(cls, encoder: str, reason: str = "") -> "Missing":
        """One that has to be fetched first."""
        return cls(encoder, f"needs a download: {DOWNLOADS[encoder]}" + (f" ({reason})" if reason else ""))


def split_specs(words: Sequence[str]) -> list[str]:
    """Encoder specs from comma-separated lists; ``option=value`` after a comma belongs to the spec before it.

    ``["glove,hf:pool=max,layer=-2"]`` → ``["glove", "hf:pool=max,layer=-2"]``. Raises InputError for one given twice.
    """
    specs: list[str] = []
    for word in words:
        for number, piece in enumerate(part.strip() for part in word.split(",")):
            if not piece:
                continue
            if number and specs and "=" in piece and ":" not in piece.partition("=")[0]:
                specs[-1] += f",{piece}"
            else:
                specs.append(piece)
    return _distinct(specs, "encoder")


def run_table(
    table: str,
    config: TrainConfig,
    out: Path,
    *,
    encoders: Sequence[str] = (),
    heads: Sequence[str] = ROW_HEADS,
    jobs: int = 1,
    keep_models: bool = False,
    smoke: bool = False,
    command: list[str] | None = None,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Work out a table and write ``table.json``, ``table.csv``, ``table.md`` and ``run.json`` to ``out``.

    ``table`` is a name in ``TABLES``; ``encoders`` are specs, by default those that need no download; ``config`` holds
    every setting but head, encoder and recipe (``encoder`` is that of heads which do not take rows, such as ``cls``).
    With ``jobs`` processes, encoders are worked on side by side (an encoder or head registered at run time, not by an
    installed package, is then unknown to them). Returns the content of ``table.json``; ``say`` is told of each finished
    cell; ``smoke`` is written to ``run.json`` and changes nothing. A grid that was interrupted goes on in the same folder;
    finished cells lie in ``out/cells``.

    Raises InputError for unknown names, encoders that can't be loaded, a corpus that can't be read (where no cell is
    finished the folder is then left as it was found), or a folder begun with other arguments.
    """
    watch = Stopwatch()
    spec = _spec(table)
    if config.recipe != TrainConfig.recipe or config.head != TrainConfig.head:
        raise InputError(f"{table} sets recipe and head itself; leave them out (heads: --heads)")
    heads = _distinct(list(heads), "head")
    if not heads:
        raise InputError("no head; name at least one of fc, cnn, lstm, cls")
    kinds = {head: takes(head) for head in heads}
    if config.redraws > 1 and "align" in kinds.values():
        raise InputError("head align reads all negatives in every epoch; give negatives instead of redraws")
    asked = list(encoders) or list(OFFLINE)
    for name in asked:
        ENCODERS.get(parse_spec(name)[0])
    arguments = _arguments(spec, config, list(encoders), heads, keep_models)
    # A head that takes no rows has the encoder of the settings, and no other head has.
    told = config if set(kinds.values()) - {"rows"} else dataclasses.replace(config, encoder=None)
    with alone(out, arguments, "grid.json", "a table", makes=("cells", "work", "encoders.json"), kept=_CELLS):
        chosen, missing = _available(out, asked, explicit=bool(encoders), rows="rows" in kinds.values())
        if "cls" in kinds and config.encoder is not None:
            missing = [entry for entry in missing if entry.encoder != "bert"]
        columns = _columns(chosen, kinds, spec, config, out, keep_models)
        _run_columns(columns, spec, out, jobs, say)
        cells = [read_cell(column.cell(*key)) for column in columns for key in column.cells()]
        found = table_of(
            spec.title,
            spec.figure,
            spec.published,
            told,
            cells=[cell for cell in cells if cell is not None],
            missing=[dataclasses.asdict(entry) for entry in missing],
            data={recipe: json.loads(data_path(out, recipe).read_text("utf-8")) for recipe in spec.recipes},
        )
        found = {"table": table, **found}
        write_table(found, out, watch, arguments, {"command": command, "smoke": smoke})
        shutil.rmtree(out / "work", ignore_errors=True)
    return found


def _columns(
    encoders: Sequence[str],
    kinds: Mapping[str, str],
    spec: TableSpec,
    config: TrainConfig,
    out: Path,
    keep_models: bool,
) -> list[Column]:
    """A column for each encoder under the heads that take rows, and one for each other head; ``kinds``: what each takes."""
    over_rows = tuple(head for head, kind in kinds.items() if kind == "rows")
    columns = [Column(encoder, over_rows, spec.recipes, config, out, keep_models) for encoder in encoders]
    for head, kind in kinds.items():
        if kind != "rows":
            encoder = str(dataclasses.replace(config, head=head).resolved().encoder)
            columns.append(Column(encoder, (head,), spec.recipes, config, out, keep_models))
    return columns


def _spec(table: str) -> TableSpec:
    if table not in TABLES:
        raise InputError(f"no table is called {table!r}; {suggestion(table, sorted(TABLES))}")
    return TABLES[table]


def _distinct(names: list[str], kind: str) -> list[str]:
    for number, name in enumerate(names):
        if name in names[:number]:
            raise InputError(f"{kind} {name!r} is given twice; give it once")
    return names


def _arguments(
    spec: TableSpec, config: TrainConfig, encoders: list[str], heads: list[str], keep_models: bool
) -> dict[str, Any]:
    settings = {key: value for key, value in config.as_dict().items() if key not in _OWN}
    return {
        "table": spec.name,
        "encoders": encoders,
        "heads": heads,
        "keep_models": keep_models,
        **settings,
    }


def _available(out: Path, asked: Sequence[str], *, explicit: bool, rows: bool) -> tuple[list[str], list[Missing]]:
    """Which encoders can be run, each loaded once to see, and which not.

    An encoder that was asked for and can't be loaded is an error, unless all it lacks is a download. What was found
    when the grid was begun is kept, so that going on neither loads anything twice nor changes the columns.
    """
    path = out / "encoders.json"
    if path.is_file():
        kept = json.loads(path.read_text(encoding="utf-8"))
        return kept["run"], [Missing(**entry) for entry in kept["missing"]]
    chosen, missing = [], []
    for spec in asked if rows else ():
        try:
            make_encoder(spec)
            chosen.append(spec)
        except InputError as error:
            if spec in DOWNLOADS:
                missing.append(Missing.download(spec, str(error)))
            elif explicit:
                raise
            else:
                missing.append(Missing(spec, f"needs a download: {error}"))
    named = {parse_spec(spec)[0] for spec in asked}
    missing += [Missing.download(name) for name in DOWNLOADS if name not in named]
    missing.append(Missing("bert", f"needs a download: {_BERT}"))
    if rows and not chosen:
        raise InputError(
            f"none of the encoders can be run: {'; '.join(f'{entry.encoder} {entry.reason}' for entry in missing)}"
        )
    atomic_json(path, {"run": chosen, "missing": [dataclasses.asdict(entry) for entry in missing]})
    return chosen, missing


def _run_columns(columns: list[Column], spec: TableSpec, out: Path, jobs: int, say: Callable[[str], None]) -> None:
    paths = [column.cell(*key) for column in columns for key in column.cells()]
    told = {path for path in paths if read_cell(path) is not None}
    if told:
        say(f"{len(told)} of {len(paths)} cells are finished already")
    waiting = [column for column in columns if any(column.cell(*key) not in told for key in column.cells())]
    if waiting:
        for recipe in spec.recipes:
            grid_examples(waiting[0].base, recipe, out)

    def report() -> None:
        for path in paths:
            if path not in told and (found := read_cell(path)) is not None:
                told.add(path)
                say(f"{len(told)}/{len(paths)} {_line(found, spec.figure)}")

    if jobs <= 1 or len(waiting) <= 1:
        for column in waiting:
            run_column(column, report)
        return
    jobs = min(jobs, len(waiting))
    # A fresh interpreter each: a process forked after torch has started its threads may hang.
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(max(1, (os.cpu_count() or 1) // jobs),),
    )
    try:
        running = {pool.submit(_column_in_worker, column) for column in waiting}
        while running:
            ended, running = wait(running, timeout=1, return_when=FIRST_COMPLETED)
            report()
            for future in ended:
                if (message := future.result()) is not None:
                    raise InputError(message)
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _line(found: Mapping[str, Any], name: str) -> str:
    figure = figure_of(found, name)
    value = "not defined" if figure["value"] is None else f"{100 * figure['value']:.1f}"
    return (
        f"{found['recipe']}, {found['encoder']}, {found['head']}: {value} "
        f"(n = {figure['n']}; {len(found['epochs'])} epochs, {found['seconds']:.0f} s)"
    )


def _start_worker(threads: int) -> None:
    """Settle a worker: its share of the cores, no bars, and no life after the process that started it."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import torch

    torch.set_num_threads(threads)
    silence()
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _column_in_worker(column: Column) -> str | None:
    """Run a column; what the user has to be told, where it fails for a reason of theirs."""
    try:
        run_column(column)
    except InputError as error:
        return str(error)
    return None

"""Tables 1 and 2 of Bao et al. 2021 on one's own corpus: a grid of encoders × heads (× kinds of mutation)."""

import dataclasses
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.io.files import atomic_json
from negsample.io.resume import waiting, work_folder
from negsample.io.run_record import Stopwatch
from negsample.models.build import Parts, takes
from negsample.models.encoders import make_encoder, parse_spec
from negsample.negatives.recipe import parse_recipe
from negsample.papers.grid import Grid, file_name, read_splits, run_cells, write_outputs
from negsample.papers.tables_report import CSV_COLUMNS, TABLES, csv_rows, figure_of, markdown, table_of
from negsample.registry import distinct
from negsample.settings import convert, read_file, read_words
from negsample.train.config import TrainConfig, make_config
from negsample.train.data import SPLITS, make_examples
from negsample.train.job import fit_and_test, loss_of, make_accelerator, parts_of, save_model

# Run where none are named; the costliest first, so that two processes end at about the same time. Of the two over the
# packaged MiniLM, hf has the vectors before they are made unit length, and both live off one pass over the sentences.
OFFLINE = ("sentence-transformer", "glove", "use-multilingual", "hf:special=true,max_length=256", "glove:unit=sentence")
ROW_HEADS = ("fc", "cnn", "lstm")
# What has to be fetched first, and how it is then given.
DOWNLOADS = {
    "use": "google/universal-sentence-encoder/4 from tfhub.dev (USE-DAN of Bao et al. 2021); then use:FOLDER",
    "use-large": "google/universal-sentence-encoder-large/5 from tfhub.dev (USE-Trans of Bao et al. 2021); then use-large:FOLDER",
    "infersent": "InferSent's weights and its word vectors; then infersent:weights=FILE,vectors=FILE",
    "word2vec": "word vectors in word2vec's format; then word2vec:FILE",
    "bert": (
        "BERT-base or BERT-tiny; then --heads cls encoder=FOLDER (--heads cls alone runs the packaged MiniLM in its role)"
    ),
}


# Words that have an option of their own, or that the table decides.
_REFUSED = {key: f"give it as --{key}, or leave it out" for key in ("corpus", "limit", "seed", "encoders", "heads")} | {
    "head": "leave it out; heads are given by --heads",
    "recipe": "leave it out; the table has its own",
}


@dataclass(frozen=True)
class TableConfig:
    """Arguments of ``run_table``: ``encoders`` are specs (none: all that need no download), ``heads`` names."""

    settings: TrainConfig
    encoders: tuple[str, ...] = ()
    heads: tuple[str, ...] = ROW_HEADS


def read_table(
    table: str,
    path: str | Path | None,
    words: Sequence[str] = (),
    *,
    corpus: Sequence[str] = (),
    encoders: Sequence[str] = (),
    heads: str | None = None,
    limit: int | None = None,
    seed: int | None = None,
) -> TableConfig:
    """Return what the YAML file ``path`` (or nothing), the ``key=value`` words and the options say, the later winning.

    The file has the fields of ``TrainConfig`` and may have ``encoders`` and ``heads`` (lists) and ``table``, the name of
    the table that it is for; without a file, texts are cut as in the paper (``min_summary`` 1). ``encoders`` and ``heads``
    are lists with commas. Raises InputError for what ``read_config`` refuses, another table's file, and a word that is no
    setting here.
    """
    given = read_words(words)
    for key, advice in _REFUSED.items():
        if key in given:
            raise InputError(f"{key}=…: {advice}")
    values: dict[str, Any] = {} if path is None else read_file(path)
    where = "key=value" if path is None else str(path)
    if (meant := values.pop("table", table)) != table:
        raise InputError(f"{where}: is for table {meant!r}, not {table!r}; run negsample tables {meant}")
    own = {
        key: convert(values.pop(key), list[str], f"{where}: {key}") for key in ("encoders", "heads") if key in values
    }
    make_config(values, where)
    chosen = own.get("heads", ROW_HEADS)
    if heads is not None:
        chosen = [name.strip() for name in heads.split(",") if name.strip()]
    kinds = {takes(head) for head in chosen}
    if path is None and "tokens" in kinds:
        values["min_summary"] = 1
    # A file may hold it for a head that is not asked for this time.
    if "encoder" in given and kinds <= {"rows"}:
        raise InputError(f"encoder={given['encoder']}: encoder= is for cls; name the rows' encoders with --encoders")
    values |= {key: value for key, value in (("seed", seed), ("limit", limit)) if value is not None} | given
    if corpus:
        values["corpus"] = list(corpus) if len(corpus) > 1 else corpus[0]
    settings = make_config(values, f"{where} with {' '.join(words)}" if words and path else where)
    return TableConfig(settings, tuple(split_specs(encoders or own.get("encoders", []))), tuple(chosen))


@dataclass(frozen=True)
class TableCell:
    """A head over an encoder, trained by a recipe. ``corpus`` names the corpus where a table has several, ``model`` the
    encoder where its spec doesn't."""

    recipe: str
    config: TrainConfig
    corpus: str = ""
    model: str = ""
    base: None = None

    @property
    def data(self) -> Path:
        """The folder of what its examples were made of, below that of all cells."""
        return Path(self.corpus, self.recipe)

    @property
    def folder(self) -> Path:
        """Its folder, below that of all cells."""
        return self.data / (self.model or file_name(str(self.config.encoder))) / self.config.head

    def __str__(self) -> str:
        return ", ".join(
            filter(None, (self.corpus, self.recipe, self.model or str(self.config.encoder), self.config.head))
        )


def table_cells(name: str, settings: TrainConfig, encoders: Sequence[str], heads: Sequence[str]) -> list[TableCell]:
    """Return the cells of a table: each encoder under the heads that take rows, then each other head over its own encoder.

    ``settings`` hold everything but head, encoder and recipe.
    """
    rows = [head for head in heads if takes(head) == "rows"]
    columns = [[dataclasses.replace(settings, head=head, encoder=encoder) for head in rows] for encoder in encoders]
    columns += [[dataclasses.replace(settings, head=head)] for head in heads if head not in rows]
    return [
        TableCell(recipe, dataclasses.replace(own.resolved(), recipe=dict(parse_recipe(recipe).weights)))
        for column in columns
        for recipe in TABLES[name].recipes
        for own in column
    ]


class Table(Grid[TableCell]):
    """Cells of which all with the same ``data`` learn from the same examples; models are kept where ``keep`` says so."""

    def __init__(self, out: Path, cells: Sequence[TableCell], keep: bool) -> None:
        self.keep_models = keep
        super().__init__(out, cells)

    def line(self, cell: TableCell, found: Mapping[str, Any]) -> str:
        """Say what came of a cell."""
        figure = figure_of(found, "pearson" if parse_recipe(cell.recipe).graded else "accuracy")
        value = "not defined" if figure["value"] is None else f"{100 * figure['value']:.1f}"
        return f"{cell}: {value} (n = {figure['n']}; {len(found['epochs'])} epochs, {found['seconds']:.0f} s)"

    def data(self, data: str | Path) -> dict[str, Any]:
        """Return what the examples of the cells with this ``data`` were made of."""
        return json.loads((self.out / "cells" / data / "data.json").read_text("utf-8"))

    def make_examples(self) -> None:
        """Make the examples of every cell, unless an earlier start has, or all cells are finished.

        Raises InputError where the corpus is no longer what finished cells were trained on.
        """
        if all(self.read(cell) for cell in self.cells):
            return
        for cell in {cell.data: cell for cell in self.cells}.values():
            self._examples(cell)

    def _examples(self, cell: TableCell) -> Path:
        """Return the folder of the examples of ``cell``, made unless they are there."""
        folder, about = self.out / "work" / "examples" / cell.data, self.out / "cells" / cell.data / "data.json"
        with waiting(folder.with_name(f"{folder.name}.lock"), f"examples of {cell}"):
            if about.is_file() and all((folder / f"{name}.jsonl.gz").is_file() for name in SPLITS):
                return folder
            made = make_examples(cell.config, parse_recipe(cell.recipe), folder)
            if about.is_file() and self.data(cell.data)["fingerprint"] != made["fingerprint"]:
                raise InputError(
                    f"{self.out}: the corpus has changed since the grid was begun; give another folder with --out"
                )
            about.parent.mkdir(parents=True, exist_ok=True)
            atomic_json(about, made)
        return folder

    def _store(self, cell: TableCell) -> Path:
        """Return the folder for what the features of a cell read: the same for all that read alike."""
        encoder = file_name(str(cell.config.encoder))
        return self.out / "work" / "stores" / cell.data / encoder / takes(cell.config.head)

    def train(self, cell: TableCell, parts: Parts, work: Path, watch: Stopwatch) -> dict[str, Any]:
        """Train and test a cell; return the content of its ``figures.json``."""
        config, recipe, store = cell.config, parse_recipe(cell.recipe), self._store(cell)
        examples = self._examples(cell)
        with waiting(store / "lock"):
            splits = read_splits(examples, store, parts, SPLITS)
        loss = loss_of(config, recipe)
        found = {
            "recipe": cell.recipe,
            "encoder": config.encoder,
            "head": config.head,
            "encoder_fingerprint": parts.encoder.get("fingerprint"),
            "loss": loss,
            **fit_and_test(make_accelerator(config), config, loss, parts, splits, work, say=lambda line: None),
            "training": config.as_dict(),
            "seconds": watch.seconds,
        }
        if self.keep_models:
            save_model(parts, self.place(cell) / "model", config, recipe, loss, self.data(cell.data), found)
        others = [other for other in self.cells if other != cell and self._store(other) == store]
        if all(self.read(other) for other in others):
            shutil.rmtree(store, ignore_errors=True)
        return found


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
    ``jobs`` and ``say`` as in ``run_cells``; ``smoke`` is written to ``run.json`` and changes nothing. Returns the content
    of ``table.json``. A table that was interrupted goes on in the same folder; finished cells lie in ``out/cells``.

    Raises InputError for unknown names, encoders that can't be loaded, a corpus that can't be read (a folder that this
    call has begun is then left as it was found), a folder begun with other arguments, and as ``run_cells`` does.
    """
    watch = Stopwatch()
    if config.recipe != TrainConfig.recipe or config.head != TrainConfig.head:
        raise InputError(f"{table} sets recipe and head itself; leave them out (heads: --heads)")
    if not heads:
        raise InputError("no head; name at least one of fc, cnn, lstm, cls")
    kinds = {head: takes(head) for head in distinct(list(heads), "head")}
    for head in heads:
        make_config({**config.as_dict(), "head": head}, table)
    settings = {key: value for key, value in config.as_dict().items() if key not in ("head", "recipe", "log_examples")}
    asked = {"table": table, "encoders": list(encoders), "heads": list(heads), "keep_models": keep_models}
    arguments = asked | settings
    makes = ["cells", "work", "encoders.json"]
    with work_folder(out, arguments, name="grid.json", what="a table", alone=False, makes=makes):
        chosen, not_run = _available(out, config, encoders, kinds)
        grid = Table(out, table_cells(table, config, chosen, heads), keep_models)
        grid.make_examples()
    cells = [found for _, found in run_cells(grid, jobs=jobs, say=say)]
    if "cls" in kinds and config.encoder is not None:
        not_run = [entry for entry in not_run if entry["encoder"] != "bert"]
    # A head that takes no rows has the encoder of the settings, and no other head has.
    told = config if set(kinds.values()) - {"rows"} else dataclasses.replace(config, encoder=None)
    found = table_of(table, told, cells, not_run, {recipe: grid.data(recipe) for recipe in TABLES[table].recipes})
    write_outputs(
        out,
        "table",
        found,
        rows=csv_rows(found),
        columns=CSV_COLUMNS,
        text=markdown(found),
        watch=watch,
        cells=cells,
        command=command,
        smoke=smoke,
        config=arguments,
        seed=config.seed,
        data=found["data"],
    )
    return found


def split_specs(words: Sequence[str]) -> list[str]:
    """Return the encoder specs in comma-separated lists; ``option=value`` after a comma belongs to the spec before it.

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
    return distinct(specs, "encoder")


def _available(
    out: Path, config: TrainConfig, encoders: Sequence[str], kinds: Mapping[str, str]
) -> tuple[list[str], list[dict[str, str]]]:
    """Return which encoders can be run, and which not (encoder, reason); see that all heads can be trained.

    Each encoder is loaded once to see; one that was asked for and can't be is an error, unless all it lacks is a download.
    What was found when the table was begun is kept, so that going on neither loads anything twice nor changes the columns.
    """
    path = out / "encoders.json"
    if path.is_file():
        kept = json.loads(path.read_text(encoding="utf-8"))
        return kept["run"], kept["missing"]
    asked = encoders or OFFLINE if "rows" in kinds.values() else ()
    chosen, not_run = [], []
    for spec in asked:
        try:
            make_encoder(spec)
            chosen.append(spec)
        except InputError as error:
            if spec not in DOWNLOADS and encoders:
                raise
            reason = f"{DOWNLOADS[spec]} ({error})" if spec in DOWNLOADS else str(error)
            not_run.append({"encoder": spec, "reason": f"needs a download: {reason}"})
    make_accelerator(config)
    for head, kind in kinds.items():
        own = dataclasses.replace(config, head=head).resolved()
        loss_of(own, parse_recipe("crosspair"))
        if kind != "rows":
            parts_of(own)
    named = {parse_spec(spec)[0] for spec in encoders or OFFLINE}
    not_run += [
        {"encoder": name, "reason": f"needs a download: {what}"}
        for name, what in DOWNLOADS.items()
        if name not in named
    ]
    if asked and not chosen:
        reasons = "; ".join(f"{entry['encoder']} {entry['reason']}" for entry in not_run)
        raise InputError(f"none of the encoders can be run: {reasons}")
    atomic_json(path, {"run": chosen, "missing": not_run})
    return chosen, not_run

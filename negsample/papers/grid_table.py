"""Tables 1 and 2 of Bao et al. 2021 on one's own corpus: a grid of encoders × heads (× kinds of mutation)."""

import dataclasses
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from negsample.corpora.pairs import describe_part
from negsample.errors import InputError
from negsample.io.files import atomic_json
from negsample.io.resume import waiting, work_folder
from negsample.io.run_record import Stopwatch
from negsample.models.build import Parts, takes
from negsample.models.encoders import make_encoder
from negsample.negatives.recipe import parse_recipe
from negsample.papers import stand_ins
from negsample.papers.declared import Declared
from negsample.papers.grid import Grid, file_name, read_splits, run_cells
from negsample.papers.judged import Asked
from negsample.papers.records import Record, Table, write
from negsample.registry import distinct
from negsample.settings import read_settings, read_words
from negsample.train.config import TrainConfig
from negsample.train.data import SPLITS, make_examples
from negsample.train.fit.loop import SILENT
from negsample.train.job import fit_and_test, loss_of, make_accelerator, parts_of, save_model

# Run where none are named; the costliest first, so that two processes end at about the same time. Of the two over the
# packaged MiniLM, hf has the vectors before they are made unit length, and both live off one pass over the sentences.
OFFLINE = (
    "sentence-transformer",
    "glove",
    "use-multilingual",
    "hf(special=true,max_length=256)",
    "glove(unit=sentence)",
)
ROW_HEADS = ("fc", "cnn", "lstm")


@dataclass(frozen=True)
class GridConfig(TrainConfig):
    """Settings of all cells of a grid but head, recipe, and encoder of rows.

    ``encoders``: specs of those of rows (none: all that need no download; ``encoder`` is that of heads that take no rows, such
    as ``cls``); ``heads``; ``table``: in a file, the name of the table that it is for.
    """

    encoders: tuple[str, ...] = ()
    heads: tuple[str, ...] = ROW_HEADS
    table: str = ""

    def check(self) -> None:
        if (self.head, self.recipe) != (TrainConfig.head, TrainConfig.recipe):
            raise InputError("head and recipe are the table's own; leave them out (heads=[…] names the heads)")
        if not self.heads:
            raise InputError("heads: name at least one of fc, cnn, lstm, cls")
        distinct(list(self.encoders), "encoders:")
        for head in distinct(list(self.heads), "heads:"):
            self.cell(head=head).check()

    def cell(self, **own: Any) -> TrainConfig:
        """The configuration of a training, with what is its ``own``."""
        names = [field.name for field in dataclasses.fields(TrainConfig)]
        return TrainConfig(**{**{name: getattr(self, name) for name in names}, **own})


def read_grid(table: str, path: str | None, words: Sequence[str] = (), seed: int | None = None) -> GridConfig:
    """Return the grid of the YAML file ``path`` (or the defaults) and of ``key=value`` words, the later winning.

    Without a file, texts are cut as in the paper (``min_summary`` 1). Raises InputError as ``read_settings``, and for another
    table's file.
    """
    given = read_words(words)
    grid = read_settings(GridConfig, path, [*words, *([] if seed is None else [f"seed={seed}"])], "tables")
    if grid.table not in ("", table):
        raise InputError(f"{path}: is for table {grid.table!r}, not {table!r}; run negsample tables {grid.table}")
    rows_alone = {takes(head) for head in grid.heads} <= {"rows"}
    # A file may hold it for a head that is not asked for this time.
    if "encoder" in given and rows_alone:
        raise InputError(f"encoder={given['encoder']}: encoder= is for cls; name the rows' encoders with encoders=[…]")
    if path is None and "cls" in grid.heads and "min_summary" not in given:
        grid = dataclasses.replace(grid, min_summary=1)
    return dataclasses.replace(grid, table=table)


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


def grid_cells(recipes: Sequence[str], grid: GridConfig, encoders: Sequence[str]) -> list[TableCell]:
    """Return the cells of a table: each encoder under the heads that take rows, then each other head over its own encoder."""
    rows = [head for head in grid.heads if takes(head) == "rows"]
    columns = [[grid.cell(head=head, encoder=encoder) for head in rows] for encoder in encoders]
    columns += [[grid.cell(head=head)] for head in grid.heads if head not in rows]
    return [
        TableCell(recipe, dataclasses.replace(own.resolved(), recipe=dict(parse_recipe(recipe).weights)))
        for column in columns
        for recipe in recipes
        for own in column
    ]


class GridTable(Grid[TableCell]):
    """Cells of which all with the same ``data`` learn from the same examples; models are kept where ``keep`` says so."""

    def __init__(self, out: Path, cells: Sequence[TableCell], keep: bool) -> None:
        self.keep_models = keep
        super().__init__(out, cells)

    def line(self, cell: TableCell, found: Mapping[str, Any]) -> str:
        """Say what came of a cell."""
        figure = cell_record(found)
        value = "not defined" if figure.value is None else f"{figure.value:.1f}"
        return f"{cell}: {value} (n = {figure.n}; {len(found['epochs'])} epochs, {found['seconds']:.0f} s)"

    def data(self, data: str | Path) -> dict[str, Any]:
        """Return what the examples of the cells with this ``data`` were made of."""
        return json.loads((self.out / "cells" / data / "data.json").read_text("utf-8"))

    def make_examples(self) -> None:
        """Make the examples of every cell, unless an earlier start has.

        Raises InputError where the corpus is no longer what finished cells were trained on.
        """
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
            **fit_and_test(make_accelerator(config), config, loss, parts, splits, work, SILENT),
            "training": config.as_dict(),
            "seconds": watch.seconds,
        }
        if self.keep_models:
            save_model(parts, self.place(cell) / "model", config, recipe, loss, self.data(cell.data), found)
        others = [other for other in self.cells if other != cell and self._store(other) == store]
        if all(self.read(other) for other in others):
            shutil.rmtree(store, ignore_errors=True)
        return found


def cell_record(cell: Mapping[str, Any]) -> Record:
    """The record of a cell's ``figures.json``: accuracy in percent, or Pearson × 100 where labels are graded."""
    name = "pearson" if parse_recipe(cell["recipe"]).graded else "accuracy"
    found = cell["test"].get(name)
    if found is None:
        found = {"n": next(iter(cell["test"].values()))["n"], "reason": "no label lies between 0 and 1"}
    value, low, high = (None if (x := found.get(key)) is None else 100 * x for key in ("value", "low", "high"))
    about = {key: cell[key] for key in ("recipe", "head", "encoder", "seconds")}
    about |= {"figure": name, "epochs": len(cell["epochs"]), "cut": cell["cut"]["test"]["cut"]}
    row = f"{cell['recipe']} {cell['head']}"
    return Record(row, cell["encoder"], value, low, high, n=found["n"], reason=found["reason"] or "", about=about)


def run(spec: Declared, asked: Asked, out: Path, say: Callable[[str], None] = print) -> Table:
    """Work out a table and write it to ``out``: a row for each recipe and head, a column for each encoder.

    A table that was interrupted goes on in the same folder; finished cells lie in ``out/cells``. Raises InputError for what
    is asked wrongly, encoders that can't be loaded, a corpus that can't be read (a folder that this call has begun is then
    left as it was found), a folder begun with other arguments, and as ``run_cells`` does.
    """
    watch = Stopwatch()
    if not asked.config and not asked.smoke and not any(word.startswith("corpus=") for word in asked.words):
        raise InputError("nothing says what to train on; give --config FILE or corpus=PATH")
    grid = read_grid(spec.name, asked.config, asked.words, asked.seed)
    if asked.smoke:
        encoders = stand_ins.stand_in_encoders(grid.encoders, say)
        grid = dataclasses.replace(stand_ins.small_training(grid, say), encoders=encoders)
    own = {key: value for key, value in grid.as_dict().items() if key not in ("head", "recipe", "log_examples")}
    arguments = {**own, "keep_models": asked.keep_models}
    with work_folder(out, arguments, name="grid.json", what="a table", alone=False, makes=["cells", "work"]):
        encoders = grid.encoders or OFFLINE if "rows" in map(takes, grid.heads) else ()
        cells = GridTable(out, grid_cells(spec.recipes, grid, encoders), asked.keep_models)
        if not all(map(cells.read, cells.cells)):
            _check(grid, encoders)
            cells.make_examples()
    done = [found for _, found in run_cells(cells, say=say)]
    kept = ("pairs", "documents", "fingerprint", "skipped")
    data = {recipe: {key: cells.data(recipe)[key] for key in kept} for recipe in spec.recipes}
    about = f"{', '.join(grid.corpora())}{describe_part(own)}, {grid.negatives} negative(s) a pair; seed {grid.seed}."
    table = spec.table(
        [cell_record(cell) for cell in done],
        about=f"{about} Test split; 95 % intervals by bootstrap over documents.",
        head="recipe, head",
        digits=1,
        more={"data": data},
    )
    seconds = sum(cell["seconds"] for cell in done)
    facts = {"config": arguments, "seed": grid.seed, "data": data, "smoke": asked.smoke, "cell_seconds": seconds}
    write(table, out, watch, say=say, **facts)
    return table


def _check(grid: GridConfig, encoders: Sequence[str]) -> None:
    """Raise InputError for an encoder of rows that can't be had, a head that can't be trained, or a device that is not there."""
    for spec in encoders:
        try:
            make_encoder(spec)
        except InputError as error:
            raise InputError(f"{error} (encoders=[…] without {spec} leaves it out)") from error
    make_accelerator(grid)
    for head in grid.heads:
        own = grid.cell(head=head).resolved()
        loss_of(own, parse_recipe("crosspair"))
        if takes(head) != "rows":
            parts_of(own)

"""One column of a grid: an encoder under every head and recipe, encoded once, each finished cell kept."""

import dataclasses
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.io.files import atomic_json
from negsample.io.run_record import Stopwatch
from negsample.models.build import Parts, takes
from negsample.negatives.recipe import parse_recipe
from negsample.seeds import digest
from negsample.train.config import TrainConfig
from negsample.train.data.prepare import SPLITS, Split, open_split, prepare_split
from negsample.train.experiments.shared_parts import parts_maker
from negsample.train.fit.torch_state import own_state
from negsample.train.job import fit_and_test, loss_of, make_accelerator, make_examples, save_model


@dataclass(frozen=True)
class Column:
    """``encoder`` (a spec) under ``heads`` for each of ``recipes``; ``base`` has all other settings.

    The heads are some that take rows, or one that takes something else.

    ``out`` is the folder of the grid; models are kept in it where ``keep_models`` says so.
    """

    encoder: str
    heads: tuple[str, ...]
    recipes: tuple[str, ...]
    base: TrainConfig
    out: Path
    keep_models: bool = False

    def cells(self) -> Iterator[tuple[str, str]]:
        """(recipe, head) of each cell."""
        return ((recipe, head) for recipe in self.recipes for head in self.heads)

    def cell(self, recipe: str, head: str) -> Path:
        """Where the figures of a finished cell lie."""
        return self.out / "cells" / recipe / file_name(self.encoder) / head / "figures.json"


def file_name(spec: str) -> str:
    """``spec`` as the name of a folder: itself where it is simple, else with a hash of what was replaced."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", spec).strip(".-")
    return plain if plain == spec else f"{plain[:60]}-{digest(spec, size=4).hex()}"


def data_path(out: Path, recipe: str) -> Path:
    """Where it stands what the examples of ``recipe`` were made of."""
    return out / "cells" / recipe / "data.json"


def examples_path(out: Path, recipe: str) -> Path:
    """The folder of the examples of ``recipe``, while the grid is worked on."""
    return out / "work" / "examples" / recipe


def read_cell(path: Path) -> dict[str, Any] | None:
    """A cell's ``figures.json``, None where the cell is not finished. Raises InputError where the file is damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        found = None
    if not isinstance(found, dict) or "test" not in found:
        raise InputError(f"{path}: damaged; delete it, and the cell is worked out again")
    return found


def grid_examples(base: TrainConfig, recipe: str, out: Path) -> None:
    """Make the examples of ``recipe``, unless an earlier start has; every cell of the recipe reads the same ones.

    Raises InputError where the corpus is no longer what finished cells were trained on.
    """
    about, folder = data_path(out, recipe), examples_path(out, recipe)
    if about.is_file() and all((folder / f"{name}.jsonl.gz").is_file() for name in SPLITS):
        return
    data = make_examples(dataclasses.replace(base, recipe=recipe), parse_recipe(recipe), folder)
    if about.is_file():
        before = json.loads(about.read_text(encoding="utf-8"))["fingerprint"]
        if before != data["fingerprint"]:
            raise InputError(f"{out}: the corpus has changed since the grid was begun; give another folder with --out")
    about.parent.mkdir(parents=True, exist_ok=True)
    atomic_json(about, data)


def run_column(column: Column, report: Callable[[], None] = lambda: None) -> None:
    """Work out the cells of ``column`` that are not finished, calling ``report`` after each.

    The examples of its recipes must have been made.

    The encoder is loaded once; each recipe's texts are read once for all heads. Raises InputError where a cell cannot
    be trained, naming it, or where the encoder is not the one that finished cells were trained with.
    """
    finished = {key: read_cell(column.cell(*key)) for key in column.cells()}
    if all(finished.values()):
        return
    config = _config(column, column.heads[0])
    make = parts_maker(config)
    for recipe in column.recipes:
        if all(finished[recipe, head] for head in column.heads):
            continue
        shared = make(config)
        for head in column.heads:
            if (found := finished[recipe, head]) is None:
                _run_cell(column, recipe, dataclasses.replace(shared, head=head))
                report()
            elif found["encoder_fingerprint"] != shared.encoder.get("fingerprint"):
                raise InputError(
                    f"{column.out}: encoder {column.encoder} has changed since the grid was begun; "
                    "give another folder with --out"
                )
        shutil.rmtree(_stores(column, recipe), ignore_errors=True)


def _config(column: Column, head: str) -> TrainConfig:
    return dataclasses.replace(column.base, head=head, encoder=column.encoder).resolved()


def _stores(column: Column, recipe: str) -> Path:
    return column.out / "work" / "stores" / recipe / file_name(column.encoder) / takes(column.heads[0])


def _splits(column: Column, recipe: str, parts: Parts) -> dict[str, Split]:
    folder = _stores(column, recipe)
    for name in SPLITS:
        prepare_split(examples_path(column.out, recipe) / f"{name}.jsonl.gz", folder / name, parts.features)
    return {name: open_split(folder / name) for name in SPLITS}


def _run_cell(column: Column, recipe_name: str, parts: Parts) -> None:
    watch = Stopwatch()
    head, recipe = parts.head, parse_recipe(recipe_name)
    config = dataclasses.replace(_config(column, head), recipe=dict(recipe.weights))
    splits = _splits(column, recipe_name, parts)
    work = column.out / "work" / "cells" / recipe_name / file_name(column.encoder) / head
    work.mkdir(parents=True, exist_ok=True)
    loss = loss_of(config, recipe)
    try:
        with own_state():
            found = fit_and_test(make_accelerator(config), config, loss, parts, splits, work, say=lambda line: None)
    except InputError as error:
        raise InputError(f"{recipe_name}, {column.encoder}, {head}: {error}") from error
    found = {
        "recipe": recipe_name,
        "encoder": column.encoder,
        "head": head,
        "encoder_fingerprint": parts.encoder.get("fingerprint"),
        "loss": loss,
        **found,
        "training": config.as_dict(),
        "seconds": watch.seconds,
    }
    path = column.cell(recipe_name, head)
    path.parent.mkdir(parents=True, exist_ok=True)
    if column.keep_models:
        data = json.loads(data_path(column.out, recipe_name).read_text(encoding="utf-8"))
        save_model(parts, path.parent / "model", config, recipe, loss, data, found)
    atomic_json(path, found)
    shutil.rmtree(work, ignore_errors=True)

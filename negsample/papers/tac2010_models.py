"""The models of Tables 5 to 7 of Bao et al. 2021 (§5): four corpora × four recipes × two sizes of BERT."""

import dataclasses
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any

from negsample.corpora.hub import KNOWN
from negsample.errors import InputError
from negsample.io.resume import work_folder
from negsample.models.folder import read_description
from negsample.negatives.recipe import parse_recipe
from negsample.papers.grid import run_cells
from negsample.papers.grid_table import Table, TableCell
from negsample.papers.stand_ins import smoke
from negsample.registry import suggestion
from negsample.train.config import read_config
from negsample.train.data import find_corpora

CORPORA = ("cnn_dailymail", "billsum", "arxiv", "big_patent")
RECIPES = ("crosspair", "add", "delete", "replace")
BASE, TINY = "google-bert/bert-base-uncased", "google/bert_uncased_L-2_H-128_A-2"
_SIZES: dict[Any, str] = {(12, 768): "base", (2, 128): "tiny"}
# Corpus, recipe, size (or another encoder's name), and where the model is.
TrainedModel = tuple[str, str, str, Path]
# What the table decides, and how it is said.
_REFUSED = {"corpus": "--corpus", "recipe": "leave it out", "head": "leave it out", "encoder": "--base and --tiny"}


def tac2010_cells(
    words: Sequence[str] = (), *, corpora: Sequence[str] = CORPORA, base: str = BASE, tiny: str = TINY
) -> list[TableCell]:
    """Return the trainings of the packaged files ``p3_table5_tac2010_…``, with ``key=value`` ``words`` for all of them.

    ``corpora``: some of ``CORPORA``, each as ``NAME`` or ``NAME:DIR`` (a copy); ``base`` and ``tiny``: hub ids or folders.
    Raises InputError for another corpus, and for a word that the table decides itself.
    """
    for word in words:
        if (advice := _REFUSED.get(word.partition("=")[0])) is not None:
            raise InputError(f"{word}: the table has its own; {advice}")
    cells = []
    for corpus in corpora:
        name = corpus.partition(":")[0]
        if name not in CORPORA:
            raise InputError(f"--corpus {corpus}: {suggestion(name, list(CORPORA))}")
        settings = dataclasses.replace(read_config(f"p3_table5_tac2010_{name}", words), corpus=corpus)
        for recipe in RECIPES:
            for model, encoder in (("base", base), ("tiny", tiny)):
                own = dataclasses.replace(settings, encoder=encoder, recipe=dict(parse_recipe(recipe).weights))
                cells.append(TableCell(recipe, own.resolved(), name, model))
    return cells


def small_cells(cells: Sequence[TableCell], say: Callable[[str], None] = print) -> list[TableCell]:
    """Return a quarter of ``cells`` (two corpora, two recipes), made small by ``smoke``; ``say`` is told every change."""
    corpora, recipes = (
        list(dict.fromkeys(each))[:3:2] for each in zip(*((c.corpus, c.recipe) for c in cells), strict=True)
    )
    say(f"smoke run: of the corpora {', '.join(corpora)} alone, of the recipes {', '.join(recipes)}")
    kept = [cell for cell in cells if cell.corpus in corpora and cell.recipe in recipes]
    # Told once: all are made small alike.
    small = [smoke(cell.config, say if cell == kept[0] else lambda line: None) for cell in kept]
    return [dataclasses.replace(cell, config=config) for cell, config in zip(kept, small, strict=True)]


def train_models(
    cells: Sequence[TableCell], out: Path, asked: Mapping[str, Any], say: Callable[[str], None] = print
) -> list[TrainedModel]:
    """Train every cell that is not finished, with whatever other processes work on ``out``; return all.

    ``asked``: what a folder must have been begun with to be gone on with. Raises InputError for a folder begun otherwise, a
    corpus that is not there, and as ``run_cells`` does.
    """
    grid = Table(out, cells, keep=True)
    with work_folder(out, asked, name="grid.json", what="trainings", alone=False):
        # What is wrong with a corpus is told before anything is trained.
        for config in {cell.corpus: cell.config for cell in cells if grid.read(cell) is None}.values():
            find_corpora(config)
    run_cells(grid, say=say)
    shutil.rmtree(out / "work", ignore_errors=True)
    return [(cell.corpus, cell.recipe, cell.model, grid.place(cell) / "model") for cell in cells]


def find_models(pattern: str) -> list[TrainedModel]:
    """Return the model folders that ``pattern`` (with ``*`` or ``**``) matches, by what they were trained on.

    Raises InputError where there is none, or two of one corpus, recipe and encoder.
    """
    found: dict[tuple[str, str, str], Path] = {}
    for folder in sorted(path for text in glob(pattern, recursive=True) if (path := Path(text)).is_dir()):
        if not (folder / "config.json").is_file():
            continue
        about = read_description(folder)
        key = (_known_corpus(about), about["recipe"], _size(about, folder))
        if key in found:
            raise InputError(f"--models {pattern}: {folder} and {found[key]} are both {', '.join(key)}; leave one out")
        found[key] = folder
    if not found:
        raise InputError(f"--models {pattern}: no model folder (one with a config.json); give such as 'runs/*-*-base'")
    return [(*key, folder) for key, folder in found.items()]


def _known_corpus(about: Mapping[str, Any]) -> str:
    """The name in ``CORPORA`` of what a model was trained on, whatever it was read from; else what was said."""
    ids = {corpus.id: name for name, corpus in KNOWN.items()}
    given = (about.get("training") or {}).get("corpus", "unknown")
    names = [name.partition(":")[0] for name in ([given] if isinstance(given, str) else given)]
    return ", ".join(ids.get(name, name) for name in names)


def _size(about: Mapping[str, Any], folder: Path) -> str:
    """ "base" or "tiny" by layers and width (Bao et al. 2021 §4.2), else the encoder's name."""
    path = folder / "encoder" / "config.json"
    shape = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    name = str(about["encoder"].get("name"))
    return _SIZES.get((shape.get("num_hidden_layers"), shape.get("hidden_size")), name)

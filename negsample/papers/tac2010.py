"""Tables 5 to 7 of Bao et al. 2021 (§5): trained models and ROUGE against the human scores of TAC 2010.

The models are four corpora × four recipes × two sizes of BERT, trained here or given. Table 5 has a row for each. The
paper prints, of two sizes, the one that is better *on these very data*: here all are shown, and the one that has the
higher mean of the six pooled correlations is marked (the paper doesn't say by which figure it chose). Tables 6 and 7 have
the best of each corpus, chosen score by score, and ROUGE.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from negsample.corpora.hub import KNOWN
from negsample.errors import InputError
from negsample.eval.agreement.correlate import Source
from negsample.eval.agreement.figures import AgreementFigure, agreement
from negsample.eval.judgments import Unusable, load_judgments
from negsample.eval.judgments.tac2010 import nist_rouge
from negsample.io.resume import work_folder
from negsample.io.run_record import Stopwatch
from negsample.models import load
from negsample.models.folder import read_description
from negsample.negatives.recipe import parse_recipe
from negsample.papers import stand_ins
from negsample.papers.declared import Declared
from negsample.papers.grid import run_cells
from negsample.papers.grid_table import GridTable, TableCell
from negsample.papers.judged import Asked, Measured, measure
from negsample.papers.kinds import figure_record
from negsample.papers.records import Record, Table, write
from negsample.records import Judged
from negsample.registry import suggestion
from negsample.scoring.scorer import Scorer
from negsample.seeds import digest
from negsample.settings import read_words
from negsample.train.config import read_config
from negsample.train.data import find_corpora

CORPORA = ("cnn_dailymail", "billsum", "arxiv", "big_patent")
RECIPES = ("crosspair", "add", "delete", "replace")
_SIZES: dict[Any, str] = {(12, 768): "base", (2, 128): "tiny"}
# What the table decides, and how it is said.
_REFUSED = {"recipe": "leave it out", "head": "leave it out", "encoder": "give --part base=… and --part tiny=…"}
# The three that the paper prints.
PRINTED = ("modified_pyramid", "linguistic_quality", "overall_responsiveness")
# What a row of ROUGE is called where it is not NIST's.
COMPUTED = " computed"


@dataclass(frozen=True)
class TacModel:
    """A model folder: corpus and recipe that it was trained on, ``size`` (``base``, ``tiny``, or an encoder's name)."""

    corpus: str
    recipe: str
    size: str
    folder: Path

    def __str__(self) -> str:
        return f"{self.corpus} {self.recipe}/{self.size}"


Nist = Mapping[tuple[str, str], Mapping[str, float]]
"""NIST's ROUGE: docset, summarizer → name → value."""


def load_tac2010(path: str) -> tuple[Source, Nist]:
    """Read the archive. Raises InputError, naming what was looked for, where it isn't laid out as the loader has it."""
    unusable = Unusable()
    rows, nist = load_judgments(f"tac2010:{path}", unusable), nist_rouge(path)
    missing = sum((row.document_id, row.system) not in nist for row in rows)
    told = unusable.lines()
    if not nist:
        told.append("no ROUGE/rouge_A.m.out in it, so NIST's ROUGE is not beside")
    elif missing:
        told.append(f"{missing} summaries have no line in rouge_A.m.out")
    return Source("tac2010", f"tac2010:{path}", tuple(rows), tuple(told)), nist


def run(spec: Declared, asked: Asked, out: Path, say: Callable[[str], None] = print) -> Table:
    """Train the models (or take ``--models``; ``none``: ROUGE alone), score, and write the table; the three share a folder.

    Raises InputError for what is asked wrongly, before anything is trained.
    """
    watch = Stopwatch()
    name, _, path = "".join(asked.data[:1]).partition(":")
    if not asked.smoke and (name != "tac2010" or len(asked.data) > 1):
        raise InputError("give --data tac2010:DIR, with TAC2010's documents and GuidedSumm2010_eval (from NIST)")
    if asked.models == "none" and not spec.rows:
        raise InputError("--models none: Table 5 has no ROUGE; run tables p3-table6 or p3-table7")
    if asked.models and (asked.words or asked.parts):
        raise InputError("settings and --part are for training; leave them out, or --models")
    models = find_models(asked.models) if asked.models not in (None, "none") else []
    source, nist = stand_ins.docsets(spec.human) if asked.smoke else load_tac2010(path)
    for line in source.missing:
        say(line)
    cells = tac2010_cells(asked.words, spec.parts) if asked.models is None else []
    cells = small_cells(cells, say) if asked.smoke else cells
    judged = digest(nist, *map(astuple, source.rows)).hex()
    with work_folder(out, {"data": judged}, name="judgments.json", what="tables of TAC 2010", alone=False):
        pass
    training = {"settings": list(asked.words), **spec.parts, "smoke": asked.smoke}
    if cells:
        models = train_models(cells, out / "models", training, say)
    measured = measure(spec, [source], asked, out, {str(model): partial(_scorer, model, asked) for model in models})
    table = tac2010_table(measured, models, nist_columns(spec, source.rows, nist))
    folders = [str(model.folder) for model in models]
    config = {**training, "precision": asked.precision, "bootstrap": asked.bootstrap, "models": folders}
    facts = {"config": config, "seed": measured.seed, "data": {"tac2010": judged}, "smoke": asked.smoke}
    write(table, out, watch, say=say, **facts)
    return table


# --- the models


def tac2010_cells(words: Sequence[str], parts: Mapping[str, str]) -> list[TableCell]:
    """Return the trainings of the packaged files ``p3_table5_tac2010_…``, with ``key=value`` ``words`` for all of them.

    ``corpus=``: some of ``CORPORA``, each as ``NAME`` or ``NAME:DIR`` (a copy); ``parts``: size → hub id or folder of BERT.
    Raises InputError for another corpus, and for a word that the table decides itself.
    """
    given = read_words(words)
    corpora = given.pop("corpus", None) or CORPORA
    for key, advice in _REFUSED.items():
        if key in given:
            raise InputError(f"{key}=…: the table has its own; {advice}")
    rest = [word for word in words if word.partition("=")[0].strip() != "corpus"]
    cells = []
    for corpus in [corpora] if isinstance(corpora, str) else corpora:
        name = corpus.partition(":")[0]
        if name not in CORPORA:
            raise InputError(f"corpus={corpus}: {suggestion(name, list(CORPORA))}")
        settings = replace(read_config(f"p3_table5_tac2010_{name}", rest), corpus=corpus)
        for recipe in RECIPES:
            for size, encoder in parts.items():
                own = replace(settings, encoder=encoder, recipe=dict(parse_recipe(recipe).weights))
                cells.append(TableCell(recipe, own.resolved(), name, size))
    return cells


def small_cells(cells: Sequence[TableCell], say: Callable[[str], None] = print) -> list[TableCell]:
    """Return a quarter of ``cells`` (two corpora, two recipes) on stand-ins; ``say`` is told every change."""
    corpora = list(dict.fromkeys(cell.corpus for cell in cells))[:3:2]
    recipes = RECIPES[:3:2]
    say(f"smoke run: of the corpora {', '.join(corpora)} alone, of the recipes {', '.join(recipes)}")
    small = [cell for cell in cells if cell.corpus in corpora and cell.recipe in recipes]
    tells = [say, *[lambda line: None] * len(small)]
    return [
        replace(cell, config=stand_ins.small_training(cell.config, tell))
        for cell, tell in zip(small, tells, strict=False)
    ]


def train_models(
    cells: Sequence[TableCell], out: Path, asked: Mapping[str, Any], say: Callable[[str], None] = print
) -> list[TacModel]:
    """Train every cell that is not finished, with whatever other processes work on ``out``; return all.

    ``asked``: what a folder must have been begun with to be gone on with. Raises InputError for a folder begun otherwise, a
    corpus that is not there, and as ``run_cells`` does.
    """
    grid = GridTable(out, cells, keep=True)
    with work_folder(out, asked, name="grid.json", what="trainings", alone=False):
        # What is wrong with a corpus is told before anything is trained.
        for config in {cell.corpus: cell.config for cell in cells if grid.read(cell) is None}.values():
            find_corpora(config)
    run_cells(grid, say=say)
    shutil.rmtree(out / "work", ignore_errors=True)
    return [TacModel(cell.corpus, cell.recipe, cell.model, grid.place(cell) / "model") for cell in cells]


def find_models(pattern: str) -> list[TacModel]:
    """Return the model folders that ``pattern`` (with ``*`` or ``**``) matches, by what they were trained on.

    Raises InputError where there is none, or two of one corpus, recipe and encoder.
    """
    found: dict[str, TacModel] = {}
    for folder in sorted(path for text in glob(pattern, recursive=True) if (path := Path(text)).is_dir()):
        if not (folder / "config.json").is_file():
            continue
        about = read_description(folder)
        model = TacModel(_known_corpus(about), about["recipe"], _size(about, folder), folder)
        if (before := found.setdefault(str(model), model)) is not model:
            raise InputError(f"--models {pattern}: {folder} and {before.folder} are both {model}; leave one out")
    if not found:
        raise InputError(f"--models {pattern}: no model folder (one with a config.json); give such as 'runs/*-*-base'")
    return list(found.values())


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


def _scorer(model: TacModel, asked: Asked) -> Scorer:
    return load(model.folder, precision=asked.precision).scorer(str(model))


# --- the table


def nist_columns(spec: Declared, rows: Sequence[Judged], nist: Nist) -> dict[str, np.ndarray]:
    """Return NIST's ROUGE, float [n], for each row of the table that is computed here too (``ROUGE-1 P``); nothing without it."""
    names = [label.removesuffix(COMPUTED) for label in spec.metrics()[0]] if nist else []
    found = [nist.get((row.document_id, row.system), {}) for row in rows]
    return {name: np.array([own.get(name, np.nan) for own in found]) for name in names}


def tac2010_table(measured: Measured, models: Sequence[TacModel], nist: Mapping[str, np.ndarray]) -> Table:
    """Return the table: rows as above, a section a level, a column for each coefficient and human score; intervals over docsets.

    A mean over a docset's articles stands for their sum (§5.0.1). ``models`` are among what was measured; ``nist``: its
    scores, float [n].
    """
    spec, (scored,) = measured.spec, measured.tables
    labels = [label for label in scored.metrics if label not in set(map(str, models))]
    rouge = [
        name for label in labels for name in (label.removesuffix(COMPUTED), label) if name in nist or name == label
    ]
    columns = {**scored.metrics, **nist}
    figures = agreement(
        replace(scored, metrics=columns),
        # The better models are chosen by both coefficients in all three tables.
        coefficients=("pearson", "spearman") if models else spec.coefficients,
        bootstrap=measured.bootstrap,
        seed=measured.seed,
    )
    of: dict[str, list[AgreementFigure]] = {}
    for figure in figures:
        of.setdefault(figure.metric, []).append(figure)
    chosen = _better({model: of[str(model)] for model in models})
    records: list[Record] = []
    for model in models if not spec.rows else ():
        about = {"corpus": model.corpus, "recipe": model.recipe, "model": model.size}
        mark = "*" if model in chosen else ""
        records += [_record(figure, mark=mark, about=about) for figure in of[str(model)]]
    best: dict[tuple[str, ...], Record] = {}
    for model in chosen if spec.rows else ():
        for record in (_record(f, row=f"best {model.corpus}", about={"model": str(model)}) for f in of[str(model)]):
            before = best.setdefault(record.place, record)
            if record.value is not None and (before.value is None or record.value > before.value):
                best[record.place] = record
    records += [*best.values(), *(_record(figure) for name in rouge for figure in of[name])]
    rows = measured.sources[0].rows
    counts = {"docsets": len({row.document_id for row in rows}), "systems": len({row.system for row in rows})}
    return measured.table(
        [record for record in records if record.about["coefficient"] in spec.coefficients],
        about=f"{len(rows)} summaries, {counts['docsets']} docsets, {counts['systems']} systems. 95 % intervals by bootstrap "
        "over docsets.",
        digits=4,
        more={"summaries": len(rows), **counts},
    )


def _record(figure: AgreementFigure, **own: Any) -> Record:
    column = f"{figure.coefficient}:{figure.human}"
    return figure_record(figure, figure.p, column=column, section=figure.level, **own)


def _better(models: Mapping[TacModel, Sequence[AgreementFigure]]) -> list[TacModel]:
    """The model of each corpus and recipe with the highest mean of the pooled correlations that are defined."""
    best: dict[tuple[str, str], tuple[float, TacModel]] = {}
    for model, figures in models.items():
        own = [figure.value for figure in figures if figure.level == "pooled" and figure.human in PRINTED]
        values = [value for value in own if value is not None]
        mean, key = float(np.mean(values)) if values else -2.0, (model.corpus, model.recipe)
        if key not in best or mean > best[key][0]:
            best[key] = mean, model
    return [model for _, model in best.values()]

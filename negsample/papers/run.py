"""``negsample tables``: what each kind of table takes, and the run of one, from its declaration to its files.

And the tables of Bao et al. 2021, whose models are trained here: 1 and 2 on one's own corpus, a grid of encoders × heads (× kinds
of mutation); and 5 to 7 (§5), models and ROUGE against the human scores of TAC 2010: four corpora × four recipes × two sizes of
BERT. Table 5 has a row for each. The paper prints, of two sizes, the one that is better *on these very data*: here all are shown,
and the one that has the higher mean of the six pooled correlations is marked (the paper doesn't say by which figure it chose).
Tables 6 and 7 have the best of each corpus, chosen score by score, and ROUGE. The three share a folder, and in it the models.
"""

import itertools
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from negsample.corpora.pairs import describe_part
from negsample.errors import InputError
from negsample.eval.agreement.figures import AgreementFigure, agreement
from negsample.eval.judgments import Source, Unusable, load_judgments
from negsample.eval.judgments.nist import nist_rouge
from negsample.io.run_record import Stopwatch, fingerprints, work_folder
from negsample.models import load
from negsample.models.build import takes
from negsample.papers import headlines, judged, stand_ins
from negsample.papers.declared import DRAWN, Declared, Record, Table, declared, draw, write
from negsample.papers.judged import Asked, Measured, figure_record, measure
from negsample.papers.transfer import Cell, Transfer, run_transfer
from negsample.papers.transfer_config import DOMAIN_KEYS, TransferConfig
from negsample.papers.transfer_report import about_domains, figures_of, percent
from negsample.records import Judged
from negsample.registry import suggestion
from negsample.resampling import check_resamples
from negsample.scoring.scorer import Scorer
from negsample.seeds import digest
from negsample.settings import convert, make_settings, read_file, read_words

ON_PEOPLE = {**judged.KINDS, **headlines.KINDS}
# Kind → the options (fields of `Asked`) that its tables have, beside ``smoke``.
TAKES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(ON_PEOPLE, ("data", "parts", "human", "bootstrap", "seed")),
    "grid": ("words", "config", "keep_models", "seed"),
    "tac2010": ("data", "words", "parts", "rouge_alone", "bootstrap", "seed"),
}
# Options that are not called as the field of `Asked` that they fill.
OPTIONS = {"words": "KEY=VALUE", "parts": "--part"}


def run_table(name: str, asked: Asked, out: Path, say: Callable[[str], None] = print) -> Table:
    """Make the table ``name`` and write it to the folder ``out``; begun before with the same options, it goes on.

    Raises InputError for an unknown table or part, an option that this kind of table has not, and as its kind does.
    """
    spec = declared(name)
    called = {key: OPTIONS.get(key, f"--{key.replace('_', '-')}") for key in asdict(asked)}
    known = [key for key in (*TAKES[spec.kind], "smoke") if key != "parts" or spec.parts]
    for key, value in asdict(asked).items():
        if value != getattr(Asked, key) and key not in known:
            told = ", ".join(called[each] for each in known)
            raise InputError(f"{called[key]}: {name} has no such option; it has {told}")
    check_resamples(asked.bootstrap)
    if asked.data and asked.smoke:
        raise InputError("--smoke makes its own data; leave --data out")
    spec, watch = spec.with_parts(asked.parts), Stopwatch()
    run = {"grid": run_grid, "tac2010": run_tac2010}.get(spec.kind, _on_people)
    table, facts = run(spec, asked, out, say)
    write(table, out, watch, say=say, smoke=asked.smoke, **facts)
    return table


def _on_people(spec: Declared, asked: Asked, out: Path, say: Callable[[str], None]) -> tuple[Table, dict[str, Any]]:
    """A table on what people judged, and what goes to its ``run.json``."""
    sources, how = _sources(spec, asked, say), spec.plot or spec.kind
    config = {"table": spec.name, **asdict(asked), "parts": dict(spec.parts)}
    files = [path for each in asked.data if (path := each if Path(each).exists() else each.partition(":")[2])]
    # Scores are kept for a rerun.
    with work_folder(out, config, name="table_settings.json", what="a table", alone=True, kept=["scores/*.json"]):
        table = ON_PEOPLE[spec.kind](judged.measure(spec, sources, asked, out, say))
        if how in DRAWN:
            table = replace(table, pictures={f"{spec.name}.svg": draw(how, table.records)})
    return table, {"config": config, "seed": asked.seed or 0, "data": fingerprints(files)}


def _sources(spec: Declared, asked: Asked, say: Callable[[str], None]) -> list[Source]:
    """What people judged: given, or a stand-in."""
    if spec.kind in headlines.KINDS:
        if asked.smoke:
            say("smoke run, figures mean nothing: sentences of the sample as headlines, 'people' who count words")
        given = (row for data in asked.data for row in headlines.read_headlines(data))
        if not (sources := headlines.headline_sources(stand_ins.headlines() if asked.smoke else given, spec.kind)):
            raise InputError("no headlines; give --data FILE with story, generated, reference, and people's scores")
        return sources
    if asked.data:
        return judged.judged_sources(spec, asked.data)
    if spec.kind == "examples":
        return [stand_ins.permuted_source()]
    if asked.smoke:
        return stand_ins.damaged_sources(len(spec.data), spec.human, asked.seed or 0)
    shown = " ".join(f"--data {name}" for name in spec.data)
    raise InputError(f"nothing to measure on; give {shown} (the paper's), any judgments, or --smoke")


# Encoders where none are named; the costliest first, so that two processes end at about the same time.
OFFLINE = (
    "sentence-transformer",
    "glove",
    "use-multilingual",
    "hf(special=true,max_length=256)",
    "glove(unit=sentence)",
)
CORPORA = ("cnn_dailymail", "billsum", "arxiv", "big_patent")
RECIPES = ("crosspair", "add", "delete", "replace")
# What the table decides, and how it is said.
_REFUSED = {"recipe": "leave it out", "head": "leave it out", "encoder": "give --part base=… and --part tiny=…"}
# The three human scores that the paper prints.
PRINTED = ("modified_pyramid", "linguistic_quality", "overall_responsiveness")
# What a row of ROUGE is called where it is not NIST's.
COMPUTED = " computed"
Nist = Mapping[tuple[str, str], Mapping[str, float]]
"""NIST's ROUGE: docset, summarizer → name → value."""


def experiment(given: Mapping[str, Mapping[str, Any]], **own: Any) -> TransferConfig:
    """The experiment with a source for each of the settings ``given`` by name, which differ in what they read alone."""
    first, *_ = given.values()
    sources = {name: {key: each[key] for key in DOMAIN_KEYS if key in each} for name, each in given.items()}
    train = {key: value for key, value in first.items() if key not in DOMAIN_KEYS}
    return make_settings(TransferConfig, {"sources": sources, "train": train, **own})


# --- Tables 1 and 2


def read_grid(
    table: str, path: str | None, words: Sequence[str] = (), seed: int | None = None, keep_models: bool = False
) -> TransferConfig:
    """The trainings of a table by the YAML file ``path`` (or the defaults) and ``key=value`` words, the later winning.

    Beside the settings of ``train`` there are ``encoders``, of heads that take rows (by default all that need no download;
    ``encoder`` is that of the others, such as ``cls``), ``heads``, and in a file ``table``, which it is for. Without a file,
    texts are cut as in the paper (``min_summary`` 1). Raises InputError as ``read_file`` and ``make_settings``, and for
    another table's file.
    """
    given = read_words(words) | ({} if seed is None else {"seed": seed})
    values = {"corpus": "sample", **({} if path is None else read_file(path, "tables")), **given}
    if (meant := values.pop("table", table)) != table:
        raise InputError(f"{path}: is for table {meant!r}, not {table!r}; run negsample tables {meant}")
    if values.keys() & {"head", "recipe"}:
        raise InputError("head and recipe are the table's own; leave them out (heads=[…] names the heads)")
    heads, encoders = (
        convert(values.pop(key, None) or usual, tuple[str, ...], key)
        for key, usual in (("heads", ("fc", "cnn", "lstm")), ("encoders", OFFLINE))
    )
    # A file may hold it for a head that is not asked for this time.
    if "encoder" in given and set(map(takes, heads)) <= {"rows"}:
        raise InputError(f"encoder={given['encoder']}: encoder= is for cls; name the rows' encoders with encoders=[…]")
    if path is None and "cls" in heads:
        values.setdefault("min_summary", 1)
    corpus = values["corpus"]
    rows = [head for head in heads if takes(head) == "rows"]
    cells = [{"head": h, "encoder": encoder, "label": f"{encoder} {h}"} for encoder in encoders for h in rows]
    cells += [{"head": head, "label": head} for head in heads if head not in rows]
    recipes = list(declared(table).recipes)
    name = ", ".join(corpus) if isinstance(corpus, list) else str(corpus)
    return experiment({name: values}, recipes=recipes, heads=cells, keep_models=keep_models)


def run_grid(spec: Declared, asked: Asked, out: Path, say: Callable[[str], None]) -> tuple[Table, dict[str, Any]]:
    """A row for each recipe and head, a column for each encoder. Raises InputError as ``run_transfer`` does."""
    if not asked.config and not asked.smoke and not any(word.startswith("corpus=") for word in asked.words):
        raise InputError("nothing says what to train on; give --config FILE or corpus=PATH")
    settings = read_grid(spec.name, asked.config, asked.words, asked.seed, asked.keep_models)
    (name,), negatives, seed = settings.domains, settings.common.negatives, settings.common.seed
    if asked.smoke:
        settings = stand_ins.small_transfer(settings, say)
    done = run_transfer(settings, out, say)
    figures, records = figures_of(done), []
    heads = dict.fromkeys(own.settings["head"] for own in settings.labelled_heads)
    for recipe, head in itertools.product(settings.mixes, heads):
        for cell, found in done.finished:
            if (cell.recipe, cell.config.head) == (recipe, head):
                figure, column = figures[cell.folder, name], str(cell.config.encoder)
                about = {"recipe": str(recipe), "head": head, "encoder": column, "seconds": found["seconds"]}
                about |= {"figure": cell.figure, "epochs": len(found["epochs"])}
                (value, low, high), row = percent(figure), f"{recipe} {head}"
                reason = figure["reason"]
                records.append(Record(row, column, value, low, high, figure["n"], reason=reason, about=about))
    (data,) = about_domains(done).values()
    read = f"{', '.join(data['corpora'])}{describe_part(data)}, {negatives} negative(s) a pair; seed {seed}."
    table = spec.table(records, about=f"{read} Test split.", head="recipe, head", digits=1, more={"data": data})
    seconds = sum(found["seconds"] for _, found in done.finished)
    return table, {"config": settings.as_dict(), "seed": seed, "data": data, "cell_seconds": seconds}


# --- Tables 5 to 7


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


def run_tac2010(spec: Declared, asked: Asked, out: Path, say: Callable[[str], None]) -> tuple[Table, dict[str, Any]]:
    """Train the models (unless ``rouge_alone``), and measure them and ROUGE. Raises InputError before anything is trained."""
    name, _, path = "".join(asked.data[:1]).partition(":")
    if not asked.smoke and (name != "tac2010" or len(asked.data) > 1):
        raise InputError("give --data tac2010:DIR, with TAC2010's documents and GuidedSumm2010_eval (from NIST)")
    if asked.rouge_alone and not spec.rows:
        raise InputError("--rouge-alone: Table 5 has no ROUGE; run tables p3-table6 or p3-table7")
    if asked.rouge_alone and (asked.words or asked.parts):
        raise InputError("settings and --part are for training; leave them out, or --rouge-alone")
    settings = None if asked.rouge_alone else tac2010_experiment(asked.words, spec.parts)
    source, nist = stand_ins.docsets(spec.human) if asked.smoke else load_tac2010(path)
    for line in source.missing:
        say(line)
    judged = digest(nist, *map(astuple, source.rows)).hex()
    with work_folder(out, {"data": judged}, name="judgments.json", what="tables of TAC 2010", alone=False):
        pass
    training, models, cells = {"settings": list(asked.words), **spec.parts, "smoke": asked.smoke}, {}, []
    if settings is not None:
        if asked.smoke:
            # A quarter of them.
            corpora, recipes = list(settings.sources)[:3:2], RECIPES[:3:2]
            say(f"smoke run: of the corpora {', '.join(corpora)} alone, of the recipes {', '.join(recipes)}")
            sources = {name: settings.sources[name] for name in corpora}
            small = stand_ins.small_transfer(replace(settings, sources=sources, recipes=recipes), say)
            # One stand-in for both sizes: so that they differ, what is not base is frozen.
            heads = tuple({**head, "freeze_encoder": head["label"] != "base"} for head in small.heads)
            settings = replace(small, heads=heads)
        done = run_transfer(settings, out / "models", say)
        shutil.rmtree(done.out / "work", ignore_errors=True)
        cells = [cell for cell, _ in done.finished]
        models = {label(cell): partial(_scorer, done, cell) for cell in cells}
    scored = measure(spec, [source], asked, out, say, models)
    table = tac2010_table(scored, cells, nist_columns(spec, source.rows, nist))
    config = {**training, "bootstrap": asked.bootstrap}
    return table, {"config": config, "data": {"tac2010": judged}, "seed": scored.seed}


def label(cell: Cell) -> str:
    """A model's row in Table 5."""
    return f"{cell.source.name} {cell.recipe}/{cell.head.label}"


def _scorer(grid: Transfer, cell: Cell) -> Scorer:
    return load(grid.model(cell.folder)).scorer(label(cell))


def tac2010_experiment(words: Sequence[str], parts: Mapping[str, str]) -> TransferConfig:
    """Return the trainings of the packaged files ``p3_table5_tac2010_…``, with ``key=value`` ``words`` for all of them.

    ``corpus=``: some of ``CORPORA``, each as ``NAME`` or ``NAME:DIR`` (a copy); ``parts``: size → hub id or folder of BERT.
    Raises InputError for another corpus, and for a word that the table decides itself.
    """
    given = read_words(words)
    corpora = given.pop("corpus", None) or CORPORA
    for key, advice in _REFUSED.items():
        if key in given:
            raise InputError(f"{key}=…: the table has its own; {advice}")
    configs = {}
    for corpus in [corpora] if isinstance(corpora, str) else corpora:
        name = corpus.partition(":")[0]
        if name not in CORPORA:
            raise InputError(f"corpus={corpus}: {suggestion(name, list(CORPORA))}")
        values = {**read_file(f"p3_table5_tac2010_{name}", "train"), **given, "corpus": corpus}
        configs[name] = {key: value for key, value in values.items() if key not in _REFUSED}
    heads = [{"head": "cls", "label": size, "encoder": encoder} for size, encoder in parts.items()]
    return experiment(configs, recipes=list(RECIPES), heads=heads, keep_models=True)


def nist_columns(spec: Declared, rows: Sequence[Judged], nist: Nist) -> dict[str, np.ndarray]:
    """Return NIST's ROUGE, float [n], for each row of the table that is computed here too (``ROUGE-1 P``); nothing without it."""
    names = [label.removesuffix(COMPUTED) for label in spec.metrics()[0]] if nist else []
    found = [nist.get((row.document_id, row.system), {}) for row in rows]
    return {name: np.array([own.get(name, np.nan) for own in found]) for name in names}


def tac2010_table(measured: Measured, models: Sequence[Cell], nist: Mapping[str, np.ndarray]) -> Table:
    """Return the table of ``models``, which are among what was measured, and ``nist``'s scores, float [n]: a section a level, a
    column for each coefficient and human score. A mean over a docset's articles stands for their sum (§5.0.1).
    """
    spec, (scored,) = measured.spec, measured.tables
    rouge = [
        name
        for computed in scored.metrics
        if computed not in set(map(label, models))
        for name in (computed.removesuffix(COMPUTED), computed)
        if name in nist or name == computed
    ]
    of: dict[str, list[AgreementFigure]] = {}
    for figure in agreement(
        replace(scored, metrics={**scored.metrics, **nist}),
        # The better models are chosen by both coefficients in all three tables.
        coefficients=("pearson", "spearman") if models else spec.coefficients,
        bootstrap=measured.bootstrap,
        seed=measured.seed,
    ):
        of.setdefault(figure.metric, []).append(figure)
    chosen = _better(models, of)
    records: list[Record] = []
    best: dict[tuple[str, ...], Record] = {}
    for model in models if not spec.rows else ():
        about = {"corpus": model.source.name, "recipe": str(model.recipe), "model": model.head.label}
        records += [_record(figure, mark="*" * (model in chosen), about=about) for figure in of[label(model)]]
    for model in chosen if spec.rows else ():
        for figure in of[label(model)]:
            record = _record(figure, row=f"best {model.source.name}", about={"model": label(model)})
            before = best.setdefault(record.place, record)
            if record.value is not None and (before.value is None or record.value > before.value):
                best[record.place] = record
    records += [*best.values(), *(_record(figure) for name in rouge for figure in of[name])]
    rows = measured.sources[0].rows
    counts = {"docsets": len({row.document_id for row in rows}), "systems": len({row.system for row in rows})}
    return measured.table(
        [record for record in records if record.about["coefficient"] in spec.coefficients],
        about=f"{len(rows)} summaries, {counts['docsets']} docsets, {counts['systems']} systems; 95 % intervals over docsets.",
        digits=4,
        more={"summaries": len(rows), **counts},
    )


def _record(figure: AgreementFigure, **own: Any) -> Record:
    column = f"{figure.coefficient}:{figure.human}"
    return figure_record(figure, figure.p, column=column, section=figure.level, **own)


def _better(models: Sequence[Cell], of: Mapping[str, Sequence[AgreementFigure]]) -> list[Cell]:
    """The model of each corpus and recipe with the highest mean of the pooled correlations that are defined."""
    best: dict[tuple[str, str], tuple[float, Cell]] = {}
    for model in models:
        own = [each.value for each in of[label(model)] if each.level == "pooled" and each.human in PRINTED]
        values = [value for value in own if value is not None]
        mean, key = float(np.mean(values)) if values else -2.0, (model.source.name, str(model.recipe))
        if key not in best or mean > best[key][0]:
            best[key] = mean, model
    return [model for _, model in best.values()]

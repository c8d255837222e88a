"""Tables 5 to 7 of Bao et al. 2021 (§5): trained models and ROUGE against the three human scores of TAC 2010.

Table 5 has a row for each model. The paper prints, of two sizes of BERT, the one that is better *on these very data*: here
all are shown, and the one that has the higher mean of the six pooled correlations is marked (the paper doesn't say by
which figure it chose). Tables 6 and 7 have the best of each corpus, chosen score by score, and ROUGE.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from negsample.corpora import load_pairs
from negsample.eval.agreement.columns import ScoreColumn, column_sources, score_columns
from negsample.eval.agreement.figures import AgreementFigure, agreement
from negsample.eval.agreement.levels import LEVELS, judged_table
from negsample.eval.judgments import Unusable, load_judgments
from negsample.eval.judgments.tac2010 import nist_rouge
from negsample.eval.metrics.base import score_judged
from negsample.io.files import atomic_json
from negsample.io.resume import trying, waiting
from negsample.models.folder import read_description
from negsample.number_text import aligned, interval, number
from negsample.progress import Bar
from negsample.records import Judged
from negsample.scoring.metrics import make_metric
from negsample.seeds import digest

# The three that the paper prints. Which of the two modified pyramid scores of manual.peer.A it means it doesn't say (public code
# after it reads the jackknifed one), so both are shown; where NIST's ROUGE equals the printed rows tells which it is.
PRINTED = ("modified_pyramid", "linguistic_quality", "overall_responsiveness")
HUMAN = (PRINTED[0], "modified_pyramid_jackknife", *PRINTED[1:])
# Table → what it correlates by.
COEFFICIENTS = {5: ("pearson", "spearman"), 6: ("pearson",), 7: ("spearman",)}
TITLES = {
    5: "Trained models against people on TAC 2010",
    6: "Models and ROUGE against people on TAC 2010, Pearson",
    7: "Models and ROUGE against people on TAC 2010, Spearman",
}
# ROUGE as NIST calls it → the metric that computes it here. Stems, and the mean over the references, as NIST's files have.
ROUGE = {"ROUGE-1": "rouge1", "ROUGE-2": "rouge2", "ROUGE-4": "rouge4", "ROUGE-W-1.2": "rougeW"}
_VALUES = {"P": "precision", "R": "recall", "F": "f1"}
CSV_COLUMNS = "source corpus recipe model chosen metric level coefficient human value low high n reason".split()
PUBLISHED, MODELS, COMPUTED, NIST = "published", "models", "computed", "NIST"


@dataclass(frozen=True)
class TacModel:
    """A model folder: corpus and recipe that it was trained on, ``model`` (``base``, ``tiny``, or an encoder's name)."""

    corpus: str
    recipe: str
    model: str
    folder: Path


@dataclass(frozen=True)
class TacData:
    """Judged rows of TAC 2010, each with NIST's ROUGE (docset, summarizer → name → value), and lines on what is missing."""

    rows: Sequence[Judged]
    nist: Mapping[tuple[str, str], Mapping[str, float]]
    notes: Sequence[str]

    @property
    def fingerprint(self) -> str:
        """Hash of all texts and scores."""
        parts: list[object] = [sorted((key, sorted(values.items())) for key, values in self.nist.items())]
        for row in self.rows:
            parts += [
                row.document_id,
                row.system,
                row.summary,
                *row.documents,
                *row.references,
                sorted(row.scores.items()),
            ]
        return digest(*parts).hex()


def load_tac2010(path: str) -> TacData:
    """Read the archive. Raises InputError, naming what was looked for, where it isn't laid out as the loader has it."""
    unusable = Unusable()
    rows = load_judgments(f"tac2010:{path}", unusable)
    nist = nist_rouge(path)
    notes = unusable.lines()
    if not nist:
        notes.append("no ROUGE/rouge_A.m.out in it, so NIST's ROUGE is not beside")
    else:
        missing = sum((row.document_id, row.system) not in nist for row in rows)
        notes += [f"{missing} summaries have no line in rouge_A.m.out"] if missing else []
    return TacData(rows, nist, notes)


def stand_in() -> TacData:
    """Return made-up judgments of the embedded sample in the shape of TAC 2010: docsets of ten, four systems; they mean nothing.

    A system gives a share of the words of a docset's first summaries; people like more of them.
    """
    pairs = list(load_pairs("sample"))
    rows = []
    for start in range(0, len(pairs) - 9, 10):
        ten = pairs[start : start + 10]
        references = tuple(" ".join(pair.summary for pair in ten[place : place + 2]) for place in range(4))
        for system, share in enumerate((1.0, 0.7, 0.4, 0.1), start=1):
            words = references[start // 10 % 4].split()
            scores = {name: share + 0.01 * (start // 10 * (k + 1) % 7) for k, name in enumerate(HUMAN)}
            summary = " ".join(words[: max(4, round(share * len(words)))])
            rows.append(
                Judged(
                    f"D{start:04d}-A",
                    str(system),
                    tuple(p.document for p in ten),
                    summary,
                    references,
                    scores,
                    "stand-in",
                )
            )
    return TacData(rows, {}, ["a stand-in of the embedded sample: the figures mean nothing"])


def model_columns(
    models: Sequence[TacModel],
    data: TacData,
    out: Path,
    *,
    precision: str = "float32",
    say: Callable[[str], None] = print,
) -> list[ScoreColumn]:
    """Score the summaries by every model, each as the mean over its docset's articles (§5.0.1: their sum).

    What a model gave is kept in ``out/scores`` under a hash of what it is; processes that share ``out`` share the models.
    """
    columns: dict[int, ScoreColumn] = {}
    judged = data.fingerprint
    for block in (trying, waiting):
        for place, model in enumerate(models):
            about = json.dumps(read_description(model.folder), sort_keys=True)
            name = digest(about, precision, judged, size=8).hex()
            if place in columns:
                continue
            with block(out / "locks" / f"scores-{name}.lock") as held:
                if held is False:
                    continue
                columns[place] = _model_column(model, data.rows, out / "scores" / f"{name}.json", precision)
                say(f"{len(columns)}/{len(models)} scored: {model.corpus}, {model.recipe}, {model.model}")
    return [columns[place] for place in range(len(models))]


def _model_column(model: TacModel, rows: Sequence[Judged], kept: Path, precision: str) -> ScoreColumn:
    name = f"{model.corpus}, {model.recipe}, {model.model}"
    if not kept.is_file():
        sources, _ = column_sources([str(model.folder)], [], baselines=False, precision=precision)
        # The first is the model's own score, others are its aspects.
        column = score_columns(sources, rows)[0]
        plain = [None if np.isnan(value) else float(value) for value in column.values]
        kept.parent.mkdir(parents=True, exist_ok=True)
        atomic_json(
            kept,
            {"signature": column.signature, "values": plain, "reasons": list(column.reasons), "note": column.note},
        )
    found = json.loads(kept.read_text(encoding="utf-8"))
    values = np.array([np.nan if value is None else value for value in found["values"]])
    return ScoreColumn(name, "model", found["signature"], False, values, found["reasons"], found["note"])


def rouge_columns(data: TacData) -> dict[tuple[str, str], ScoreColumn]:
    """Return (``"ROUGE-1 P"``, ``computed`` or ``NIST``) → its column; NIST's where the archive has them."""
    found: dict[tuple[str, str], ScoreColumn] = {}
    with Bar("ROUGE", total=len(ROUGE) * len(_VALUES)) as bar:
        for kind, metric in ROUGE.items():
            for letter, value in _VALUES.items():
                name = f"{kind} {letter}"
                made = make_metric(f"{metric}(value={value},stem=true,references=mean,against=references)")
                own = score_judged(made, data.rows)
                found[name, COMPUTED] = ScoreColumn(name, "metric", made.signature, False, own.scores, own.reasons)
                if data.nist:
                    given = [data.nist.get((row.document_id, row.system), {}).get(name) for row in data.rows]
                    reasons = [None if x is not None else "no line in rouge_A.m.out" for x in given]
                    values = np.array([np.nan if x is None else x for x in given])
                    found[name, NIST] = ScoreColumn(
                        name, "scores", f"NIST, rouge_A.m.out, {name}", False, values, reasons
                    )
                bar.advance(note=name)
    return found


def tac2010_table(
    table: int,
    data: TacData,
    models: Sequence[tuple[TacModel, ScoreColumn]],
    published: Mapping[str, Any],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the content of ``tableN.json``: a row for each figure (``CSV_COLUMNS``), measured and as printed.

    ``published`` is the printed table, its columns ``COEFFICIENT:HUMAN``. Levels as of ``agreement``, intervals over docsets.
    """
    columns: dict[Any, ScoreColumn] = dict(models)
    if table != 5:
        columns |= rouge_columns(data)
    names = {key: str(place) for place, key in enumerate(columns)}
    scored = judged_table("tac2010", data.rows, HUMAN, {names[key]: column.values for key, column in columns.items()})
    with Bar("agreement") as bar:
        figures = agreement(
            scored,
            coefficients=COEFFICIENTS[5] if models else COEFFICIENTS[table],
            bootstrap=bootstrap,
            seed=seed,
            progress=lambda done, total: bar.advance(note=f"{done} of {total}"),
        )
    of: dict[str, list[AgreementFigure]] = {}
    for figure in figures:
        of.setdefault(figure.metric, []).append(figure)
    chosen = _better([(model, of[names[model]]) for model, _ in models])
    rows = []
    if table == 5:
        for model, _ in models:
            rows += [{**_about(model, chosen), **_row(figure)} for figure in of[names[model]]]
    else:
        rows += _best([(model, of[names[model]]) for model in chosen], COEFFICIENTS[table])
        for key, name in names.items():
            if not isinstance(key, TacModel):
                about = {"source": key[1], "metric": key[0]}
                rows += [{**about, **_row(f)} for f in of[name] if f.coefficient in COEFFICIENTS[table]]
    notes = [*data.notes]
    notes += [f"{column.name}: {column.note}" for column in columns.values() if column.note]
    return {
        "table": f"p3-table{table}",
        "title": TITLES[table],
        "summaries": len(data.rows),
        "docsets": len({row.document_id for row in data.rows}),
        "systems": len({row.system for row in data.rows}),
        "figures": rows + _printed(published),
        "published": published["source"],
        "notes": notes,
        "signatures": sorted({column.signature for column in columns.values()}),
    }


def _row(figure: AgreementFigure) -> dict[str, Any]:
    keys = ("level", "coefficient", "human", "value", "low", "high", "n", "reason")
    return {key: getattr(figure, key) for key in keys}


def _about(model: TacModel, chosen: Iterable[TacModel]) -> dict[str, Any]:
    return {
        "source": MODELS,
        "corpus": model.corpus,
        "recipe": model.recipe,
        "model": model.model,
        "chosen": model in chosen,
    }


def _better(models: Sequence[tuple[TacModel, Sequence[AgreementFigure]]]) -> list[TacModel]:
    """The model of each corpus and recipe with the highest mean of the pooled correlations that are defined."""
    best: dict[tuple[str, str], tuple[float, TacModel]] = {}
    for model, figures in models:
        own = [figure.value for figure in figures if figure.level == "pooled" and figure.human in PRINTED]
        values = [value for value in own if value is not None]
        mean = float(np.mean(values)) if values else -2.0
        key = (model.corpus, model.recipe)
        if key not in best or mean > best[key][0]:
            best[key] = mean, model
    return [model for _, model in best.values()]


def _best(
    models: Sequence[tuple[TacModel, Sequence[AgreementFigure]]], coefficients: Sequence[str]
) -> list[dict[str, Any]]:
    """Rows with the highest figure of each corpus for each human score and level, and the model that has it."""
    best: dict[tuple[str, ...], tuple[float, dict[str, Any]]] = {}
    for model, figures in models:
        for figure in figures:
            key = (model.corpus, figure.level, figure.coefficient, figure.human)
            value = -2.0 if figure.value is None else figure.value
            if figure.coefficient in coefficients and (key not in best or value > best[key][0]):
                best[key] = value, {**_about(model, [model]), "metric": f"best of {model.corpus}", **_row(figure)}
    return [row for _, row in best.values()]


def _printed(published: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for printed in published["rows"]:
        if "recipe" in printed:
            recipe, _, model = printed["recipe"].partition("/")
            about = {"corpus": printed["source"], "recipe": recipe, "model": model or "base"}
        elif printed["metric"] == "best":
            about = {"corpus": printed["of"], "metric": f"best of {printed['of']}"}
        else:
            about = {"metric": f"{printed['metric']} {printed['of']}"}
        for name in published["columns"]:
            coefficient, _, human = name.partition(":")
            place = {"level": "pooled", "coefficient": coefficient, "human": human}
            rows.append({"source": PUBLISHED, **about, **place, "value": printed[name]})
    return rows


def markdown(table: Mapping[str, Any]) -> str:
    """Return the table at each level, the printed figures under those of the same name."""
    counts = [f"{table[key]} {key}" for key in ("summaries", "docsets", "systems")]
    lines = [f"# {table['title']}", "", f"{', '.join(counts)}. 95 % intervals by bootstrap over docsets."]
    lines += [f"Published: {table['published']}."]
    if table["table"] == "p3-table5":
        lines += ["*: of the encoders of a corpus and recipe the better one on these very data, as the paper chose."]
    else:
        lines += ["best of: the highest figure of the corpus's better models on these very data, as the paper chose."]
    for level in LEVELS:
        own = [row for row in table["figures"] if row["level"] == level]
        if any(row["source"] != PUBLISHED for row in own):
            lines += ["", f"## {level}", "", *aligned(_pivot(own))]
    return "\n".join([*lines, "", "## Notes", "", *(f"- {note}" for note in table["notes"]), ""])


def _pivot(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    present = {(row["coefficient"], row["human"]) for row in rows}
    columns = [(name, human) for name in COEFFICIENTS[5] for human in HUMAN if (name, human) in present]
    shown: dict[tuple[str, ...], dict[tuple[str, str], str]] = {}
    # Printed figures go under the measured ones that they belong to.
    groups = list(dict.fromkeys(_group(row) for row in rows))
    for row in sorted(rows, key=lambda row: groups.index(_group(row))):
        label = row.get("model", "") + (" *" if row.get("chosen") else "")
        if "metric" in row:
            label = row["source"]
        elif row["source"] == PUBLISHED:
            label = f"published ({row['model']})"
        span = interval(row.get("low"), row.get("high"))
        text = number(row["value"], 4) + (f" [{span}]" if span else "")
        shown.setdefault((*_group(row), label), {})[row["coefficient"], row["human"]] = text
    head = [
        *(("trained on", "negatives") if len(groups[0]) == 2 else ("metric",)),
        "",
        *(f"{c} {h}" for c, h in columns),
    ]
    return [head, *([*key, *(cells.get(column, "") for column in columns)] for key, cells in shown.items())]


def _group(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (row["metric"],) if "metric" in row else (row["corpus"], row["recipe"])

"""A transfer experiment's figures as plain values, as CSV and as Markdown."""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from negsample.formats import TITLES, interval_of, not_run_text, percent, size_title
from negsample.train.experiments.columns import file_name
from negsample.train.experiments.published import TABLE_3, TABLE_4
from negsample.train.experiments.table_files import aligned
from negsample.train.experiments.transfer import Finished, figure_name
from negsample.train.experiments.transfer_cells import Cell, truth_path
from negsample.train.experiments.transfer_config import TransferConfig
from negsample.train.experiments.transfer_figures import Difference, ModelFigure, compare_on

_CNN_DAILYMAIL = re.compile(r"cnn[_-]?(dm|dailymail)", re.IGNORECASE)
CSV_COLUMNS = (
    "recipe head source size train_pairs target shots figure value low high n documents "
    "delta delta_low delta_high gain gain_low gain_high seeds reason"
).split()
# What a group of rows of the report has in common.
_GROUP = ("recipe", "head", "size")


def transfer_table(
    config: TransferConfig, finished: Finished, out: Path, published: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """The content of ``transfer.json``: every figure × 100, with its 95 % interval.

    ``delta`` is a figure minus that of the model trained on the target itself (same recipe, head and size), ``gain`` a
    few-shot figure minus that of the model it went on from; their intervals are paired. Both lack where there is no such
    model. ``published`` stand beside (``published_beside``).
    """
    rows: list[dict[str, Any]] = []
    for recipe in config.recipes:
        for target in config.targets:
            own = [(cell, found) for cell, found in finished.cells if cell.recipe == recipe and target in found["test"]]
            if own:
                rows += _rows(own, target, out, config.train.seed)
    order = {str(cell.folder): place for place, (cell, _) in enumerate(finished.cells)}
    rows.sort(key=lambda row: order[row.pop("folder")])
    return {
        "sources": [
            {"name": source.name, "domains": list(source.domains), "left_out": source.left_out}
            for source in config.all_sources()
        ],
        "targets": list(config.targets),
        "domains": {
            name: json.loads((out / "domains" / file_name(name) / "about.json").read_text(encoding="utf-8"))
            for name in config.domains
        },
        "unit": "accuracy in percent, Pearson × 100",
        "cells": rows,
        "not_run": _not_run(finished),
        "notes": _notes(config, finished),
        "published": [dict(printed) for printed in published],
        "settings": config.as_dict(),
    }


def _rows(own: Sequence[tuple[Cell, dict[str, Any]]], target: str, out: Path, seed: int) -> list[dict[str, Any]]:
    """A row for each model (all seeds of it) that was tested on ``target``, all by the same recipe."""
    models: dict[tuple[Any, ...], list[tuple[Cell, dict[str, Any]]]] = {}
    for cell, found in own:
        models.setdefault(_model(cell), []).append((cell, found))
    scores = {
        key: [
            np.load(out / "cells" / cell.folder / "scores" / f"{file_name(target)}.npy", allow_pickle=False)
            for cell, _ in cells
        ]
        for key, cells in models.items()
    }
    against = {}
    for key in models:
        head, size, _, shots = key
        others = {"delta": (head, size, target, 0), "gain": (*key[:3], 0)}
        against[key] = {
            name: other
            for name, other in others.items()
            if other in models and other != key and (name == "delta" or shots)
        }
    recipe = own[0][0].recipe
    with np.load(truth_path(out, recipe, target), allow_pickle=False) as truth:
        tested = compare_on(figure_name(own[0][0]), truth["labels"], truth["documents"], scores, against, seed=seed)
    return [_row(models[key], target, tested[key]) for key in models]


def _model(cell: Cell) -> tuple[Any, ...]:
    return cell.head.label, cell.size, cell.source.name, cell.shots


def _row(cells: Sequence[tuple[Cell, dict[str, Any]]], target: str, tested: ModelFigure) -> dict[str, Any]:
    cell, found = cells[0]
    base = {"value": tested.value, "low": tested.low, "high": tested.high}
    return {
        "folder": str(cell.folder),
        "recipe": str(cell.recipe),
        "head": cell.head.label,
        "source": cell.source.name,
        "size": cell.size,
        "train_pairs": found["train_pairs"],
        "target": target,
        "seen": target in cell.source.domains,
        "shots": cell.shots,
        "figure": figure_name(cell),
        **{key: _hundred(value) for key, value in base.items()},
        "n": tested.n,
        "documents": tested.documents,
        "values": [_hundred(value) for value in tested.values],
        "delta": _plain(tested.differences.get("delta")),
        "gain": _plain(tested.differences.get("gain")),
        "seconds": sum(each["seconds"] for _, each in cells),
        **({"reason": tested.reason} if tested.reason else {}),
    }


def _hundred(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _plain(difference: Difference | None) -> dict[str, float | None] | None:
    if difference is None or difference.value is None:
        return None
    return {key: _hundred(getattr(difference, key)) for key in ("value", "low", "high")}


def _not_run(finished: Finished) -> list[dict[str, Any]]:
    found = {}
    for entry in finished.not_run:
        cell = entry.cell
        about = {"recipe": str(cell.recipe), "head": cell.head.label, "source": cell.source.name, "size": cell.size}
        if cell.shots:
            about |= {"target": cell.target, "shots": cell.shots}
        found[tuple(about.values())] = {**about, "reason": entry.reason}
    return list(found.values())


def _notes(config: TransferConfig, finished: Finished) -> list[str]:
    notes = [
        "A target's test documents are the same whatever was trained on; none of them is in any training or validation.",
        "A smaller size is a part of a larger one; in P3's Table 4 the target is sampled at each size, test and all.",
    ]
    left = {
        cell.source.name: found["left_out"] for cell, found in finished.cells if found["left_out"] and not cell.shots
    }
    notes += [
        f"{name}: {count} training documents left out, for they are (or share a summary with) test documents of a target."
        for name, count in left.items()
    ]
    cut = _cut(finished)
    if cut:
        notes.append(f"Longer than the model reads, and cut: {cut}.")
    if len(config.seeds) > 1:
        notes.append(f"Means over seeds {', '.join(map(str, config.seeds))}; intervals are over documents alone.")
    if any(cell.shots for cell, _ in finished.cells):
        notes.append(
            "Few-shot training stops by the target's validation split: 8 documents, or an eighth of the training documents."
        )
    return notes


def _cut(finished: Finished) -> str:
    """Which heads cut how much of the test pairs, in one line."""
    counts: dict[str, list[int]] = {}
    for cell, found in finished.cells:
        for name, split in found["cut"].items():
            if name.startswith("test ") and not cell.shots:
                total = counts.setdefault(cell.head.label, [0, 0])
                total[0] += split["cut"]
                total[1] += split["pairs"]
    return ", ".join(
        f"{head} {100 * cut / pairs:.0f} % of test examples" for head, (cut, pairs) in counts.items() if cut
    )


def published_beside(config: TransferConfig) -> list[dict[str, Any]]:
    """P3's Tables 3 and 4 where this is the experiment they show: cross pairing, tested on CNN/DailyMail."""
    targets = [
        name
        for name, domain in config.targets.items()
        if any(_CNN_DAILYMAIL.search(text) for text in (name, *_corpora(domain.data["corpus"])))
    ]
    if not targets or not any(str(recipe) == "crosspair" for recipe in config.recipes):
        return []
    return [TABLE_3.as_json(), TABLE_4.as_json()] if len(config.sizes) > 1 else [TABLE_3.as_json()]


def _corpora(corpus: str | Sequence[str]) -> Sequence[str]:
    return [corpus] if isinstance(corpus, str) else corpus


def _groups(table: Mapping[str, Any]) -> Iterable[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Rows that stand in one matrix: what they have in common (recipe, head, size, figure), and the rows."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in table["cells"]:
        found.setdefault(tuple(row[key] for key in _GROUP), []).append(row)
    for key, rows in found.items():
        yield {**dict(zip(_GROUP, key, strict=True)), "figure": rows[0]["figure"]}, rows


def _cell_text(row: Mapping[str, Any] | None, difference: str, name: str) -> str:
    """``98.2 [97.0 to 99.1], Δ −0.3 [−0.9 to +0.2]``; ``name`` is what the difference is called."""
    if row is None:
        return ""
    if row["value"] is None:
        return f"not defined ({row['reason']})"
    text = percent(row["value"]) + _bracketed(interval_of(row))
    if (gap := row[difference]) is not None:
        text += f", {name} {percent(gap['value'], sign=True)}" + _bracketed(interval_of(gap, sign=True))
    return text


def _bracketed(text: str) -> str:
    return f" [{text}]" if text else ""


def markdown(table: Mapping[str, Any]) -> str:
    """The matrices, the few-shot figures, the published tables, what was not run, and notes."""
    lines = [
        "# Transfer between domains",
        "",
        "Rows: trained on; columns: tested on (held-out split). 95 % intervals by bootstrap over documents; Δ: minus the",
        "model trained on the target itself, paired.",
    ]
    for about, rows in _groups(table):
        lines += ["", f"## {about['recipe']}, {about['head']}, {size_title(about['size'])}: {TITLES[about['figure']]}"]
        lines += ["", *aligned(_matrix(table, [row for row in rows if not row["shots"]]))]
        if adapted := [row for row in rows if row["shots"]]:
            lines += ["", "Trained on with a few pairs of the target (gain: minus the same model before):", ""]
            lines += aligned(_few(adapted))
    for published in table["published"]:
        lines += ["", f"## Published: {published['source']}", "", *aligned(_printed(published))]
    if table["not_run"]:
        lines += ["", "## Not run", "", *(f"- {not_run_text(entry)}" for entry in table["not_run"])]
    lines += ["", "## Data", "", *aligned(_data_rows(table))]
    lines += ["", "## Notes", "", *(f"- {note}" for note in table["notes"])]
    return "\n".join(lines) + "\n"


def _matrix(table: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    cells = {(row["source"], row["target"]): row for row in rows}
    sources = dict.fromkeys(row["source"] for row in rows)
    pairs = {row["source"]: row["train_pairs"] for row in rows}
    body = [["trained on", "pairs", *table["targets"]]]
    for source in sources:
        body.append(
            [
                source,
                str(pairs[source]),
                *(_cell_text(cells.get((source, name)), "delta", "Δ") for name in table["targets"]),
            ]
        )
    return body


def _few(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    body = [["trained on", "target", "its pairs", "figure"]]
    return body + [[row["source"], row["target"], str(row["shots"]), _cell_text(row, "gain", "gain")] for row in rows]


def _printed(published: Mapping[str, Any]) -> list[list[str]]:
    return [["source", *published["columns"]]] + [
        [row["source"], *(percent(row[name]) for name in published["columns"])] for row in published["rows"]
    ]


def _data_rows(table: Mapping[str, Any]) -> list[list[str]]:
    """A row for each domain: its corpora, what was read, and how it was split (pairs)."""
    body = [["domain", "corpora", "pairs", "documents", "train", "validation", "test", "skipped"]]
    for name, about in table["domains"].items():
        counts = [str(about[key]) for key in ("pairs", "documents")] + [str(n) for n in about["splits"].values()]
        body.append([name, ", ".join(about["corpora"]), *counts, about["skipped_text"]])
    return body


def csv_text(table: Mapping[str, Any]) -> str:
    """One row a figure, values × 100; ``size`` is empty where all training pairs were taken."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, CSV_COLUMNS, lineterminator="\n", restval="", extrasaction="ignore")
    writer.writeheader()
    for row in table["cells"]:
        numbers = {key: row[key] for key in ("value", "low", "high")}
        for name in ("delta", "gain"):
            if row[name] is not None:
                numbers |= {
                    name: row[name]["value"],
                    f"{name}_low": row[name]["low"],
                    f"{name}_high": row[name]["high"],
                }
        texts = {key: "" if value is None else f"{value:.4f}" for key, value in numbers.items()}
        size = "" if row["size"] is None else row["size"]
        writer.writerow(
            {**row, **dict.fromkeys(("delta", "gain"), ""), "size": size, "seeds": len(row["values"]), **texts}
        )
    return stream.getvalue()

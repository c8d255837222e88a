"""A transfer experiment's figures as plain values, as CSV and as Markdown."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from negsample.formats import TITLES, interval_of, not_run_text, percent, size_title
from negsample.io.run_record import Stopwatch
from negsample.train.experiments.grid import file_name
from negsample.train.experiments.outputs import aligned, four_decimals, write_outputs
from negsample.train.experiments.published import TABLE_3, TABLE_4
from negsample.train.experiments.transfer import Finished, TransferCell, domain_folder
from negsample.train.experiments.transfer_config import TransferConfig
from negsample.train.experiments.transfer_figures import ModelFigure, compare_on

_CNN_DAILYMAIL = re.compile(r"cnn[_-]?(dm|dailymail)", re.IGNORECASE)
CSV_COLUMNS = (
    "recipe head source size train_pairs target shots figure value low high n documents "
    "delta delta_low delta_high gain gain_low gain_high seeds reason"
).split()
# What a group of rows of the report has in common.
_GROUP = ("recipe", "head", "size", "figure")


def transfer_table(finished: Finished, published: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return the content of ``transfer.json``: every figure × 100, with its 95 % interval.

    ``delta`` is a figure minus that of the model trained on the target itself (same recipe, head and size), ``gain`` a
    few-shot figure minus that of the model it went on from; their intervals are paired. Both lack where there is no such
    model. ``published`` stand beside (``published_beside``).
    """
    config = finished.grid.settings
    rows: dict[tuple[Path, str], dict[str, Any]] = {}
    for recipe in config.recipes:
        for target in config.targets:
            own = [(cell, found) for cell, found in finished.cells if cell.recipe == recipe and target in found["test"]]
            if own:
                rows |= _rows(own, target, finished)
    return {
        "sources": [
            {"name": source.name, "domains": list(source.domains), "left_out": source.left_out}
            for source in config.all_sources()
        ],
        "targets": list(config.targets),
        "domains": {
            name: json.loads((domain_folder(finished.grid.out, name) / "about.json").read_text(encoding="utf-8"))
            for name in config.domains
        },
        "unit": "accuracy in percent, Pearson × 100",
        "cells": [
            rows[cell.folder, target]
            for cell, _ in finished.cells
            for target in config.targets
            if (cell.folder, target) in rows
        ],
        "not_run": finished.grid.not_run,
        "notes": _notes(config, finished),
        "published": [dict(printed) for printed in published],
        "settings": config.as_dict(),
    }


def write_transfer(
    finished: Finished,
    page: Callable[[Mapping[str, Any], Sequence[str]], str],
    *,
    published: Sequence[Mapping[str, Any]] = (),
    command: list[str],
    smoke: bool,
    watch: Stopwatch,
) -> dict[str, Any]:
    """Write the files of a finished experiment; return the content of ``transfer.json``.

    ``page`` makes HTML of it and of the ``command``; ``smoke`` is written to ``run.json`` and changes nothing.
    """
    table = transfer_table(finished, published)
    config = finished.grid.settings
    write_outputs(
        finished.grid.out,
        "transfer",
        table,
        rows=csv_rows(table),
        columns=CSV_COLUMNS,
        text=markdown(table),
        page=page(table, command),
        watch=watch,
        cells=[found for _, found in finished.cells],
        command=command,
        smoke=smoke,
        config=config.as_dict(),
        seed=config.train.seed,
        data=table["domains"],
    )
    return table


def _rows(
    own: Sequence[tuple[TransferCell, dict[str, Any]]], target: str, finished: Finished
) -> dict[tuple[Path, str], dict[str, Any]]:
    """Return a row for each model (all seeds of it) that was tested on ``target``, all by the same recipe.

    The keys are the folder of its first seed, and the target.
    """
    models: dict[tuple[Any, ...], list[tuple[TransferCell, dict[str, Any]]]] = {}
    for cell, found in own:
        models.setdefault((cell.head.label, cell.size, cell.source.name, cell.shots), []).append((cell, found))
    against: dict[tuple[Any, ...], dict[str, tuple[Any, ...]]] = {}
    for head, size, source, shots in models:
        others = {"delta": (head, size, target, 0), "gain": (head, size, source, 0)}
        against[head, size, source, shots] = {
            name: other
            for name, other in others.items()
            if other in models and other != (head, size, source, shots) and (name == "delta" or shots)
        }
    scores = {
        key: [
            np.load(finished.grid.place(cell) / "scores" / f"{file_name(target)}.npy", allow_pickle=False)
            for cell, _ in cells
        ]
        for key, cells in models.items()
    }
    first = own[0][0]
    with np.load(finished.grid.truth(first.recipe, target), allow_pickle=False) as truth:
        seed = finished.grid.settings.train.seed
        tested = compare_on(first.figure, truth["labels"], truth["documents"], scores, against, seed=seed)
    return {(cells[0][0].folder, target): _row(cells, target, tested[key]) for key, cells in models.items()}


def _row(cells: Sequence[tuple[TransferCell, dict[str, Any]]], target: str, tested: ModelFigure) -> dict[str, Any]:
    cell, found = cells[0]
    return {
        "recipe": str(cell.recipe),
        "head": cell.head.label,
        "source": cell.source.name,
        "size": cell.size,
        "train_pairs": found["train_pairs"],
        "target": target,
        "seen": target in cell.source.domains,
        "shots": cell.shots,
        "figure": cell.figure,
        **_hundred(tested),
        "n": tested.n,
        "documents": tested.documents,
        "values": [None if value is None else 100 * value for value in tested.values],
        **{
            name: _hundred(gap) if (gap := tested.differences.get(name)) and gap.value is not None else None
            for name in ("delta", "gain")
        },
        "seconds": sum(each["seconds"] for _, each in cells),
        **({"reason": tested.reason} if tested.reason else {}),
    }


def _hundred(figure: Any) -> dict[str, float | None]:
    """Return value, low and high × 100."""
    values = {key: getattr(figure, key) for key in ("value", "low", "high")}
    return {key: None if value is None else 100 * value for key, value in values.items()}


def _notes(config: TransferConfig, finished: Finished) -> list[str]:
    notes = [
        "A target's test documents are the same whatever was trained on; none of them is in any training or validation.",
        "A smaller size is a part of a larger one; in P3's Table 4 the target is sampled at each size, test and all.",
    ]
    left: dict[str, int] = {}
    # Which heads cut how much of the test pairs.
    cut: dict[str, np.ndarray] = {}
    for cell, found in finished.cells:
        if cell.shots:
            continue
        if found["left_out"]:
            left[cell.source.name] = found["left_out"]
        for name, split in found["cut"].items():
            if name.startswith("test "):
                counts = np.array([split["cut"], split["pairs"]])
                cut[cell.head.label] = cut.get(cell.head.label, 0) + counts
    notes += [
        f"{name}: {count} training documents left out, for they are (or share a summary with) test documents of a target."
        for name, count in left.items()
    ]
    shares = [f"{head} {100 * some / pairs:.0f} % of test examples" for head, (some, pairs) in cut.items() if some]
    if shares:
        notes.append(f"Longer than the model reads, and cut: {', '.join(shares)}.")
    if len(config.seeds) > 1:
        notes.append(f"Means over seeds {', '.join(map(str, config.seeds))}; intervals are over documents alone.")
    if any(cell.shots for cell, _ in finished.cells):
        notes.append(
            "Few-shot training stops by the target's validation split: 8 documents, or an eighth of the training documents."
        )
    return notes


def published_beside(config: TransferConfig) -> list[dict[str, Any]]:
    """Return Tables 3 and 4 of Bao et al. 2021 where this is the experiment they show: cross pairing, on CNN/DailyMail."""
    targets = any(
        _CNN_DAILYMAIL.search(text) for name in config.targets for text in (name, *config.domain(name).corpora())
    )
    if not targets or not any(str(recipe) == "crosspair" for recipe in config.recipes):
        return []
    return [TABLE_3.as_json(), TABLE_4.as_json()] if len(config.sizes) > 1 else [TABLE_3.as_json()]


def _groups(table: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Give the rows that stand in one matrix, with what they have in common."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in table["cells"]:
        found.setdefault(tuple(row[key] for key in _GROUP), []).append(row)
    for key, rows in found.items():
        yield dict(zip(_GROUP, key, strict=True)), rows


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
    """Return the matrices, the few-shot figures, the published tables, what was not run, and notes."""
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
            few = [
                [row["source"], row["target"], str(row["shots"]), _cell_text(row, "gain", "gain")] for row in adapted
            ]
            lines += aligned([["trained on", "target", "its pairs", "figure"], *few])
    for published in table["published"]:
        printed = [[row["source"], *(percent(row[name]) for name in published["columns"])] for row in published["rows"]]
        lines += ["", f"## Published: {published['source']}", ""]
        lines += aligned([["source", *published["columns"]], *printed])
    if table["not_run"]:
        lines += ["", "## Not run", "", *(f"- {not_run_text(entry)}" for entry in table["not_run"])]
    lines += ["", "## Data", "", *aligned(_data_rows(table))]
    lines += ["", "## Notes", "", *(f"- {note}" for note in table["notes"])]
    return "\n".join(lines) + "\n"


def _matrix(table: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    cells = {(row["source"], row["target"]): row for row in rows}
    pairs = {row["source"]: str(row["train_pairs"]) for row in rows}
    body = [["trained on", "pairs", *table["targets"]]]
    for source, count in pairs.items():
        texts = [_cell_text(cells.get((source, name)), "delta", "Δ") for name in table["targets"]]
        body.append([source, count, *texts])
    return body


def _data_rows(table: Mapping[str, Any]) -> list[list[str]]:
    """Return a row for each domain: its corpora, what was read, and how it was split (pairs)."""
    body = [["domain", "corpora", "pairs", "documents", "train", "validation", "test", "skipped"]]
    for name, about in table["domains"].items():
        counts = [str(about[key]) for key in ("pairs", "documents")] + [str(n) for n in about["splits"].values()]
        body.append([name, ", ".join(about["corpora"]), *counts, about["skipped_text"]])
    return body


def csv_rows(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give a row for each figure, values × 100; ``size`` is empty where all training pairs were taken."""
    for row in table["cells"]:
        numbers = {key: row[key] for key in ("value", "low", "high")}
        for name in ("delta", "gain"):
            gap = row[name] or {}
            numbers |= {name: gap.get("value"), f"{name}_low": gap.get("low"), f"{name}_high": gap.get("high")}
        texts = {key: four_decimals(value) for key, value in numbers.items()}
        yield {key: row.get(key) for key in CSV_COLUMNS} | texts | {"seeds": len(row["values"])}

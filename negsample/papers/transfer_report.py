"""A transfer experiment's figures, with intervals and paired differences: as plain values, as CSV and as Markdown."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from negsample.io.run_record import Stopwatch
from negsample.models.evaluation import BINARY, GRADED, ONE_DOCUMENT, RESAMPLES, UNDEFINED, document_resamples
from negsample.number_text import TITLES, aligned, four_decimals, interval_of, not_run_text, percent, size_title
from negsample.papers.declared import published
from negsample.papers.grid import file_name
from negsample.papers.records import write_files
from negsample.papers.transfer import Transfer, TransferCell, domain_folder
from negsample.papers.transfer_config import TransferConfig
from negsample.resampling import percentile_interval

_CNN_DAILYMAIL = re.compile(r"cnn[_-]?(dm|dailymail)", re.IGNORECASE)
CSV_COLUMNS = (
    "recipe head source size train_pairs target shots figure value low high n documents "
    "delta delta_low delta_high gain gain_low gain_high seeds reason"
).split()


def transfer_table(grid: Transfer, beside: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return the content of ``transfer.json``: every figure × 100, with its 95 % interval.

    ``delta`` is a figure minus that of the model trained on the target itself (same recipe, head and size), ``gain`` a
    few-shot figure minus that of the model it went on from; their intervals are paired. Both lack where there is no such
    model. ``beside`` are published tables (``published_beside``).
    """
    config = grid.settings
    rows: dict[tuple[Path, str], dict[str, Any]] = {}
    for recipe in config.recipes:
        for target in config.targets:
            own = [(cell, found) for cell, found in grid.finished if cell.recipe == recipe and target in found["test"]]
            rows |= _rows(own, target, grid) if own else {}
    order = [(cell.folder, target) for cell, _ in grid.finished for target in config.targets]
    return {
        "sources": [
            {"name": source.name, "domains": list(source.domains), "left_out": source.left_out}
            for source in config.all_sources()
        ],
        "targets": list(config.targets),
        "domains": {
            name: json.loads((domain_folder(grid.out, name) / "about.json").read_text(encoding="utf-8"))
            for name in config.domains
        },
        "unit": "accuracy in percent, Pearson × 100",
        "cells": [rows[key] for key in order if key in rows],
        "not_run": grid.not_run,
        "notes": _notes(grid),
        "published": list(beside),
        "settings": config.as_dict(),
    }


def write_transfer(
    grid: Transfer,
    page: Callable[[Mapping[str, Any], Sequence[str]], str],
    *,
    beside: Sequence[dict[str, Any]] = (),
    command: list[str],
    smoke: bool,
    watch: Stopwatch,
) -> dict[str, Any]:
    """Write the files of a finished experiment; return the content of ``transfer.json``.

    ``page`` makes HTML of it and of the ``command``; ``smoke`` is written to ``run.json`` and changes nothing.
    """
    table = transfer_table(grid, beside)
    config = grid.settings
    write_files(
        grid.out,
        "transfer",
        table,
        csv_rows(table),
        CSV_COLUMNS,
        {"transfer.md": markdown(table), "transfer.html": page(table, command)},
        watch,
        command=command,
        smoke=smoke,
        config=config.as_dict(),
        seed=config.train.seed,
        data=table["domains"],
        cell_seconds=sum(found["seconds"] for _, found in grid.finished),
    )
    return table


def _rows(
    own: Sequence[tuple[TransferCell, dict[str, Any]]], target: str, grid: Transfer
) -> dict[tuple[Path, str], dict[str, Any]]:
    """Return a row for each model (all seeds of it) that was tested on ``target``, all by the same recipe.

    The keys are the folder of its first seed, and the target.
    """
    models: dict[tuple[Any, ...], list[tuple[TransferCell, dict[str, Any]]]] = {}
    for cell, found in own:
        models.setdefault((cell.head.label, cell.size, cell.source.name, cell.shots), []).append((cell, found))
    against, scores = {}, {}
    for key, cells in models.items():
        others = {"delta": (*key[:2], target, 0), "gain": (*key[:3], 0)}
        against[key] = {name: other if other in models and other != key else None for name, other in others.items()}
        paths = [grid.place(cell) / "scores" / f"{file_name(target)}.npy" for cell, _ in cells]
        scores[key] = [np.load(path, allow_pickle=False) for path in paths]
    first = own[0][0]
    with np.load(grid.truth(first.recipe, target), allow_pickle=False) as truth:
        seed = grid.settings.train.seed
        tested = compare_on(first.figure, truth["labels"], truth["documents"], scores, against, seed=seed, scale=100)
    return {(cells[0][0].folder, target): _row(cells, target, tested[key]) for key, cells in models.items()}


def _row(cells: Sequence[tuple[TransferCell, dict[str, Any]]], target: str, tested: dict[str, Any]) -> dict[str, Any]:
    cell, found = cells[0]
    reason = tested.pop("reason")
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
        **tested,
        "seconds": sum(each["seconds"] for _, each in cells),
        **({"reason": reason} if reason else {}),
    }


def compare_on(
    figure: str,
    labels: np.ndarray,
    documents: np.ndarray,
    scores: Mapping[Any, Sequence[np.ndarray]],
    against: Mapping[Any, Mapping[str, Any]],
    *,
    seed: int = 0,
    scale: float = 1,
) -> dict[Any, dict[str, Any]]:
    """Return the ``figure`` (``accuracy`` or ``pearson``) of each model on the same examples, and the differences asked for.

    ``labels`` float [n] in [0, 1], ``documents`` int [n]; ``scores``: model → one array [n] for each of its seeds;
    ``against``: model → name of a difference → the model to subtract, None for none. A model's ``value`` (None with a
    ``reason`` where it is not defined) is the mean of the ``values`` of its seeds; ``low`` and ``high`` are its 95 %
    interval; each difference by name has the same three, or is None; all times ``scale``. ``n`` counts examples, and
    ``documents`` theirs.

    The ``document_resamples`` are the same for all models, and those of ``evaluation.figures``, so that a difference is
    paired. A resample on which a figure is not defined is left out.
    """
    statistic = {**BINARY, **GRADED}[figure]
    labels = np.asarray(labels, np.float64)
    own = {key: [np.asarray(one, np.float64) for one in each] for key, each in scores.items()}
    drawn: dict[Any, list[float]] = {key: [] for key in own}
    for rows in document_resamples(documents, seed, RESAMPLES):
        for key, each in own.items():
            drawn[key].append(float(np.mean([statistic(labels[rows], one[rows]) for one in each])))
    samples = {key: np.array(each) for key, each in drawn.items()}
    values = {key: [statistic(labels, one) for one in each] for key, each in own.items()}
    means = {key: float(np.mean(each)) for key, each in values.items()}
    found: dict[Any, dict[str, Any]] = {}
    for key, mean in means.items():
        whole = _interval(mean, samples[key], scale)
        reason = UNDEFINED["pearson"] if whole is None else ONE_DOCUMENT if whole["low"] is None else ""
        found[key] = {
            **(whole or {"value": None, "low": None, "high": None}),
            "n": len(labels),
            "documents": len(np.unique(documents)),
            "values": [None if np.isnan(value) else scale * value for value in values[key]],
        }
        for name, other in against.get(key, {}).items():
            paired = other is not None and _interval(mean - means[other], samples[key] - samples[other], scale)
            found[key][name] = paired or None
        found[key]["reason"] = reason
    return found


def _interval(value: float, samples: np.ndarray, scale: float) -> dict[str, float | None] | None:
    """Return ``value`` with the interval of its ``samples``, times ``scale``; None where it is not defined."""
    if np.isnan(value):
        return None
    low, high, _ = percentile_interval(samples)
    ends = {"low": low, "high": high}
    return {"value": scale * value} | {name: None if end is None else scale * end for name, end in ends.items()}


def _notes(grid: Transfer) -> list[str]:
    notes = [
        "A target's test documents are the same whatever was trained on; none of them is in any training or validation.",
        "A smaller size is a part of a larger one; Bao et al. 2021 sampled the target at each (p3_table4_target).",
    ]
    config = grid.settings
    plain = [(cell, found) for cell, found in grid.finished if not cell.shots]
    left = {cell.source.name: found["left_out"] for cell, found in plain if found["left_out"]}
    # Which heads cut how much of the test pairs.
    cut: dict[str, np.ndarray] = {}
    for cell, found in plain:
        for name, split in found["cut"].items():
            if name.startswith("test "):
                cut[cell.head.label] = cut.get(cell.head.label, 0) + np.array([split["cut"], split["pairs"]])
    notes += [
        f"{name}: {count} training documents left out, for they are (or share a summary with) test documents of a target."
        for name, count in left.items()
    ]
    shares = [f"{head} {100 * some / pairs:.0f} % of test examples" for head, (some, pairs) in cut.items() if some]
    if shares:
        notes.append(f"Longer than the model reads, and cut: {', '.join(shares)}.")
    if len(config.seeds) > 1:
        notes.append(f"Means over seeds {', '.join(map(str, config.seeds))}; intervals are over documents alone.")
    if len(plain) < len(grid.finished):
        notes.append(
            "Few-shot training stops by the target's validation split: 8 documents, or an eighth of the training documents."
        )
    return notes


def published_beside(config: TransferConfig) -> list[dict[str, Any]]:
    """Return Tables 3 and 4 of Bao et al. 2021 where this is the experiment they show: cross pairing, on CNN/DailyMail."""
    names = {name: " ".join([name, *config.domain(name).corpora()]) for name in config.targets}
    targets = [name for name, text in names.items() if _CNN_DAILYMAIL.search(text)]
    if not targets or "crosspair" not in map(str, config.recipes):
        return []
    # Several targets are samples of it.
    return [published(number) for number in ((3, 4) if len(config.sizes) > 1 or len(targets) > 1 else (3,))]


def _cell_text(row: Mapping[str, Any] | None, difference: str, name: str) -> str:
    """``98.2 [97.0 to 99.1], Δ −0.3 [−0.9 to +0.2]``; ``name`` is what the difference is called."""
    if row is None:
        return ""
    if row["value"] is None:
        return f"not defined ({row['reason']})"
    gap = row[difference]
    return _figure_text(row) + (f", {name} {_figure_text(gap, sign=True)}" if gap is not None else "")


def _figure_text(entry: Mapping[str, Any], *, sign: bool = False) -> str:
    interval = interval_of(entry, sign=sign)
    return percent(entry["value"], sign=sign) + (f" [{interval}]" if interval else "")


def markdown(table: Mapping[str, Any]) -> str:
    """Return the matrices, the few-shot figures, the published tables, what was not run, and notes."""
    lines = [
        "# Transfer between domains",
        "",
        "Rows: trained on; columns: tested on (held-out split). 95 % intervals by bootstrap over documents; Δ: minus the",
        "model trained on the target itself, paired.",
    ]
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in table["cells"]:
        groups.setdefault((row["recipe"], row["head"], row["size"], row["figure"]), []).append(row)
    for (recipe, head, size, figure), rows in groups.items():
        lines += ["", f"## {recipe}, {head}, {size_title(size)}: {TITLES[figure]}"]
        lines += ["", *aligned(_matrix(table, [row for row in rows if not row["shots"]]))]
        few = [
            [row["source"], row["target"], str(row["shots"]), _cell_text(row, "gain", "gain")]
            for row in rows
            if row["shots"]
        ]
        if few:
            lines += ["", "Trained on with a few pairs of the target (gain: minus the same model before):", ""]
            lines += aligned([["trained on", "target", "its pairs", "figure"], *few])
    for printed in table["published"]:
        body = [[row["source"], *(percent(row[name]) for name in printed["columns"])] for row in printed["rows"]]
        lines += ["", f"## Published: {printed['source']}", "", *aligned([["source", *printed["columns"]], *body])]
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
            gap = row[name] or dict.fromkeys(("value", "low", "high"))
            numbers |= {name: gap["value"], f"{name}_low": gap["low"], f"{name}_high": gap["high"]}
        texts = {key: four_decimals(value) for key, value in numbers.items()}
        yield {key: row.get(key) for key in CSV_COLUMNS} | texts | {"seeds": len(row["values"])}

"""An experiment's figures, with intervals and paired differences; a transfer experiment's as the records of a table."""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from negsample.eval.report.transfer import TITLES, size_title
from negsample.models.evaluation import BINARY, GRADED, RESAMPLES, UNDEFINED, document_resamples
from negsample.papers.declared import Record, Table, all_declared, beside
from negsample.papers.transfer import Cell, Transfer, domain_folder, file_name
from negsample.resampling import NO_INTERVAL, resampled_interval

# What is told of a model and target: its figure, what it loses against the target's own model, what few pairs bring.
_TOLD = {"value": "", "delta": "Δ, minus the model trained on the target itself", "gain": "gain by pairs of the target"}
Finished = tuple[Cell, dict[str, Any]]


def transfer_table(grid: Transfer, name: str = "") -> Table:
    """Return a finished experiment as a table: every figure × 100, with its 95 % interval; rows: trained on, columns: tested on.

    ``delta`` is a figure minus that of the model trained on the target itself (same recipe, head and size), ``gain`` a
    few-shot figure minus that of the model it went on from; their intervals are paired. Both lack where there is no such
    model. What a paper prints of the packaged file ``name`` stands beside.
    """
    shown = [each for each in all_declared() if each.command == f"transfer --config {name}"]
    printed = [record for each in shown for record in each.printed_records()]
    config, domains = grid.settings, about_domains(grid)
    return Table(
        "transfer",
        "Transfer between domains",
        "Bao et al. 2021, Tables 3 and 4",
        beside(list(_records(grid)), printed),
        about="Rows: trained on; columns: tested on (held-out split). Accuracy in percent, Pearson × 100; 95 % intervals by "
        "bootstrap over documents, of Δ and gain paired.",
        head="trained on",
        digits=1,
        not_run=grid.not_run,
        notes=tuple(_notes(grid)),
        more={
            "sources": {source.name: source.left_out for source in config.all_sources()},
            "targets": config.target_names,
            "domains": domains,
            "settings": config.as_dict(),
        },
    )


def about_domains(grid: Transfer) -> dict[str, dict[str, Any]]:
    """What was read of each domain."""
    names = grid.settings.domains
    return {name: json.loads((domain_folder(grid.out, name) / "about.json").read_text("utf-8")) for name in names}


def _records(grid: Transfer) -> Iterator[Record]:
    """A record for each figure of a model on a target, then for each difference."""
    tested = figures_of(grid)
    plain = ("recipe", "head", "source", "size", "shots", "train_pairs")
    for told, (cell, found), target in itertools.product(_TOLD, grid.finished, grid.settings.target_names):
        one = tested.get((cell.folder, target))
        if one is None or (figure := one if told == "value" else one[told]) is None:
            continue
        about = {key: found[key] for key in plain} | {key: one[key] for key in ("documents", "seconds")}
        about |= {"target": target, "figure": cell.figure, "told": told, "seen": target in cell.source.domains}
        shots = f", then {cell.shots} pairs of {cell.target}" if cell.shots else ""
        section = f"{cell.recipe}, {cell.head.label}, {size_title(cell.size)}: {_TOLD[told] or TITLES[cell.figure]}"
        reason = one["reason"] if told == "value" else ""
        value, low, high = percent(figure)
        row, n = f"{cell.source.name}{shots}", one["n"]
        yield Record(row, target, value, low, high, n, section=section, reason=reason, about=about)


def percent(figure: Mapping[str, Any]) -> list[float | None]:
    """Value and ends of the interval of a figure, × 100."""
    return [None if figure[key] is None else 100 * figure[key] for key in ("value", "low", "high")]


def figures_of(grid: Transfer) -> dict[tuple[Path, str], dict[str, Any]]:
    """Return the figures of each model (the folder of its first seed) on each target (``compare_on``), and its ``seconds``."""
    found: dict[tuple[Path, str], dict[str, Any]] = {}
    for recipe, target in itertools.product(grid.settings.mixes, grid.settings.target_names):
        models: dict[tuple[Any, ...], list[Finished]] = {}
        for cell, about in grid.finished:
            if cell.recipe == recipe and target in about["test"]:
                models.setdefault((cell.head.label, cell.size, cell.source.name, cell.shots), []).append((cell, about))
        if not models:
            continue
        against, scores = {}, {}
        for key, cells in models.items():
            others = {"delta": (*key[:2], target, 0), "gain": (*key[:3], 0)}
            against[key] = {name: other if other in models and other != key else None for name, other in others.items()}
            paths = [grid.place(cell) / "scores" / f"{file_name(target)}.npy" for cell, _ in cells]
            scores[key] = [np.load(path, allow_pickle=False) for path in paths]
        with np.load(grid.truth(recipe, target), allow_pickle=False) as truth:
            figure = "pearson" if recipe.graded else "accuracy"
            asked = (figure, truth["labels"], truth["documents"], scores, against)
            tested = compare_on(*asked, seed=grid.settings.common.seed)
        for key, cells in models.items():
            seconds = sum(about["seconds"] for _, about in cells)
            found[cells[0][0].folder, target] = {**tested[key], "seconds": seconds}
    return found


def compare_on(
    figure: str,
    labels: np.ndarray,
    documents: np.ndarray,
    scores: Mapping[Any, Sequence[np.ndarray]],
    against: Mapping[Any, Mapping[str, Any]],
    *,
    seed: int = 0,
) -> dict[Any, dict[str, Any]]:
    """Return the ``figure`` (``accuracy`` or ``pearson``) of each model on the same examples, and the differences asked for.

    ``labels`` float [n] in [0, 1], ``documents`` int [n]; ``scores``: model → one array [n] for each of its seeds, of which the
    mean counts; ``against``: model → name of a difference → the model to subtract, None for none. A model has ``value`` (None
    with a ``reason`` where it is not defined), ``low``, ``high``, the numbers ``n`` and ``documents``, and each difference by
    name, with the first three, or None. The ``document_resamples`` are those of ``evaluation.figures``, the same for all models,
    so that a difference is paired; one on which a figure is not defined is left out.
    """
    statistic, labels = {**BINARY, **GRADED}[figure], np.asarray(labels, np.float64)
    resamples = [np.arange(len(labels)), *document_resamples(documents, seed, RESAMPLES)]
    # A model's figure on all examples, then on each resample.
    seeds = {key: [np.asarray(one, np.float64) for one in each] for key, each in scores.items()}
    values = {
        key: np.array([np.mean([statistic(labels[rows], one[rows]) for one in each]) for rows in resamples])
        for key, each in seeds.items()
    }
    found, count = dict[Any, dict[str, Any]](), len(np.unique(documents))
    for key, own in values.items():
        whole = _interval(own, count)
        reason = UNDEFINED["pearson"] if whole["value"] is None else NO_INTERVAL if whole["low"] is None else ""
        found[key] = {**whole, "n": len(labels), "documents": count, "reason": reason}
        for name, other in against.get(key, {}).items():
            paired = None if other is None else _interval(own - values[other], count)
            found[key][name] = paired if paired and paired["value"] is not None else None
    return found


def _interval(values: np.ndarray, documents: int) -> dict[str, float | None]:
    """The first of ``values`` with the interval of the others; all None where it is not defined."""
    if np.isnan(values[0]):
        return dict.fromkeys(("value", "low", "high"))
    low, high, _ = resampled_interval(values[1:], documents)
    return {"value": float(values[0]), "low": low, "high": high}


def _notes(grid: Transfer) -> Iterator[str]:
    for name, about in about_domains(grid).items():
        splits = ", ".join(f"{split} {count}" for split, count in about["splits"].items())
        read = f"{', '.join(about['corpora'])}, {about['pairs']} pairs of {about['documents']} documents ({splits})"
        yield f"{name}: {'; '.join(filter(None, [read, about['skipped_text']]))}."
    yield "A target's test documents are the same whatever was trained on; none of them is in any training or validation."
    yield "A smaller size is a part of a larger one; Bao et al. 2021 sampled the target at each (p3_table4_target)."
    plain = [(cell, found) for cell, found in grid.finished if not cell.shots]
    for name, count in {cell.source.name: found["left_out"] for cell, found in plain}.items():
        if count:
            told = "training documents left out, for they are (or share a summary with) test documents of a target."
            yield f"{name}: {count} {told}"
    # Which heads cut how much of the test pairs.
    for head in grid.settings.labelled_heads:
        cuts = [found["cut"] for cell, found in plain if cell.head == head]
        tests = [split for cut in cuts for name, split in cut.items() if name.startswith("test ")]
        if some := sum(split["cut"] for split in tests):
            share = 100 * some / sum(split["pairs"] for split in tests)
            yield f"Longer than head {head.label} reads, and cut: {share:.0f} % of test examples."
    if len(seeds := grid.settings.all_seeds()) > 1:
        yield f"Means over seeds {', '.join(map(str, seeds))}; intervals are over documents alone."
    if len(plain) < len(grid.finished):
        yield "Few-shot training stops by the target's validation split: 8 documents, or an eighth of the training documents."

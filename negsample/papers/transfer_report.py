"""A transfer experiment's figures, with intervals and paired differences, as the records of a table."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from negsample.eval.report.transfer import TITLES, size_title
from negsample.models.evaluation import BINARY, GRADED, ONE_DOCUMENT, RESAMPLES, UNDEFINED, document_resamples
from negsample.papers.declared import all_declared
from negsample.papers.grid import file_name
from negsample.papers.records import Record, Table, beside
from negsample.papers.transfer import Transfer, TransferCell, domain_folder
from negsample.papers.transfer_config import TransferConfig
from negsample.resampling import percentile_interval

_CNN_DAILYMAIL = re.compile(r"cnn[_-]?(dm|dailymail)", re.IGNORECASE)
# What is told of a model and target: its figure, what it loses against the target's own model, what few pairs bring.
_TOLD = {"value": "", "delta": "Δ, minus the model trained on the target itself", "gain": "gain by pairs of the target"}
Finished = tuple[TransferCell, dict[str, Any]]


def transfer_table(grid: Transfer, printed: Sequence[Record] = ()) -> Table:
    """Return a finished experiment as a table: every figure × 100, with its 95 % interval; rows: trained on, columns: tested on.

    ``delta`` is a figure minus that of the model trained on the target itself (same recipe, head and size), ``gain`` a
    few-shot figure minus that of the model it went on from; their intervals are paired. Both lack where there is no such
    model. ``printed``: published figures (``published_beside``).
    """
    config = grid.settings
    domains = {
        name: json.loads((domain_folder(grid.out, name) / "about.json").read_text("utf-8")) for name in config.domains
    }
    notes = [_data_note(name, about) for name, about in domains.items()]
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
        notes=(*notes, *_notes(grid)),
        more={
            "sources": {source.name: source.left_out for source in config.all_sources()},
            "targets": config.target_names,
            "domains": domains,
            "settings": config.as_dict(),
        },
    )


def _records(grid: Transfer) -> Iterator[Record]:
    """Yield a record for each figure of a model on a target, then for each difference."""
    tested: dict[tuple[Path, str], dict[str, Any]] = {}
    for recipe in grid.settings.mixes:
        for target in grid.settings.target_names:
            own = [(cell, found) for cell, found in grid.finished if cell.recipe == recipe and target in found["test"]]
            tested |= _tested(own, target, grid) if own else {}
    for told, title in _TOLD.items():
        for cell, target in itertools.product([cell for cell, _ in grid.finished], grid.settings.target_names):
            one = tested.get((cell.folder, target))
            if one is None or (figure := one if told == "value" else one[told]) is None:
                continue
            about = {key: value for key, value in cell.about().items() if key not in ("domains", "seed")}
            about |= {"target": target, "shots": cell.shots, "figure": cell.figure, "told": told}
            about |= {key: one[key] for key in ("train_pairs", "documents", "seconds")}
            shots = f", then {cell.shots} pairs of {cell.target}" if cell.shots else ""
            names = f"{cell.recipe}, {cell.head.label}, {size_title(cell.size)}"
            value, low, high = (None if figure[key] is None else 100 * figure[key] for key in ("value", "low", "high"))
            yield Record(
                f"{cell.source.name}{shots}",
                target,
                value,
                low,
                high,
                n=one["n"],
                section=f"{names}: {title or TITLES[cell.figure]}",
                reason=one["reason"] if told == "value" else "",
                about={**about, "seen": target in cell.source.domains},
            )


def _tested(own: Sequence[Finished], target: str, grid: Transfer) -> dict[tuple[Path, str], dict[str, Any]]:
    """Return the figures of each model (all seeds of it) that was tested on ``target``, all by the same recipe.

    The keys are the folder of its first seed, and the target.
    """
    models: dict[tuple[Any, ...], list[Finished]] = {}
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
        seed = grid.settings.common.seed
        tested = compare_on(first.figure, truth["labels"], truth["documents"], scores, against, seed=seed)
    return {
        (cells[0][0].folder, target): {
            **tested[key],
            "train_pairs": cells[0][1]["train_pairs"],
            "seconds": sum(found["seconds"] for _, found in cells),
        }
        for key, cells in models.items()
    }


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

    ``labels`` float [n] in [0, 1], ``documents`` int [n]; ``scores``: model → one array [n] for each of its seeds;
    ``against``: model → name of a difference → the model to subtract, None for none. A model's ``value`` (None with a
    ``reason`` where it is not defined) is the mean over its seeds; ``low`` and ``high`` are its 95 % interval; each
    difference by name has the same three, or is None. ``n`` counts examples, and ``documents`` theirs.

    The ``document_resamples`` are the same for all models, and those of ``evaluation.figures``, so that a difference is
    paired. A resample on which a figure is not defined is left out.
    """
    statistic = {**BINARY, **GRADED}[figure]
    labels = np.asarray(labels, np.float64)
    own = {key: [np.asarray(one, np.float64) for one in each] for key, each in scores.items()}
    drawn = list(document_resamples(documents, seed, RESAMPLES))
    samples = {
        key: np.array([np.mean([statistic(labels[rows], one[rows]) for one in each]) for rows in drawn])
        for key, each in own.items()
    }
    means = {key: float(np.mean([statistic(labels, one) for one in each])) for key, each in own.items()}
    found: dict[Any, dict[str, Any]] = {}
    for key, mean in means.items():
        whole = _interval(mean, samples[key])
        found[key] = {
            **(whole or {"value": None, "low": None, "high": None}),
            "n": len(labels),
            "documents": len(np.unique(documents)),
            "reason": UNDEFINED["pearson"] if whole is None else ONE_DOCUMENT if whole["low"] is None else "",
        }
        for name, other in against.get(key, {}).items():
            paired = other is not None and _interval(mean - means[other], samples[key] - samples[other])
            found[key][name] = paired or None
    return found


def _interval(value: float, samples: np.ndarray) -> dict[str, float | None] | None:
    """Return ``value`` with the interval of its ``samples``; None where it is not defined."""
    if np.isnan(value):
        return None
    low, high, _ = percentile_interval(samples)
    return {"value": value, "low": low, "high": high}


def _data_note(name: str, about: Mapping[str, Any]) -> str:
    splits = ", ".join(f"{split} {count}" for split, count in about["splits"].items())
    skipped = f"; {about['skipped_text']}" if about["skipped_text"] else ""
    return f"{name}: {', '.join(about['corpora'])}, {about['pairs']} pairs of {about['documents']} documents ({splits}){skipped}."


def _notes(grid: Transfer) -> list[str]:
    notes = [
        "A target's test documents are the same whatever was trained on; none of them is in any training or validation.",
        "A smaller size is a part of a larger one; Bao et al. 2021 sampled the target at each (p3_table4_target).",
    ]
    plain = [(cell, found) for cell, found in grid.finished if not cell.shots]
    left = {cell.source.name: found["left_out"] for cell, found in plain if found["left_out"]}
    notes += [
        f"{name}: {count} training documents left out, for they are (or share a summary with) test documents of a target."
        for name, count in left.items()
    ]
    # Which heads cut how much of the test pairs.
    for head in grid.settings.labelled_heads:
        cuts = [found["cut"] for cell, found in plain if cell.head == head]
        tests = [split for cut in cuts for name, split in cut.items() if name.startswith("test ")]
        if some := sum(split["cut"] for split in tests):
            share = 100 * some / sum(split["pairs"] for split in tests)
            notes.append(f"Longer than head {head.label} reads, and cut: {share:.0f} % of test examples.")
    if len(seeds := grid.settings.all_seeds()) > 1:
        notes.append(f"Means over seeds {', '.join(map(str, seeds))}; intervals are over documents alone.")
    if len(plain) < len(grid.finished):
        notes.append(
            "Few-shot training stops by the target's validation split: 8 documents, or an eighth of the training documents."
        )
    return notes


def published_beside(config: TransferConfig) -> list[Record]:
    """Return Tables 3 and 4 of Bao et al. 2021 where this is the experiment they show: cross pairing, on CNN/DailyMail."""
    names = {name: " ".join([name, *config.domains[name].corpora()]) for name in config.target_names}
    targets = [name for name, text in names.items() if _CNN_DAILYMAIL.search(text)]
    if not targets or "crosspair" not in map(str, config.mixes):
        return []
    # Several targets are samples of it.
    wanted = ["Table 3", "Table 4"] if len(config.sizes) > 1 or len(targets) > 1 else ["Table 3"]
    known = {each.what: each for each in all_declared() if each.paper == "Bao et al. 2021"}
    return [record for what in wanted for record in known[what].printed_records()]

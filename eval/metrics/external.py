"""Metrics of other packages that the user has installed: BERTScore and BLANC are called, not rewritten."""

import contextlib
import importlib
import io
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

from negsample.errors import InputError
from negsample.eval.metrics.base import choice, describe, number
from negsample.scoring.scorer import Columns, Item, Scorer, collect

_PACKAGES = {"bert-score": "bert_score", "blanc": "blanc"}


def external(
    package: str, *, model: str = "", value: str = "", against: str = "", device: str = "cpu", batch: int | str = 32
) -> Scorer:
    """``external(bert-score)`` or ``external(blanc)``: the score that the installed package gives. Higher is better.

    BERTScore (Zhang et al. 2020) needs references; ``value``: ``f1`` (default), ``precision``, ``recall``; of several
    references the package takes the best; ``against=document`` compares with the document. BLANC (Vasilyev et al. 2020)
    needs the document; ``value``: ``help`` (default) or ``tune``. ``model``: the package's model name ("": its default
    for English). Texts longer than the model are cut by the package. Missing where the summary, or what it is compared
    with, is blank. Raises InputError with the command that installs a missing package, and when the package fails.
    """
    choice("package", package, tuple(_PACKAGES))
    module = _import(package)
    at_once = number("batch", batch, 1, 10**6)
    values = {"bert-score": ("f1", "precision", "recall"), "blanc": ("help", "tune")}[package]
    sides = {"bert-score": ("references", "document"), "blanc": ("document",)}[package]
    value = choice("value", value or values[0], values)
    against = choice("against", against or sides[0], sides)
    run = partial({"bert-score": _bert_score, "blanc": _blanc}[package], module, model, value, device, at_once)
    options = {"package": package, "model": model, "value": value, "against": against}
    defaults = {"package": package, "model": "", "value": values[0], "against": sides[0]}
    _, signature = describe("external", options, defaults)
    changed = [f"{key}={options[key]}" for key in ("model", "value", "against") if options[key] != defaults[key]]
    name = f"external({','.join([package, *changed])})"
    score = partial(_score, package=package, run=run, against=against)
    return Scorer(name, f"{signature}|{package}:{_version(package)}", True, frozenset({against}), score)


def _import(package: str) -> ModuleType:
    try:
        return importlib.import_module(_PACKAGES[package])
    except ImportError as error:
        raise InputError(f"metric 'external:{package}': {error}; pip install {package}") from None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


Run = Callable[[Sequence[str], Sequence[tuple[str, ...]]], Sequence[float]]


def _score(items: Sequence[Item], *, package: str, run: Run, against: str) -> Columns:
    targets = [item.references if against == "references" else (item.document,) for item in items]
    targets = [tuple(text for text in texts if text.strip()) for texts in targets]
    usable = [row for row, item in enumerate(items) if item.summary.strip() and targets[row]]
    found: dict[int, float] = {}
    if usable:
        noise = io.StringIO()
        try:
            # Both packages print progress on standard output, where scores may be going.
            with contextlib.redirect_stdout(noise):
                given = run([items[row].summary for row in usable], [targets[row] for row in usable])
                values = [float(value) for value in given]
        # Whatever the other package raises is its own; the user needs to know whose it is.
        except Exception as error:
            told = " ".join(str(error).split())[:200] or type(error).__name__
            raise InputError(f"metric 'external:{package}': the package failed ({told})") from error
        if len(values) != len(usable):
            raise InputError(f"metric 'external:{package}': {len(values)} scores came back for {len(usable)} summaries")
        found = dict(zip(usable, values, strict=True))

    def one(row: int) -> float | str:
        if row in found:
            return found[row]
        if items[row].summary.strip():
            return "no reference" if against == "references" else "the document is blank"
        return "the summary is blank"

    return collect(map(one, range(len(items))))


def _bert_score(
    module: Any, model: str, value: str, device: str, batch: int,
    summaries: Sequence[str], targets: Sequence[tuple[str, ...]],
) -> Sequence[float]:  # fmt: skip
    which = {"model_type": model} if model else {"lang": "en"}
    precision, recall, f1 = module.score(
        list(summaries), [list(texts) for texts in targets], device=device, batch_size=batch, **which
    )
    return {"precision": precision, "recall": recall, "f1": f1}[value]


def _blanc(
    module: Any, model: str, value: str, device: str, batch: int,
    summaries: Sequence[str], targets: Sequence[tuple[str, ...]],
) -> Sequence[float]:  # fmt: skip
    make = {"help": module.BlancHelp, "tune": module.BlancTune}[value]
    named = {"model_name": model} if model else {}
    scorer = make(device=device, inference_batch_size=batch, **named)
    return scorer.eval_pairs([texts[0] for texts in targets], list(summaries))

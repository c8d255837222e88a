"""Metrics of other packages that the user has installed: BERTScore and BLANC are called, not rewritten."""

import contextlib
import importlib
import io
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version

from negsample.errors import InputError, one_line
from negsample.eval.metrics.base import choice, signature_of
from negsample.models.language.networks import pick_device
from negsample.scoring.scorer import Columns, Item, Scorer, collect

_PACKAGES = {"bert-score": "bert_score", "blanc": "blanc"}


def external(package: str, *, model: str = "", value: str = "", against: str = "", device: str = "cpu") -> Scorer:
    """``external(bert-score)`` or ``external(blanc)``: the score that the installed package gives. Higher is better.

    BERTScore (Zhang et al. 2020) needs references; ``value``: ``f1`` (default), ``precision``, ``recall``; of several
    references the package takes the best; ``against=document`` compares with the document. BLANC (Vasilyev et al. 2020)
    needs the document; ``value``: ``help`` (default) or ``tune``. ``model``: the package's model name ("": its default
    for English). Texts longer than the model are cut by the package. Missing where the summary, or what it is compared
    with, is blank. Raises InputError with the command that installs a missing package, and when the package fails.
    """
    choice("package", package, tuple(_PACKAGES))
    try:
        module = importlib.import_module(_PACKAGES[package])
    except ImportError as error:
        raise InputError(f"metric 'external:{package}': {error}; pip install {package}") from None
    device = pick_device(device)
    values = {"bert-score": ("f1", "precision", "recall"), "blanc": ("help", "tune")}[package]
    sides = {"bert-score": ("references", "document"), "blanc": ("document",)}[package]
    options = {
        "package": package,
        "model": model,
        "value": choice("value", value or values[0], values),
        "against": choice("against", against or sides[0], sides),
    }
    side = options["against"]

    def run(summaries: list[str], targets: list[list[str]]) -> Iterable[float]:
        if package == "bert-score":
            which = {"model_type": model} if model else {"lang": "en"}
            found = module.score(summaries, targets, device=device, **which)
            return dict(zip(("precision", "recall", "f1"), found, strict=True))[options["value"]]
        named = {"model_name": model} if model else {}
        make = {"help": module.BlancHelp, "tune": module.BlancTune}[options["value"]]
        documents = [one for one, *_ in targets]
        return make(device=device, **named).eval_pairs(documents, summaries)

    def score(items: Sequence[Item]) -> Columns:
        given = [item.references if side == "references" else (item.document,) for item in items]
        targets = [[text for text in texts if text.strip()] for texts in given]
        usable = [row for row, item in enumerate(items) if item.summary.strip() and targets[row]]
        blank = "no reference" if side == "references" else "the document is blank"
        results: list[float | str] = [blank if item.summary.strip() else "the summary is blank" for item in items]
        try:
            # Both packages print progress on standard output, where scores may be going.
            with contextlib.redirect_stdout(io.StringIO()):
                pairs = [items[row].summary for row in usable], [targets[row] for row in usable]
                found = [float(value) for value in run(*pairs)] if usable else []
        except Exception as error:
            # Whatever it raises is its own, and the user needs to know whose it is.
            told = one_line(error)
            raise InputError(f"metric 'external:{package}': the package failed ({told})") from error
        if len(found) != len(usable):
            told = f"{len(found)} scores came back for {len(usable)} summaries"
            raise InputError(f"metric 'external:{package}': {told}")
        for row, value in zip(usable, found, strict=True):
            results[row] = value
        return collect(results)

    changed = {"model": "", "value": values[0], "against": sides[0]}
    name = ",".join([package, *(f"{key}={options[key]}" for key, usual in changed.items() if options[key] != usual)])
    signature = f"{signature_of('external', options)}|{package}:{_version(package)}"
    return Scorer(f"external({name})", signature, True, frozenset({side}), score)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"

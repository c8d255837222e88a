"""What a reward adds up: estimators, their aspects and metrics, by name and weight."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.learned import p2
from negsample.models.align.named_features import ASPECTS
from negsample.registry import distinct, suggestion
from negsample.scoring.metrics import make_metric
from negsample.scoring.scorer import Item
from negsample.spec import parse, split_outside, unquote

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator

# Rewards of several parts that a paper has named, after which comes ``:model=QA`` (Scialom et al. 2019, §4.2.1).
_PAPER = ("QA_learned", "QA_equally")

# What needs no folder: the estimator that the package brings.
_READY = ("ready", "align")


@dataclass(frozen=True)
class Source:
    """Something that scores (document, summary, references): ``score(items)`` → a column float64 [n] for each aspect.

    The column ``""`` is the score itself, higher is better; NaN where it is undefined. ``needs``: as of a metric.
    """

    name: str
    signature: str
    needs: frozenset[str]
    score: Callable[[Sequence[Item]], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Term:
    """``weight`` · the ``aspect`` (``""``: the score) of ``source``; ``name`` is what the user called it."""

    name: str
    weight: float
    source: Source
    aspect: str = ""

    @property
    def supervised(self) -> bool:
        """Whether it can't be had without references."""
        return "references" in self.source.needs


def make_terms(spec: str, weights: Sequence[float] | None = None) -> tuple[list[Term], bool]:
    """The terms of ``spec``, and whether their scales are to be made alike (those of a paper's sum are not).

    ``spec`` is one NAME, or ``NAME=WEIGHT,NAME=WEIGHT,…``. A NAME is a model folder, or ``ready`` or ``align`` (the
    ready estimator), each also with an aspect behind it (``align.support``); a metric, or one with options, which stands
    in parentheses where several are named (``(rougeL(value=recall))=1,sms=0.5``); ``QA_learned(model=QA)`` and
    ``QA_equally(model=QA)`` are the sums of Scialom et al. (2019 §4.2.1). ``weights``, where
    given, replace those of ``spec``. Raises InputError for anything else.
    """
    head = spec.partition("(")[0].strip()
    if head in _PAPER:
        if weights is not None:
            raise InputError(f"reward {spec!r} has its weights from the paper; leave weights out")
        options = parse(spec).options
        if list(options) != ["model"]:
            raise InputError(f"reward {head!r} needs a question-answering model: {head}(model=FOLDER or a hub id)")
        known = p2(options["model"])
        published = known.weights if head == "QA_learned" else (1.0,) * len(known.weights)
        pairs = zip(known.columns, published, strict=True)
        return [Term(name, weight, _metric(name)) for name, weight in pairs], False
    names = _named_weights(spec)
    if weights is not None:
        if len(weights) != len(names):
            raise InputError(f"{len(weights)} weights for the {len(names)} parts of {spec!r}; give one for each")
        names = [(name, float(weight)) for (name, _), weight in zip(names, weights, strict=True)]
    distinct([name for name, _ in names], "reward")
    if not all(math.isfinite(weight) for _, weight in names) or not any(weight for _, weight in names):
        raise InputError(f"reward {spec!r}: weights must be finite numbers, and not all 0")
    return [_term(name, weight) for name, weight in names], True


def _named_weights(spec: str) -> list[tuple[str, float]]:
    pieces = split_outside(spec, ",")
    if pieces is None:
        raise InputError(f"reward {spec!r}: a parenthesis is not closed or not opened")
    # A folder may have commas and equal signs of its own.
    if Path(spec).expanduser().is_dir():
        return [(spec, 1.0)]
    found = []
    for piece in pieces:
        *parts, number = split_outside(piece, "=") or [piece]
        name = "=".join(parts)
        if not parts:
            name, number = piece, "1"
        if not name.strip():
            raise InputError(f"reward {spec!r}: a part has no name; write NAME=WEIGHT,NAME=WEIGHT")
        try:
            found.append((unquote(name.strip()), float(number)))
        except ValueError:
            raise InputError(f"reward {spec!r}: {number!r} is no weight; write {name}=1") from None
    return found


def _term(name: str, weight: float) -> Term:
    model, dot, aspect = name.rpartition(".")
    if dot and aspect in ASPECTS and _is_model(model):
        source = _model(model)
        if aspect not in _estimator(model).aspects:
            raise InputError(f"reward {name!r}: {model} has no aspects; take a model trained with head=align")
        return Term(name, weight, source, aspect)
    if dot and _is_model(model) and not Path(name).is_dir():
        raise InputError(f"reward {name!r}: no aspect is called {aspect!r}; {suggestion(aspect, list(ASPECTS))}")
    return Term(name, weight, _model(name) if _is_model(name) else _metric(name))


def _is_model(name: str) -> bool:
    return name in _READY or Path(name).expanduser().is_dir()


@lru_cache(maxsize=4)
def _estimator(name: str) -> "Estimator":
    from negsample.models import load

    estimator = load(None if name in _READY else name)
    estimator.expect_again()
    return estimator


@lru_cache(maxsize=4)
def _model(name: str) -> Source:
    estimator = _estimator(name)

    def score(items: Sequence[Item]) -> dict[str, np.ndarray]:
        found = estimator.scorer(name).score(items)
        return {name: np.asarray(column, np.float64) for name, column in {"": found.scores, **found.aspects}.items()}

    return Source(name, estimator.signature, frozenset({"document"}), score)


def _metric(spec: str) -> Source:
    metric = make_metric(spec)
    sign = 1.0 if metric.higher_is_better else -1.0
    return Source(metric.name, metric.signature, metric.needs, lambda items: {"": sign * metric.score(items).scores})

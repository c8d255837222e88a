"""The parts of a reward: models, their aspects and metrics, by name and weight (``Reward`` scales and adds them)."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from negsample.errors import InputError
from negsample.registry import distinct, suggestion
from negsample.scoring.metrics import METRICS, make_metric, p2
from negsample.scoring.scorer import Columns, Scorer
from negsample.spec import parse, split_outside


@dataclass(frozen=True)
class Term:
    """``weight`` · ``aspect`` (``score``: the score itself) of ``scorer``; ``name`` is what the user called it."""

    name: str
    weight: float
    scorer: Scorer
    aspect: str = "score"

    @property
    def supervised(self) -> bool:
        """Whether it can't be had without references."""
        return "references" in self.scorer.needs

    def values(self, found: Columns) -> np.ndarray:
        """Its column of what the scorer ``found``, float64 [n], more is better."""
        column = np.asarray(found.named()[self.aspect], np.float64)
        return column if self.scorer.higher_is_better else -column


def make_terms(spec: str) -> tuple[list[Term], bool]:
    """The terms of ``spec``, and whether their scales are to be made alike (those of a paper's sum are not).

    ``spec`` is one NAME, or ``NAME=WEIGHT, NAME=WEIGHT, …``. A NAME is a metric with its options (``rougeL(value=recall)``);
    or a model: ``ready``, a folder, a hub id, each also with an aspect or a target behind it (``ready.support``);
    ``QA_learned(model=QA)`` and ``QA_equally(model=QA)`` are the sums of Scialom et al. (2019 §4.2.1), with its weights or
    with equal ones. Raises InputError for anything else.
    """
    if (paper := spec.partition("(")[0].strip()) in ("QA_learned", "QA_equally"):
        published = p2(parse(spec).options.get("model", "")).items()
        return [
            Term(name, weight if paper == "QA_learned" else 1.0, make_metric(name)) for name, weight in published
        ], False
    names = _named_weights(spec)
    distinct([name for name, _ in names], "reward")
    if not all(math.isfinite(weight) for _, weight in names) or not any(weight for _, weight in names):
        raise InputError(f"reward {spec!r}: weights must be finite numbers, and not all 0")
    models: dict[str, Scorer] = {}
    return [_term(name, weight, models) for name, weight in names], True


def _named_weights(spec: str) -> list[tuple[str, float]]:
    # A folder may have commas and equal signs of its own.
    if Path(spec).expanduser().is_dir():
        return [(spec, 1.0)]
    pieces = split_outside(spec, ",")
    if pieces is None:
        raise InputError(f"reward {spec!r}: a parenthesis is not closed or not opened")
    found = []
    for piece in pieces:
        *parts, number = split_outside(piece, "=") or [piece]
        name, number = ("=".join(parts).strip(), number) if parts else (piece.strip(), "1")
        if not name:
            raise InputError(f"reward {spec!r}: a part has no name; write NAME=WEIGHT, NAME=WEIGHT")
        try:
            found.append((name, float(number)))
        except ValueError:
            raise InputError(f"reward {spec!r}: {number!r} is no weight; write {name}=1") from None
    return found


def _term(name: str, weight: float, models: dict[str, Scorer]) -> Term:
    """``models``: those that are loaded already."""
    model, dot, aspect = name.rpartition(".")
    if name.partition("(")[0].partition(":")[0] in METRICS or not (_is_model(name) or (dot and _is_model(model))):
        return Term(name, weight, make_metric(name))
    if _is_model(name):
        model, aspect = name, "score"
    if model not in models:
        from negsample.models import load_once

        estimator = load_once(model)
        estimator.expect_again()
        models[model] = estimator.scorer(model)
    scorer = models[model]
    if aspect not in ("score", *scorer.aspects):
        hint = suggestion(aspect, list(scorer.aspects)) if scorer.aspects else "that model has none"
        raise InputError(f"reward {name!r}: no aspect is called {aspect!r}; {hint}")
    return Term(name, weight, scorer, aspect)


def _is_model(name: str) -> bool:
    """Whether ``name`` is the ready estimator, a folder, or an id of the hub: what is behind its last dot is no aspect then."""
    end = name.rpartition(".")[2] if "." in name.rpartition("/")[2] else ""
    return name == "ready" or Path(name).expanduser().is_dir() or ("/" in name and not end.isidentifier())

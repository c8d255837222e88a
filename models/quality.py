"""A gate for tests: ``assert_quality`` fails where summaries score too low."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from negsample.models.estimator import Estimator
from negsample.scoring.gate import Gate, check_name
from negsample.scoring.outcomes import Outcome

if TYPE_CHECKING:
    import numpy as np


def assert_quality(
    documents: Sequence[str],
    summaries: Sequence[str],
    *,
    model: str | Path | Estimator | None = None,
    each: bool = False,
    **limits: float,
) -> None:
    """AssertionError, which names the ten lowest pairs, where the mean of a score is under its limit.

    ``limits``: ``score=0.2``, or an aspect's, as in ``support=0.4``; each in [0, 1]. With ``each`` no pair may be under
    one (a value that can't be judged is). ``model``: an estimator, or what ``Estimator.load`` takes; by default the ready
    one. Raises InputError for an unknown aspect, no limit at all, and texts that ``Estimator.score`` refuses.
    """
    estimator = model if isinstance(model, Estimator) else _loaded(None if model is None else str(model))
    for name in limits or {"": 0.0}:
        check_name(name, estimator.aspects)
    scored = estimator.score_pairs(documents, summaries)
    columns = scored.named()
    gate = Gate(limits, each)
    for place in range(len(documents)):
        gate.add(f"pair {place}", Outcome(float(scored.scores[place]), aspects=_values(columns, place)))
    if failures := gate.failures():
        raise AssertionError("\n".join(failures))


# A suite of tests asks often.
_loaded = lru_cache(maxsize=1)(Estimator.load)


def _values(columns: "dict[str, np.ndarray]", place: int) -> dict[str, float | None]:
    """What each column has for one pair, None for NaN."""
    return {name: float(column[place]) if column[place] == column[place] else None for name, column in columns.items()}

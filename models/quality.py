"""A gate for tests: ``assert_quality`` fails where summaries score too low."""

from collections.abc import Sequence
from pathlib import Path

from negsample.models import load_once
from negsample.models.estimator import Estimator
from negsample.records import as_list
from negsample.scoring.gate import Gate


def assert_quality(
    documents: Sequence[str],
    summaries: Sequence[str],
    references: Sequence[Sequence[str]] = (),
    *,
    model: str | Path | Estimator | None = None,
    each: bool = False,
    **limits: float,
) -> None:
    """AssertionError, which names the ten lowest pairs, where the mean of a score is under its limit.

    ``limits``: ``score=0.2``, or an aspect's, as in ``support=0.4``. With ``each`` no pair may be under one (a value that
    can't be judged is). ``model``: an estimator, or what ``negsample.models.load`` takes; by default the ready one.
    ``references`` [n] for a model that was fitted with them. Raises InputError for an unknown aspect, no limit or one that
    can't be (``Gate``), no pair at all, and texts that ``Estimator.score`` refuses.
    """
    estimator = model if isinstance(model, Estimator) else load_once(None if model is None else str(model))
    gate = Gate(limits, estimator.scorer(), each)
    documents = as_list(documents, "documents")
    gate.add([f"pair {n}" for n in range(len(documents))], estimator.score_pairs(documents, summaries, references))
    if failures := gate.failures():
        raise AssertionError("\n".join(failures))

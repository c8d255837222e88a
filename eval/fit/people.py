"""People's scores as what is to be fitted: values, and how much each summary counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from negsample.errors import InputError
from negsample.records import Judged
from negsample.registry import suggestion

FEWEST_ROWS = 5
FEWEST_DOCUMENTS = 2


@dataclass(frozen=True)
class People:
    """One human score of n summaries: ``values`` float64 [n], NaN where it is missing; ``weights`` [n] > 0, mean 1."""

    name: str
    values: np.ndarray
    weights: np.ndarray


def people(rows: Sequence[Judged], names: Sequence[str]) -> tuple[list[People], list[str]]:
    """The human scores ``names`` of ``rows``; none: all that something can be learned from, and why not from the others.

    A summary with several annotators has the mean m of their scores; with the variance v of that mean (sample variance
    over number) it weighs 1/(v̄ + v), v̄ being the mean of v over the summaries: the more they agree, the more it counts, up
    to twice as much as one of usual spread. Raises InputError for an unknown name, too few rows, and where nothing varies.
    """
    known = list(dict.fromkeys(name for row in rows for name in row.scores))
    for name in names:
        if name not in known:
            raise InputError(f"--target {name}: no judgments have that score; {suggestion(name, known)}")
    found: list[People] = []
    left_out: list[str] = []
    for name in names or known:
        values = np.array([row.scores.get(name, np.nan) for row in rows], dtype=np.float64)
        try:
            check(name, values, [row.document_id for row in rows])
        except InputError as error:
            if names or (name == known[-1] and not found):
                raise
            left_out.append(f"left out: {error}")
            continue
        found.append(People(name, values, _weights([row.ratings.get(name, ()) for row in rows])))
    return found, left_out


def check(name: str, values: np.ndarray, documents: Sequence[str]) -> None:
    """InputError where ``values`` [n] (NaN: missing) of the human score ``name`` are too few, or don't differ."""
    there = np.isfinite(values)
    count = len({document for document, has in zip(documents, there, strict=True) if has})
    if there.sum() < FEWEST_ROWS or count < FEWEST_DOCUMENTS:
        raise InputError(
            f"{name}: {there.sum()} judged summaries of {count} documents can be fitted; "
            f"at least {FEWEST_ROWS} of {FEWEST_DOCUMENTS} are needed"
        )
    if np.ptp(values[there]) == 0:
        raise InputError(
            f"{name}: all {there.sum()} judged summaries have the same score; nothing can be learned from it"
        )


def _weights(ratings: Sequence[Sequence[float]]) -> np.ndarray:
    variance = np.array([np.var(given, ddof=1) / len(given) if len(given) > 1 else np.nan for given in ratings])
    usual = np.nanmean(variance) if np.isfinite(variance).any() else 0.0
    if usual <= 0:
        return np.ones(len(ratings))
    weights = 1 / (usual + np.where(np.isnan(variance), usual, variance))
    return weights / weights.mean()


def together(targets: Sequence[People]) -> People:
    """What the overall score is fitted to: the mean of the targets, each in units of its spread, over those that there are."""
    if len(targets) == 1:
        return targets[0]
    values = np.stack([(t.values - np.nanmean(t.values)) / np.nanstd(t.values) for t in targets])
    there = np.isfinite(values)
    count = there.sum(axis=0)
    mean = np.where(count > 0, np.where(there, values, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)
    return People("overall", mean, np.mean([t.weights for t in targets], axis=0))


def shown_name(human: str, taken: Mapping[str, object]) -> str:
    """The name of a target among the aspects: that of the human score, if no aspect has it."""
    return f"people_{human}" if human in taken else human

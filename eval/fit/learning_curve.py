"""How many judged documents are enough: fits to random ones of them, measured on all others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from negsample.eval.agreement.correlation import correlation_matrix
from negsample.eval.agreement.levels import Block, averaged, document_correlations
from negsample.eval.fit.ranking import best_aspect, fit_weights
from negsample.eval.fit.target import Problem
from negsample.progress import Bar
from negsample.seeds import generator

DRAWS = 20
FIRST = 5
# Documents that a fit must leave to be measured on: at least so many, and this share.
_LEFT, _SHARE = 5, 4


@dataclass(frozen=True)
class CurvePoint:
    """Agreement on the documents left out when ``documents`` are fitted (``summaries``: of them, on average), mean and
    standard deviation over draws; beside it, on the same documents, the overall score as it was and the aspect that agrees
    best on those fitted.
    """

    documents: int
    summaries: float
    mean: float
    sd: float
    unfitted: float
    aspect: float


def sizes(documents: int) -> list[int]:
    """5, 10, 20, 40 … documents, as many as leave five, and a quarter of all, to measure on."""
    found = []
    size = FIRST
    while size <= documents - max(_LEFT, documents // _SHARE):
        found.append(size)
        size *= 2
    return found


def learning_curve(task: Problem, *seed: object, draws: int = DRAWS, label: str = "learning curve") -> list[CurvePoint]:
    """The curve over `sizes`: Spearman's correlation within documents (mean), or Pearson's over all rows, as the fit is."""
    every = np.arange(task.data.documents)
    counts = np.bincount(task.documents, minlength=len(every))
    aspects = task.inputs[:, list(task.data.aspects)].T
    points = []
    with Bar(label, total=len(sizes(len(every)))) as bar:
        for size in sizes(len(every)):
            drawn = [
                np.sort(generator("learning curve", size, draw, *seed).permutation(every)[:size])
                for draw in range(draws)
            ]
            fitted = np.stack(
                [
                    fit_weights(task.data, chosen, task.inputs[task.of(chosen)], size, draw, *seed).sums(task.inputs)
                    for draw, chosen in enumerate(drawn)
                ]
            )
            best = [task.data.aspects.index(best_aspect(task.data, chosen)) for chosen in drawn]
            found = _agreements(task, np.concatenate([aspects, fitted]), [*drawn])
            rows = np.arange(draws)
            # Fitted, as it was, best aspect: on the same documents left out.
            beside = np.stack([found[rows, len(aspects) + rows], found[:, 0], found[rows, best]])
            beside = beside[:, np.isfinite(beside).all(axis=0)]
            if beside.shape[1] > 1:
                summaries = float(np.mean([counts[chosen].sum() for chosen in drawn]))
                sd = float(beside[0].std(ddof=1))
                mean, unfitted, aspect = (float(value) for value in beside.mean(axis=1))
                points.append(CurvePoint(size, summaries, mean, sd, unfitted, aspect))
            bar.advance()
    return points


def _agreements(task: Problem, columns: np.ndarray, drawn: Sequence[np.ndarray]) -> np.ndarray:
    """[draws, C]: agreement of ``columns`` [C, n] with people outside the documents of each draw."""
    values = np.concatenate([columns, task.people[None]])
    last = len(columns)
    if not task.data.within:
        outside = [~np.isin(task.documents, chosen) for chosen in drawn]
        return np.stack([correlation_matrix(values[:, rows], "pearson")[last, :last] for rows in outside])
    order = np.argsort(task.documents, kind="stable")
    block = Block(values[:, order], task.documents[order], np.full(len(order), -1), task.data.documents, 0)
    each = document_correlations(block, "spearman", [(k, last) for k in range(last)])
    left = np.stack([~np.isin(np.arange(len(each)), chosen) for chosen in drawn])
    return averaged(each, left.astype(np.float64))

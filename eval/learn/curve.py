"""How many judged documents are enough: fits to random ones of them, measured on all others."""

from dataclasses import dataclass

import numpy as np

from negsample.eval.learn.weights import Problem, agreements, best_aspect, fit_weights
from negsample.progress import Bar
from negsample.seeds import generator

_DRAWS = 20
_FIRST = 5
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
    most = documents - max(_LEFT, documents // _SHARE)
    return [_FIRST << k for k in range(most.bit_length()) if _FIRST << k <= most]


def learning_curve(task: Problem, seed: int, label: str = "learning curve") -> list[CurvePoint]:
    """The curve over `sizes`, in the terms of `agreements`."""
    every = np.unique(task.documents)
    points = []
    with Bar(label, total=len(sizes(len(every)))) as bar:
        for size in sizes(len(every)):
            found, summaries = [], 0
            for draw in range(_DRAWS):
                drawn = generator("learning curve", size, draw, seed).permutation(every)[:size]
                part = task.part(task.of(drawn))
                rest = task.part(task.of(np.setdiff1d(every, drawn)))
                shown = [fit_weights(part).sums(rest.inputs), rest.inputs[:, 0], rest.inputs[:, best_aspect(part)]]
                found.append(agreements(rest, np.stack(shown)))
                summaries += len(part.people)
            good = np.array([each for each in found if np.isfinite(each).all()])
            if len(good) > 1:
                means = [float(value) for value in good.mean(axis=0)]
                points.append(CurvePoint(size, summaries / _DRAWS, means[0], float(good[:, 0].std(ddof=1)), *means[1:]))
            bar.advance()
    return points

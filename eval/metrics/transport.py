"""Exact transport between two bags of vectors, Euclidean cost (Clark et al. 2019, eq. 2; Kusner et al. 2015)."""

import warnings
from dataclasses import dataclass

import numpy as np

# Cost matrices up to 5,000 × 5,000 float64: 200 MB, and about half a minute of the solver.
MOST_CELLS = 25_000_000
_PIVOTS = 10**8
# Below this share of the largest squared lengths, |x|² + |y|² − 2xy has lost too many digits.
_NEAR = 1e-4
_PAIRS_AT_A_TIME = 1 << 16
# So few numbers are subtracted faster than a matrix product is set up: sentences of short texts.
_FEW = 1 << 13
# Weights are ratios of whole numbers; a difference this small is rounding.
_NO_WEIGHT = 1e-14


@dataclass(frozen=True, eq=False)
class Bag:
    """A text as weight on points: ``points`` int64 [k], ascending and distinct, rows of a matrix of vectors;
    ``weights`` float64 [k], positive, of sum 1."""

    points: np.ndarray
    weights: np.ndarray


def distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Euclidean distances of the rows of ``x`` [n, d] and ``y`` [m, d]; float64 [n, m], exactly 0 for equal rows.

    |x − y|² = |x|² + |y|² − 2xy by one matrix product; the few pairs where that cancels are computed by difference.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(x) * y.size <= _FEW:
        return np.sqrt(np.square(x[:, None] - y[None]).sum(axis=2))
    centre = y.mean(axis=0)
    x, y = x - centre, y - centre
    of_x, of_y = np.einsum("nd,nd->n", x, x), np.einsum("md,md->m", y, y)
    squares = x @ y.T
    squares *= -2
    squares += of_x[:, None]
    squares += of_y
    near = np.flatnonzero(squares.ravel() < _NEAR * (of_x.max(initial=0) + of_y.max(initial=0)))
    for start in range(0, len(near), _PAIRS_AT_A_TIME):
        places = near[start : start + _PAIRS_AT_A_TIME]
        rows, columns = np.divmod(places, len(y))
        squares.ravel()[places] = ((x[rows] - y[columns]) ** 2).sum(axis=1)
    return np.sqrt(squares, out=squares)


def exact_cost(a: np.ndarray, b: np.ndarray, costs: np.ndarray) -> float | None:
    """Least Σ T·costs over T ≥ 0 with row sums ``a`` [n] and column sums ``b`` [m] (each of sum 1); None unsolved.

    Network simplex of POT (Bonneel et al., 2011), exact; its result is used only if it says that it is optimal.
    """
    import ot

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cost, log = ot.emd2(a, b, costs, numItermax=_PIVOTS, log=True, center_dual=False, check_marginals=False)
    return float(cost) if log["warning"] is None else None


def mover_distance(vectors: np.ndarray, a: Bag, b: Bag) -> float | str:
    """The mover's distance of two bags over the rows of ``vectors`` [p, d], or the reason why it can't be computed.

    Weight that both bags have on one point stays there: distances obey the triangle inequality, so no plan gains by
    moving it, and the optimum depends on the difference of the bags alone (Kantorovich and Rubinstein). What is left
    goes to the solver. The reason is a cost matrix of more than ``MOST_CELLS`` cells.
    """
    points = np.union1d(a.points, b.points)
    surplus = np.zeros(len(points))
    surplus[np.searchsorted(points, a.points)] = a.weights
    surplus[np.searchsorted(points, b.points)] -= b.weights
    givers, takers = np.flatnonzero(surplus > _NO_WEIGHT), np.flatnonzero(surplus < -_NO_WEIGHT)
    if not len(givers) or not len(takers):
        return 0.0
    if len(givers) * len(takers) > MOST_CELLS:
        return f"the texts are too long for exact transport ({len(givers)} × {len(takers)} > {MOST_CELLS:,} distances)"
    given, taken = surplus[givers], -surplus[takers]
    moved = float(given.sum())
    costs = distances(vectors[points[givers]], vectors[points[takers]])
    cost = exact_cost(given / moved, taken / taken.sum(), costs)
    return "the transport solver did not reach the optimum" if cost is None else max(0.0, cost * moved)

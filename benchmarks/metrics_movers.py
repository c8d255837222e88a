"""Mover's similarity against the textbook linear programme and against POT alone, on the same problems in one run.

``python benchmarks/metrics_movers.py [--words 100] [--pairs 20] [--linprog 3] [--dim 50]``

Each problem is two texts of ``--words`` distinct words with normal vectors and random counts. ``linprog`` builds the
constraint matrix as the equations are written and solves it with ``scipy.optimize.linprog`` (HiGHS), timed on
``--linprog`` of the pairs; ``POT`` is ``ot.dist`` and ``ot.emd2``; ``negsample`` is ``mover_distance``. First without a
word in common, the worst case, then with half of the words in common. Exits with 1 where our values are more than 1e-9
from linprog's or 1e-6 from POT's (``ot.dist`` puts a point up to 1e-7 from itself), where linprog takes less than 10
times our time, or where we take more than 1.2 times POT's.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import ot
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from negsample.eval.metrics.bags import Bag
from negsample.eval.metrics.movers import mover_distance
from negsample.seeds import generator

Problem = tuple[np.ndarray, Bag, Bag]


def problems(words: int, pairs: int, dim: int, shared: int) -> list[Problem]:
    """``pairs`` problems of two texts with ``words`` distinct words each, ``shared`` of them in common."""
    rng = generator("benchmark", "movers", words, shared)
    made = []
    for _ in range(pairs):
        vectors = rng.normal(size=(2 * words - shared, dim))
        sides = (np.arange(words), np.arange(words - shared, 2 * words - shared))
        counts = [rng.integers(1, 5, size=words) for _ in sides]
        bags = [Bag(points, count / count.sum()) for points, count in zip(sides, counts, strict=True)]
        made.append((vectors, bags[0], bags[1]))
    return made


def by_linprog(vectors: np.ndarray, a: Bag, b: Bag) -> float:
    """Equation 2 of Clark et al. 2019 as it stands."""
    n, m = len(a.points), len(b.points)
    costs = cdist(vectors[a.points], vectors[b.points])
    rows = np.concatenate([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    return float(linprog(costs.ravel(), A_eq=rows, b_eq=np.concatenate([a.weights, b.weights]), method="highs").fun)


def by_pot(vectors: np.ndarray, a: Bag, b: Bag) -> float:
    """POT's own distances and solver."""
    costs = ot.dist(vectors[a.points], vectors[b.points], metric="euclidean")
    return float(ot.emd2(a.weights, b.weights, costs))


def timed(job: Callable[[np.ndarray, Bag, Bag], object], made: Sequence[Problem], repeats: int) -> tuple[float, list]:
    """Seconds a pair, the least of ``repeats`` passes, and the values."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        values = [job(*problem) for problem in made]
        seconds.append(time.perf_counter() - began)
    return min(seconds) / len(made), values


def main() -> int:
    """Print the table; 0 where values agree and the ratios hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("words", 100), ("pairs", 20), ("linprog", 3), ("dim", 50)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    print(f"{options.pairs} pairs of texts with {options.words} distinct words, {options.dim} dimensions; ms a pair")
    print(f"{'in common':>10s} {'linprog':>9s} {'POT':>8s} {'negsample':>10s} {'linprog/ours':>13s} {'ours/POT':>9s}")
    good = True
    for shared in (0, options.words // 2):
        made = problems(options.words, options.pairs, options.dim, shared)
        slow, expected = timed(by_linprog, made[: options.linprog], 1)
        timed(by_pot, made, 1)
        pot, values = timed(by_pot, made, 5)
        ours, got = timed(mover_distance, made, 5)
        good &= bool(np.allclose(got, values, rtol=0, atol=1e-6))
        good &= bool(np.allclose(got[: len(expected)], expected, rtol=0, atol=1e-9))
        good &= slow >= 10 * ours and ours <= 1.2 * pot
        line = f"{shared:10d} {slow * 1e3:9.1f} {pot * 1e3:8.2f} {ours * 1e3:10.2f}"
        print(f"{line} {slow / ours:12.1f}x {ours / pot:8.2f}x")
    print("values agree and ratios hold" if good else "VALUES DIFFER OR A RATIO IS MISSED")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())

"""The metrics against their peers, each in one run on the same texts: ROUGE, mover's similarity, Fréchet distance.

``python benchmarks/metrics.py [rouge] [movers] [frechet] [--judgments FILE] [--size 1.0]``: all three by default;
``--size`` shrinks them. Prints times (the best of three), their ratio and the largest difference; exits with 1 where a value
differs or a ratio is missed.

- ``rouge``: the ``rouge-score`` package on 1,000 summaries (20 systems × 50 documents, about 60 words by Zipf's law, or those
  of a FILE of judgments) with a reference each; values may differ by 1e-12.
- ``movers``: two texts of 100 distinct words with normal vectors and random counts, without a word in common and then with
  half of them: the textbook linear programme (HiGHS; at least 10 times our time, 1e-9) and POT's distances and solver (we
  take at most 1.2 times its time; 1e-6, for ``ot.dist`` puts a point up to 1e-7 from itself).
- ``frechet``: ``scipy.linalg.sqrtm`` of the covariances' product, on normal vectors of 512 dimensions with a falling
  spectrum. With more texts than dimensions the values must agree to 1e-6; with fewer, ``sqrtm`` takes the root of a singular
  matrix, its value is printed for what it is worth, and it must take 15 times our time.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ot
from scipy.linalg import sqrtm
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from negsample.eval.judgments import load_judgments
from negsample.eval.metrics.corpus import frechet_distance
from negsample.eval.metrics.movers import Bag, mover_distance
from negsample.scoring.scorer import Item, make_metric
from negsample.seeds import generator

KINDS = ("rouge1", "rouge2", "rougeL", "rougeLsum")
Problem = tuple[np.ndarray, Bag, Bag]


def best_of(times: int, job: Callable[[], Any]) -> tuple[float, Any]:
    """Least seconds of several runs, and the result."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        result = job()
        seconds.append(time.perf_counter() - began)
    return min(seconds), result


def made_up(summaries: int) -> list[Item]:
    """Summaries of about 60 words in four lines, and 50 references that they share."""
    rng = generator("benchmark", "rouge")
    weights = 1 / np.arange(1, 3001)
    vocabulary = [f"word{rank}" for rank in range(3000)]

    def text() -> str:
        lines = []
        for _ in range(4):
            ranks = rng.choice(3000, size=int(rng.integers(10, 21)), p=weights / weights.sum())
            lines.append(" ".join(vocabulary[rank] for rank in ranks) + ".")
        return "\n".join(lines)

    references = [text() for _ in range(50)]
    return [Item("", text(), (references[number % 50],)) for number in range(summaries)]


def rouge(size: float, judgments: str | None) -> bool:
    """ROUGE against rouge-score."""
    from rouge_score.rouge_scorer import RougeScorer

    count = max(1, round(1000 * size))
    items = made_up(count)
    if judgments:
        # Publishers' " . " becomes a line break, so that both split Lsum's sentences in the same places.
        rows = [(row.summary, row.references[0]) for row in load_judgments(judgments)[:count]]
        items = [Item("", a.replace(" . ", " .\n"), (b.replace(" . ", " .\n"),)) for a, b in rows]
    print(f"{len(items)} summaries; seconds")
    print(f"{'kind':18s} {'rouge-score':>12s} {'negsample':>10s} {'ratio':>7s} {'difference':>11s}")
    worst = 0.0
    for stem in (False, True):
        for kind in KINDS:
            scorer = RougeScorer([kind], use_stemmer=stem)
            options = f"stem={str(stem).lower()}" + (",sentences=newline" if kind == "rougeLsum" else "")
            metric = make_metric(f"{kind}({options})")

            def theirs(scorer: RougeScorer = scorer, kind: str = kind) -> np.ndarray:
                return np.array([scorer.score(item.references[0], item.summary)[kind].fmeasure for item in items])

            slow, expected = best_of(3, theirs)
            fast, got = best_of(3, lambda metric=metric: metric.score(items).scores)  # type: ignore[misc]
            worst = max(worst, float(np.abs(got - expected).max()))
            label = f"{kind}{' (stem)' if stem else ''}"
            print(f"{label:18s} {slow:12.3f} {fast:10.3f} {slow / fast:6.1f}x {np.abs(got - expected).max():11.1e}")
    return worst <= 1e-12


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


def movers(size: float) -> bool:
    """Mover's distance against the linear programme and POT."""
    words, pairs, few = max(10, round(100 * size)), max(2, round(20 * size)), max(1, round(3 * size))
    print(f"{pairs} pairs of texts with {words} distinct words, 50 dimensions; ms a pair")
    print(f"{'in common':>10s} {'linprog':>9s} {'POT':>8s} {'negsample':>10s} {'linprog/ours':>13s} {'ours/POT':>9s}")
    good = True
    for shared in (0, words // 2):
        made = problems(words, pairs, 50, shared)
        slow, expected = best_of(1, lambda made=made: [by_linprog(*one) for one in made[:few]])  # type: ignore[misc]
        pot, values = best_of(5, lambda made=made: [by_pot(*one) for one in made])  # type: ignore[misc]
        ours, got = best_of(5, lambda made=made: [mover_distance(*one) for one in made])  # type: ignore[misc]
        slow, pot, ours = slow / few, pot / pairs, ours / pairs
        good &= bool(np.allclose(got, values, rtol=0, atol=1e-6)) and ours <= 1.2 * pot
        good &= bool(np.allclose(got[:few], expected, rtol=0, atol=1e-9)) and slow >= 10 * ours
        line = f"{shared:10d} {slow * 1e3:9.1f} {pot * 1e3:8.2f} {ours * 1e3:10.2f}"
        print(f"{line} {slow / ours:12.1f}x {ours / pot:8.2f}x")
    return good


def by_sqrtm(x: np.ndarray, y: np.ndarray) -> float:
    """The definition as it is usually programmed: the real part of a matrix square root's trace."""
    of_x, of_y = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
    means = x.mean(axis=0) - y.mean(axis=0)
    return float(means @ means + np.trace(of_x + of_y) - 2 * np.trace(sqrtm(of_x @ of_y)).real)


def frechet(size: float) -> bool:
    """Fréchet distance against the matrix square root."""
    dim = max(8, round(512 * size))
    scale = 1 / np.sqrt(np.arange(1, dim + 1))
    print(f"{dim} dimensions; ms")
    print(f"{'texts a side':>12s} {'sqrtm':>9s} {'negsample':>10s} {'ratio':>8s} {'difference':>11s}")
    good = True
    for texts in (max(2, dim // 5), 2 * dim, 10 * dim):
        rng = generator("benchmark", "frechet", texts)
        x = rng.normal(size=(texts, dim)) * scale
        y = rng.normal(size=(texts, dim)) * scale[::-1] ** 0.5 + 0.1
        slow, expected = best_of(3, lambda x=x, y=y: by_sqrtm(x, y))  # type: ignore[misc]
        fast, got = best_of(3, lambda x=x, y=y: frechet_distance(x, y))  # type: ignore[misc]
        difference = abs(got - expected) / abs(expected)
        good &= slow >= 15 * fast if texts <= dim else difference < 1e-6
        print(f"{texts:12d} {slow * 1e3:9.1f} {fast * 1e3:10.2f} {slow / fast:7.1f}x {difference:11.1e}")
    return good


def main() -> int:
    """Run each part; 0 where all values agree and the ratios hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="rouge, movers, frechet; all by default")
    parser.add_argument("--judgments", help="real summaries for ROUGE")
    parser.add_argument("--size", type=float, default=1.0)
    options = parser.parse_args()
    parts = {
        "rouge": lambda: rouge(options.size, options.judgments),
        "movers": lambda: movers(options.size),
        "frechet": lambda: frechet(options.size),
    }
    missed = []
    for part in options.parts or parts:
        print(f"== {part}", flush=True)
        if not parts[part]():
            missed.append(part)
    print(f"VALUES DIFFER OR A RATIO IS MISSED: {', '.join(missed)}" if missed else "values agree and ratios hold")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())

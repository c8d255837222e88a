"""Fréchet distance against ``scipy.linalg.sqrtm`` of the covariances' product, on the same vectors in one run.

``python benchmarks/metrics_frechet.py [--dim 512] [--texts 100,1000,5000]``

Rows are normal vectors with a falling spectrum, as embeddings have. Prints, for each number of texts a side, ms of both
(best of three), the ratio, and the relative difference. With more texts than dimensions the covariances have full rank
and the values must agree to 1e-6; with fewer, ``sqrtm`` takes the root of a singular matrix, and its value is printed
for what it is worth. Exits with 1 where values differ, or where the ratio with fewer texts than dimensions is under 15.
"""

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.linalg import sqrtm

from negsample.eval.metrics.corpus import frechet_distance
from negsample.seeds import generator


def by_sqrtm(x: np.ndarray, y: np.ndarray) -> float:
    """The definition as it is usually programmed: the real part of a matrix square root's trace."""
    of_x, of_y = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
    means = x.mean(axis=0) - y.mean(axis=0)
    return float(means @ means + np.trace(of_x + of_y) - 2 * np.trace(sqrtm(of_x @ of_y)).real)


def best_of(times: int, job: Callable[[], float]) -> tuple[float, float]:
    """Least seconds, and the value."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        value = job()
        seconds.append(time.perf_counter() - began)
    return min(seconds), value


def main() -> int:
    """Print the table; 0 where values agree and the ratio holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--texts", default="100,1000,5000")
    options = parser.parse_args()
    scale = 1 / np.sqrt(np.arange(1, options.dim + 1))
    print(f"{options.dim} dimensions; ms, best of three")
    print(f"{'texts a side':>12s} {'sqrtm':>9s} {'negsample':>10s} {'ratio':>8s} {'difference':>11s}")
    good = True
    for texts in map(int, options.texts.split(",")):
        rng = generator("benchmark", "frechet", texts)
        x = rng.normal(size=(texts, options.dim)) * scale
        y = rng.normal(size=(texts, options.dim)) * scale[::-1] ** 0.5 + 0.1
        slow, expected = best_of(3, lambda x=x, y=y: by_sqrtm(x, y))  # type: ignore[misc]
        fast, got = best_of(3, lambda x=x, y=y: frechet_distance(x, y))  # type: ignore[misc]
        difference = abs(got - expected) / abs(expected)
        few = texts <= options.dim
        good &= slow >= 15 * fast if few else difference < 1e-6
        print(f"{texts:12d} {slow * 1e3:9.1f} {fast * 1e3:10.2f} {slow / fast:7.1f}x {difference:11.1e}")
    print("values agree and the ratio holds" if good else "VALUES DIFFER OR THE RATIO IS MISSED")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())

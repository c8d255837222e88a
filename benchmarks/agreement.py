"""Bootstrap intervals of agreement with people: time against a plain loop of scipy calls, in the same run.

python benchmarks/agreement.py [--documents 100] [--systems 24] [--metrics 20] [--resamples 1000]

The loop resamples documents, builds the rows, and calls scipy for each metric, level and coefficient, as scripts do. It
is timed on a few resamples (``--loop``) and its time for all of them is the share scaled up, since the whole of it
takes hours. Both sides compute the pooled, summary and system level with Pearson, Spearman and Kendall; the loop
leaves out the partial correlations given the number of words, which the package computes as well.
"""

import argparse
import time

import numpy as np
from scipy import stats

from negsample.eval.agreement.figures import agreement
from negsample.eval.agreement.levels import Resamples, ScoreTable, make_resamples, make_table
from negsample.eval.agreement.significance import compare_metrics

COEFFICIENTS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


def made_table(documents: int, systems: int, metrics: int) -> ScoreTable:
    """Normal scores of ``metrics`` metrics that agree more and less with one human score in steps of 0.05."""
    rng = np.random.default_rng(0)
    d, s = (a.ravel() for a in np.meshgrid(np.arange(documents), np.arange(systems), indexing="ij"))
    human = np.round(rng.normal(size=systems)[s] + rng.normal(size=len(d)), 2)
    scores = {f"metric{m}": human * m / metrics + rng.normal(size=len(d)) for m in range(metrics)}
    words = rng.integers(20, 90, size=len(d))
    return make_table("made", [f"{i:05}" for i in d], [f"{i:03}" for i in s], {"human": human}, scores, words)


def loop(table: ScoreTable, resamples: Resamples, count: int) -> None:
    """``count`` resamples by scipy."""
    y = table.human["human"]
    rows_of = [np.flatnonzero(table.documents == d) for d in range(len(table.document_names))]
    for b in range(count):
        drawn = np.repeat(np.arange(len(rows_of)), resamples.weights[b].astype(int))
        rows = np.concatenate([rows_of[d] for d in drawn])
        which = [rows[table.systems[rows] == s] for s in range(len(table.system_names))]
        picked = (resamples.systems[b] * len(which)).astype(int)
        for x in table.metrics.values():
            means = np.array([[x[which[s]].mean(), y[which[s]].mean()] for s in picked]).T
            for coefficient in COEFFICIENTS.values():
                coefficient(x[rows], y[rows])
                np.mean([coefficient(x[rows_of[d]], y[rows_of[d]])[0] for d in drawn])
                coefficient(*means)


def main() -> None:
    """Time both and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("documents", 100), ("systems", 24), ("metrics", 20), ("resamples", 1000), ("loop", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    table = made_table(options.documents, options.systems, options.metrics)
    print(
        f"{len(table.words)} rows, {options.metrics} metrics, {options.resamples} resamples, 3 levels × 3 coefficients"
    )

    start = time.perf_counter()
    figures = agreement(table, bootstrap=options.resamples)
    ours = time.perf_counter() - start
    assert all(figure.low is not None for figure in figures)
    print(f"negsample  {ours:8.1f} s")

    resamples = make_resamples(table, options.loop, seed=0)
    start = time.perf_counter()
    loop(table, resamples, options.loop)
    theirs = (time.perf_counter() - start) * options.resamples / options.loop
    print(f"scipy loop {theirs:8.1f} s (from {options.loop} resamples)")
    print(f"ratio      {theirs / ours:8.1f}")

    start = time.perf_counter()
    compare_metrics(table, "human", level="summary", bootstrap=options.resamples, permutations=options.resamples)
    pairs = options.metrics * (options.metrics - 1) // 2
    print(f"{pairs} paired comparisons, summary level: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()

"""Shares of summaries, or of pairs, that metrics get right: functions of sums over documents, with intervals, compared by two."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from negsample.eval.agreement.figures import AgreementFigure
from negsample.eval.agreement.significance import WILLIAMS_LABELS, MetricsComparison
from negsample.resampling import bootstrap_p, patterns, percentile_interval, permutation_p
from negsample.seeds import generator


@dataclass(frozen=True)
class Kind:
    """The shares of a ``level``: the ``names`` by which they are called in files → what heads their columns. ``of`` makes them,
    [..., names], of sums [..., k], NaN where undefined; ``undefined`` says why, a text a name. ``missing``: what a row lacks that
    is left out; ``nothing``: why a metric has none at all.
    """

    level: str
    names: Mapping[str, str]
    of: Callable[[np.ndarray], np.ndarray]
    undefined: Sequence[str]
    missing: str
    nothing: str


@dataclass(frozen=True)
class Shares:
    """The shares of all metrics beside one human score, and ``how`` they were measured. ``constant``: what a score that is the
    same for all comes to, and its name; ``limits``: metric → the limit under which a summary is called bad, None without one.
    ``figures`` have a name of the ``kind`` as coefficient; ``comparisons`` are of the first of them.
    """

    human: str
    kind: Kind
    how: str
    constant: tuple[str, Sequence[float | None]] = ("", ())
    limits: dict[str, float | None] = field(default_factory=dict)
    figures: tuple[AgreementFigure, ...] = ()
    comparisons: tuple[MetricsComparison, ...] = ()


def measure_shares(
    dataset: str,
    human: str,
    kind: Kind,
    counts: Mapping[str, np.ndarray],
    documents: np.ndarray,
    systems: np.ndarray,
    *,
    bootstrap: int = 1000,
    permutations: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Return ``figures`` and ``comparisons`` of metrics by their ``counts`` [n, k], NaN where a row is not measured.

    ``documents`` [n], ``systems`` [n, m] are codes, −1 for no system. Intervals: documents resampled. Two metrics are compared
    over the rows that both have: within random documents they change places.
    """
    codes = np.unique(documents, return_inverse=True)[1]
    total, level = int(codes.max(initial=-1)) + 1, kind.level
    there = {name: ~np.isnan(own).any(axis=1) for name, own in counts.items()}

    def sums(name: str, rows: np.ndarray) -> np.ndarray:
        found = np.zeros((total, counts[name].shape[1]))
        np.add.at(found, codes[rows], counts[name][rows])
        return found

    rng = generator(seed, "bootstrap", dataset, level)
    weights = rng.multinomial(total, np.full(total, 1 / total), size=bootstrap).astype(np.float64)
    figures, comparisons = [], []
    for name, rows in there.items():
        own, used = sums(name, rows), systems[rows]
        n, size = int(rows.sum()), (len(np.unique(codes[rows])), len(np.unique(used[used >= 0])))
        left_out = {kind.missing: len(rows) - n} if n < len(rows) else {}
        told = zip(kind.names, kind.of(own.sum(axis=0)), kind.of(weights @ own).T, kind.undefined, strict=True)
        for share, value, samples, why in told:
            about = dataset, human, name, level, share
            if np.isnan(value):
                reason = why if n else kind.nothing
                shown = AgreementFigure(*about, None, None, None, None, n, *size, left_out=left_out, reason=reason)
            else:
                low, high, _ = percentile_interval(samples)
                shown = AgreementFigure(*about, float(value), low, high, None, n, *size, left_out=left_out)
            figures.append(shown)
    keep, exact = patterns(generator(seed, "permutation", dataset, level), total, permutations)
    for first, second in combinations(counts, 2):
        rows = there[first] & there[second]
        one, two = sums(first, rows), sums(second, rows)
        values = [float(kind.of(own.sum(axis=0))[0]) for own in (one, two)]
        named = dataset, human, level, next(iter(kind.names)), first, second
        used_rows = int(rows.sum()), len(np.unique(codes[rows]))
        plain = MetricsComparison(*named, *used_rows, reason=kind.nothing, williams_reason=WILLIAMS_LABELS)
        if not np.isnan(values).any():
            sampled = kind.of(weights @ one)[:, 0] - kind.of(weights @ two)[:, 0]
            swapped = kind.of(keep @ one + (1 - keep) @ two)[:, 0] - kind.of(keep @ two + (1 - keep) @ one)[:, 0]
            p = bootstrap_p(sampled), permutation_p(values[0] - values[1], swapped, exact)
            low, high, _ = percentile_interval(sampled)
            found = values[0], values[1], values[0] - values[1], low, high
            plain = replace(MetricsComparison(*named, *used_rows, *found, *p), williams_reason=WILLIAMS_LABELS)
        comparisons.append(plain)
    return {"figures": tuple(figures), "comparisons": tuple(comparisons)}

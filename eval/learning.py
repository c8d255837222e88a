"""Fitting a weighted sum of metrics to what people said, by ridge regression (Scialom et al. 2019, §2.4)."""

from collections.abc import Mapping, Sequence

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics import make_metric, score_judged
from negsample.eval.metrics.learned import HeldOut, Learned
from negsample.eval.stats.correlation import correlation_matrix
from negsample.records import Judged
from negsample.seeds import generator

SPLITS = 1000
_FEWEST_ROWS = 6


def learn(
    specs: Sequence[str], judged: Sequence[Judged], human: Sequence[str], *, half: str = "tune", seed: int = 0
) -> Learned:
    """Compute the metrics ``specs`` for judged summaries and fit them to the human scores ``human``.

    Only rows of ``half`` are scored and fitted (``""``: all rows). Whole documents go to one side of a split. Raises
    InputError where a metric or a human score is unknown or too few rows are left.
    """
    chosen = [row for row in judged if not half or row.half == half]
    if not chosen:
        raise InputError(f"no judged row has half={half!r}; give half='' to fit on all rows")
    known = sorted({name for row in chosen for name in row.scores})
    for name in human:
        if name not in known:
            raise InputError(f"no human score is called {name!r}; known: {', '.join(known)}")
    columns = {metric.name: score_judged(metric, chosen).values for metric in map(make_metric, specs)}
    scores = {name: np.array([row.scores.get(name, np.nan) for row in chosen]) for name in human}
    if not columns or not scores:
        raise InputError("give at least one metric and one human score to fit")
    return fit_learned(columns, scores, [row.document_id for row in chosen], seed=seed)


def fit_learned(
    columns: Mapping[str, np.ndarray],
    human: Mapping[str, np.ndarray],
    documents: Sequence[str],
    *,
    penalty: float = 1.0,
    splits: int = SPLITS,
    seed: int = 0,
) -> Learned:
    """Fit the geometric mean of ``human`` by ridge regression on ``columns``, and measure it on random held-out halves.

    ``columns``: metric specification → float64 [n] (NaN: missing). ``human``: name → float64 [n]. Rows with a missing
    value are left out and counted. ``documents``: [n] document ids; a split puts all rows of a document into the same
    half (Scialom et al. split rows, which lets a document stand on both sides). ``penalty``: λ, theirs is 1. An
    intercept is fitted (their formula has none, but its weights cannot reach scores of 1 to 10 without). The weights
    returned are those of all rows; ``held_out`` has the Spearman correlations of ``splits`` fits on one random half
    each, measured on the other half. Raises InputError where fewer than six rows or two documents are left.
    """
    x, y = np.stack(list(columns.values()), axis=1), geometric_mean(human)
    whole = np.isfinite(x).all(axis=1) & np.isfinite(y)
    x, y = x[whole], y[whole]
    if len(y) < _FEWEST_ROWS:
        raise InputError(
            f"only {len(y)} rows have every column and every human score; at least {_FEWEST_ROWS} are needed"
        )
    groups = np.unique(np.array(documents, dtype=str)[whole], return_inverse=True)[1]
    weights, intercept = _ridge(x, y, penalty)
    return Learned(
        columns=tuple(columns),
        weights=tuple(map(float, weights)),
        intercept=intercept,
        human=tuple(human),
        ridge=penalty,
        rows=len(y),
        left_out=int((~whole).sum()),
        held_out=_held_out(x, y, groups, penalty, splits, seed),
        source=f"fitted, seed {seed}",
    )


def geometric_mean(human: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return (Π scores)^(1/number of scores) of each row, float64 [n]; NaN where one is missing.

    ``human``: name → float64 [n]. Raises InputError for a negative score, which has no geometric mean.
    """
    values = np.stack(list(human.values()))
    for name, scores in zip(human, values, strict=True):
        if (scores < 0).any():
            raise InputError(f"human score {name!r} has a negative value; a geometric mean needs 0 or more")
    if len(values) == 1:
        return values[0]
    with np.errstate(divide="ignore"):
        return np.exp(np.log(values).mean(axis=0))


def _ridge(x: np.ndarray, y: np.ndarray, penalty: float) -> tuple[np.ndarray, float]:
    """Weights [K] and intercept b that minimise ‖y − Xw − b‖² + λ‖w‖²; the smallest weights of several."""
    # The penalty as K more rows of the least-squares problem.
    centre, level = x.mean(axis=0), y.mean()
    rows = np.concatenate([x - centre, np.sqrt(penalty) * np.eye(x.shape[1])])
    weights = np.linalg.lstsq(rows, np.concatenate([y - level, np.zeros(x.shape[1])]), rcond=None)[0]
    return weights, float(level - weights @ centre)


def _held_out(x: np.ndarray, y: np.ndarray, groups: np.ndarray, penalty: float, splits: int, seed: int) -> HeldOut:
    """Fit on half of the groups, Spearman on the rest, ``splits`` times. ``groups`` int [n], codes from 0."""
    count = int(groups.max()) + 1
    if count < 2:
        raise InputError("all rows are of one document; random halves need at least two")
    order = generator("learned metric", seed).permuted(np.tile(np.arange(count), (splits, 1)), axis=1)
    found = []
    for first_half in order[:, : count // 2]:
        taken = np.isin(groups, first_half)
        weights, intercept = _ridge(x[taken], y[taken], penalty)
        predicted = x[~taken] @ weights + intercept
        found.append(correlation_matrix(np.stack([predicted, y[~taken]]), "spearman")[0, 1])
    defined = np.array(found)[np.isfinite(found)]
    return HeldOut(
        mean=float(defined.mean()) if len(defined) else None,
        sd=float(defined.std(ddof=1)) if len(defined) > 1 else None,
        splits=len(defined),
        undefined=splits - len(defined),
    )

"""Fitting a weighted sum of metrics to what people said (P2 §2.4): ridge regression, and random halves to check it."""

from collections.abc import Mapping, Sequence

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.learned import HeldOut, Learned
from negsample.eval.stats.correlation import correlation_matrix
from negsample.records import Judged
from negsample.seeds import generator

SPLITS = 1000
_FEWEST_ROWS = 6


def geometric_mean(human: Mapping[str, np.ndarray]) -> np.ndarray:
    """(Π scores)^(1/number of scores) of each row, float64 [n]; NaN where one is missing.

    ``human``: name → float64 [n]. Raises InputError for a negative score, which has no geometric mean.
    """
    values = np.stack([np.asarray(scores, dtype=np.float64) for scores in human.values()])
    for name, scores in zip(human, values, strict=True):
        if (scores < 0).any():
            raise InputError(f"human score {name!r} has a negative value; a geometric mean needs 0 or more")
    if len(values) == 1:
        return values[0]
    with np.errstate(divide="ignore"):
        return np.exp(np.log(values).mean(axis=0))


def ridge(x: np.ndarray, y: np.ndarray, penalty: float, intercept: bool = True) -> tuple[np.ndarray, float]:
    """(weights [K], intercept) that minimise ‖y − Xw − b‖² + λ‖w‖²; b, never penalised, is 0 without ``intercept``.

    ``x`` float64 [n, K], ``y`` [n], ``penalty`` λ ≥ 0.
    """
    weights, base = _ridges(x, y, np.ones((1, len(y))), penalty, intercept)
    return weights[0], float(base[0])


def _ridges(
    x: np.ndarray, y: np.ndarray, taken: np.ndarray, penalty: float, intercept: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Ridge on many samples of the same rows: ``taken`` [S, n], 1 for a row in the sample; weights [S, K], base [S]."""
    # One shift for all samples keeps the sums of squares below from cancelling.
    shift_x, shift_y = (x.mean(axis=0), y.mean()) if intercept else (np.zeros(x.shape[1]), 0.0)
    x, y = x - shift_x, y - shift_y
    size = taken.sum(axis=1)
    gram = np.einsum("sn,nk,nl->skl", taken, x, x, optimize=True)
    moment = np.einsum("sn,nk,n->sk", taken, x, y, optimize=True)
    mean_x, mean_y = taken @ x / size[:, None], taken @ y / size
    if intercept:
        gram -= size[:, None, None] * mean_x[:, :, None] * mean_x[:, None, :]
        moment -= size[:, None] * mean_x * mean_y[:, None]
    gram += penalty * np.eye(x.shape[1])
    weights = np.linalg.solve(gram, moment[:, :, None])[:, :, 0] if penalty else _least_squares(gram, moment)
    base = mean_y - (weights * mean_x).sum(axis=1) + shift_y - weights @ shift_x if intercept else np.zeros(len(taken))
    return weights, base


def _least_squares(gram: np.ndarray, moment: np.ndarray) -> np.ndarray:
    # Without a penalty collinear columns make the matrix singular; the pseudo-inverse gives the smallest weights.
    return (np.linalg.pinv(gram, hermitian=True) @ moment[:, :, None])[:, :, 0]


def fit_learned(
    columns: Mapping[str, np.ndarray],
    human: Mapping[str, np.ndarray],
    *,
    rows: np.ndarray | None = None,
    documents: Sequence[str] | None = None,
    penalty: float = 1.0,
    intercept: bool = True,
    splits: int = SPLITS,
    seed: int = 0,
) -> Learned:
    """Ridge regression of the geometric mean of ``human`` on ``columns``, and its agreement on random held-out halves.

    ``columns``: metric specification → float64 [n] (NaN: missing). ``human``: name → float64 [n]. ``rows``: bool [n],
    the rows that may be looked at (the ``tune`` half; None: all); no other row has any influence. Rows with a missing
    value are left out and counted. ``documents``: [n] document ids; where given, a split puts all rows of a document
    into the same half (P2 split rows, which lets a document stand on both sides). ``penalty``: λ, 1 in P2.
    ``intercept``: fit one (reading: P2's formula has none, but its weights cannot reach scores of 1 to 10 without).
    The weights returned are those of all rows; ``held_out`` has the Spearman correlations of ``splits`` fits on one
    random half each, measured on the other half.
    Raises InputError where a column's length differs, or fewer than six rows (or two documents) are left.
    """
    if not columns or not human:
        raise InputError("give at least one metric column and one human score to fit")
    n = len(next(iter(human.values())))
    for name, values in (*columns.items(), *human.items()):
        if np.shape(values) != (n,):
            raise InputError(f"column {name!r} has the shape {np.shape(values)}, but {n} rows are to be fitted")
    chosen = np.ones(n, dtype=bool) if rows is None else np.asarray(rows, dtype=bool)
    if chosen.shape != (n,) or (documents is not None and len(documents) != n):
        raise InputError(f"rows and documents must have one entry for each of the {n} rows")
    if not (np.isfinite(penalty) and penalty >= 0):
        raise InputError(f"the penalty is {penalty}; give 0 or more")
    if splits < 0:
        raise InputError(f"splits={splits}: give 0 or more")
    x = np.stack([np.asarray(values, dtype=np.float64)[chosen] for values in columns.values()], axis=1)
    y = geometric_mean({name: np.asarray(values, dtype=np.float64)[chosen] for name, values in human.items()})
    whole = np.isfinite(x).all(axis=1) & np.isfinite(y)
    x, y = x[whole], y[whole]
    if len(y) < _FEWEST_ROWS:
        raise InputError(
            f"only {len(y)} rows have every column and every human score; at least {_FEWEST_ROWS} are needed"
        )
    if documents is None:
        groups = np.arange(len(y))
    else:
        groups = np.unique(np.array(documents, dtype=str)[chosen][whole], return_inverse=True)[1]
    weights, base = ridge(x, y, penalty, intercept)
    return Learned(
        columns=tuple(columns),
        weights=tuple(map(float, weights)),
        intercept=base,
        human=tuple(human),
        ridge=float(penalty),
        rows=len(y),
        left_out=int((~whole).sum()),
        held_out=_held_out(x, y, groups, penalty, intercept, splits, seed) if splits else None,
        source=f"fitted, seed {seed}",
    )


def _held_out(
    x: np.ndarray, y: np.ndarray, groups: np.ndarray, penalty: float, intercept: bool, splits: int, seed: int
) -> HeldOut:
    """Fit on half of the groups, Spearman on the rest, ``splits`` times. ``groups`` int [n], codes from 0."""
    count = int(groups.max()) + 1
    if count < 2:
        raise InputError("all rows are of one document; random halves need at least two")
    order = generator("learned metric", seed).permuted(np.tile(np.arange(count), (splits, 1)), axis=1)
    first_half = np.zeros((splits, count))
    np.put_along_axis(first_half, order[:, : count // 2], 1.0, axis=1)
    taken = first_half[:, groups]
    weights, base = _ridges(x, y, taken, penalty, intercept)
    predicted = weights @ x.T + base[:, None]
    found = np.array([_spearman(row[held], y[held]) for row, held in zip(predicted, taken == 0, strict=True)])
    defined = found[np.isfinite(found)]
    return HeldOut(
        mean=float(defined.mean()) if len(defined) else None,
        sd=float(defined.std(ddof=1)) if len(defined) > 1 else None,
        splits=len(defined),
        undefined=splits - len(defined),
    )


def _spearman(predicted: np.ndarray, truth: np.ndarray) -> float:
    return float(correlation_matrix(np.stack([predicted, truth]), "spearman")[0, 1])


def learn(
    specs: Sequence[str], judged: Sequence[Judged], human: Sequence[str], *, half: str = "tune", seed: int = 0
) -> Learned:
    """Compute the metrics ``specs`` for judged summaries and fit them to the human scores ``human``.

    Only rows of ``half`` are scored and fitted (``""``: all rows). Whole documents go to one side of a split. Raises
    InputError where a metric or a human score is unknown or too few rows are left.
    """
    from negsample.eval.metrics import make_metric, score_judged

    chosen = [row for row in judged if not half or row.half == half]
    if not chosen:
        raise InputError(f"no judged row has half={half!r}; give half='' to fit on all rows")
    known = sorted({name for row in chosen for name in row.scores})
    for name in human:
        if name not in known:
            raise InputError(f"no human score is called {name!r}; known: {', '.join(known)}")
    columns = {metric.name: score_judged(metric, chosen).values for metric in map(make_metric, specs)}
    scores = {name: np.array([row.scores.get(name, np.nan) for row in chosen]) for name in human}
    return fit_learned(columns, scores, documents=[row.document_id for row in chosen], seed=seed)

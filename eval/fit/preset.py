"""The learned metric of Scialom et al. 2019: a weighted sum of metrics, fitted to people by ridge regression (§2.4) or with
equal weights (§4.2.1); ``negsample fit --preset``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from negsample.errors import InputError
from negsample.eval.agreement.correlation import correlation_matrix
from negsample.eval.metrics.base import choice, score_judged
from negsample.eval.metrics.learned import HeldOut, Learned
from negsample.records import Judged
from negsample.scoring.metrics import make_metric
from negsample.seeds import generator

SPLITS = 1000
_FEWEST_ROWS = 6
Fit = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, float]]


PRESETS = ("p2", "equal")
# With more columns not every subset is fitted, but each column alone and all together.
_MOST_SUBSETS = 5


@dataclass(frozen=True)
class PresetResult:
    """``learned``: the metric. ``table``: for each set of columns (and for ``"equal weights"``) Spearman's correlation on
    the held-out halves, as P2 chose its columns by.
    """

    learned: Learned
    table: dict[str, HeldOut]


def learn(
    specs: Sequence[str], judged: Sequence[Judged], human: Sequence[str], *, half: str = "tune", seed: int = 0
) -> Learned:
    """Compute the metrics ``specs`` for judged summaries and fit them to the human scores ``human``.

    Only rows of ``half`` are scored and fitted (``""``: all rows). Whole documents go to one side of a split. Raises
    InputError where a metric or a human score is unknown or too few rows are left.
    """
    columns, scores, documents = _columns(specs, judged, human, half)
    return fit_learned(columns, scores, documents, seed=seed)


def fit_preset(
    preset: str,
    specs: Sequence[str],
    judged: Sequence[Judged],
    human: Sequence[str],
    *,
    half: str = "tune",
    splits: int = SPLITS,
    seed: int = 0,
) -> PresetResult:
    """As `learn`, with the table; ``preset`` ``"p2"`` fits the weights, ``"equal"`` gives each metric the weight 1."""
    choice("preset", preset, PRESETS)
    columns, scores, documents = _columns(specs, judged, human, half)
    names = list(columns)
    sizes = range(1, len(names) + 1) if len(names) <= _MOST_SUBSETS else (1, len(names))
    table: dict[str, HeldOut] = {}
    for subset in (subset for size in sizes for subset in combinations(names, size)):
        found = fit_learned({name: columns[name] for name in subset}, scores, documents, splits=splits, seed=seed)
        assert found.held_out is not None
        table[" + ".join(subset)] = found.held_out
    equal = fit_learned(columns, scores, documents, equal=True, splits=splits, seed=seed)
    assert equal.held_out is not None
    table["equal weights"] = equal.held_out
    learned = equal if preset == "equal" else fit_learned(columns, scores, documents, splits=splits, seed=seed)
    return PresetResult(learned, table)


def _columns(
    specs: Sequence[str], judged: Sequence[Judged], human: Sequence[str], half: str
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], list[str]]:
    """The metrics and the human scores of the rows of ``half``, and the rows' documents."""
    chosen = [row for row in judged if not half or row.half == half]
    if not chosen:
        raise InputError(f"no judged row has half={half!r}; give half='' to fit on all rows")
    known = sorted({name for row in chosen for name in row.scores})
    for name in human:
        if name not in known:
            raise InputError(f"no human score is called {name!r}; known: {', '.join(known)}")
    columns = {metric.name: score_judged(metric, chosen).scores for metric in map(make_metric, specs)}
    scores = {name: np.array([row.scores.get(name, np.nan) for row in chosen]) for name in human}
    if not columns or not scores:
        raise InputError("give at least one metric and one human score to fit")
    return columns, scores, [row.document_id for row in chosen]


def fit_learned(
    columns: Mapping[str, np.ndarray],
    human: Mapping[str, np.ndarray],
    documents: Sequence[str],
    *,
    penalty: float = 1.0,
    equal: bool = False,
    splits: int = SPLITS,
    seed: int = 0,
) -> Learned:
    """Fit the geometric mean of ``human`` by ridge regression on ``columns``, and measure it on random held-out halves.

    ``columns``: metric specification → float64 [n] (NaN: missing). ``human``: name → float64 [n]. Rows with a missing
    value are left out and counted. With ``equal`` every weight is 1 (§4.2.1). ``documents``: [n] document ids; a split
    puts all rows of a document into the same half (Scialom et al. split rows, which lets a document stand on both sides).
    ``penalty``: λ, theirs is 1. An intercept is fitted (their formula has none, but its weights cannot reach scores of 1 to
    10 without). The weights returned are those of all rows; ``held_out`` has the Spearman correlations of ``splits`` fits
    on one random half each, measured on the other half. Raises InputError where fewer than six rows or two documents are
    left.
    """
    x, y = np.stack(list(columns.values()), axis=1), geometric_mean(human)
    whole = np.isfinite(x).all(axis=1) & np.isfinite(y)
    x, y = x[whole], y[whole]
    if len(y) < _FEWEST_ROWS:
        raise InputError(
            f"only {len(y)} rows have every column and every human score; at least {_FEWEST_ROWS} are needed"
        )
    groups = np.unique(np.array(documents, dtype=str)[whole], return_inverse=True)[1]
    fit = _equal if equal else partial(_ridge, penalty=penalty)
    weights, intercept = fit(x, y)
    return Learned(
        columns=tuple(columns),
        weights=tuple(map(float, weights)),
        intercept=intercept,
        human=tuple(human),
        ridge=penalty,
        rows=len(y),
        left_out=int((~whole).sum()),
        held_out=_held_out(x, y, groups, fit, splits, seed),
        source="equal weights" if equal else f"fitted, seed {seed}",
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


def _equal(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """The weights of §4.2.1, whatever people say."""
    return np.ones(x.shape[1]), 0.0


def _ridge(x: np.ndarray, y: np.ndarray, penalty: float) -> tuple[np.ndarray, float]:
    """Weights [K] and intercept b that minimise ‖y − Xw − b‖² + λ‖w‖²; the smallest weights of several."""
    # The penalty as K more rows of the least-squares problem.
    centre, level = x.mean(axis=0), y.mean()
    rows = np.concatenate([x - centre, np.sqrt(penalty) * np.eye(x.shape[1])])
    weights = np.linalg.lstsq(rows, np.concatenate([y - level, np.zeros(x.shape[1])]), rcond=None)[0]
    return weights, float(level - weights @ centre)


def _held_out(x: np.ndarray, y: np.ndarray, groups: np.ndarray, fit: Fit, splits: int, seed: int) -> HeldOut:
    """Fit on half of the groups, Spearman on the rest, ``splits`` times. ``groups`` int [n], codes from 0."""
    count = int(groups.max()) + 1
    if count < 2:
        raise InputError("all rows are of one document; random halves need at least two")
    order = generator("learned metric", seed).permuted(np.tile(np.arange(count), (splits, 1)), axis=1)
    found = []
    for first_half in order[:, : count // 2]:
        taken = np.isin(groups, first_half)
        weights, intercept = fit(x[taken], y[taken])
        predicted = x[~taken] @ weights + intercept
        found.append(correlation_matrix(np.stack([predicted, y[~taken]]), "spearman")[0, 1])
    defined = np.array(found)[np.isfinite(found)]
    return HeldOut(
        mean=float(defined.mean()) if len(defined) else None,
        sd=float(defined.std(ddof=1)) if len(defined) > 1 else None,
        splits=len(defined),
        undefined=splits - len(defined),
    )

"""A weighted sum of metrics as a metric (Scialom et al. 2019, §2.4): its file, how it scores, how its weights are fitted to
people's scores by ridge regression (``negsample fit --preset``).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from negsample import __version__
from negsample.errors import InputError
from negsample.eval.agreement.correlation import correlation_matrix
from negsample.eval.metrics.base import choice, score_judged
from negsample.io.files import atomic_json, failure
from negsample.records import Judged
from negsample.registry import parse, quote, write
from negsample.scoring.scorer import Columns, Item, Scorer, collect, make_metric, p2
from negsample.seeds import digest, generator

PRESETS = ("p2", "equal")
SPLITS = 1000
_FORMAT = "negsample-learned-metric"
# λ, as theirs.
_RIDGE = 1.0
_FEWEST_ROWS = 6
# With more columns not every subset is fitted, but each column alone and all together.
_MOST_SUBSETS = 5


@dataclass(frozen=True)
class HeldOut:
    """Spearman on the held-out halves of random splits: ``mean`` and ``sd`` (n − 1) over the ``splits`` where it is
    defined (``undefined`` others were constant), None where there is none (or, for sd, one)."""

    mean: float | None
    sd: float | None
    splits: int
    undefined: int


@dataclass(frozen=True)
class Learned:
    """score = intercept + Σ weight·metric.

    ``columns``: metric specifications; ``weights``: one for each. ``human``: the human scores whose geometric mean was
    fitted; ``rows``: how many rows were fitted, ``left_out``: how many had a value missing. ``held_out`` None where it was
    not measured. ``source``: where the weights are from.
    """

    columns: tuple[str, ...]
    weights: tuple[float, ...]
    intercept: float = 0.0
    human: tuple[str, ...] = ()
    rows: int = 0
    left_out: int = 0
    held_out: HeldOut | None = None
    source: str = ""
    version: str = __version__

    def predict(self, values: np.ndarray) -> np.ndarray:
        """Compute the score for metric values float64 [n, columns]; NaN where one is missing."""
        return np.asarray(values, dtype=np.float64) @ np.array(self.weights) + self.intercept

    def save(self, path: str | Path) -> None:
        """Write it to ``path`` as JSON, whole or not at all. Raises InputError where that can't be."""
        atomic_json(path, {"format": _FORMAT, **asdict(self)})

    @staticmethod
    def load(path: str | Path) -> "Learned":
        """Read what ``save`` wrote. Raises InputError, with the place, for anything else."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            if data.pop("format") != _FORMAT:
                raise ValueError(f'"format" is not "{_FORMAT}"')
            lists: dict[str, Any] = {name: tuple(data.pop(name, ())) for name in ("columns", "weights", "human")}
            held = data.pop("held_out", None)
            found = Learned(**lists, **data, held_out=HeldOut(**held) if held else None)
            if not np.isfinite([found.intercept, *found.weights]).all():
                raise ValueError("a weight is not a finite number")
            if not len(set(found.columns)) == len(found.columns) == len(found.weights) > 0:
                raise ValueError("columns and weights are not one each")
        except OSError as error:
            raise failure(str(path), error) from error
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"{path}: no learned metric ({error}); give a file that fit --preset wrote") from None
        return found


def learned(file: str = "", *, preset: str = "", model: str = "") -> Scorer:
    """``learned:FILE`` or ``learned(preset=p2, model=QA)``: intercept + Σ weight·metric. Higher is better.

    FILE is what ``Learned.save`` wrote; its columns are any metrics of the project, which are computed here. The preset
    has the published weights, range [0, 3.7729]. Needs what its columns need. Missing where a column is, with the
    column's reason.
    """
    if bool(file) == bool(preset):
        raise InputError("metric 'learned': give either learned:FILE or learned(preset=p2, model=…)")
    if not preset:
        if model:
            raise InputError("metric 'learned': model= belongs to preset=p2; a file's columns name their own models")
        return learned_metric(Learned.load(file), f"learned({quote(file)})")
    choice("preset", preset, ("p2",))
    published = p2(model)
    name = write("learned", {"preset": preset, "model": model}, {"preset": "", "model": ""})
    return learned_metric(Learned(tuple(published), tuple(published.values())), name)


def learned_metric(fitted: Learned, name: str = "learned") -> Scorer:
    """The metric that computes ``fitted.columns`` and adds them up. Raises InputError where a column can't be made."""
    nested = [column for column in fitted.columns if parse(column).name == "learned"]
    if nested:
        raise InputError(f"{name}: the column {nested[0]!r} is a learned metric itself; name plain metrics")
    inputs = [make_metric(column) for column in fitted.columns]
    formula = "".join(f"{weight:+.6g}*{metric.name}" for weight, metric in zip(fitted.weights, inputs, strict=True))
    # The inputs' own signatures are long; their digest says whether any of them changed.
    inner = digest(fitted.intercept, fitted.weights, *(metric.signature for metric in inputs), size=6).hex()
    signature = f"metric:learned|{fitted.intercept:+.6g}{formula}|inputs:{inner}|version:{__version__}"
    needs = frozenset[str]().union(*(metric.needs for metric in inputs))

    def score(items: Sequence[Item]) -> Columns:
        columns = [(parse(metric.name).name, metric.score(items)) for metric in inputs]
        values = fitted.predict(np.stack([own.scores for _, own in columns], axis=1)).tolist()
        why = (
            [f"{name}: {own.reasons[row]}" for name, own in columns if own.reasons[row]] for row in range(len(items))
        )
        return collect(reasons[0] if reasons else value for reasons, value in zip(why, values, strict=True))

    return Scorer(name, signature, True, needs, score)


@dataclass(frozen=True)
class PresetResult:
    """``learned``: the metric. ``table``: for each set of columns (and for ``"equal weights"``) Spearman's correlation on
    the held-out halves, as P2 chose its columns by.
    """

    learned: Learned
    table: dict[str, HeldOut]


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
    """Compute the metrics ``specs`` for judged summaries and fit them to the human scores ``human``.

    ``preset``: ``"p2"`` fits the weights (§2.4), ``"equal"`` gives each metric the weight 1 (§4.2.1). Only rows of ``half``
    are scored and fitted (``""``: all rows). Raises InputError where a metric or a human score is unknown or too few rows
    are left.
    """
    choice("preset", preset, PRESETS)
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
    documents = [row.document_id for row in chosen]
    sizes = range(1, len(columns) + 1) if len(columns) <= _MOST_SUBSETS else (1, len(columns))
    subsets = [{name: columns[name] for name in subset} for size in sizes for subset in combinations(columns, size)]
    fits = {" + ".join(part): fit_learned(part, scores, documents, splits=splits, seed=seed) for part in subsets}
    fits["equal weights"] = equal = fit_learned(columns, scores, documents, equal=True, splits=splits, seed=seed)
    table = {name: found.held_out for name, found in fits.items() if found.held_out is not None}
    return PresetResult(equal if preset == "equal" else fits[" + ".join(columns)], table)


def fit_learned(
    columns: Mapping[str, np.ndarray],
    human: Mapping[str, np.ndarray],
    documents: Sequence[str],
    *,
    equal: bool = False,
    splits: int = SPLITS,
    seed: int = 0,
) -> Learned:
    """Fit the geometric mean of ``human`` by ridge regression on ``columns``, and measure it on random held-out halves.

    ``columns``: metric specification → float64 [n] (NaN: missing). ``human``: name → float64 [n]. Rows with a missing
    value are left out and counted. With ``equal`` every weight is 1 (§4.2.1). ``documents``: [n] document ids; a split
    puts all rows of a document into the same half (Scialom et al. split rows, which lets a document stand on both sides).
    λ is 1, and an intercept is fitted (their formula has none, but its weights cannot reach scores of 1 to 10 without).
    The weights returned are those of all rows; ``held_out`` has the Spearman correlations of ``splits`` fits on one random
    half each, measured on the other half. Raises InputError where fewer than six rows or two documents are left.
    """
    x, y = np.stack(list(columns.values()), axis=1), geometric_mean(human)
    whole = np.isfinite(x).all(axis=1) & np.isfinite(y)
    x, y = x[whole], y[whole]
    if len(y) < _FEWEST_ROWS:
        raise InputError(
            f"only {len(y)} rows have every column and every human score; at least {_FEWEST_ROWS} are needed"
        )
    groups = np.unique(np.array(documents, dtype=str)[whole], return_inverse=True)[1]
    weights, intercept = _fitted(x, y, equal)
    held, source = _held_out(x, y, groups, equal, splits, seed), "equal weights" if equal else f"fitted, seed {seed}"
    left_out, found = int((~whole).sum()), tuple(map(float, weights))
    return Learned(tuple(columns), found, intercept, tuple(human), len(y), left_out, held, source)


def geometric_mean(human: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return (Π scores)^(1/number of scores) of each row, float64 [n]; NaN where one is missing.

    ``human``: name → float64 [n]. Raises InputError for a negative score, which has no geometric mean.
    """
    values = np.stack(list(human.values()))
    for name, scores in zip(human, values, strict=True):
        if (scores < 0).any():
            raise InputError(f"human score {name!r} has a negative value; a geometric mean needs 0 or more")
    from scipy.stats import gmean

    with np.errstate(divide="ignore"):
        return values[0] if len(values) == 1 else np.asarray(gmean(values, axis=0))


def _fitted(x: np.ndarray, y: np.ndarray, equal: bool) -> tuple[np.ndarray, float]:
    """Weights [K] and intercept b that minimise ‖y − Xw − b‖² + λ‖w‖²; or ones, whatever people say."""
    if equal:
        return np.ones(x.shape[1]), 0.0
    from sklearn.linear_model import Ridge

    ridge = Ridge(alpha=_RIDGE, solver="cholesky").fit(x, y)
    return ridge.coef_, float(ridge.intercept_)


def _held_out(x: np.ndarray, y: np.ndarray, groups: np.ndarray, equal: bool, splits: int, seed: int) -> HeldOut:
    """Fit on half of the groups, Spearman on the rest, ``splits`` times. ``groups`` int [n], codes from 0."""
    count = int(groups.max()) + 1
    if count < 2:
        raise InputError("all rows are of one document; random halves need at least two")
    order = generator("learned metric", seed).permuted(np.tile(np.arange(count), (splits, 1)), axis=1)
    found = []
    for first_half in order[:, : count // 2]:
        taken = np.isin(groups, first_half)
        weights, intercept = _fitted(x[taken], y[taken], equal)
        predicted = x[~taken] @ weights + intercept
        found.append(correlation_matrix(np.stack([predicted, y[~taken]]), "spearman")[0, 1])
    defined = np.array(found)[np.isfinite(found)]
    mean, sd = float(defined.mean()) if len(defined) else None, float(defined.std(ddof=1)) if len(defined) > 1 else None
    return HeldOut(mean, sd, len(defined), splits - len(defined))

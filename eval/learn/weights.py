"""Weights ≥ 0 of inputs that order summaries as people do: ridge regression, as strong as documents left out ask for.

Where documents have several judged summaries, what is fitted are people's ranks within each document: the squared loss
over all pairs of summaries of a document, Σ ((t_i − t_j) − (f_i − f_j))², is n times the squared loss of the values
centred within the document. Adding a constant to people's scores, or multiplying them by one, then changes nothing. Else
the scores themselves are fitted by least squares over all summaries. Of choices between two summaries it is the logistic loss of
the difference of their sums (Bradley and Terry 1952), a tie half a choice of each. A line puts the weighted sums on people's
scale, and every summary has an interval.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from negsample.errors import InputError
from negsample.eval.agreement.correlation import correlation_matrix
from negsample.eval.agreement.levels import Block, block_correlations
from negsample.eval.learn.inputs import Inputs, Target, check
from negsample.models.fitted import FittedTarget, on_scale
from negsample.resampling import mean_interval
from negsample.seeds import generator
from negsample.terminal import track

# λ, with which weights of inputs of spread 1 are held at 0.
STRENGTHS = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
_FOLDS = 5
# A document with fewer differently scored summaries orders nothing.
_FEWEST_ROWS = 3
# With fewer documents nothing can be left out to choose by, and the overall score stays as it is.
_FEWEST_DOCUMENTS = 3
_TINY = 1e-9
# The learning curve: random draws a size, and how many documents a fit must leave to measure on, at least, and as a share.
_DRAWS = 20
_FIRST = 5
_LEFT, _SHARE = 5, 4


@dataclass(frozen=True)
class Problem:
    """Rows of one target without a missing value: ``inputs`` [n, K], the first ``aspects`` of which are the overall score and
    the aspects, ``people`` [n], ``documents`` int [n] (codes in the order of their ids); ``rows`` [n]: places among all rows.

    What is fitted: ``given`` [n, K], ``wanted`` [n], and how much each row counts, ``counted`` [n] ≥ 0. ``within``: they are
    inputs and ranks centred within each document, not the inputs and people's scores themselves. ``pairs``: people's choices,
    as of `Target`, by places among all rows; they are fitted instead, where there are any.
    """

    inputs: np.ndarray
    people: np.ndarray
    documents: np.ndarray
    rows: np.ndarray
    given: np.ndarray
    wanted: np.ndarray
    counted: np.ndarray
    aspects: int
    within: bool
    pairs: np.ndarray | None = None

    @property
    def level(self) -> str:
        """The level at which agreement is measured first."""
        return "choice" if self.pairs is not None else "summary" if self.within else "pooled"

    def compared(self) -> np.ndarray:
        """[5, P]: places of the two summaries of each pair that has both, and how many chose the first, the second, neither."""
        assert self.pairs is not None
        pairs = self.pairs[:, np.isin(self.pairs[:2], self.rows).all(axis=0)]
        return np.concatenate([np.searchsorted(self.rows, pairs[:2]), pairs[2:]])

    @property
    def count(self) -> int:
        """How many documents there are."""
        return len(np.unique(self.documents))

    def over_all(self, values: np.ndarray, count: int) -> np.ndarray:
        """``values`` [n] as a column over all ``count`` rows, NaN elsewhere."""
        column = np.full(count, np.nan)
        column[self.rows] = values
        return column

    def of(self, documents: np.ndarray) -> np.ndarray:
        """The places of the rows of ``documents``."""
        return np.flatnonzero(np.isin(self.documents, documents))

    def part(self, places: np.ndarray) -> "Problem":
        """The rows at ``places``."""
        arrays = {
            name: own[places] for name, own in vars(self).items() if isinstance(own, np.ndarray) and name != "pairs"
        }
        return replace(self, **arrays)

    def folds(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Places (fitted, left out), at most five times; all rows of a document are on one side."""
        from sklearn.model_selection import GroupKFold

        return GroupKFold(min(_FOLDS, self.count)).split(self.inputs, groups=self.documents)


def problem(found: Inputs, target: Target, document_ids: Sequence[str]) -> Problem:
    """What is to be fitted to ``target``. Raises InputError where too few rows have all of it. The order of rows changes
    nothing.
    """
    from scipy.stats import rankdata, zscore

    whole = np.isfinite(found.values).all(axis=1)
    check(target.name, np.where(whole, target.values, np.nan), document_ids)
    rows = np.flatnonzero(whole & np.isfinite(target.values))
    documents = np.unique(np.array(document_ids, dtype=str)[rows], return_inverse=True)[1]
    inputs, people, weights = found.values[rows], target.values[rows], target.weights[rows]
    groups = [np.flatnonzero(documents == code) for code in range(documents.max() + 1)]
    ordered = [group for group in groups if len(group) >= _FEWEST_ROWS and np.ptp(people[group]) > 0]
    given, wanted, counted = inputs, people, weights
    if within := 2 * sum(map(len, ordered)) > len(rows):
        given, wanted, counted = np.zeros_like(inputs), np.zeros(len(rows)), np.zeros(len(rows))
        for group in ordered:
            given[group] = inputs[group] - np.average(inputs[group], axis=0, weights=weights[group])
            wanted[group] = zscore(rankdata(people[group]))
            counted[group] = weights[group]
    task = Problem(inputs, people, documents, rows, given, wanted, counted, found.aspects, within, target.pairs)
    if task.pairs is not None and not np.subtract(*task.compared()[2:4]).any():
        raise InputError(f"{target.name}: there is no pair that people are not tied on: nothing can be learned")
    return task


@dataclass(frozen=True)
class Weights:
    """Weights ≥ 0 of the raw inputs, [K]: their sum has spread 1 and mean 0 over the rows fitted. ``offset`` gives the mean.

    ``strength``: with which they were held; None where the overall score is as it was.
    """

    raw: np.ndarray
    offset: float
    strength: float | None

    def sums(self, inputs: np.ndarray) -> np.ndarray:
        """Σ weight·input + offset, [n], for ``inputs`` [n, K]; NaN where one with a weight is missing."""
        used = np.flatnonzero(self.raw)
        return inputs[:, used] @ self.raw[used] + self.offset


def fit_weights(task: Problem) -> Weights:
    """Fit ``task`` with the one of `STRENGTHS` whose fits agree best with people on documents left out."""
    found, strength = np.eye(task.inputs.shape[1])[0], None
    if task.count >= _FEWEST_DOCUMENTS:
        held = np.empty((len(STRENGTHS), len(task.people)))
        for fitted, left in task.folds():
            centre = task.inputs[fitted].mean(axis=0)
            held[:, left] = solve(task.part(fitted)) @ (task.inputs[left] - centre).T
        best = _best(task, held)
        solved = solve(task)[best]
        # Where nothing agrees with people, nothing is learned.
        found, strength = (solved, STRENGTHS[best]) if solved.any() else (found, None)
    sums = task.inputs @ found
    size = float(sums.std())
    raw = found / size if size > _TINY else found
    return Weights(raw, -float((task.inputs @ raw).mean()), strength)


def solve(task: Problem) -> np.ndarray:
    """For each strength λ of `STRENGTHS` the weights ≥ 0 that minimise mean (t − Σ w x)² + λ Σ w² for inputs in units of
    their spread, as weights of the raw inputs, [S, K]. Of choices as `solve_choices` has it.
    """
    from scipy.optimize import nnls

    if task.pairs is not None:
        return solve_choices(task)
    total = max(float(task.counted.sum()), _TINY)
    root = np.sqrt(task.counted)
    x = (task.given - task.counted @ task.given / total) * root[:, None]
    target = (task.wanted - task.counted @ task.wanted / total) * root
    spread = np.sqrt((x**2).sum(axis=0) / total)
    spread[spread <= 1e-6] = np.inf
    x = x / spread
    square, towards = x.T @ x / total, x.T @ target / total
    roots = [np.linalg.cholesky(square + strength * np.eye(len(square))) for strength in STRENGTHS]
    found = [nnls(lower.T, np.linalg.solve(lower, towards))[0] for lower in roots]
    return np.array(found) / spread


def solve_choices(task: Problem) -> np.ndarray:
    """For each strength λ of `STRENGTHS` the weights ≥ 0 that minimise the mean over choices of log(1 + exp(−Σ w d)) + λ/2·Σ w²,
    d [K] being the summary chosen minus the other one, inputs in units of their spread; as weights of the raw inputs, [S, K].
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    first, second, won, lost, tied = task.compared()
    spread = task.inputs.std(axis=0)
    spread[spread <= 1e-6] = np.inf
    ahead, votes = won + tied / 2, won + lost + tied
    apart, total = (task.inputs[first] - task.inputs[second]) / spread, max(1, int(votes.sum()))

    def loss(weights: np.ndarray, strength: float) -> tuple[float, np.ndarray]:
        gaps = apart @ weights
        value = (votes * np.logaddexp(0.0, gaps) - ahead * gaps).sum() / total + strength / 2 * weights @ weights
        return value, apart.T @ (votes * expit(gaps) - ahead) / total + strength * weights

    start, bounds = np.zeros(len(spread)), [(0.0, None)] * len(spread)
    found = [minimize(loss, start, (strength,), "L-BFGS-B", jac=True, bounds=bounds).x for strength in STRENGTHS]
    return np.array(found) / spread


def agreements(task: Problem, columns: np.ndarray) -> np.ndarray:
    """[C]: how well ``columns`` [C, n] agree with people, NaN where undefined: the share of pairs ordered as most people chose,
    equal ones half; else Spearman's correlation within documents (mean), or Pearson's over all rows.
    """
    if task.pairs is not None:
        first, second, won, lost, _ = task.compared()
        people = np.sign(won - lost)
        alike = np.sign(columns[:, first] - columns[:, second]) * people
        return (alike[:, people != 0].mean(axis=1) + 1) / 2 if people.any() else np.full(len(columns), np.nan)
    values = np.concatenate([columns, task.people[None]])
    if not task.within:
        return correlation_matrix(values, "pearson")[-1, :-1]
    last, order = len(columns), np.argsort(task.documents, kind="stable")
    documents = task.documents[order]
    block = Block(values[:, order], documents, np.full(len(order), -1), int(documents[-1]) + 1, 0)
    return block_correlations(block, "summary", "spearman", [(k, last) for k in range(last)])


def best_aspect(task: Problem) -> int:
    """The place of the aspect (or the overall score) that agrees best with people."""
    return _best(task, task.inputs[:, : task.aspects].T)


def _best(task: Problem, columns: np.ndarray) -> int:
    # Equal ones may differ in their last bits; the first of them is taken.
    return int(np.argmax(np.round(np.nan_to_num(agreements(task, columns), nan=-2.0), 10)))


# --- on people's scale


@dataclass(frozen=True)
class TargetFit:
    """``weights`` of the raw inputs; people's score is ``level`` + ``slope``·their sum. ``scale``, ``half_width``: as of
    `FittedTarget`.
    """

    weights: Weights
    level: float
    slope: float
    scale: tuple[float, float]
    half_width: float

    def named(self, human: str, names: list[str], confidence: float) -> FittedTarget:
        """As the model folder holds it; ``names`` [K] of the inputs."""
        raw = self.weights.raw
        weights = {name: self.slope * float(weight) for name, weight in zip(names, raw, strict=True) if weight}
        offset = self.level + self.slope * self.weights.offset
        return FittedTarget(human, weights, offset, self.scale, self.half_width, confidence)

    def answer(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As of `on_scale`."""
        return on_scale(self.level + self.slope * sums, self.scale, self.half_width)


def fit_target(task: Problem, confidence: float) -> TargetFit:
    """Fit ``task``, of at least two documents.

    The half width is the ⌈(n + 1)·confidence⌉-th smallest absolute error of summaries whose document neither the weights
    nor the line have seen (Lei et al. 2018, "Distribution-free predictive inference for regression", alg. 2), or the whole
    scale where n is too small for it.
    """
    people = task.people
    sums, answers = np.empty((2, len(people)))
    folds = list(task.folds())
    for fitted, left in folds:
        sums[left] = fit_weights(task.part(fitted)).sums(task.inputs[left])
    for fitted, left in folds:
        level, slope = line(sums[fitted], people[fitted])
        answers[left] = np.clip(level + slope * sums[left], people[fitted].min(), people[fitted].max())
    scale = float(people.min()), float(people.max())
    width = half_width(people - answers, confidence, scale[1] - scale[0])
    return TargetFit(fit_weights(task), *line(sums, people), scale, width)


def half_width(errors: np.ndarray, confidence: float, scale: float) -> float:
    """The half width that ``errors`` [n] of held-out summaries ask for; ``scale`` where they are too few."""
    place = int(np.ceil((len(errors) + 1) * confidence))
    return scale if place > len(errors) else float(np.sort(np.abs(errors))[place - 1])


def line(sums: np.ndarray, people: np.ndarray) -> tuple[float, float]:
    """Level and slope of the least-squares line of ``people`` on ``sums`` [n]; where it does not rise, their mean and 0."""
    centred, level, spread = sums - sums.mean(), float(people.mean()), float(sums.std())
    slope = float(np.mean(centred * (people - level))) / spread**2 if spread > _TINY else 0.0
    slope = slope if slope > _TINY * float(np.ptp(people)) else 0.0
    return level - slope * float(sums.mean()), slope


@dataclass(frozen=True)
class HeldOut:
    """Every row answered by a fit that has not seen its document: ``sums``, ``answers`` on people's scale [n], ``ends`` of the
    intervals [n, 2].
    """

    sums: np.ndarray
    answers: np.ndarray
    ends: np.ndarray

    def coverage(self, task: Problem, seed: int, resamples: int) -> tuple[float, float | None, float | None]:
        """The share of people's scores in their intervals, with its own 95 % interval (documents resampled; None of few)."""
        slack = _TINY * max(1.0, float(np.ptp(task.people)))
        inside = (task.people >= self.ends[:, 0] - slack) & (task.people <= self.ends[:, 1] + slack)
        per, all_of = np.bincount(task.documents, weights=inside), np.bincount(task.documents)
        return float(inside.mean()), *mean_interval(per, generator(seed, "coverage"), resamples, all_of)


def held_out(task: Problem, confidence: float) -> HeldOut:
    """Cross-validate the whole of `fit_target`, the choice of strength and the line included, over documents."""
    sums, answers = np.empty((2, len(task.people)))
    ends = np.empty((len(task.people), 2))
    for fitted, left in task.folds():
        found = fit_target(task.part(fitted), confidence)
        sums[left] = found.weights.sums(task.inputs[left])
        answers[left], ends[left] = found.answer(sums[left])
    return HeldOut(sums, answers, ends)


# --- how many judged documents are enough


@dataclass(frozen=True)
class CurvePoint:
    """Agreement on the documents left out when ``documents`` are fitted (``summaries``: of them, on average), mean and
    standard deviation over draws; beside it, on the same documents, the overall score as it was and the aspect that agrees
    best on those fitted.
    """

    documents: int
    summaries: float
    mean: float
    sd: float
    unfitted: float
    aspect: float


def sizes(documents: int) -> list[int]:
    """5, 10, 20, 40 … documents, as many as leave five, and a quarter of all, to measure on."""
    most = documents - max(_LEFT, documents // _SHARE)
    return [_FIRST << k for k in range(most.bit_length()) if _FIRST << k <= most]


def learning_curve(task: Problem, seed: int, label: str) -> list[CurvePoint]:
    """The curve over `sizes`, in the terms of `agreements`."""
    every = np.unique(task.documents)
    points = []
    for size in track(sizes(len(every)), label):
        found, summaries = [], 0
        for draw in range(_DRAWS):
            drawn = generator("learning curve", size, draw, seed).permutation(every)[:size]
            part, rest = task.part(task.of(drawn)), task.part(task.of(np.setdiff1d(every, drawn)))
            shown = [fit_weights(part).sums(rest.inputs), rest.inputs[:, 0], rest.inputs[:, best_aspect(part)]]
            found.append(agreements(rest, np.stack(shown)))
            summaries += len(part.people)
        good = np.array([each for each in found if np.isfinite(each).all()])
        if len(good) > 1:
            mean, unfitted, aspect = map(float, good.mean(axis=0))
            sd = float(good[:, 0].std(ddof=1))
            points.append(CurvePoint(size, summaries / _DRAWS, mean, sd, unfitted, aspect))
    return points

"""Weights ≥ 0 of inputs that order summaries as people do: ridge regression, as strong as documents left out ask for.

Where documents have several judged summaries, what is fitted are people's ranks within each document: the squared loss
over all pairs of summaries of a document, Σ ((t_i − t_j) − (f_i − f_j))², is n times the squared loss of the values
centred within the document. Adding a constant to people's scores, or multiplying them by one, then changes nothing. Else
the scores themselves are fitted by least squares over all summaries.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from negsample.eval.agreement.correlation import correlation_matrix
from negsample.eval.agreement.levels import Block, averaged, document_correlations
from negsample.eval.learn.inputs import Inputs, Target, check
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
    inputs and ranks centred within each document, not the inputs and people's scores themselves.
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

    @property
    def count(self) -> int:
        """How many documents there are."""
        return len(np.unique(self.documents))

    def of(self, documents: np.ndarray) -> np.ndarray:
        """The places of the rows of ``documents``."""
        return np.flatnonzero(np.isin(self.documents, documents))

    def part(self, places: np.ndarray) -> "Problem":
        """The rows at ``places``."""
        arrays = {name: value[places] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
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
    return Problem(inputs, people, documents, rows, given, wanted, counted, found.aspects, within)


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
    their spread, as weights of the raw inputs, [S, K].
    """
    from scipy.optimize import nnls

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


def agreements(task: Problem, columns: np.ndarray) -> np.ndarray:
    """[C]: how well ``columns`` [C, n] agree with people, NaN where that is not defined: Spearman's correlation within
    documents (mean), or Pearson's over all rows.
    """
    values = np.concatenate([columns, task.people[None]])
    if not task.within:
        return correlation_matrix(values, "pearson")[-1, :-1]
    last, order = len(columns), np.argsort(task.documents, kind="stable")
    documents = task.documents[order]
    block = Block(values[:, order], documents, np.full(len(order), -1), int(documents[-1]) + 1, 0)
    each = document_correlations(block, "spearman", [(k, last) for k in range(last)])
    return averaged(each, np.ones((1, len(each))))[0]


def best_aspect(task: Problem) -> int:
    """The place of the aspect (or the overall score) that agrees best with people."""
    return _best(task, task.inputs[:, : task.aspects].T)


def _best(task: Problem, columns: np.ndarray) -> int:
    # Equal ones may differ in their last bits; the first of them is taken.
    return int(np.argmax(np.round(np.nan_to_num(agreements(task, columns), nan=-2.0), 10)))


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

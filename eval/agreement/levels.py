"""One data set's scores as aligned columns, and its correlations at the pooled, summary and system level.

A `Block` is the part of a `ScoreTable` in which a given set of columns has no missing value; everything below works on
one block. Undefined correlations are NaN inside this module and never leave `negsample.eval` as such.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from negsample.eval.agreement.correlation import correlation_matrix, standardised, weighted_pooled
from negsample.records import Judged
from negsample.seeds import generator
from negsample.text import word_count

LEVELS = ("pooled", "summary", "system")
# The coefficient of each level that is shown first and by which metrics are compared.
# ``label`` (all rows) and ``limit`` (`labels`) are there for human scores of two values, ``choice`` (`choices`) where people
# chose between two summaries, whichever levels are asked for.
MAIN_COEFFICIENT = {
    "choice": "majority",
    "label": "auc",
    "summary": "spearman",
    "pooled": "pearson",
    "system": "spearman",
    "limit": "balanced_accuracy",
}
SHARES = ("choice", "limit")  # levels of shares, which have tables of their own
SYMBOLS = {
    "pearson": "r",
    "spearman": "ρ",
    "kendall": "τ",
    "auc": "AUC",
    "balanced_accuracy": "balanced accuracy",
    "majority": "as most people",
}
MIN_ROWS = 3  # a document or a pool with fewer rows has no correlation
MIN_ROWS_PARTIAL = 6  # a document with fewer rows has no partial correlation
MIN_SYSTEMS = 4  # fewer systems have no system level
# Above this many rows the pairwise comparisons of a resampled Kendall τ take minutes; it is not resampled.
KENDALL_ROWS = 10_000

_CHUNK = 4_000_000  # numbers held at once


def level_title(level: str) -> str:
    """Return e.g. ``"summary ρ"``."""
    return f"{level} {SYMBOLS[MAIN_COEFFICIENT[level]]}"


@dataclass(frozen=True)
class ScoreTable:
    """The scores of one data set, one row a summary.

    ``documents`` int [n] and ``systems`` int [n]: positions in ``document_names`` and ``system_names``; a system that
    is not known is −1. ``human`` and ``metrics``: name → float64 [n], finite or NaN where missing, higher is better.
    ``words``: number of words of each summary, float64 [n]. Built by `make_table` or `judged_table`.
    """

    dataset: str
    documents: np.ndarray
    systems: np.ndarray
    document_names: tuple[str, ...]
    system_names: tuple[str, ...]
    human: Mapping[str, np.ndarray]
    metrics: Mapping[str, np.ndarray]
    words: np.ndarray


def make_table(
    dataset: str,
    documents: Sequence[str],
    systems: Sequence[str | None],
    human: Mapping[str, Sequence[float] | np.ndarray],
    metrics: Mapping[str, Sequence[float] | np.ndarray],
    words: Sequence[float] | np.ndarray,
) -> ScoreTable:
    """Make a table of columns [n], names coded in sorted order, so that the order of rows changes no resample."""
    import pandas as pd

    document, system = (pd.Categorical(list(names)) for names in (documents, systems))
    return ScoreTable(
        dataset,
        document.codes.astype(np.int64),
        system.codes.astype(np.int64),
        tuple(document.categories),
        tuple(system.categories),
        {name: np.asarray(column, dtype=np.float64) for name, column in human.items()},
        {name: np.asarray(column, dtype=np.float64) for name, column in metrics.items()},
        np.asarray(words, dtype=np.float64),
    )


def is_good(labels: np.ndarray) -> np.ndarray | None:
    """[n]: which of ``labels`` (NaN where missing) are the higher of their two values; None where they haven't two."""
    values = np.unique(labels[~np.isnan(labels)])
    return labels == values[1] if len(values) == 2 else None


def judged_table(
    dataset: str, rows: Sequence[Judged], human: Sequence[str], metrics: Mapping[str, np.ndarray]
) -> ScoreTable:
    """Make the table of judged summaries with the ``human`` scores named and the scores of ``metrics``, [n] each."""
    return make_table(
        dataset,
        [row.document_id for row in rows],
        [row.system or None for row in rows],
        {name: [row.scores.get(name, np.nan) for row in rows] for name in human},
        metrics,
        [word_count(row.summary) for row in rows],
    )


@dataclass(frozen=True)
class Block:
    """Columns without missing values: ``values`` [K, n], ``documents`` [n] ascending, ``systems`` [n]."""

    values: np.ndarray
    documents: np.ndarray
    systems: np.ndarray
    total_documents: int
    total_systems: int

    def known_systems(self) -> np.ndarray:
        """Return the codes of the systems that have a row, ascending."""
        return np.unique(self.systems[self.systems >= 0])


def make_block(table: ScoreTable, columns: Sequence[np.ndarray]) -> Block:
    """Take the rows in which none of ``columns`` is missing, sorted by document, then by system."""
    values = np.stack(columns)
    good = ~np.isnan(values).any(axis=0)
    order = np.lexsort((table.systems[good], table.documents[good]))
    return Block(
        values[:, good][:, order],
        table.documents[good][order],
        table.systems[good][order],
        len(table.document_names),
        len(table.system_names),
    )


@dataclass(frozen=True)
class Resamples:
    """``weights`` float64 [B, D]: how often each document was drawn; ``systems`` float64 [B, S] in [0, 1): the systems
    drawn, as shares of the way through the list of those that have scores.
    """

    weights: np.ndarray
    systems: np.ndarray


def make_resamples(table: ScoreTable, count: int, seed: int) -> Resamples:
    """Draw ``count`` bootstrap resamples of the documents and of the systems, the same for all metrics and people."""
    rng = generator(seed, "bootstrap", table.dataset)
    d, s = len(table.document_names), len(table.system_names)
    weights = rng.multinomial(d, np.full(d, 1 / d), size=count).astype(np.float64)
    return Resamples(weights, rng.random((count, s)))


Pairs = Sequence[tuple[int, int]]


def block_correlations(block: Block, level: str, coefficient: str, pairs: Pairs) -> np.ndarray:
    """[len(pairs)]: the correlations of pairs of columns at a level, NaN where undefined."""
    if level == "summary":
        return averaged(document_correlations(block, coefficient, pairs), np.ones((1, block.total_documents)))[0]
    if level == "label":
        return np.array([_auc(block.values[i], block.values[j]) for i, j in pairs])
    if level == "pooled" and coefficient == "kendall" and block.values.shape[1] >= MIN_ROWS:
        # By scipy, which takes n log n comparisons; the matrix takes n². NaN where a side is constant.
        from scipy.stats import kendalltau

        return np.array([float(kendalltau(block.values[i], block.values[j]).statistic) for i, j in pairs])
    if level == "system":
        # As many rows as systems would be one row a system, no mean over documents.
        if np.count_nonzero(block.systems >= 0) < 2 * len(block.known_systems()):
            return np.full(len(pairs), np.nan)
        matrix = _over_systems(system_means(block, np.ones((1, block.total_documents)))[0], coefficient)
    else:
        matrix = correlation_matrix(block.values, coefficient)
    return np.array([matrix[i, j] for i, j in pairs])


def _auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Area under the curve of two labels, ties half; NaN where it is undefined or the scores are constant."""
    from sklearn.metrics import roc_auc_score

    good = is_good(labels)
    return np.nan if good is None or np.ptp(scores) == 0 else float(roc_auc_score(good, scores))


def resampled_correlations(
    block: Block, level: str, coefficient: str, pairs: Pairs, resamples: Resamples
) -> np.ndarray:
    """[B, len(pairs)]: the correlations of each resample; [0, …] where that would take too long."""
    too_long = level == "pooled" and coefficient == "kendall" and block.values.shape[1] > KENDALL_ROWS
    if not len(resamples.weights) or too_long:
        return np.full((0, len(pairs)), np.nan)
    if level == "summary":
        return averaged(document_correlations(block, coefficient, pairs), resamples.weights)
    if level == "system":
        return system_samples(block, coefficient, pairs, resamples)
    if not block.values.shape[1]:
        return np.full((len(resamples.weights), len(pairs)), np.nan)
    return weighted_pooled(block.values, block.documents, resamples.weights, coefficient, pairs)


def document_correlations(block: Block, coefficient: str, pairs: Pairs) -> np.ndarray:
    """[D, len(pairs)]: correlations within each document over its summaries; NaN where undefined."""
    result = np.full((block.total_documents, len(pairs)), np.nan)
    first, second = [i for i, _ in pairs], [j for _, j in pairs]
    present, starts, counts = np.unique(block.documents, return_index=True, return_counts=True)
    for count in np.unique(counts[counts >= MIN_ROWS]):
        # Documents with equally many rows make one stack.
        same = np.flatnonzero(counts == count)
        step = max(1, _CHUNK // (len(block.values) * int(count) ** 2))
        for part in np.array_split(same, -(-len(same) // step)):
            rows = starts[part][:, None] + np.arange(count)
            matrices = correlation_matrix(np.moveaxis(block.values[:, rows], 0, 1), coefficient)
            result[present[part]] = matrices[:, first, second]
    return result


def averaged(per_document: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[B, P]: mean over the documents drawn of ``per_document`` [D, P], undefined documents left out."""
    defined = ~np.isnan(per_document)
    number = weights @ defined
    total = weights @ np.where(defined, per_document, 0.0)
    return np.where(number > 0, total / np.where(number > 0, number, 1), np.nan)


def system_means(block: Block, weights: np.ndarray) -> np.ndarray:
    """[B, K, S]: mean of each standardised column over each system's rows in the documents drawn; NaN without rows.

    The columns are standardised first and the means rounded to 12 decimals, so that equal means are ties whatever the
    order in which they were summed; no correlation between columns changes by it.
    """
    known = block.systems >= 0
    d, s = block.total_documents, block.total_systems
    cell = block.documents[known] * s + block.systems[known]
    columns = standardised(block.values[:, known]) if known.any() else np.zeros((len(block.values), 0))
    counts = weights @ np.bincount(cell, minlength=d * s).reshape(d, s)
    sums = [weights @ np.bincount(cell, weights=column, minlength=d * s).reshape(d, s) for column in columns]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.stack([total / counts for total in sums], axis=1)
    return np.round(means, 12)


def _over_systems(means: np.ndarray, coefficient: str) -> np.ndarray:
    means = means[:, ~np.isnan(means).any(axis=0)]
    if means.shape[1] < MIN_SYSTEMS:
        return np.full((len(means), len(means)), np.nan)
    return correlation_matrix(means, coefficient)


def system_samples(block: Block, coefficient: str, pairs: Pairs, resamples: Resamples) -> np.ndarray:
    """[B, len(pairs)]: correlations of the systems' means, documents and systems both resampled."""
    first, second = [i for i, _ in pairs], [j for _, j in pairs]
    used = block.known_systems()
    if len(used) < MIN_SYSTEMS:
        return np.full((len(resamples.weights), len(pairs)), np.nan)
    draws = used[(resamples.systems[:, : len(used)] * len(used)).astype(np.int64)]

    def drawn(part: slice) -> np.ndarray:
        means = system_means(block, resamples.weights[part])
        return np.take_along_axis(means, draws[part][:, None, :], axis=2)

    return stacked(drawn, len(draws), len(block.values), draws.shape[1], coefficient)[:, first, second]


def stacked(
    means: Callable[[slice], np.ndarray], count: int, columns: int, systems: int, coefficient: str
) -> np.ndarray:
    """[B, K, K]: correlations of ``means(part)`` [b, K, S] for the parts of range(``count``), taken chunk by chunk."""
    result = np.empty((count, columns, columns))
    step = max(1, _CHUNK // (columns * max(1, systems) ** 2))
    for start in range(0, count, step):
        part = slice(start, min(count, start + step))
        values = means(part)
        gaps = np.isnan(values).any(axis=(1, 2))
        if not gaps.all():
            result[part][~gaps] = correlation_matrix(values[~gaps], coefficient)
        for b in np.flatnonzero(gaps):
            # Some system drawn has no row among the documents drawn: the correlation is over the others.
            result[start + b] = _over_systems(values[b], coefficient)
    return result

"""Paired permutation: within some documents two metrics change places, and their correlations are taken again.

If the metrics were exchangeable, which of the two a document's scores came from would not matter. The scores of a
document change places together, because a document's rows are not independent. First both metrics are put on one
scale within the data set (over the rows used), which leaves each one's own correlation as it was:

- pooled, Pearson: z-scores. Pooled, Spearman: mid-ranks, and Pearson of them after the exchange (the ranks are not
  taken again). Pooled, Kendall: mid-ranks.
- system: z-scores, then means per system, then the coefficient.
- summary: none is needed; exchanging the labels of a document turns the sign of its difference of correlations.
"""

import numpy as np

from negsample.eval.agreement import levels as lv
from negsample.eval.agreement.correlation import concordance_form, standardised

# Column → its concordant pairs and its untied pairs, each among the documents kept and among those exchanged.
Counted = dict[int, tuple[list[np.ndarray], list[np.ndarray]]]


def swapped_differences(
    block: lv.Block,
    level: str,
    coefficient: str,
    i: int,
    j: int,
    keep: np.ndarray,
    per_document: np.ndarray | None = None,
    counted: Counted | None = None,
) -> np.ndarray:
    """[P]: difference of the correlations of columns ``i`` and ``j`` with the last column under each exchange.

    ``keep`` float64 [P, D]: 1 where the document keeps its labels, 0 where they change places. ``per_document`` [D, 2]:
    the two columns' correlations within each document (summary level only). ``counted``: where calls for other columns
    of the same block find what was counted for one column (pooled Kendall), empty at first.
    """
    if level == "summary":
        assert per_document is not None
        return _summary(per_document, keep)
    a, b, human = block.values[i], block.values[j], block.values[-1]
    if level == "system":
        return _system(block, a, b, human, coefficient, keep)
    if coefficient == "pearson":
        return _pooled(standardised(np.stack([a, b])), human, block.documents, keep)
    from scipy.stats import rankdata

    ranks = rankdata(np.stack([a, b, human]), axis=-1)
    if coefficient == "spearman":
        n = len(human)
        return _pooled((ranks[:2] - (n + 1) / 2) / n, ranks[2], block.documents, keep)
    return _pooled_kendall(ranks, block.documents, keep, i, j, {} if counted is None else counted)


def _summary(per_document: np.ndarray, keep: np.ndarray) -> np.ndarray:
    difference = per_document[:, 0] - per_document[:, 1]
    defined = ~np.isnan(difference)
    return (2 * keep[:, defined] - 1) @ difference[defined] / defined.sum()


def _pooled(metrics: np.ndarray, human: np.ndarray, documents: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Pearson of the exchanged ``metrics`` [2, n], on one scale already, with ``human`` [n], by sums per document."""
    present, starts = np.unique(documents, return_index=True)
    (a, b), h = metrics, standardised(human[None])[0]
    sums = np.add.reduceat(np.stack([a, b, a * a, b * b, a * h, b * h]), starts, axis=1)
    own, other = sums[[0, 2, 4]].T, sums[[1, 3, 5]].T
    kept = keep[:, present]
    first = kept @ own + (1 - kept) @ other
    second = kept @ other + (1 - kept) @ own
    return _correlation(first, len(h)) - _correlation(second, len(h))


def _correlation(sums: np.ndarray, n: int) -> np.ndarray:
    """From Σx, Σx², Σxh [P, 3], h standardised over the n rows."""
    variance = sums[:, 1] / n - (sums[:, 0] / n) ** 2
    return sums[:, 2] / n / np.sqrt(np.where(variance > 1e-14, variance, np.nan))


def _pooled_kendall(
    ranks: np.ndarray, documents: np.ndarray, keep: np.ndarray, i: int, j: int, counted: Counted
) -> np.ndarray:
    a, b, h = ranks
    gone = 1 - keep
    both = [(keep, keep), (gone, gone)]
    for column, x in ((i, a), (j, b)):
        if column not in counted:
            counted[column] = (
                concordance_form(x, x, h, documents, both),
                concordance_form(x, x, None, documents, both),
            )

    def tau(part: int, y: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        (aa_keep, aa_gone), (bb_keep, bb_gone) = counted[i][part], counted[j][part]
        ab, ba = concordance_form(a, b, y, documents, [(keep, gone), (gone, keep)])
        # Pairs of one document that keeps and one that exchanges stand in both orders, hence twice.
        return aa_keep + bb_gone + 2 * ab, bb_keep + aa_gone + 2 * ba

    agree, untied = tau(0, h), tau(1, None)
    every = np.ones((1, keep.shape[1]))
    untied_human = concordance_form(h, h, None, documents, [(every, every)])[0]
    first, second = (
        up / np.sqrt(np.where(below > 0, below * untied_human, np.nan)) for up, below in zip(agree, untied, strict=True)
    )
    return first - second


def _system(
    block: lv.Block, a: np.ndarray, b: np.ndarray, human: np.ndarray, coefficient: str, keep: np.ndarray
) -> np.ndarray:
    known = block.systems >= 0
    names, systems = np.unique(block.systems[known], return_inverse=True)
    d, s = block.total_documents, len(names)
    cell = block.documents[known] * s + systems
    counts = np.bincount(systems, minlength=s)
    columns = standardised(np.stack([a, b, human])[:, known])
    sums = [np.bincount(cell, weights=column, minlength=d * s).reshape(d, s) for column in columns]
    first = np.round((keep @ sums[0] + (1 - keep) @ sums[1]) / counts, 12)
    second = np.round((keep @ sums[1] + (1 - keep) @ sums[0]) / counts, 12)
    third = np.broadcast_to(np.round(sums[2].sum(axis=0) / counts, 12), first.shape)

    def means(part: slice) -> np.ndarray:
        return np.stack([first[part], second[part], third[part]], axis=1)

    matrices = lv.stacked(means, len(keep), 3, s, coefficient)
    return matrices[:, 0, 2] - matrices[:, 1, 2]

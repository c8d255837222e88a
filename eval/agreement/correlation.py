"""Pearson, Spearman and Kendall τ-b on arrays, many columns and many samples at once.

``K`` is the number of columns (metrics, human scores), ``n`` the number of rows. Inside these functions an undefined
correlation (a constant column, fewer than three rows) is NaN; `negsample.eval.agreement.figures` turns it into ``None`` with
a reason before anything is reported.
"""

from collections.abc import Sequence

import numpy as np

COEFFICIENTS = ("pearson", "spearman", "kendall")

# Numbers held at once by the chunked loops: 32 MiB of float64.
_CHUNK = 4_000_000


def correlation_matrix(values: np.ndarray, coefficient: str) -> np.ndarray:
    """Correlation of every column with every other, for one sample or a stack of them.

    Parameters: ``values`` float64 [..., K, n], no missing values; ``coefficient`` one of `COEFFICIENTS`.
    Returns float64 [..., K, K] in [−1, 1]; NaN where a column is constant or n < 3.

    Spearman is Pearson of the mid-ranks. Kendall is τ-b, (concordant − discordant) / √((n₀ − n₁)(n₀ − n₂)) with n₁, n₂
    the pairs tied in either column (Kendall 1945, "The treatment of ties in ranking problems").
    """
    values = np.asarray(values, dtype=np.float64)
    if values.shape[-1] < 3:
        return np.full((*values.shape[:-1], values.shape[-2]), np.nan)
    constant = values.max(axis=-1) == values.min(axis=-1)
    if coefficient == "pearson":
        matrix = _pearson(values)
    else:
        from scipy.stats import rankdata

        ranks = rankdata(values, axis=-1)
        matrix = _pearson(ranks) if coefficient == "spearman" else _kendall(ranks)
    undefined = constant[..., :, None] | constant[..., None, :]
    return np.where(undefined, np.nan, np.clip(matrix, -1.0, 1.0))


def _pearson(values: np.ndarray) -> np.ndarray:
    z = standardised(values)
    return z @ np.swapaxes(z, -1, -2) / values.shape[-1]


def _kendall(ranks: np.ndarray) -> np.ndarray:
    *lead, columns, n = ranks.shape
    agree = np.zeros((*lead, columns, columns))
    step = max(1, _CHUNK // max(1, ranks.size))
    for start in range(0, n, step):
        # float32 holds the counts of one chunk exactly (below 2**24) and is twice as fast to multiply.
        sign = np.sign(ranks[..., start : start + step, None] - ranks[..., None, :]).astype(np.float32)
        sign = sign.reshape(*lead, columns, -1)
        agree += sign @ np.swapaxes(sign, -1, -2)
    diagonal = np.diagonal(agree, axis1=-2, axis2=-1)
    root = np.sqrt(np.where(diagonal > 0, diagonal, np.nan))
    return agree / (root[..., :, None] * root[..., None, :])


def partial(xy: np.ndarray, xz: np.ndarray, yz: np.ndarray) -> np.ndarray:
    """Partial correlation of x and y given z, (r_xy − r_xz r_yz) / √((1 − r_xz²)(1 − r_yz²)), elementwise.

    NaN where x or y is determined by z (the product under the root below 1e-12), and where an input is NaN.
    """
    xy, xz, yz = np.asarray(xy, float), np.asarray(xz, float), np.asarray(yz, float)
    rest = (1 - xz**2) * (1 - yz**2)
    with np.errstate(invalid="ignore"):
        safe = np.where(rest >= 1e-12, rest, np.nan)
    return np.clip((xy - xz * yz) / np.sqrt(safe), -1.0, 1.0)


def p_value(x: np.ndarray, y: np.ndarray, value: float, coefficient: str) -> float:
    """Two-sided p of the hypothesis of no correlation, rows taken as independent; of an AUC the Mann–Whitney test.

    Pearson and Spearman: t = r √((n − 2)/(1 − r²)) with n − 2 degrees of freedom. Kendall: `scipy.stats.kendalltau`
    (exact for small samples without ties, else normal). ``value`` is the coefficient already computed.
    """
    from scipy import stats

    if coefficient == "kendall":
        return float(stats.kendalltau(x, y).pvalue)
    if coefficient == "auc":
        good = y == y.max()
        return float(stats.mannwhitneyu(x[good], x[~good]).pvalue)
    n = len(x)
    if abs(value) >= 1:
        return 0.0
    return float(2 * stats.t.sf(abs(value) * np.sqrt((n - 2) / (1 - value**2)), n - 2))


def weighted_pooled(
    values: np.ndarray, documents: np.ndarray, weights: np.ndarray, coefficient: str, pairs: Sequence[tuple[int, int]]
) -> np.ndarray:
    """Correlations over the rows of resampled documents, without building the resamples.

    Parameters: ``values`` float64 [K, n]; ``documents`` int [n], ascending codes below D; ``weights`` [B, D], how often
    each document was drawn (whole numbers); ``pairs``, the (i, j) wanted.
    Returns float64 [B, len(pairs)], equal to the coefficient over the rows with each document's rows repeated as often
    as it was drawn; NaN where a column of that resample is constant or it has fewer than three rows.
    """
    weights = np.asarray(weights, dtype=np.float64)
    if coefficient == "kendall":
        result = _weighted_kendall(values, documents, weights, pairs)
    else:
        step = max(1, _CHUNK // max(1, values.size))
        parts = [weights[start : start + step] for start in range(0, len(weights), step)]
        result = np.concatenate([_weighted(values, documents, part, pairs, coefficient) for part in parts])
    few = weights @ np.bincount(documents, minlength=weights.shape[1]) < 3
    return np.where(few[:, None], np.nan, np.clip(result, -1.0, 1.0))


def _weighted(
    values: np.ndarray, documents: np.ndarray, weights: np.ndarray, pairs: Sequence[tuple[int, int]], coefficient: str
) -> np.ndarray:
    """Pearson's and Spearman's correlation; ``auc``: the share of the pairs (good, bad) in which the good one, the higher of two
    values of column j, is higher in column i, ties half.
    """
    # Resamples stand in columns, so that every step below runs along contiguous memory.
    drawn = np.ascontiguousarray(weights.T)
    rows = drawn[documents]
    total = rows.sum(axis=0)
    # Values, or mid-ranks, less their mean, and the sum of their squares.
    middle, spread = {}, {}
    for k in sorted({k for pair in pairs for k in pair}):
        if coefficient == "pearson":
            column = standardised(values[k])[:, None]
            middle[k] = column - (column * rows).sum(axis=0) / np.where(total > 0, total, 1)
            squares = np.einsum("nb,nb,nb->b", rows, middle[k], middle[k])
        else:
            order = np.argsort(values[k], kind="stable")
            _, group, sizes = np.unique(values[k], return_inverse=True, return_counts=True)
            upto = np.cumsum(drawn[documents[order]], axis=0)[np.cumsum(sizes) - 1]
            before = np.concatenate([np.zeros((1, len(weights))), upto[:-1]])
            # The mid-rank of a tied group is (before + upto + 1)/2; the mean rank is (total + 1)/2.
            ranks = (before + upto - total) / 2
            middle[k] = ranks[group]
            squares = ((upto - before) * ranks**2).sum(axis=0)
        # Below that a column is constant, and what is left are rounding errors.
        spread[k] = np.where(squares > 1e-24 * total, squares, np.nan)
    weighted = {j: middle[j] * rows for _, j in pairs}
    result = np.empty((len(weights), len(pairs)))
    for p, (i, j) in enumerate(pairs):
        product = np.einsum("nb,nb->b", middle[i], weighted[j])
        # Of g good and b bad ones the squares are g·b·(g + b)/4, and the product is g·b/2 times the difference of mean ranks.
        share = 0.5 + product / (2 * spread[j]) + 0 * spread[i]
        result[:, p] = share if coefficient == "auc" else product / np.sqrt(spread[i] * spread[j])
    return result


def standardised(values: np.ndarray) -> np.ndarray:
    """Each column [..., K, n] minus its mean, divided by its standard deviation (a constant column becomes 0)."""
    # Dividing by the largest value first keeps the squares of huge and of tiny values representable.
    size = np.abs(values).max(axis=-1, keepdims=True)
    values = values / np.where(size > 0, size, 1.0)
    centred = values - values.mean(axis=-1, keepdims=True)
    spread = centred.std(axis=-1, keepdims=True)
    constant = values.max(axis=-1, keepdims=True) == values.min(axis=-1, keepdims=True)
    return np.where(constant, 0.0, centred / np.where(constant | (spread == 0), 1.0, spread))


def _weighted_kendall(
    values: np.ndarray, documents: np.ndarray, weights: np.ndarray, pairs: Sequence[tuple[int, int]]
) -> np.ndarray:
    """By Σ_cd w_c S_cd w_d, S_cd being the sum over rows a of document c and b of d of sign(x_a − x_b) sign(y_a − y_b).

    Copies of one row are ties in both columns and add nothing. The rows are compared once, whatever the number of resamples.
    """
    codes = np.stack([np.unique(column, return_inverse=True)[1].astype(np.int32) for column in values])
    present, starts = np.unique(documents, return_index=True)
    sums = {pair: np.zeros(len(weights)) for pair in {*pairs, *((k, k) for pair in pairs for k in pair)}}
    step = max(1, _CHUNK // codes.size)
    for start in range(0, len(documents), step):
        own = codes[:, start : start + step, None]
        signs = (own > codes[:, None]).view(np.int8) - (own < codes[:, None]).view(np.int8)
        here, begins = np.unique(documents[start : start + step], return_index=True)
        for i, j in sums:
            block = np.add.reduceat(signs[i] * signs[j], starts, axis=1, dtype=np.int32)
            block = np.add.reduceat(block, begins, axis=0, dtype=np.float64)
            sums[i, j] += ((weights[:, here] @ block) * weights[:, present]).sum(axis=1)
    untied = [np.where(sums[i, i] * sums[j, j] > 0, sums[i, i] * sums[j, j], np.nan) for i, j in pairs]
    return np.stack([sums[pair] / np.sqrt(product) for pair, product in zip(pairs, untied, strict=True)], axis=1)

"""Agreement of metrics with people: pooled, summary and system level, intervals, and what is left given the length.

All rows together are the *pooled* level; they are not independent where summaries share a document, so its p is too
small and its interval (documents resampled) is the one to read. The *summary* level is the mean over documents of the
correlation within a document. The *system* level correlates the systems' means.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from negsample.eval.agreement import levels as lv
from negsample.eval.agreement.correlation import COEFFICIENTS, p_value, partial
from negsample.resampling import percentile_interval

MISSING_METRIC = "row without a metric score"
MISSING_HUMAN = "row without a human score"
NO_SYSTEM = "row without a system"
FEW_ROWS = "document with fewer than 3 rows"
CONSTANT_METRIC = "document with constant metric scores"
CONSTANT_HUMAN = "document with constant human scores"
SKIPPED = "resample without a correlation"
NOT_TAKEN = f"resample not taken (Kendall over more than {lv.KENDALL_ROWS:,} rows)"


@dataclass(frozen=True)
class AgreementFigure:
    """One correlation: metric × human score × level × coefficient.

    ``value``, ``low``, ``high`` in [−1, 1] and ``p`` in [0, 1], or None where undefined (``reason`` says why there is
    no ``value``). ``n``, ``documents``, ``systems``: what was used. ``left_out``: reason → how many rows, documents,
    systems or resamples. ``uneven``: systems (system level) without a row on a document that another one has a row on;
    their means are used all the same. ``given_length``: the partial correlation given the number of words, of the same
    coefficient at the same level, with its interval and ``given_documents``, the documents it is averaged over (summary level);
    ``given_reason`` says why there is none.
    """

    dataset: str
    human: str
    metric: str
    level: str
    coefficient: str
    value: float | None
    low: float | None
    high: float | None
    p: float | None
    n: int
    documents: int
    systems: int
    left_out: dict[str, int] = field(default_factory=dict)
    uneven: int = 0
    given_length: float | None = None
    given_low: float | None = None
    given_high: float | None = None
    given_documents: int = 0
    reason: str | None = None
    given_reason: str | None = None


@dataclass(frozen=True)
class _Series:
    """Point values [P] and resampled values [B, P] of P metric × human pairs; the same given the number of words."""

    value: np.ndarray
    samples: np.ndarray
    given: np.ndarray
    given_samples: np.ndarray
    per_document: np.ndarray | None = None
    given_used: np.ndarray | None = None


def agreement(
    table: lv.ScoreTable,
    *,
    levels: Sequence[str] = lv.LEVELS,
    coefficients: Sequence[str] = COEFFICIENTS,
    bootstrap: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[AgreementFigure]:
    """Measure every metric of ``table`` against every human score.

    ``bootstrap``: number of resamples of the documents (system level: documents and systems), the same for all metrics;
    0 leaves the intervals out. The interval is the 95 % percentile interval. p is two-sided; pooled and system level:
    the usual test of the coefficient over rows and systems; summary level: one-sample t test of the per-document
    correlations, documents being the independent units (None with fewer than two documents or no spread).
    ``progress(done, total)`` is called after each step.

    Summary level given the number of words: only documents with more than five rows and summaries of different
    lengths; a document in which the metric or the human score is determined by the number of words counts as 0, for
    nothing is left of it.
    """
    resamples = lv.make_resamples(table, bootstrap, seed)
    found: dict[tuple[str, str, str, str], AgreementFigure] = {}
    # Metrics and human scores that the same rows have are measured together.
    groups: dict[bytes, list[tuple[str, str]]] = {}
    for metric, x in table.metrics.items():
        for human, y in table.human.items():
            groups.setdefault(np.packbits(np.isnan(x) | np.isnan(y)).tobytes(), []).append((metric, human))
    steps, done = len(groups) * len(levels) * len(coefficients), 0
    for names in groups.values():
        metrics, humans = (list(dict.fromkeys(side)) for side in zip(*names, strict=True))
        columns = [*(table.metrics[metric] for metric in metrics), *(table.human[human] for human in humans)]
        # The number of words is the last column.
        block = lv.make_block(table, [*columns, table.words])
        pairs = [(metrics.index(metric), len(metrics) + humans.index(human)) for metric, human in names]
        for level in levels:
            for coefficient in coefficients:
                series = _series(block, level, coefficient, pairs, resamples)
                for k, (metric, human) in enumerate(names):
                    key = (human, metric, level, coefficient)
                    found[key] = _figure(table, key, block, series, k, pairs[k], bootstrap)
                done += 1
                if progress:
                    progress(done, steps)
    return [
        found[human, metric, level, coefficient]
        for human in table.human
        for metric in table.metrics
        for level in levels
        for coefficient in coefficients
    ]


def _series(
    block: lv.Block, level: str, coefficient: str, pairs: list[tuple[int, int]], resamples: lv.Resamples
) -> _Series:
    words = len(block.values) - 1
    # Each correlation with the number of words is computed once, however many pairs need it.
    wanted = list(dict.fromkeys([*pairs, *((i, words) for i, _ in pairs), *((j, words) for _, j in pairs)]))
    at = {pair: k for k, pair in enumerate(wanted)}
    xy = [at[pair] for pair in pairs]
    xz, yz = [at[i, words] for i, _ in pairs], [at[j, words] for _, j in pairs]
    if level == "summary":
        per_document = lv.document_correlations(block, coefficient, wanted)
        return _summary_series(block, per_document[:, xy], per_document[:, xz], per_document[:, yz], resamples)
    point = lv.block_correlations(block, level, coefficient, wanted)
    # As many rows as systems would be one row a system, no mean over documents.
    if level == "system" and len(block.systems) < 2 * len(np.unique(block.systems)):
        point = np.full_like(point, np.nan)
    samples = lv.resampled_correlations(block, level, coefficient, wanted, resamples)
    return _Series(
        point[xy],
        samples[:, xy],
        partial(point[xy], point[xz], point[yz]),
        partial(samples[:, xy], samples[:, xz], samples[:, yz]),
    )


def _summary_series(
    block: lv.Block, xy: np.ndarray, xz: np.ndarray, yz: np.ndarray, resamples: lv.Resamples
) -> _Series:
    given = partial(xy, xz, yz)
    defined = ~(np.isnan(xy) | np.isnan(xz) | np.isnan(yz))
    determined = defined & np.isnan(given)
    rows = np.bincount(block.documents, minlength=block.total_documents)
    given = np.where(determined, 0.0, given)
    given[rows < lv.MIN_ROWS_PARTIAL] = np.nan
    # A metric that is the number of words in every document has no partial correlation, not one of 0.
    given[:, (determined | np.isnan(given)).all(axis=0)] = np.nan
    ones = np.ones((1, block.total_documents))
    return _Series(
        lv.averaged(xy, ones)[0],
        lv.averaged(xy, resamples.weights),
        lv.averaged(given, ones)[0],
        lv.averaged(given, resamples.weights),
        xy,
        (~np.isnan(given)).sum(axis=0),
    )


def _figure(
    table: lv.ScoreTable,
    key: tuple[str, str, str, str],
    block: lv.Block,
    series: _Series,
    k: int,
    pair: tuple[int, int],
    bootstrap: int,
) -> AgreementFigure:
    human, metric, level, coefficient = key
    left_out: dict[str, int] = {}
    no_human = np.isnan(table.human[human])
    _count(left_out, MISSING_HUMAN, no_human.sum())
    _count(left_out, MISSING_METRIC, (np.isnan(table.metrics[metric]) & ~no_human).sum())
    used = np.ones(len(block.documents), dtype=bool)
    x, y = block.values[pair[0]], block.values[pair[1]]
    p: float | None = None
    uneven = 0
    value = _number(series.value[k])
    if level == "summary":
        assert series.per_document is not None
        per_document = series.per_document[:, k]
        _count_documents(left_out, block, x, y)
        used = ~np.isnan(per_document)[block.documents]
        p = _mean_p(per_document[~np.isnan(per_document)])
    elif level == "system":
        used = block.systems >= 0
        _count(left_out, NO_SYSTEM, (~used).sum())
        uneven = _uneven(block.documents[used], block.systems[used])
        if value is not None:
            means = lv.system_means(block, np.ones((1, block.total_documents)))[0][list(pair)]
            means = means[:, ~np.isnan(means).any(axis=0)]
            p = _number(p_value(means[0], means[1], value, coefficient))
    elif value is not None:
        p = _number(p_value(x, y, value, coefficient))
    low, high, skipped = percentile_interval(series.samples[:, k])
    given_low, given_high, _ = percentile_interval(series.given_samples[:, k])
    given = _number(series.given[k])
    if value is None:
        low = high = p = given = None
    else:
        _count(left_out, SKIPPED, skipped)
        _count(left_out, NOT_TAKEN, bootstrap - len(series.samples))
    systems = block.systems[used]
    return AgreementFigure(
        table.dataset,
        *key,
        value,
        low,
        high,
        p,
        n=int(used.sum()),
        documents=len(np.unique(block.documents[used])),
        systems=len(np.unique(systems[systems >= 0])),
        left_out=left_out,
        uneven=uneven,
        given_length=given,
        given_low=given_low if given is not None else None,
        given_high=given_high if given is not None else None,
        given_documents=int(series.given_used[k]) if series.given_used is not None and given is not None else 0,
        reason=None if value is not None else _why_not(block, level, x, y),
        given_reason=None if given is not None else _why_not_given(value, level, block),
    )


def _uneven(documents: np.ndarray, systems: np.ndarray) -> int:
    """How many of the systems have no row on one of ``documents`` [n]."""
    cells = np.unique(np.stack([systems, documents]), axis=1)
    return int((np.unique(cells[0], return_counts=True)[1] < len(np.unique(documents))).sum())


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _count(left_out: dict[str, int], reason: str, number: int) -> None:
    if number:
        left_out[reason] = int(number)


def _count_documents(left_out: dict[str, int], block: lv.Block, x: np.ndarray, y: np.ndarray) -> None:
    """Documents left out of the summary level, each under the first reason that holds."""
    present, starts, rows = np.unique(block.documents, return_index=True, return_counts=True)
    enough = rows >= lv.MIN_ROWS
    _count(left_out, FEW_ROWS, block.total_documents - enough.sum())
    if not len(present):
        return
    flat_x, flat_y = (np.maximum.reduceat(column, starts) == np.minimum.reduceat(column, starts) for column in (x, y))
    _count(left_out, CONSTANT_HUMAN, (enough & flat_y).sum())
    _count(left_out, CONSTANT_METRIC, (enough & flat_x & ~flat_y).sum())


def _mean_p(values: np.ndarray) -> float | None:
    """Two-sided one-sample t test of mean 0; None with fewer than two values or none differing."""
    # Equal correlations may differ in their last bits; a t test of that spread would be of rounding errors.
    if len(values) < 2 or np.ptp(values) < 1e-12:
        return None
    from scipy.stats import ttest_1samp

    return _number(float(ttest_1samp(values, 0.0).pvalue))


def _why_not(block: lv.Block, level: str, x: np.ndarray, y: np.ndarray) -> str:
    """Why there is no correlation."""
    if level == "summary":
        rows = np.bincount(block.documents, minlength=1)
        if rows.max(initial=0) < lv.MIN_ROWS:
            return "no document has three scored summaries, so there is no summary level"
        return "metric or human scores are constant within every document"
    if level == "system":
        count = len(block.known_systems())
        if not count:
            return f"no row {'names its system' if len(x) else 'has both scores'}, so there is no system level"
        if count < lv.MIN_SYSTEMS:
            return f"{count} system{'s' if count > 1 else ''}; the system level needs at least {lv.MIN_SYSTEMS}"
        if len(block.systems) < 2 * count:
            return "fewer than two summaries a system, so there is no system level"
        return "the systems' means are constant"
    if len(x) < lv.MIN_ROWS:
        return f"{len(x)} rows have both scores; a correlation needs at least {lv.MIN_ROWS}"
    return "metric scores are constant" if np.ptp(x) == 0 else "human scores are constant"


def _why_not_given(value: float | None, level: str, block: lv.Block) -> str:
    """Why there is no partial correlation given the number of words."""
    if value is None:
        return "no correlation to begin with"
    words = block.values[-1]
    if np.ptp(words) == 0:
        return "all summaries have the same number of words"
    if level == "summary":
        _, starts, rows = np.unique(block.documents, return_index=True, return_counts=True)
        varied = np.maximum.reduceat(words, starts) > np.minimum.reduceat(words, starts)
        if not (varied & (rows >= lv.MIN_ROWS_PARTIAL)).any():
            return "no document has more than five scored summaries of different lengths"
    return "the scores are determined by the number of words"

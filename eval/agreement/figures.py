"""Agreement of metrics with people: pooled, summary and system level, intervals, and what is left given the length; how many
articles a stable ranking of systems needs, and average ranks over data sets (Sun & Nenkova 2019); summaries on which they differ.

All rows together are the *pooled* level; they are not independent where summaries share a document, so its p is too
small and its interval (documents resampled) is the one to read. The *summary* level is the mean over documents of the
correlation within a document. The *system* level correlates the systems' means.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

import numpy as np

from negsample.eval.agreement import levels as lv
from negsample.eval.agreement.correlation import COEFFICIENTS, p_value, partial
from negsample.resampling import resampled_interval
from negsample.seeds import generator
from negsample.terminal import Bar

MISSING_METRIC = "row without a metric score"
MISSING_HUMAN = "row without a human score"
NO_SYSTEM = "row without a system"
FEW_ROWS = "document with fewer than 3 rows"
CONSTANT_METRIC = "document with constant metric scores"
CONSTANT_HUMAN = "document with constant human scores"
NOT_TAKEN = f"resample not taken (Kendall over more than {lv.KENDALL_ROWS:,} rows)"
# Numbers of articles drawn, where a data set has more of them.
SIZES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500)


@dataclass(frozen=True)
class AgreementFigure:
    """One correlation: metric × human score × level × coefficient.

    ``value``, ``low``, ``high`` in [−1, 1] (AUC and rates: [0, 1]) and ``p`` in [0, 1], or None where undefined (``reason``
    says why there is no ``value``). ``n``, ``documents``, ``systems``: what was used. ``left_out``: reason → how many rows,
    documents, systems or resamples. ``uneven``: systems (system level) without a row on a document that another one has a
    row on; their means are used all the same. ``given_length``: the partial correlation given the number of words, of the
    same coefficient at the same level; ``given_reason`` says why there is none.
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
    reason: str | None = None
    given_reason: str | None = None


def agreement(
    table: lv.ScoreTable,
    *,
    levels: Sequence[str] = lv.LEVELS,
    coefficients: Sequence[str] = COEFFICIENTS,
    bootstrap: int = 1000,
    seed: int = 0,
) -> list[AgreementFigure]:
    """Measure every metric of ``table`` against every human score.

    ``bootstrap``: number of resamples of the documents (system level: documents and systems), the same for all metrics;
    0 leaves the intervals out. The interval is that of `resampled_interval`. p is two-sided; pooled and system level:
    the usual test of the coefficient over rows and systems; summary level: one-sample t test of the per-document
    correlations, documents being the independent units (None with fewer than two documents or no spread).

    Summary level given the number of words: only documents with more than five rows and summaries of different
    lengths; a document in which the metric or the human score is determined by the number of words counts as 0, for
    nothing is left of it.
    """
    resamples = lv.make_resamples(table, bootstrap, seed)
    found: dict[tuple[str, ...], AgreementFigure] = {}
    # Metrics and human scores that the same rows have are measured together.
    groups: dict[bytes, list[tuple[str, str]]] = {}
    for (metric, x), (human, y) in product(table.metrics.items(), table.human.items()):
        groups.setdefault(np.packbits(np.isnan(x) | np.isnan(y)).tobytes(), []).append((metric, human))
    with Bar(f"{table.dataset}: agreement", total=len(groups) * len(levels) * len(coefficients)) as bar:
        for names in groups.values():
            metrics, humans = (list(dict.fromkeys(side)) for side in zip(*names, strict=True))
            columns = [*(table.metrics[metric] for metric in metrics), *(table.human[human] for human in humans)]
            # The number of words is the last column.
            block = lv.make_block(table, [*columns, table.words])
            pairs = [(metrics.index(metric), len(metrics) + humans.index(human)) for metric, human in names]
            for level, coefficient in product(levels, coefficients):
                value, given, samples, per = _correlations(block, level, coefficient, pairs, resamples)
                for k, (metric, human) in enumerate(names):
                    key, own = (human, metric, level, coefficient), None if per is None else per[:, k]
                    found[key] = _figure(table, key, block, pairs[k], bootstrap, value[k], given[k], samples[:, k], own)
                bar.advance()
    return [found[key] for key in product(table.human, table.metrics, levels, coefficients)]


def _correlations(
    block: lv.Block, level: str, coefficient: str, pairs: lv.Pairs, resamples: lv.Resamples
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Of P pairs: values [P], the same given the number of words [P], resampled values [B, P], and, at the summary level,
    values per document [D, P].
    """
    words = len(block.values) - 1
    # Each correlation with the number of words is computed once, however many pairs need it.
    wanted = list(dict.fromkeys([*pairs, *((k, words) for pair in pairs for k in pair)]))
    per_document = lv.document_correlations(block, coefficient, wanted) if level == "summary" else None
    point = lv.block_correlations(block, level, coefficient, wanted)[None] if per_document is None else per_document
    sides = pairs, [(i, words) for i, _ in pairs], [(j, words) for _, j in pairs]
    xy, xz, yz = (point[:, [wanted.index(pair) for pair in own]] for own in sides)
    given = np.full_like(xy, np.nan) if level == "label" else partial(xy, xz, yz)
    if per_document is None:
        return xy[0], given[0], lv.resampled_correlations(block, level, coefficient, pairs, resamples), None
    determined = ~np.isnan(xy + xz + yz) & np.isnan(given)
    given = np.where(determined, 0.0, given)
    given[np.bincount(block.documents, minlength=block.total_documents) < lv.MIN_ROWS_PARTIAL] = np.nan
    # A metric that is the number of words in every document has no partial correlation, not one of 0.
    given[:, (determined | np.isnan(given)).all(axis=0)] = np.nan
    ones = np.ones((1, block.total_documents))
    return lv.averaged(xy, ones)[0], lv.averaged(given, ones)[0], lv.averaged(xy, resamples.weights), xy


def _figure(
    table: lv.ScoreTable,
    key: tuple[str, str, str, str],
    block: lv.Block,
    pair: tuple[int, int],
    bootstrap: int,
    value: np.ndarray,
    given: np.ndarray,
    samples: np.ndarray,
    per_document: np.ndarray | None,
) -> AgreementFigure:
    human, metric, level, coefficient = key
    x, y = block.values[list(pair)]
    no_human = np.isnan(table.human[human])
    left_out = {MISSING_HUMAN: no_human.sum(), MISSING_METRIC: (np.isnan(table.metrics[metric]) & ~no_human).sum()}
    used, uneven, p = np.ones(len(block.documents), dtype=bool), 0, np.nan
    if per_document is not None:
        left_out |= _documents_left_out(block, x, y)
        used = ~np.isnan(per_document)[block.documents]
        p = _mean_p(per_document[~np.isnan(per_document)])
    elif level == "system":
        used = block.systems >= 0
        left_out[NO_SYSTEM] = (~used).sum()
        uneven = _uneven(block.documents[used], block.systems[used])
        x, y = lv.system_means(block, np.ones((1, block.total_documents)))[0][list(pair)]
        x, y = x[~np.isnan(x + y)], y[~np.isnan(x + y)]
    defined = not np.isnan(value)
    if defined and per_document is None:
        p = p_value(x, y, float(value), coefficient)
    documents, systems = len(np.unique(block.documents[used])), block.systems[used]
    low, high, skipped = resampled_interval(samples, documents)
    if defined:
        left_out |= {**skipped, NOT_TAKEN: bootstrap - len(samples)}
    return AgreementFigure(
        table.dataset,
        *key,
        _number(value),
        low if defined else None,
        high if defined else None,
        _number(p) if defined else None,
        n=int(used.sum()),
        documents=documents,
        systems=len(np.unique(systems[systems >= 0])),
        left_out={reason: int(count) for reason, count in left_out.items() if count},
        uneven=uneven,
        given_length=_number(given) if defined else None,
        reason=None if defined else _why_not(block, level, *block.values[list(pair)]),
        given_reason=_why_not_given(defined, level, block) if np.isnan(given) or not defined else None,
    )


def _uneven(documents: np.ndarray, systems: np.ndarray) -> int:
    """How many of the systems have no row on one of ``documents`` [n]."""
    cells = np.unique(np.stack([systems, documents]), axis=1)
    return int((np.unique(cells[0], return_counts=True)[1] < len(np.unique(documents))).sum())


def _number(value: np.ndarray | float) -> float | None:
    return None if np.isnan(value) else float(value)


def _documents_left_out(block: lv.Block, x: np.ndarray, y: np.ndarray) -> Counter[str]:
    """Documents left out of the summary level, each under the first reason that holds."""
    present, starts, rows = np.unique(block.documents, return_index=True, return_counts=True)
    enough = rows >= lv.MIN_ROWS
    if not len(present):
        return Counter({FEW_ROWS: block.total_documents})
    flat_x, flat_y = (np.maximum.reduceat(column, starts) == np.minimum.reduceat(column, starts) for column in (x, y))
    flat = {CONSTANT_HUMAN: (enough & flat_y).sum(), CONSTANT_METRIC: (enough & flat_x & ~flat_y).sum()}
    return Counter({FEW_ROWS: block.total_documents - enough.sum(), **flat})


def _mean_p(values: np.ndarray) -> float:
    """Two-sided one-sample t test of mean 0; NaN with fewer than two values or none differing."""
    # Equal correlations may differ in their last bits; a t test of that spread would be of rounding errors.
    if len(values) < 2 or np.ptp(values) < 1e-12:
        return np.nan
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(values, 0.0).pvalue)


def _why_not(block: lv.Block, level: str, x: np.ndarray, y: np.ndarray) -> str:
    """Why there is no correlation."""
    if level == "summary":
        if np.bincount(block.documents, minlength=1).max(initial=0) < lv.MIN_ROWS:
            return "no document has three scored summaries, so there is no summary level"
        return "metric or human scores are constant within every document"
    if level == "system":
        count = len(block.known_systems())
        if not count:
            return f"no row {'names its system' if len(x) else 'has both scores'}, so there is no system level"
        if count < lv.MIN_SYSTEMS:
            return f"{count} system{'s' if count > 1 else ''}; the system level needs at least {lv.MIN_SYSTEMS}"
        if np.count_nonzero(block.systems >= 0) < 2 * count:
            return "fewer than two summaries a system, so there is no system level"
        return "the systems' means are constant"
    if len(x) < lv.MIN_ROWS:
        return f"{len(x)} rows have both scores; a correlation needs at least {lv.MIN_ROWS}"
    return "metric scores are constant" if np.ptp(x) == 0 else "human scores are constant"


def _why_not_given(defined: bool, level: str, block: lv.Block) -> str:
    """Why there is no partial correlation given the number of words."""
    if not defined:
        return "no correlation to begin with"
    if level == "label":
        return "an AUC has no partial form"
    words = block.values[-1]
    if np.ptp(words) == 0:
        return "all summaries have the same number of words"
    if level == "summary":
        _, starts, rows = np.unique(block.documents, return_index=True, return_counts=True)
        varied = np.maximum.reduceat(words, starts) > np.minimum.reduceat(words, starts)
        if not (varied & (rows >= lv.MIN_ROWS_PARTIAL)).any():
            return "no document has more than five scored summaries of different lengths"
    return "the scores are determined by the number of words"


# --- many articles, many data sets


@dataclass(frozen=True)
class SampleSize:
    """System-level correlation when ``articles`` articles are drawn: ``mean`` and ``sd`` (n − 1) over ``draws`` draws.

    ``skipped``: draws in which the correlation was undefined. ``mean`` is None without a draw, ``sd`` without two.
    """

    articles: int
    mean: float | None
    sd: float | None
    draws: int
    skipped: int


def article_sampling(
    table: lv.ScoreTable, metric: str, human: str, *, sizes: Sequence[int] = SIZES, draws: int = 50, seed: int = 0
) -> list[SampleSize]:
    """System-level Pearson of ``metric`` and ``human`` against the number of articles (Sun & Nenkova 2019, Figure 1).

    The articles are drawn without replacement. The ``sizes`` are those below the number of articles with scores, and
    that number. The draws do not depend on the metric, so that the curves of two metrics can be compared, as long as
    the same articles have scores. Nothing where there are fewer than two articles or no system level.
    """
    block = lv.make_block(table, [table.metrics[metric], table.human[human]])
    articles, found = np.unique(block.documents), []
    if len(articles) < 2 or len(block.known_systems()) < lv.MIN_SYSTEMS:
        return []
    for size in (*(size for size in sizes if size < len(articles)), len(articles)):
        rng, weights = generator(seed, "articles", table.dataset, size), np.zeros((draws, block.total_documents))
        for row in weights:
            row[rng.choice(articles, size=size, replace=False)] = 1
        means = lv.system_means(block, weights)
        good = lv.stacked(means.__getitem__, draws, 2, means.shape[2], "pearson")[:, 0, 1]
        good = good[~np.isnan(good)]
        mean, sd = (float(good.mean()) if len(good) else None), (float(good.std(ddof=1)) if len(good) > 1 else None)
        found.append(SampleSize(size, mean, sd, len(good), draws - len(good)))
    return found


@dataclass(frozen=True)
class AverageRank:
    """``rank``: mean over data sets of the metric's rank, 1 = best; ``datasets``: how many had a value for it."""

    metric: str
    rank: float
    datasets: int


def average_ranks(
    values: Mapping[str, Mapping[str, float | None]], *, ties: Literal["average", "min"] = "average"
) -> list[AverageRank]:
    """Average the rank of each metric over data sets, best first (Sun & Nenkova 2019, Table 4).

    ``values``: data set → metric → correlation (higher is better; None or NaN where undefined: the metric is not ranked
    there, and ``datasets`` shows it). Metrics with equal correlations share the mean of their ranks, or, with ``ties``
    ``min``, all have the best of them (as in Sun & Nenkova's table, which their printed correlations tell).
    """
    import pandas as pd

    ranks = pd.DataFrame(values, dtype=float).rank(ascending=False, method=ties)
    found = [AverageRank(str(metric), float(row.mean()), int(row.count())) for metric, row in ranks.iterrows()]
    return sorted((each for each in found if each.datasets), key=lambda a: (a.rank, a.metric))


# --- single summaries


@dataclass(frozen=True)
class Apart:
    """Row ``row`` of a table: ``metric_place`` and ``human_place`` in [0, 1], the share of the other summaries that
    are worse (ties count half); 1 is the best place. ``gap`` = ``metric_place`` − ``human_place``.
    """

    row: int
    metric_score: float
    human_score: float
    metric_place: float
    human_place: float
    gap: float


def furthest_apart(table: lv.ScoreTable, metric: str, human: str, count: int = 3) -> list[Apart]:
    """Find the ``count`` summaries that the metric overrates most, then the ``count`` that it underrates most.

    Places are among all summaries of the table that have both scores. Equal gaps stand in the order of the rows; no
    summary is named twice, and none that both place alike.
    """
    from scipy.stats import rankdata

    both = np.stack([table.metrics[metric], table.human[human]])
    rows = np.flatnonzero(~np.isnan(both).any(axis=0))
    if len(rows) < 2:
        return []
    places = (rankdata(both[:, rows], axis=-1) - 1) / (len(rows) - 1)
    gap = places[0] - places[1]
    over = [k for k in np.argsort(-gap, kind="stable")[:count] if gap[k] > 0]
    under = [k for k in np.argsort(gap, kind="stable")[:count] if gap[k] < 0]
    return [
        Apart(int(rows[k]), *(float(value) for value in (*both[:, rows[k]], *places[:, k], gap[k])))
        for k in [*over, *under]
    ]

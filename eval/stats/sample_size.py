"""How many articles a stable system ranking needs (P1, Figure 1), and average ranks over data sets (P1, Table 4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from negsample.errors import InputError
from negsample.eval.stats import correlation_levels as lv
from negsample.eval.stats.correlation import check_coefficient
from negsample.seeds import generator


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
    table: lv.Table,
    metric: str,
    human: str,
    sizes: Sequence[int],
    *,
    draws: int = 50,
    seed: int = 0,
    coefficient: str = "pearson",
) -> list[SampleSize]:
    """System-level correlation of ``metric`` and ``human`` against the number of articles, drawn without replacement.

    Each of ``sizes`` lies between 1 and the number of articles with scores. The draws do not depend on the metric, so
    that the curves of two metrics can be compared, as long as the same articles have scores.

    Raises InputError for unknown names, sizes outside the range, and a data set without a system level.
    """
    check_coefficient(coefficient)
    if draws < 1:
        raise InputError(f"draws is {draws}; give 1 or more")
    block = lv.make_block(table, [table.column(metric), table.judgment(human)])
    systems = np.unique(block.systems[block.systems >= 0])
    if len(systems) < lv.MIN_SYSTEMS:
        raise InputError(
            f"{table.dataset}: article sampling needs at least {lv.MIN_SYSTEMS} systems, found {len(systems)}"
        )
    articles = block.present()
    return [_sample(table, block, articles, size, draws, seed, coefficient) for size in sizes]


def _sample(
    table: lv.Table, block: lv.Block, articles: np.ndarray, size: int, draws: int, seed: int, coefficient: str
) -> SampleSize:
    if not 1 <= size <= len(articles):
        raise InputError(f"{table.dataset}: can't draw {size} of {len(articles)} articles; give sizes from 1 to that")
    rng = generator(seed, "articles", table.dataset, size)
    weights = np.zeros((draws, block.total_documents))
    for row in weights:
        row[rng.choice(articles, size=size, replace=False)] = 1
    means = lv.system_means(block, weights)
    values = lv.stacked(lambda part: means[part], draws, 2, means.shape[2], coefficient)[:, 0, 1]
    good = values[~np.isnan(values)]
    return SampleSize(
        size,
        float(good.mean()) if len(good) else None,
        float(good.std(ddof=1)) if len(good) > 1 else None,
        len(good),
        draws - len(good),
    )


@dataclass(frozen=True)
class AverageRank:
    """``rank``: mean over data sets of the metric's rank, 1 = best; ``datasets``: how many had a value for it."""

    metric: str
    rank: float
    datasets: int


def average_ranks(values: Mapping[str, Mapping[str, float | None]]) -> list[AverageRank]:
    """Average rank of each metric over data sets, best first (P1, Table 4).

    ``values``: data set → metric → correlation (higher is better; None or NaN where undefined: the metric is not ranked
    there, and ``datasets`` shows it). Metrics with equal correlations share the mean of their ranks.
    """
    from scipy.stats import rankdata

    ranks: dict[str, list[float]] = {}
    for column in values.values():
        known = {metric: float(v) for metric, v in column.items() if v is not None and not np.isnan(v)}
        for metric, rank in zip(known, rankdata([-v for v in known.values()]), strict=True):
            ranks.setdefault(metric, []).append(float(rank))
    found = [AverageRank(metric, float(np.mean(r)), len(r)) for metric, r in ranks.items()]
    return sorted(found, key=lambda a: (a.rank, a.metric))

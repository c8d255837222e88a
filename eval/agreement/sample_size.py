"""How many articles a stable system ranking needs, and average ranks over data sets (Sun & Nenkova 2019)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from negsample.eval.agreement import levels as lv
from negsample.seeds import generator

# Numbers of articles drawn, where a data set has more of them.
SIZES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500)


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
    articles = np.unique(block.documents)
    if len(articles) < 2 or len(block.known_systems()) < lv.MIN_SYSTEMS:
        return []
    wanted = [*(size for size in sizes if size < len(articles)), len(articles)]
    return [_sample(block, articles, size, draws, generator(seed, "articles", table.dataset, size)) for size in wanted]


def _sample(block: lv.Block, articles: np.ndarray, size: int, draws: int, rng: np.random.Generator) -> SampleSize:
    weights = np.zeros((draws, block.total_documents))
    for row in weights:
        row[rng.choice(articles, size=size, replace=False)] = 1
    means = lv.system_means(block, weights)
    values = lv.stacked(lambda part: means[part], draws, 2, means.shape[2], "pearson")[:, 0, 1]
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


def average_ranks(values: Mapping[str, Mapping[str, float | None]], *, ties: str = "average") -> list[AverageRank]:
    """Average the rank of each metric over data sets, best first (Sun & Nenkova 2019, Table 4).

    ``values``: data set → metric → correlation (higher is better; None or NaN where undefined: the metric is not ranked
    there, and ``datasets`` shows it). Metrics with equal correlations share the mean of their ranks, or, with ``ties``
    ``min``, all have the best of them (as in Sun & Nenkova's table, which their printed correlations tell).
    """
    from scipy.stats import rankdata

    ranks: dict[str, list[float]] = {}
    for column in values.values():
        known = {metric: float(v) for metric, v in column.items() if v is not None and not np.isnan(v)}
        for metric, rank in zip(known, rankdata([-v for v in known.values()], method=ties), strict=True):
            ranks.setdefault(metric, []).append(float(rank))
    found = [AverageRank(metric, float(np.mean(r)), len(r)) for metric, r in ranks.items()]
    return sorted(found, key=lambda a: (a.rank, a.metric))

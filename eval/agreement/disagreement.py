"""The summaries that a metric and people place furthest apart."""

from dataclasses import dataclass

import numpy as np

from negsample.eval.agreement.levels import ScoreTable


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


def furthest_apart(table: ScoreTable, metric: str, human: str, count: int = 3) -> list[Apart]:
    """Find the ``count`` summaries that the metric overrates most, then the ``count`` that it underrates most.

    Places are among all summaries of the table that have both scores. Equal gaps stand in the order of the rows; no
    summary is named twice, and none that both place alike.
    """
    from scipy.stats import rankdata

    x, y = table.metrics[metric], table.human[human]
    rows = np.flatnonzero(~np.isnan(x) & ~np.isnan(y))
    if len(rows) < 2:
        return []
    places = (rankdata(np.stack([x[rows], y[rows]]), axis=-1) - 1) / (len(rows) - 1)
    gap = places[0] - places[1]
    over = [k for k in np.argsort(-gap, kind="stable")[:count] if gap[k] > 0]
    under = [k for k in np.argsort(gap, kind="stable")[:count] if gap[k] < 0]
    return [
        Apart(
            row := int(rows[k]), float(x[row]), float(y[row]), float(places[0, k]), float(places[1, k]), float(gap[k])
        )
        for k in [*over, *under]
    ]

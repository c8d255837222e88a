"""0/1 labels: the limit of a score under which a summary is called bad, and how often that errs on other documents."""

from typing import Any

import numpy as np

from negsample.eval.agreement import levels as lv
from negsample.eval.agreement.shares import Kind, Shares, measure_shares
from negsample.eval.judgments.files import HALVES

FOLDS = 5


def _rates(sums: np.ndarray) -> np.ndarray:
    bad_called, bad, good_called, good = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        recall, false = bad_called / bad, good_called / good
        return np.stack([(recall + 1 - false) / 2, bad_called / (bad_called + good_called), recall, false], axis=-1)


_ONE_LABEL = "the summaries measured have one label only"
LIMIT = Kind(
    "limit",
    {
        "balanced_accuracy": "balanced accuracy",
        "precision_bad": "precision of bad",
        "recall_bad": "recall of bad",
        "false_alarms": "false alarms",
    },
    _rates,
    (_ONE_LABEL, "nothing is called bad", _ONE_LABEL, _ONE_LABEL),
    "row without a metric score or a limit",
    "no limit could be chosen",
)


def best_limit(scores: np.ndarray, good: np.ndarray, max_missed: float | None = None) -> float | None:
    """Return the limit, halfway between two of ``scores`` [n], of highest balanced accuracy as to ``good`` bool [n]; with
    ``max_missed`` that of fewest false alarms at which no more than this share of the bad is missed.

    Of equal ones the highest. None with labels of one kind, and where every limit misses more. What is under it is bad.
    """
    from sklearn.metrics import roc_curve

    if good.all() or not good.any():
        return None
    missed, kept, limits = roc_curve(good, scores, drop_intermediate=False)
    # The first limit, an infinite one, calls all bad, which needs no score.
    missed, kept, limits = missed[1:], kept[1:], (limits[1:] + np.append(limits[2:], limits[-1])) / 2
    if max_missed is None:
        return float(limits[np.argmax(np.round(kept - missed, 12))])  # equal shares may differ in their last bits
    allowed = missed <= max_missed
    return float(limits[np.argmax(np.where(allowed, kept, -1.0))]) if allowed.any() else None


def measure_limits(
    table: lv.ScoreTable, human: str, halves: np.ndarray, *, max_missed: float | None = None, **options: Any
) -> Shares:
    """Choose a limit for every metric of ``table``, and measure it on documents by which it was not chosen.

    ``halves`` [n] of ``tune``, ``report`` and ``""``: with both, a limit is chosen on the one and measured on the other;
    else chosen by `best_limit` on the other four fifths of the documents, and the limit told is that of all of them.
    ``options``: as of `measure_shares`; the limits are held in resamples.
    """
    from sklearn.model_selection import GroupKFold

    good = lv.is_good(table.human[human])
    if good is None:
        return Shares(human, LIMIT, "there are not two labels")
    rows = np.flatnonzero(~np.isnan(table.human[human]))
    count = min(FOLDS, len(np.unique(table.documents[rows])))
    if carried := set(HALVES) <= set(halves[rows]):
        parts = [tuple(rows[halves[rows] == half] for half in HALVES)]
        how = "chosen on half: tune, measured on half: report"
    elif count < 2:
        how = "no limit: it must be chosen on other documents than it is measured on, and there is one only"
        return Shares(human, LIMIT, how)
    else:
        folds = GroupKFold(count).split(rows, groups=table.documents[rows])
        parts = [(rows[chosen], rows[held]) for chosen, held in folds]
        how = f"measured out of fold ({count} folds of documents); the limit shown is that of all"
    if max_missed is not None:
        how += f"; to miss at most {max_missed:g} of the bad"
    measured, limits, counts = np.sort(np.concatenate([held for _, held in parts])), {}, {}
    for name, scores in table.metrics.items():
        usable, called = ~np.isnan(scores), np.full(len(scores), np.nan)
        groups = (places[usable[places]] for places in (*(chosen for chosen, _ in parts), rows))
        *found, of_all = [best_limit(scores[places], good[places], max_missed) for places in groups]
        for (_, held), limit in zip(parts, found, strict=True):
            if limit is not None:
                called[held] = np.where(usable[held], scores[held] < limit, np.nan)
        limits[name] = found[0] if carried else of_all
        counts[name] = np.stack([~good * called, ~good + 0 * called, good * called, good + 0 * called], axis=1)[
            measured
        ]
    places = table.documents[measured], table.systems[measured, None]
    constant = "constant: all bad", (0.5, float((~good[measured]).mean()), 1.0, 1.0)
    return Shares(
        human, LIMIT, how, constant, limits, **measure_shares(table.dataset, human, LIMIT, counts, *places, **options)
    )

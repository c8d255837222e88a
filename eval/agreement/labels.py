"""0/1 labels: the limit of a score under which a summary is called bad, and how often that errs on other documents."""

from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from negsample.eval.agreement import levels as lv
from negsample.eval.agreement.figures import AgreementFigure
from negsample.eval.agreement.significance import WILLIAMS_LABELS, MetricsComparison
from negsample.eval.judgments.files import HALVES
from negsample.resampling import bootstrap_p, patterns, percentile_interval, permutation_p
from negsample.seeds import generator

RATES = ("balanced_accuracy", "precision_bad", "recall_bad", "false_alarms")
FOLDS = 5
_NO_LIMIT = "no limit could be chosen"


@dataclass(frozen=True)
class Limits:
    """The limits on all metrics for one human score. ``how`` they were chosen and measured; ``bad``: share of the bad among the
    summaries measured, None without one. ``values``: metric → limit, what is under it is called bad; None where there is none.
    ``figures`` have the level ``limit`` and one of `RATES` as coefficient; ``comparisons`` are of the first of them.
    """

    human: str
    how: str
    bad: float | None = None
    values: dict[str, float | None] = field(default_factory=dict)
    figures: tuple[AgreementFigure, ...] = ()
    comparisons: tuple[MetricsComparison, ...] = ()


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
    table: lv.ScoreTable,
    human: str,
    halves: np.ndarray,
    *,
    max_missed: float | None = None,
    bootstrap: int = 1000,
    permutations: int = 1000,
    seed: int = 0,
) -> Limits:
    """Choose a limit for every metric of ``table``, and measure it on documents by which it was not chosen.

    ``halves`` [n] of ``tune``, ``report`` and ``""``: with both, a limit is chosen on the one and measured on the other;
    else chosen by `best_limit` on the other four fifths of the documents, and the limit told is that of all of them.
    Intervals: documents resampled, the limits held. Two metrics are compared where both have a score, as correlations are.
    """
    good = lv.is_good(table.human[human])
    if good is None:
        return Limits(human, "there are not two labels")
    there = ~np.isnan(table.human[human])
    total, labelled = len(table.document_names), np.unique(table.documents[there])
    carried = all((there & (halves == half)).any() for half in HALVES)
    if carried:
        parts = [tuple(there & (halves == half) for half in HALVES)]
        how = "chosen on half: tune, measured on half: report"
    elif len(labelled) < 2:
        return Limits(
            human, "no limit: it must be chosen on other documents than it is measured on, and there is one only"
        )
    else:
        count, fold = min(FOLDS, len(labelled)), np.zeros(total, dtype=int)
        fold[labelled] = generator(seed, "folds", table.dataset, human).permutation(len(labelled)) % count
        parts = [(there & (fold[table.documents] != k), there & (fold[table.documents] == k)) for k in range(count)]
        how = f"measured out of fold ({count} folds of documents); the limit shown is that of all"
    if max_missed is not None:
        how += f"; to miss at most {max_missed:g} of the bad"
    measured, values, called = np.logical_or.reduce([part[1] for part in parts]), {}, {}
    for name, scores in table.metrics.items():
        usable, found = ~np.isnan(scores), np.full(len(scores), np.nan)
        for chosen, held in parts:
            limit = best_limit(scores[chosen & usable], good[chosen & usable], max_missed)
            if limit is not None:
                found[held & usable] = scores[held & usable] < limit
        values[name] = limit if carried else best_limit(scores[there & usable], good[there & usable], max_missed)
        called[name] = found

    def sums(found: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """[D, 4]: bad and called so, bad, good and called bad, good."""
        counted = (~good * found, ~good, good * found, good)
        return np.stack([np.bincount(table.documents[rows], each[rows], total) for each in counted], axis=1)

    held = np.unique(table.documents[measured])
    weights = np.zeros((bootstrap, total))
    rng = generator(seed, "bootstrap", table.dataset, "limit")
    weights[:, held] = rng.multinomial(len(held), np.full(len(held), 1 / len(held)), size=bootstrap)
    figures = []
    for name, found in called.items():
        rows = ~np.isnan(found)
        of = sums(found, rows)
        n, documents, systems = (
            int(rows.sum()),
            len(np.unique(table.documents[rows])),
            len(np.unique(table.systems[rows & (table.systems >= 0)])),
        )
        left_out = {"row without a metric score or a limit": count} if (count := int((measured & ~rows).sum())) else {}
        for rate, value, samples in zip(RATES, _rates(of.sum(axis=0)), _rates(weights @ of).T, strict=True):
            why = None
            if np.isnan(value):
                why = "nothing is called bad" if rate == RATES[1] else "the summaries measured have one label only"
                why = why if rows.any() else _NO_LIMIT
            low, high = (None, None) if why else percentile_interval(samples)[:2]
            shown = None if why else float(value), low, high, None
            about = table.dataset, human, name, "limit", rate
            figures.append(AgreementFigure(*about, *shown, n, documents, systems, left_out=left_out, reason=why))
    keep, exact = patterns(generator(seed, "permutation", table.dataset, "limit"), total, permutations)
    comparisons = []
    for first, second in combinations(called, 2):
        rows = ~np.isnan(called[first] + called[second])
        one, two = (sums(called[name], rows) for name in (first, second))
        values_of = [float(_rates(of.sum(axis=0))[0]) for of in (one, two)]
        documents = len(np.unique(table.documents[rows]))
        plain = MetricsComparison(
            table.dataset,
            human,
            "limit",
            RATES[0],
            first,
            second,
            int(rows.sum()),
            documents,
            williams_reason=WILLIAMS_LABELS,
        )
        if np.isnan(values_of).any():
            comparisons.append(replace(plain, reason=_NO_LIMIT))
            continue
        difference = values_of[0] - values_of[1]
        resampled = _rates(weights @ one)[:, 0] - _rates(weights @ two)[:, 0]
        swapped = _rates(keep @ one + (1 - keep) @ two)[:, 0] - _rates(keep @ two + (1 - keep) @ one)[:, 0]
        low, high, _ = percentile_interval(resampled)
        comparisons.append(
            replace(
                plain,
                value_first=values_of[0],
                value_second=values_of[1],
                difference=difference,
                low=low,
                high=high,
                p_bootstrap=bootstrap_p(resampled),
                p_permutation=permutation_p(difference, swapped, exact),
            )
        )
    bad = float((~good[measured]).mean())
    return Limits(human, how, bad, values, tuple(figures), tuple(comparisons))


def _rates(sums: np.ndarray) -> np.ndarray:
    """[…, 4]: `RATES` of `sums` [..., 4]; NaN where undefined."""
    bad_called, bad, good_called, good = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        recall, false = bad_called / bad, good_called / good
        return np.stack([(recall + 1 - false) / 2, bad_called / (bad_called + good_called), recall, false], axis=-1)

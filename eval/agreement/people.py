"""Agreement among the annotators of one human score: what a metric's correlation can be read against."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from negsample.eval.agreement import levels as lv
from negsample.records import Judged
from negsample.resampling import resampled_interval
from negsample.terminal import number

ALPHA_RESAMPLES = 200  # an α is some ten milliseconds of the library's
MIN_RATINGS = 2


@dataclass(frozen=True)
class Ceiling:
    """Annotators against others, by the level's coefficient: the mean ``value``, its `resampled_interval` (of documents;
    system level: of documents and systems); ``each``: of every annotator, or every two of them.
    """

    value: float | None
    low: float | None
    high: float | None
    each: tuple[float | None, ...]


@dataclass(frozen=True)
class People:
    """``alpha``: Krippendorff's, interval scale (of two values the same as nominal), with its interval; ``kappa``: of two values,
    the mean of Cohen's over pairs of annotators; by level ``ceiling``, one annotator against the mean of the others, and
    ``pairwise``, two annotators. Over the ``summaries`` with two ratings and more.
    ``reason`` says why there is no α.
    """

    annotators: int
    summaries: int
    alpha: float | None = None
    alpha_low: float | None = None
    alpha_high: float | None = None
    kappa: float | None = None
    ceiling: dict[str, Ceiling] = field(default_factory=dict)
    pairwise: dict[str, Ceiling] = field(default_factory=dict)
    reason: str | None = None

    @property
    def text(self) -> str:
        """How far they agree, in a line."""
        told = f"Krippendorff's α {number(self.alpha)}"
        told += f" [{number(self.alpha_low, 2)}, {number(self.alpha_high, 2)}]" if self.alpha_low is not None else ""
        told += f", mean Cohen's κ {number(self.kappa)}" if self.kappa is not None else ""
        return f"{told} among {self.annotators} annotators on {self.summaries} summaries"


def among_people(
    table: lv.ScoreTable, rows: Sequence[Judged], human: str, levels: Sequence[str], *, bootstrap: int, seed: int
) -> People | None:
    """Measure how far those who gave ``human`` agree; the i-th of a summary's ratings is annotator i. None without ratings.

    ``rows`` are those of ``table``. Krippendorff (2011), "Computing Krippendorff's alpha-reliability".
    """
    import krippendorff

    given = [row.ratings.get(human, ()) for row in rows]
    most = max(map(len, given), default=0)
    if not most:
        return None
    padded = [[np.nan if n is None else n for n in (*each, *[None] * (most - len(each)))] for each in given]
    ratings = np.array(padded, dtype=np.float64).T
    several = (~np.isnan(ratings)).sum(axis=0) >= MIN_RATINGS
    annotators, summaries = int((~np.isnan(ratings)).any(axis=1).sum()), int(several.sum())
    if not summaries:
        return People(annotators, 0, reason="one annotator a summary, so there is no agreement among them")
    used = ratings[:, several]
    values = np.unique(used[~np.isnan(used)])
    if len(values) < 2:
        return People(annotators, summaries, reason="all ratings are equal, so there is no agreement to measure")
    counts = np.stack([(used == value).sum(axis=0) for value in values], axis=1)

    def alpha(of: np.ndarray) -> float:
        differ = (of.sum(axis=0) > 0).sum() > 1
        return float(krippendorff.alpha(value_counts=of, value_domain=values)) if differ else np.nan

    resamples = lv.make_resamples(table, bootstrap, seed)
    repeats = resamples.weights[:ALPHA_RESAMPLES, table.documents[several]].astype(int)
    samples = np.array([alpha(np.repeat(counts, each, axis=0)) for each in repeats])
    low, high, _ = resampled_interval(samples, len(np.unique(table.documents[several])))
    apart = [(own, _others(ratings, k)) for k, own in enumerate(ratings)]
    ceiling = {level: _mean(table, apart, level, resamples) for level in levels}
    pairwise = {level: _mean(table, list(combinations(ratings, 2)), level, resamples) for level in levels}
    kappa = _kappa(used) if len(values) == 2 else None
    return People(annotators, summaries, alpha(counts), low, high, kappa, ceiling, pairwise)


def _others(ratings: np.ndarray, k: int) -> np.ndarray:
    """[n]: mean of all ``ratings`` [A, n] but those of annotator ``k``; NaN where there is none."""
    rest = np.delete(ratings, k, axis=0)
    count = (~np.isnan(rest)).sum(axis=0)
    return np.where(count > 0, np.nansum(rest, axis=0) / np.maximum(count, 1), np.nan)


def _mean(
    table: lv.ScoreTable, sides: Sequence[tuple[np.ndarray, np.ndarray]], level: str, resamples: lv.Resamples
) -> Ceiling:
    """The mean over ``sides``, two columns each, of their correlations at ``level``."""
    coefficient, enough = lv.MAIN_COEFFICIENT[level], lv.MIN_ROWS if level == "summary" else 1
    values, samples, documents = [], [], []
    for own, others in sides:
        block = lv.make_block(table, [own, others])
        values.append(float(lv.block_correlations(block, level, coefficient, [(0, 1)])[0]))
        samples.append(lv.resampled_correlations(block, level, coefficient, [(0, 1)], resamples)[:, 0])
        documents.append(int((np.bincount(block.documents, minlength=1) >= enough).sum()))
    defined = [k for k, value in enumerate(values) if not np.isnan(value)]
    shown = tuple(None if np.isnan(value) else value for value in values)
    if not defined:
        return Ceiling(None, None, None, shown)
    least = min(documents[k] for k in defined)
    low, high, _ = resampled_interval(np.mean([samples[k] for k in defined], axis=0), least)
    return Ceiling(float(np.mean([values[k] for k in defined])), low, high, shown)


def _kappa(ratings: np.ndarray) -> float | None:
    """Mean of Cohen's κ, of two values, over the pairs of annotators who rated the same summaries, and not all of them alike."""
    from sklearn.metrics import cohen_kappa_score

    found, higher = [], np.nanmax(ratings)
    for one, two in combinations(ratings, 2):
        both = ~np.isnan(one + two)
        if len(np.unique([one[both], two[both]])) > 1:
            # As labels: the library takes no values such as 0 and 0.5.
            found.append(float(cohen_kappa_score(one[both] == higher, two[both] == higher)))
    return float(np.mean(found)) if found else None

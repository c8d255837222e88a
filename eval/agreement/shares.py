"""Shares of summaries, or of pairs, that metrics get right: functions of sums over documents, with intervals, compared by two.

Of 0/1 labels: the limit of a score under which a summary is called bad, and how often that errs on other documents. Of choices
between two summaries of a document: how often a score orders them as people did, and which system wins.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from negsample.eval.agreement.figures import AgreementFigure
from negsample.eval.agreement.levels import ScoreTable, is_good
from negsample.eval.agreement.significance import WILLIAMS_LABELS, MetricsComparison, difference_fields
from negsample.eval.judgments.files import CHOSEN, HALVES
from negsample.records import Judged
from negsample.resampling import patterns, resampled_interval
from negsample.seeds import generator
from negsample.terminal import number

FOLDS = 5
STRENGTHS = 200  # resamples of the strengths, each of which is a fit


@dataclass(frozen=True)
class Kind:
    """The shares of a ``level``: the ``names`` by which they are called in files → what heads their columns. ``of`` makes them,
    [..., names], of sums [..., k], NaN where undefined; ``undefined`` says why, a text a name. ``missing``: what a row lacks that
    is left out; ``nothing``: why a metric has none at all.
    """

    level: str
    names: Mapping[str, str]
    of: Callable[[np.ndarray], np.ndarray]
    undefined: Sequence[str]
    missing: str
    nothing: str


@dataclass(frozen=True)
class Shares:
    """The shares of all metrics beside one human score, and ``how`` they were measured. ``constant``: what a score that is the
    same for all comes to, and its name; ``limits``: metric → the limit under which a summary is called bad, None without one.
    ``figures`` have a name of the ``kind`` as coefficient; ``comparisons`` are of the first of them.
    """

    human: str
    kind: Kind
    how: str
    constant: tuple[str, Sequence[float | None]] = ("", ())
    limits: dict[str, float | None] = field(default_factory=dict)
    figures: tuple[AgreementFigure, ...] = ()
    comparisons: tuple[MetricsComparison, ...] = ()


def measure_shares(
    about: tuple[str, str],
    kind: Kind,
    counts: Mapping[str, np.ndarray],
    documents: np.ndarray,
    systems: np.ndarray,
    *,
    bootstrap: int = 1000,
    permutations: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Return ``figures`` and ``comparisons`` of metrics by their ``counts`` [n, k], NaN where a row is not measured.

    ``about``: data set and human score; ``documents`` [n], ``systems`` [n, m] are codes, −1 for no system. Intervals: documents
    resampled. Two metrics are compared over the rows that both have: within random documents they change places.
    """
    codes = np.unique(documents, return_inverse=True)[1]
    total, (dataset, human), level = int(codes.max(initial=-1)) + 1, about, kind.level
    there = {name: ~np.isnan(own).any(axis=1) for name, own in counts.items()}

    def sums(name: str, rows: np.ndarray) -> np.ndarray:
        found = np.zeros((total, counts[name].shape[1]))
        np.add.at(found, codes[rows], counts[name][rows])
        return found

    rng = generator(seed, "bootstrap", dataset, level)
    weights = rng.multinomial(total, np.full(total, 1 / total), size=bootstrap).astype(np.float64)
    figures, comparisons = [], []
    for name, rows in there.items():
        own, used, n = sums(name, rows), systems[rows], int(rows.sum())
        size = n, len(np.unique(codes[rows])), len(np.unique(used[used >= 0]))
        told = zip(kind.names, kind.of(own.sum(axis=0)).tolist(), kind.of(weights @ own).T, kind.undefined, strict=True)
        for share, value, samples, why in told:
            defined = not np.isnan(value)
            low, high, skipped = resampled_interval(samples, size[1]) if defined else (None, None, {})
            left_out = {reason: c for reason, c in {kind.missing: len(rows) - n, **skipped}.items() if c}
            named = dataset, human, name, level, share, value if defined else None, low, high, None, *size
            reason = None if defined else why if n else kind.nothing
            figures.append(AgreementFigure(*named, left_out=left_out, reason=reason))
    keep, exact = patterns(generator(seed, "permutation", dataset, level), total, permutations)
    for first, second in combinations(counts, 2):
        rows = there[first] & there[second]
        one, two = sums(first, rows), sums(second, rows)
        told_of = dataset, human, level, next(iter(kind.names)), first, second
        used_rows = int(rows.sum()), len(np.unique(codes[rows]))
        value, other = (float(kind.of(own.sum(axis=0))[0]) for own in (one, two))
        found: dict[str, Any] = {"reason": kind.nothing}
        if not np.isnan(value + other):
            sampled = kind.of(weights @ one)[:, 0] - kind.of(weights @ two)[:, 0]
            swapped = kind.of(keep @ one + (1 - keep) @ two)[:, 0] - kind.of(keep @ two + (1 - keep) @ one)[:, 0]
            found = difference_fields(value, other, sampled, swapped, exact, used_rows[1])
        comparisons.append(MetricsComparison(*told_of, *used_rows, **found, williams_reason=WILLIAMS_LABELS))
    return {"figures": tuple(figures), "comparisons": tuple(comparisons)}


# --- 0/1 labels


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
    table: ScoreTable, human: str, halves: np.ndarray, *, max_missed: float | None = None, **options: Any
) -> Shares:
    """Choose a limit for every metric of ``table``, and measure it on documents by which it was not chosen.

    ``halves`` [n] of ``tune``, ``report`` and ``""``: with both, a limit is chosen on the one and measured on the other;
    else chosen by `best_limit` on the other four fifths of the documents, and the limit told is that of all of them.
    ``options``: as of `measure_shares`; the limits are held in resamples.
    """
    from sklearn.model_selection import GroupKFold

    if (every := is_good(table.human[human])) is None:
        return Shares(human, LIMIT, "there are not two labels")
    rows = np.flatnonzero(~np.isnan(table.human[human]))
    good, halves, documents = (column[rows] for column in (every, halves, table.documents))
    if carried := set(HALVES) <= set(halves):
        parts = [tuple(np.flatnonzero(halves == half) for half in HALVES)]
        unmarked = np.count_nonzero(halves == "")
        how = "chosen on half: tune, measured on half: report" + (
            f"; {unmarked} without a half left out" if unmarked else ""
        )
    elif (count := min(FOLDS, len(np.unique(documents)))) > 1:
        parts = list(GroupKFold(count).split(good, groups=documents))
        how = f"measured out of fold ({count} folds of documents); the limit shown is that of all"
    else:
        how = "no limit: it must be chosen on other documents than it is measured on, and there is one only"
        return Shares(human, LIMIT, how)
    how += "" if max_missed is None else f"; to miss at most {max_missed:g} of the bad"
    measured, limits, counts = np.sort(np.concatenate([held for _, held in parts])), {}, {}
    for name, column in table.metrics.items():
        scores, called = column[rows], np.full(len(rows), np.nan)
        usable = ~np.isnan(scores)
        groups = (places[usable[places]] for places in (*(chosen for chosen, _ in parts), np.arange(len(rows))))
        *found, of_all = [best_limit(scores[places], good[places], max_missed) for places in groups]
        for (_, held), limit in zip(parts, found, strict=True):
            if limit is not None:
                called[held] = np.where(usable[held], scores[held] < limit, np.nan)
        limits[name] = found[0] if carried else of_all
        own = [~good * called, ~good + 0 * called, good * called, good + 0 * called]
        counts[name] = np.stack(own, axis=1)[measured]
    constant = "constant: all bad", (0.5, float((~good[measured]).mean()), 1.0, 1.0)
    places = documents[measured], table.systems[rows][measured, None]
    found_shares = measure_shares((table.dataset, human), LIMIT, counts, *places, **options)
    return Shares(human, LIMIT, how, constant, limits, **found_shares)


# --- choices between two summaries


def _ordered(sums: np.ndarray) -> np.ndarray:
    """By majorities and by votes, from (ordered alike, not tied, tied) of each: ties out, and ties as half."""
    alike, untied, tied = np.moveaxis(np.asarray(sums, dtype=np.float64).reshape(*sums.shape[:-1], 2, 3), -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.stack([alike / untied, (alike + tied / 2) / (untied + tied)], axis=-1)
    return shares.reshape(*sums.shape[:-1], 4)


CHOICE = Kind(
    "choice",
    {"majority": "as most people", "majority_ties": "ties half", "votes": "as single votes", "votes_ties": "ties half"},
    _ordered,
    ("people are tied on every pair", "there is no pair", "every vote is a tie", "there is no vote"),
    "pair without two scores",
    "no pair has two scores",
)


def pairs_of(rows: Sequence[Judged]) -> np.ndarray:
    """[5, P]: of each pair that people compared the places of its two in ``rows``, and how many chose either or neither."""
    at = {(row.document_id, row.summary): place for place, row in enumerate(rows)}
    told = (
        (k, at[row.document_id, other], votes) for k, row in enumerate(rows) for other, votes in row.choices.items()
    )
    return np.array([(one, two, *votes) for one, two, votes in told if one < two], dtype=int).reshape(-1, 5).T


def measure_choices(table: ScoreTable, rows: Sequence[Judged], **options: Any) -> Shares:
    """Measure how often each metric of ``table`` orders the two summaries of a pair of ``rows`` as people did, equal scores half.

    By the choice of most, and by every single choice; where people are tied the pair is left out, or counts half whatever the
    metric says. ``options``: as of `measure_shares`.
    """
    first, second, won, lost, tied = pairs_of(rows)
    votes, counts = (won, lost, tied), {}
    majority = won > lost, won < lost, won == lost
    for name, scores in table.metrics.items():
        # 1 where the first of the two has the higher score, ½ where they are equal.
        ahead = (np.sign(scores[first] - scores[second]) + 1) / 2
        columns = [(w * ahead + o * (1 - ahead), w + o + 0 * ahead, t + 0 * ahead) for w, o, t in (majority, votes)]
        counts[name] = np.stack([*columns[0], *columns[1]], axis=1)
    systems = np.stack([table.systems[first], table.systems[second]], axis=1)
    found = measure_shares((table.dataset, CHOSEN), CHOICE, counts, table.documents[first], systems, **options)
    how = f"{len(first)} pairs, {int(sum(map(sum, votes)))} choices, {int(tied.sum())} of them ties; {_among_people(*votes)}"
    return Shares(CHOSEN, CHOICE, how, ("chance", (0.5,) * 4), **found)


def _among_people(won: np.ndarray, lost: np.ndarray, tied: np.ndarray) -> str:
    """How far the choices of several people agree: Krippendorff's α (nominal), and one against most of the others, ties half."""
    import krippendorff

    several = won + lost + tied > 1
    counts = np.stack([won, lost, tied], axis=1)[several]
    if (counts.sum(axis=0) > 0).sum() < 2:
        return "no two choices of a pair that could differ" if not len(counts) else "all people chose alike"
    alpha = krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")
    won, lost, _ = counts.T
    alike = won * (np.sign(won - 1 - lost) + 1) / 2 + lost * (np.sign(lost - 1 - won) + 1) / 2
    share = number(float(alike.sum() / max(1, (won + lost).sum())))
    return f"one person chooses as most of the others in {share}, Krippendorff's α {number(float(alpha))}"


@dataclass(frozen=True)
class Contestant:
    """A system's pairs by people's choices, and its Bradley–Terry ``strength``: that of i is preferred to that of j with the log
    odds strength_i − strength_j; mean 0 over systems. ``low``, ``high``: 95 % percentile interval, documents resampled.
    """

    system: str
    wins: int
    losses: int
    ties: int
    strength: float | None
    low: float | None
    high: float | None


def contest(table: ScoreTable, rows: Sequence[Judged], bootstrap: int, seed: int) -> list[Contestant]:
    """Rank the systems, [] where no two met; a tie is half a win of each. Bradley and Terry (1952), Biometrika 39.

    A strength is None where systems are not linked by wins both ways: then it has no bound.
    """
    first, second, *votes = pairs_of(rows)
    of, count = np.stack([table.systems[first], table.systems[second]]), len(table.system_names)
    apart = np.flatnonzero((of[0] != of[1]) & (of >= 0).all(axis=0))
    if not len(apart):
        return []
    # [documents, own system, other one, (won, lost, tied)], each pair from both sides.
    games = np.zeros((len(table.document_names), count, count, 3))
    for (one, two), tally in ((of, votes), (of[::-1], [votes[1], votes[0], votes[2]])):
        np.add.at(games, (table.documents[first[apart]], one[apart], two[apart]), np.stack(tally, axis=1)[apart])
    wins = games[..., 0] + games[..., 2] / 2
    documents, strengths = np.flatnonzero(wins.any(axis=(1, 2))), _strengths(wins.sum(axis=0))
    size = min(bootstrap, STRENGTHS), len(documents)
    drawn = generator(seed, "contest", table.dataset).integers(len(documents), size=size)
    samples = np.array([_strengths(wins[documents[draw]].sum(axis=0)) for draw in drawn]).reshape(-1, count)
    found = []
    for k, (name, strength) in enumerate(zip(table.system_names, strengths, strict=True)):
        tally = games.sum(axis=(0, 2))[k].astype(int).tolist()
        ends = (
            (None, None, None)
            if np.isnan(strength)
            else (float(strength), *resampled_interval(samples[:, k], len(documents))[:2])
        )
        found.append(Contestant(name, *tally, *ends))
    return sorted(found, key=lambda each: (-(each.strength or 0.0), -each.wins + each.losses, each.system))


def _strengths(games: np.ndarray) -> np.ndarray:
    """[S]: maximum likelihood of ``games`` [S, S], how often the row's system was preferred to the column's; NaN without one."""
    from scipy.sparse.csgraph import connected_components
    from sklearn.linear_model import LogisticRegression

    if len(games) < 2 or connected_components(games, connection="strong")[0] > 1:
        return np.full(len(games), np.nan)
    i, j = np.triu_indices(len(games), 1)
    differences = np.eye(len(games))[i] - np.eye(len(games))[j]
    fit = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-8)
    fit.fit(np.tile(differences, (2, 1)), np.repeat([1, 0], len(i)), np.concatenate([games[i, j], games[j, i]]))
    return fit.coef_[0] - fit.coef_[0].mean()

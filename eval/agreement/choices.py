"""Choices between two summaries of a document: how often a score orders them as people did, and which system wins."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from negsample.eval.agreement.levels import ScoreTable
from negsample.eval.agreement.shares import Kind, Shares, measure_shares
from negsample.eval.judgments.files import CHOSEN
from negsample.records import Judged
from negsample.resampling import percentile_interval
from negsample.seeds import generator
from negsample.terminal import number

STRENGTHS = 200  # resamples of the strengths, each of which is a fit


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
    found = measure_shares(table.dataset, CHOSEN, CHOICE, counts, table.documents[first], systems, **options)
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


# --- which system wins


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
    (one, two), (won, lost, tied) = of[:, apart], (each[apart] for each in votes)
    games = np.zeros((len(table.document_names), count, count))
    np.add.at(games, (table.documents[first[apart]], one, two), won + tied / 2)
    np.add.at(games, (table.documents[first[apart]], two, one), lost + tied / 2)
    total, documents = games.sum(axis=0), np.flatnonzero(games.any(axis=(1, 2)))
    drawn = generator(seed, "contest", table.dataset).integers(
        len(documents), size=(min(bootstrap, STRENGTHS), len(documents))
    )
    samples = np.array([_strengths(games[documents[draw]].sum(axis=0)) for draw in drawn]).reshape(-1, count)
    found = []
    for k, (name, strength) in enumerate(zip(table.system_names, _strengths(total), strict=True)):
        low, high, _ = (None, None, None) if np.isnan(strength) else percentile_interval(samples[:, k])
        wins = int(won[one == k].sum() + lost[two == k].sum())
        losses = int(lost[one == k].sum() + won[two == k].sum())
        ties = int(tied[(one == k) | (two == k)].sum())
        found.append(Contestant(name, wins, losses, ties, None if np.isnan(strength) else float(strength), low, high))
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

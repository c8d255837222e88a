"""``negsample estimate``: what people would say of systems, from a few judged summaries and the scores of all.

Prediction-powered inference (Angelopoulos et al. 2023, Science 382) with the weight of the score tuned for the narrowest interval
(Angelopoulos, Duchi and Zrnic 2023, "PPI++: Efficient prediction-powered inference", arXiv:2311.01453). An estimate is a sum of
what documents add, which are independent; a document's summaries by two systems need not be.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from negsample.errors import InputError
from negsample.eval.agreement.columns import ScoreColumn, check_names, make_scorers, score_columns
from negsample.eval.judgments.collect import Unusable
from negsample.eval.judgments.files import load
from negsample.records import PEOPLE, Judged
from negsample.registry import suggestion
from negsample.seeds import generator


@dataclass(frozen=True)
class Estimate:
    """People's mean of ``human`` for ``system``, or, with ``other``, how far it is above that of ``other``.

    ``plain``, ``plain_low``, ``plain_high``: of the ``judged`` documents alone (of the system with fewer); ``value``, ``low``,
    ``high``: with the scores of the ``scored`` ones, which nobody judged, too. ``weight`` ≥ 0: people's points for a point of the
    score. ``saved``: how many more judgments the plain interval needs to be as narrow. None where undefined; ``reason`` says why.
    """

    human: str
    system: str
    other: str | None
    judged: int
    scored: int
    plain: float | None = None
    plain_low: float | None = None
    plain_high: float | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    weight: float = 0.0
    saved: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Estimates:
    """All of it, the means of the systems before their differences to the first. ``chosen``: documents to have judged next."""

    column: ScoreColumn
    estimates: tuple[Estimate, ...]
    chosen: tuple[str, ...]
    notes: tuple[str, ...]


def estimate(
    inputs: Sequence[str],
    *,
    models: Sequence[str] = (),
    metrics: Sequence[str] = (),
    by: str = "",
    human: Sequence[str] = (),
    baseline: str | None = None,
    columns: Sequence[str] = (),
    confidence: float = 0.9,
    count: int = 0,
    precision: str = "float32",
    seed: int = 0,
) -> Estimates:
    """Score all summaries of the files ``inputs``, judged or not, and estimate. Raises InputError for wrong settings and files.

    ``by``: the column of the score, "" for the first; ``human`` empty: all human scores; ``columns``: as of `load_judgments`;
    ``count``: how many documents to `choose`.
    """
    if not 0.5 <= confidence < 1:
        raise InputError(f"--confidence {confidence:g}: give a number from 0.5 to below 1")
    rows, notes = _rows(inputs, columns)
    known = list(dict.fromkeys(chain(*(row.scores for row in rows))))
    systems = list(dict.fromkeys(row.system for row in rows))
    if not known:
        told = "no summary is judged; give some of them 'scores' (or name --scores-columns)"
        raise InputError(f"{', '.join(inputs)}: {told}")
    scorers, _ = make_scorers(models, metrics, baselines=False, precision=precision)
    check_names(scorers)
    names = [f"{scorer.name}.{aspect}".rstrip(".") for scorer in scorers for aspect in ("", *scorer.aspects)]
    by = by if by not in ("", "score") else names[0]
    aspects = {name.rpartition(".")[2]: name for name in reversed(names)}
    baseline = baseline or systems[0]
    asked = [("human", name, known) for name in human]
    for option, name, there in (*asked, ("by", by, [*names, *aspects]), ("baseline", baseline, systems)):
        if name not in there:
            raise InputError(f"--{option} {name}: there is none; {suggestion(name, there)}")
    column = next(column for column in score_columns(scorers, rows) if column.name in (by, aspects.get(by)))
    if np.isnan(column.values).all():
        raise InputError(f"not one summary could be scored: {column.unscored()}")
    systems.sort(key=lambda name: name != baseline)
    documents, at = np.unique([row.document_id for row in rows], return_inverse=True)
    place = at, [systems.index(row.system) for row in rows]
    people = {name: [row.scores.get(name, np.nan) for row in rows] for name in human or known}
    tables = {name: np.full((len(documents), len(systems)), np.nan) for name in ("", *people)}
    for name, values in {"": column.values, **people}.items():
        tables[name][place] = values
    scores = tables.pop("")
    found = [each for name, own in tables.items() for each in estimate_means(name, systems, own, scores, confidence)]
    chosen = choose(scores, np.asarray(np.isnan(list(tables.values())).all(axis=(0, 2))), count, seed)
    notes += [f"left out: {line}" for line in [column.unscored()] if line]
    notes += [f"--choose {count}: only {len(chosen)} documents are not judged yet"] * (len(chosen) < count)
    return Estimates(column, tuple(found), tuple(map(str, documents[chosen])), tuple(notes))


def _rows(inputs: Sequence[str], columns: Sequence[str]) -> tuple[list[Judged], list[str]]:
    """One row a document and system, a judged one before one that is not; and what is to be told."""
    unusable, found = Unusable(), dict[tuple[str, str], Judged]()
    for path in inputs:
        for row in load(path, unusable, columns, unjudged=True):
            key = row.document_id, row.system
            before = found.setdefault(key, row)
            if row.by != PEOPLE:
                raise InputError(
                    f"{path}: has scores by {row.by}, which are not people's; leave them out, or give a --metric"
                )
            if before.summary != row.summary:
                told = f"document {row.document_id!r} has another summary by system {row.system!r} than before"
                raise InputError(f"{path}: {told}; give one for each")
            found[key] = before if before.scores else row
    if not found:
        raise InputError(f"{', '.join(inputs)}: no usable record: {'; '.join(unusable.lines()[:3])}")
    return list(found.values()), unusable.lines()


def estimate_means(
    human: str, systems: Sequence[str], people: np.ndarray, scores: np.ndarray, confidence: float
) -> list[Estimate]:
    """Estimate the mean of ``people`` [D, S], NaN where not judged, of each system, and its differences to the first one.

    ``scores`` [D, S], higher is better; a summary without one is left out. The judged documents must be drawn without regard to
    how good their summaries are. Intervals: Student's t over documents, with a degree of freedom off for the weight.
    """
    from scipy.stats import t as student

    judged, scored = ~np.isnan(people + scores), np.isnan(people) & ~np.isnan(scores)
    mean, of_mean = _centred(people, judged)
    (here, of_here), (there, of_there) = _centred(scores, judged), _centred(scores, scored)
    usable = scored.sum(axis=0) > 1
    higher, of_higher = (here - there) * usable, (of_here - of_there) * usable
    found = []
    for pair in [[s] for s in range(len(systems))] + [[s, 0] for s in range(1, len(systems))]:
        signs = np.array([1.0, -1.0])[: len(pair)]
        plain, gap, u, v = (each[..., pair] @ signs for each in (mean, higher, of_mean, of_higher))
        n, others = (int(each[:, pair].sum(axis=0).min()) for each in (judged, scored))
        about = human, systems[pair[0]], systems[0] if len(pair) > 1 else None, n, others
        if n < 2 or u @ u <= 1e-12 * max(1.0, plain**2):
            same = f"all {n} judged have the same {'score' if len(pair) == 1 else 'difference'}: no interval"
            why = ["no judged summary has a score", "one judged summary: no interval", same][min(n, 2)]
            value = float(plain) if n else None
            found.append(Estimate(*about, plain=value, value=value, reason=why))
            continue
        # A score that is of no use, or that ranks the other way round, weighs nothing.
        weight = max(0.0, float(u @ v / (v @ v))) if n > 2 and v @ v > 0 else 0.0
        df, rest = n - 1 - (weight > 0), u - weight * v
        half = student.ppf((1 + confidence) / 2, n - 1) * np.sqrt(u @ u)
        tuned = student.ppf((1 + confidence) / 2, df) * np.sqrt(rest @ rest * (n - 1) / df)
        value = plain - weight * gap
        saved = float(n * (half / tuned) ** 2 - n) if tuned > 0 else None
        ends = float(plain - half), float(plain + half), float(value), float(value - tuned), float(value + tuned)
        found.append(Estimate(*about, float(plain), *ends, weight, saved))
    return found


def _centred(values: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means [S] of ``values`` [D, S] over ``rows`` bool [D, S], and what each row adds to their errors, [D, S]: the sum of its
    squares is the variance of the mean.
    """
    n = rows.sum(axis=0)
    mean = np.where(rows, values, 0.0).sum(axis=0) / np.maximum(n, 1)
    return mean, np.where(rows, values - mean, 0.0) / np.sqrt(np.maximum(n * (n - 1), 1))


def choose(scores: np.ndarray, free: np.ndarray, count: int, seed: int) -> list[int]:
    """Choose ``count`` documents among those ``free`` [D], one of each stratum of their mean score, as many strata as documents.

    ``scores`` [D, S], NaN where missing. In strata of equal size every document is as likely, so that intervals stay valid.
    """
    there = ~np.isnan(scores)
    known = np.flatnonzero(free & there.any(axis=1))
    above = np.where(there, scores - _centred(scores, there)[0], 0.0)[known].sum(axis=1) / there[known].sum(axis=1)
    strata = np.array_split(known[np.argsort(above, kind="stable")], max(1, min(count, len(known))))
    rng = generator(seed, "choose")
    return sorted(int(rng.choice(stratum)) for stratum in strata if count and len(stratum))

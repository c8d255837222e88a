"""``negsample compare``: which of my systems is better, by one or several models and metrics?"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from negsample.errors import InputError, RecordError
from negsample.eval.agreement.columns import ScoreColumn, check_names, make_scorers, score_columns
from negsample.eval.agreement.significance import ALPHA, holm
from negsample.eval.judgments.collect import name_field
from negsample.io.lines import aligned_lines
from negsample.io.read import Row, document_field, read_rows, text_field, texts_field
from negsample.records import Judged, document_key, told_document
from negsample.resampling import bootstrap_p, check_resamples, patterns, permutation_p, resampled_interval
from negsample.seeds import generator
from negsample.text import is_blank

_SHOWN = 3  # documents that a message names
_DIFFERENT = 5  # documents shown for each system
_CHUNK = 4_000_000  # numbers held at once


@dataclass(frozen=True)
class Settings:
    """What was asked for. Either ``source`` and ``targets`` (text files, a document and a summary a line;
    ``references``: further files, a reference a line) or ``inputs`` (tables of records with ``system``).
    """

    models: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    source: str | None = None
    targets: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    baseline: str | None = None
    on_bad: str = "stop"
    precision: str = "float32"
    bootstrap: int = 1000
    seed: int = 0

    @property
    def files(self) -> tuple[str, ...]:
        """What is read."""
        return self.inputs if self.source is None else (self.source, *self.targets, *self.references)


@dataclass(frozen=True)
class Systems:
    """Documents × systems: ``rows[d][s]`` is the summary of document d by system s. ``left_out``: documents or records
    left out, by reason.
    """

    names: tuple[str, ...]
    documents: tuple[str, ...]
    rows: tuple[tuple[Judged, ...], ...]
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class SystemComparison:
    """One system beside the first.

    ``mean`` with its interval ``low``–``high`` (`resampled_interval`, as the others). ``difference`` = mean − mean of the
    first system, with its paired interval; ``p``: paired permutation, two-sided; ``p_bootstrap``: from the resampled
    differences; ``p_holm``: ``p`` adjusted by Holm over the systems compared with the first. All five are None for the
    first system itself. ``rank``: 1 + the number of systems that are significantly better (see `compare_systems`), so
    systems that the data can't tell apart share a rank.
    """

    system: str
    mean: float
    low: float | None
    high: float | None
    rank: int
    documents: int
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p: float | None = None
    p_bootstrap: float | None = None
    p_holm: float | None = None


@dataclass(frozen=True)
class Section:
    """One model's or metric's verdict. ``scores`` float64 [documents, systems], higher is better, over the documents
    ``documents`` (positions in `Systems.documents`); ``different``: system → the rows of ``scores`` where it differs most from
    the first one, with the difference.
    """

    column: ScoreColumn
    documents: tuple[int, ...]
    scores: np.ndarray
    systems: tuple[SystemComparison, ...]
    different: dict[str, tuple[tuple[int, float], ...]]
    left_out: Counter[str]


@dataclass(frozen=True)
class SystemsComparison:
    """All sections over the same systems."""

    settings: Settings
    systems: Systems
    sections: tuple[Section, ...]


def compare(settings: Settings) -> SystemsComparison:
    """Score all systems and compare each with the first (or with ``baseline``).

    Raises InputError where systems were not scored on the same documents, naming what is missing; with ``on_bad`` =
    ``"skip"`` the documents that all systems have are compared, and the others counted.
    """
    if settings.on_bad not in ("stop", "skip"):
        raise InputError(f"--on-bad {settings.on_bad}: give stop or skip")
    if not settings.models and not settings.metrics:
        raise InputError("nothing to compare by; give --model DIR or --metric NAME")
    check_resamples(settings.bootstrap)
    metrics, precision = settings.metrics, settings.precision
    scorers, _ = make_scorers((), metrics, baselines=False, precision="float32" if settings.models else precision)
    needed = bool(settings.models) or any("document" in scorer.needs for scorer in scorers)
    found = _from_records(settings, needed) if settings.source is None else _from_lines(settings)
    systems = _in_order(found, settings)
    # Loaded when it is known that there is something to compare.
    scorers += make_scorers(settings.models, (), baselines=False, precision=precision)[0] if settings.models else []
    check_names(scorers)
    columns = score_columns(scorers, [row for rows in systems.rows for row in rows])
    return SystemsComparison(settings, systems, tuple(_section(column, systems, settings) for column in columns))


def _section(column: ScoreColumn, systems: Systems, settings: Settings) -> Section:
    shape = (len(systems.documents), len(systems.names))
    scores = column.values.reshape(shape)
    missing = np.isnan(scores)
    left_out: Counter[str] = Counter()
    for d in np.flatnonzero(missing.any(axis=1)).tolist():
        s = int(np.argmax(missing[d]))
        reason = column.reasons[d * shape[1] + s]
        if settings.on_bad != "skip":
            more = f" (and {int(missing.sum()) - 1} more)" if missing.sum() > 1 else ""
            raise InputError(
                f"{column.name} has no score for document {systems.documents[d]!r} by system {systems.names[s]!r}: "
                f"{reason}{more}; leave it out with --on-bad skip"
            )
        left_out[f"document without a score by {column.name} ({reason})"] += 1
    good = np.flatnonzero(~missing.any(axis=1)).tolist()
    if len(good) < 2:
        raise InputError(f"{column.name}: {len(good)} documents have a score for every system; comparing needs 2")
    kept = scores[good]
    results = compare_systems(kept, systems.names, bootstrap=settings.bootstrap, seed=settings.seed)
    different = {}
    for name, scored in zip(systems.names[1:], kept.T[1:], strict=True):
        gap = scored - kept[:, 0]
        order = np.argsort(-np.abs(gap), kind="stable")[:_DIFFERENT].tolist()
        different[name] = tuple((d, float(gap[d])) for d in order if gap[d])
    return Section(column, tuple(good), kept, tuple(results), different, left_out)


# --- what differs


def compare_systems(
    scores: np.ndarray, systems: Sequence[str], *, bootstrap: int = 1000, permutations: int = 10_000, seed: int = 0
) -> list[SystemComparison]:
    """Compare the columns of ``scores`` float64 [documents, systems], higher is better; the first is the baseline.

    At least 2 documents × 2 systems, all finite. Paired bootstrap: documents are drawn with replacement, the same for
    all systems. Paired permutation: the sign of each document's difference is turned at random (the labels change
    places); p = (b + 1)/(m + 1) with b the draws at least as far from 0 as the difference observed, or exactly
    b/2**documents where all sign patterns are no more than ``permutations``.

    Rank: every two systems are compared by the paired permutation, Holm-adjusted over all pairs; a system's rank is 1 +
    the number of systems with a higher mean and an adjusted p ≤ `ALPHA`.
    """
    n, count = scores.shape
    weights = generator(seed, "compare", "bootstrap").multinomial(n, np.full(n, 1 / n), size=bootstrap)
    sampled = weights @ scores / n
    pairs = list(combinations(range(count), 2))
    p = _pairwise_p(scores, pairs, permutations, seed)
    means = scores.mean(axis=0)
    better = np.zeros(count, dtype=int)
    for (i, j), value in zip(pairs, holm(p), strict=True):
        if value <= ALPHA:
            better[j if means[i] > means[j] else i] += 1
    # The pairs of the first system come first.
    p_holm = holm(p[: count - 1])

    result = []
    for s, name in enumerate(systems):
        differences, beside = sampled[:, s] - sampled[:, 0], list[Any]()
        if s:
            beside = [float(means[s] - means[0]), *resampled_interval(differences, n)[:2]]
            beside += [p[s - 1], bootstrap_p(differences, n), float(p_holm[s - 1])]
        ends = resampled_interval(sampled[:, s], n)[:2]
        result.append(SystemComparison(name, float(means[s]), *ends, 1 + int(better[s]), n, *beside))
    return result


def _pairwise_p(scores: np.ndarray, pairs: Sequence[tuple[int, int]], permutations: int, seed: int) -> list[float]:
    """Two-sided paired permutation p of each two systems; the same sign patterns for all."""
    n, (first, second) = len(scores), zip(*pairs, strict=True)
    differences = scores[:, first] - scores[:, second]
    # In units of the largest difference, so that "as far as" does not depend on the metric's scale.
    size = np.abs(differences).max(axis=0)
    differences = differences / np.where(size > 0, size, 1.0)
    keep, exact = patterns(generator(seed, "compare", "permutation"), n, permutations)
    step = max(1, _CHUNK // n)
    drawn = [(2.0 * keep[start : start + step] - 1) @ differences for start in range(0, len(keep), step)]
    values, observed = np.concatenate(drawn) / n, differences.mean(axis=0)
    found = (permutation_p(float(own), drawn, exact) for own, drawn in zip(observed, values.T, strict=True))
    return [1.0 if p is None else p for p in found]


# --- reading

_Found = tuple[dict[str, dict[str, Judged]], list[str], Counter[str]]
"""Document → system → summary, and the systems, in the order in which they came; what was left out."""


def _from_lines(settings: Settings) -> _Found:
    twice = [name for name, count in Counter(settings.targets).items() if count > 1]
    if twice:
        raise InputError(f"{twice[0]}: given twice; name each system once")
    rows: dict[str, dict[str, Judged]] = {}
    left_out: Counter[str] = Counter()
    for number, (document, *texts) in aligned_lines(settings.files):
        blank = [path for path, text in zip(settings.files, (document, *texts), strict=True) if is_blank(text)]
        if blank and settings.on_bad != "skip":
            told = "mend it, or leave its document out with --on-bad skip"
            raise RecordError(f"{blank[0]}, line {number}", "the line is blank", told)
        if blank:
            left_out[f"document with a blank line in {blank[0]}"] += 1
            continue
        references = tuple(texts[len(settings.targets) :])
        rows[str(number)] = {
            system: Judged(str(number), system, (document,), summary, references)
            for system, summary in zip(settings.targets, texts, strict=False)
        }
    return rows, list(settings.targets), left_out


def _from_records(settings: Settings, needs_document: bool) -> _Found:
    rows: dict[str, dict[str, Judged]] = {}
    systems: dict[str, None] = {}
    left_out: Counter[str] = Counter()
    texts: dict[str, str] = {}
    for row in (row for path in settings.inputs for row in read_rows(path)):
        try:
            judged = _record(row, needs_document)
            document, system = judged.document_id, judged.system
            # One document id for two texts: the systems would be compared on different ones.
            key = document_key(judged.documents[0]) if judged.documents[0] else ""
            if key and texts.setdefault(document, key) != key:
                raise RecordError(row.where, f"document {document!r} has another text than before")
            if system in rows.get(document, {}):
                told = f"document {document!r} and system {system!r} again"
                raise RecordError(row.where, told, "give one summary for each")
        except RecordError as error:
            if settings.on_bad != "skip":
                raise error.or_skip() from None
            left_out[error.reason] += 1
            continue
        systems.setdefault(system)
        rows.setdefault(document, {})[system] = judged
    if not rows:
        why = "; ".join(f"{count} × {reason}" for reason, count in left_out.most_common(3))
        raise InputError(f"{', '.join(settings.inputs)}: no usable record: {why}")
    return rows, list(systems), left_out


def _record(row: Row, needs_document: bool) -> Judged:
    summary, system = text_field(row, "summary"), name_field(row, "system")
    document = document_field(row) if needs_document or told_document(row.fields) is not None else ""
    identifier = next((name for name in ("document_id", "doc_id") if row.fields.get(name) is not None), None)
    if identifier is None and not document:
        raise RecordError(row.where, "no field 'document_id' or 'document'")
    key = name_field(row, identifier) if identifier else document_key(document)[:12]
    return Judged(key, system, (document,), summary, tuple(texts_field(row, "references", "reference")))


def _in_order(found: _Found, settings: Settings) -> Systems:
    """The systems with the baseline first, over the documents that all have."""
    rows, names, left_out = found
    if settings.baseline is not None:
        if settings.baseline not in names:
            raise InputError(f"--baseline {settings.baseline}: no such system; there are: {', '.join(names)}")
        names.sort(key=lambda name: name != settings.baseline)
    if len(names) < 2:
        raise InputError(f"one system ({', '.join(names)}); comparing needs at least two")
    lacking = {name: ids for name in names if (ids := [d for d, own in rows.items() if name not in own])}
    if lacking and settings.on_bad != "skip":
        told = "; ".join(
            f"{name!r} lacks {len(ids)} of {len(rows)} documents ({_shown(ids)})" for name, ids in lacking.items()
        )
        raise InputError(
            f"the systems were not run on the same documents: {told}; complete them, or compare on the documents that "
            "all have with --on-bad skip"
        )
    for name, ids in lacking.items():
        left_out[f"document without a summary by {name} ({_shown(ids)})"] += len(ids)
    documents = tuple(d for d, own in rows.items() if all(name in own for name in names))
    if len(documents) < 2:
        raise InputError(f"{len(documents)} documents have a summary by every system; comparing needs 2")
    return Systems(tuple(names), documents, tuple(tuple(rows[d][name] for name in names) for d in documents), left_out)


def _shown(documents: Sequence[str]) -> str:
    return ", ".join([*documents[:_SHOWN], *["…"] * (len(documents) > _SHOWN)])

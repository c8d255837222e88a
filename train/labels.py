"""Given scores to learn from: a file of documents, summaries and what people, a judge or a metric said of them.

A score becomes a label in [0, 1] by its range in the file. Choices between two summaries would be another reader that ends in
a ``Labelled``; what learns from it needs the documents and the labels alone.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from negsample.corpora.files import corpus_name
from negsample.corpora.pairs import CorpusOptions, pairs_from
from negsample.errors import InputError, RecordError
from negsample.io.read import number_field, read_rows
from negsample.negatives.index import PairIndex, index_of, summary_digest
from negsample.negatives.split import assign
from negsample.number_text import short
from negsample.records import Example, Pair, Row, document_key, is_missing
from negsample.registry import suggestion

LABELLED = "labelled"
"""The kind of an example whose label was given."""
OVERALL = "score"
# Where a label is looked for when none is named.
_USUAL = ("label", "score")
# Rows that a search and a fit may not see either (``negsample fit``).
_KEPT = "report"


@dataclass(frozen=True)
class Labelled:
    """n labelled summaries, no two with the same texts, sorted by document.

    ``labels``: ``OVERALL``, which is never missing, and each aspect → float64 [n] in [0, 1], NaN where missing.
    ``index``: their documents, and which of them go together. ``about``: what was read, as plain values; ``told`` in it:
    the same in lines.
    """

    pairs: tuple[Pair, ...]
    labels: Mapping[str, np.ndarray]
    index: PairIndex
    about: Mapping[str, Any]

    @property
    def keys(self) -> np.ndarray:
        """The hashes of the documents, sorted, as ``assign`` takes them."""
        return self.index.key[self.index.first[:-1]]

    def __str__(self) -> str:
        """One token for signatures: ``labels(score=coherence[1..5]@5f0c…)``."""
        ranges = (f"{s['output']}={s['name']}[{short(s['low'])}..{short(s['high'])}]" for s in self.about["scores"])
        return f"labels({','.join(ranges)}@{self.about['fingerprint'][:12]})"

    def part(self, seed: int, known: tuple[np.ndarray, np.ndarray] | None = None) -> np.ndarray:
        """The split of each document, as ``assign`` gives it; of one that a corpus has too the one that it has there.

        ``known``: the keys, sorted, and splits of the corpora's documents.
        """
        part = assign(self.keys, self.index.group, seed)
        if known is None:
            return part
        place = np.minimum(np.searchsorted(known[0], self.keys), len(known[0]) - 1)
        return np.where(known[0][place] == self.keys, known[1][place], part)

    def examples(self, rows: np.ndarray) -> Iterator[Example]:
        """The summaries ``rows`` as examples of the kind ``LABELLED``."""
        for row in rows.tolist():
            pair = self.pairs[row]
            own = {name: float(values[row]) for name, values in self.labels.items() if np.isfinite(values[row])}
            label, document_id = own.pop(OVERALL), document_key(pair.document)[:16]
            yield Example(
                f"{pair.id}/{LABELLED}", document_id, pair.document, pair.summary, label, LABELLED, aspects=own
            )


def read_labels(
    path: str,
    options: CorpusOptions,
    skipped: Counter[str],
    label: str | None = None,
    aspects: Mapping[str, str] | None = None,
) -> Labelled:
    """Read the labels of the file ``path``; ``skipped`` counts records passed over, by reason.

    A score is a field of its own or stands in the object ``scores``: ``label`` names that of the whole summary (without
    it the mean of the aspects' labels; without these the field ``label`` or ``score``, or the only one in ``scores``),
    ``aspects`` those of aspects. Records with ``half: report`` are left out, and records without the whole summary's
    label. Several records of the same texts count as one with the mean of their scores. Each document is held in memory
    once. Of ``options``: the names of the fields, ``limit``, ``on_bad``.

    Raises RecordError for a bad record, and InputError for a score that no record has, or whose values are all the same.
    """
    names = dict(aspects or {})
    if label is not None or not names:
        names = {OVERALL: label or "", **names}
    known: dict[str, None] = {}
    latest: dict[str, float] = {}
    makers: set[str] = set()

    def rows() -> Iterator[Row]:
        for row in islice(read_rows(path), options.limit):
            given = _given(row)
            known.update(dict.fromkeys(given))
            if names.get(OVERALL) == "" and row.error is None:
                names[OVERALL] = _usual(row, given, path)
            if row.fields.get("half") == _KEPT:
                skipped[f"half: {_KEPT}"] += 1
                continue
            makers.add(str(row.fields.get("by") or ""))
            try:
                latest.update({name: _number(row, given, name) for name in names.values()})
                yield row
            except RecordError as error:
                yield Row(row.where, {}, error)

    kept: dict[tuple[str, bytes], int] = {}
    texts: dict[str, str] = {}
    pairs: list[Pair] = []
    values: list[list[list[float]]] = []
    plain = replace(options, config=None, split=None)
    # One row is read for each pair, so that ``latest`` is of its row.
    for pair in pairs_from(rows(), corpus_name(path), "document", "summary", plain, skipped, unique_ids=False):
        key = document_key(pair.document)
        place = kept.setdefault((key, summary_digest(pair.summary)), len(pairs))
        if place == len(pairs):
            pairs.append(replace(pair, document=texts.setdefault(key, pair.document)))
            values.append([])
        values[place].append([latest[name] for name in names.values()])
    return _scaled(path, pairs, values, names, list(known), sorted(makers - {""}))


def _scaled(
    path: str,
    pairs: list[Pair],
    values: list[list[list[float]]],
    names: Mapping[str, str],
    known: list[str],
    makers: list[str],
) -> Labelled:
    every = np.array([one for own in values for one in own], np.float64)
    missing = np.isnan(every)
    scores: list[dict[str, Any]] = []
    for column, (output, name) in enumerate(names.items()):
        found = every[~missing[:, column], column]
        if not len(found):
            raise InputError(f"{path}: no record has a number in {name!r}; {suggestion(name, known)}")
        low, high = float(found.min()), float(found.max())
        if low == high:
            raise InputError(f"{path}: {name!r} is {low:g} in every record, which teaches nothing; name another score")
        lacking = len(every) - len(found)
        scores.append({"output": output, "name": name, "low": low, "high": high, "n": len(found), "missing": lacking})
    owner = np.repeat(np.arange(len(pairs)), list(map(len, values)))
    means = np.stack([_means(every[:, column], owner, len(pairs)) for column in range(len(names))])
    low, high = (np.array([score[end] for score in scores])[:, None] for end in ("low", "high"))
    labels = dict(zip(names, np.clip((means - low) / (high - low), 0, 1), strict=True))
    labels.setdefault(OVERALL, np.mean(list(labels.values()), axis=0))
    good = np.flatnonzero(np.isfinite(labels[OVERALL]))
    if not len(good):
        raise InputError(f"{path}: no record has all of {', '.join(names.values())}; give label=NAME beside aspects")
    index = index_of(pairs[place] for place in good)
    order = good[index.number]
    labels = {output: column[order] for output, column in labels.items()}
    hasher = hashlib.sha256(index.key.tobytes() + index.summary.tobytes())
    for output in sorted(labels):
        hasher.update(output.encode() + labels[output].tobytes())
    about: dict[str, Any] = {
        "file": path,
        "by": makers,
        "scores": scores,
        "summaries": len(order),
        "documents": len(index.group),
        "without_label": len(pairs) - len(order),
        "averaged": len(every) - len(pairs),
        "fingerprint": hasher.hexdigest(),
    }
    about["told"] = _told(about)
    return Labelled(tuple(pairs[place] for place in order), labels, index, about)


def _means(values: np.ndarray, owner: np.ndarray, count: int) -> np.ndarray:
    """The mean of the ``values`` that are there of each owner; NaN of none."""
    there = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.bincount(owner[there], values[there], count) / np.bincount(owner[there], minlength=count)


def _told(about: Mapping[str, Any]) -> list[str]:
    by = f" by {', '.join(about['by'])}" if about["by"] else ""
    lines = [f"labels: {about['summaries']} summaries of {about['documents']} documents{by} ({about['file']})"]
    for score in about["scores"]:
        ends = f"{short(score['low'])} to {short(score['high'])} becomes 0 to 1"
        lines.append(f"  {score['output']}: {score['name']}, {ends}, {score['missing']} missing")
    if OVERALL not in {score["output"] for score in about["scores"]}:
        lines.append(f"  {OVERALL}: the mean of these")
    reasons = {
        "without_label": "summaries left out, for they have no label as a whole",
        "averaged": "records have the texts of another: their scores were averaged",
    }
    return lines + [f"  {about[key]} {reason}" for key, reason in reasons.items() if about[key]]


def _given(row: Row) -> dict[str, Any]:
    """What may be a score: the fields, and what the object ``scores`` (or its JSON text) has."""
    own = row.fields.get("scores")
    if isinstance(own, str):
        with suppress(ValueError):
            own = json.loads(own)
    return {**(own if isinstance(own, dict) else {}), **row.fields}


def _usual(row: Row, given: Mapping[str, Any], path: str) -> str:
    """The name of the score where none is named."""
    found = [name for name in _USUAL if name in given] or [name for name in given if name not in row.fields]
    if not found or (len(found) > 1 and found[0] not in _USUAL):
        raise InputError(
            f"{path}: give label=NAME, or aspects={{coherence: NAME, …}}; {row.where} has {', '.join(given)}"
        )
    return found[0]


def _number(row: Row, given: Mapping[str, Any], name: str) -> float:
    value = given.get(name)
    if is_missing(value) or value == "":
        return float("nan")
    return number_field(Row(row.where, {name: value}), name)

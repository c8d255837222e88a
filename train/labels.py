"""Given scores to learn from: a file of documents, summaries and what people, a judge or a metric said of them.

A score becomes a label in [0, 1] by its range in the file.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from negsample.corpora import corpus_name
from negsample.corpora.pairs import CorpusOptions, pairs_from
from negsample.errors import InputError, RecordError
from negsample.io.read import number_field, read_rows
from negsample.negatives.index import PairIndex, index_of, summary_digest
from negsample.negatives.split import assign
from negsample.records import LABELLED, Example, Pair, Row, document_key, is_missing
from negsample.registry import suggestion
from negsample.terminal import short

if TYPE_CHECKING:
    import pandas

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
        """The split of each document, as ``assign`` gives it; of one that a corpus has too the one that it has there, and so of
        those that share a summary with it.

        ``known``: the keys, sorted, and splits of the corpora's documents. Beside them few labels may all be for training;
        alone, InputError is raised where they are too few to be split.
        """
        try:
            part = assign(self.keys, self.index.group, seed)
        except InputError:
            if known is None:
                raise
            part = np.zeros(len(self.keys), np.uint8)
        if known is None:
            return part
        place = np.minimum(np.searchsorted(known[0], self.keys), len(known[0]) - 1)
        there, group = known[0][place] == self.keys, self.index.group
        # Where those of a group are in several, the last of these: nothing of a test is learned.
        last = np.full(len(part), -1)
        np.maximum.at(last, group[there], known[1][place[there]])
        return np.where(there, known[1][place], np.where(last[group] < 0, part, last[group]))

    def examples(self, rows: np.ndarray) -> Iterator[Example]:
        """The summaries ``rows`` as examples of the kind ``LABELLED``."""
        for row in rows.tolist():
            pair = self.pairs[row]
            own = {name: float(values[row]) for name, values in self.labels.items() if np.isfinite(values[row])}
            label, document_id = own.pop(OVERALL), document_key(pair.document)[:16]
            told = document_id, pair.document, pair.summary, label, LABELLED
            yield Example(f"{pair.id}/{LABELLED}", *told, aspects=own, domain=pair.domain)


def read_labels(
    path: str,
    options: CorpusOptions,
    skipped: Counter[str],
    label: str | None = None,
    aspects: Mapping[str, str] | None = None,
) -> Labelled:
    """Read the labels of the file ``path``; ``skipped`` counts records passed over, by reason.

    A score is a field of its own or stands in the object ``scores``: ``label`` names that of the whole summary (without
    it the mean of the aspects' labels; without these the field ``label`` or ``score``), ``aspects`` those of aspects.
    Records with ``half: report`` are left out, and summaries without a label of the whole. Several records of the same
    texts count as one with the mean of their scores. Each document is held in memory once. Of ``options``: the names of
    the fields, ``limit``, ``on_bad``.

    Raises RecordError for a bad record, and InputError for a score that no record has, or whose values are all the same, and
    for choices between two summaries.
    """
    import pandas as pd  # which takes half a second

    names = dict(aspects or {}) if aspects and label is None else {OVERALL: label or "", **(aspects or {})}
    known: dict[str, None] = {}
    makers: dict[str, None] = {}
    latest: list[float] = []

    def rows() -> Iterator[Row]:
        for row in islice(read_rows(path), options.limit):
            if "choice" in row.fields and "summary" not in row.fields:
                told = "a choice between two summaries, which `negsample fit` learns from; train wants a summary and its score"
                raise InputError(f"{row.where}: {told}")
            given = _given(row)
            known.update(dict.fromkeys(given))
            if names.get(OVERALL) == "":
                names[OVERALL] = next((name for name in _USUAL if name in given), _USUAL[0])
            if row.fields.get("half") == _KEPT:
                skipped[f"half: {_KEPT}"] += 1
                continue
            makers.update(dict.fromkeys(filter(None, [row.fields.get("by")])))
            try:
                latest[:] = [_number(row, given.get(name), name) for name in names.values()]
            except RecordError as error:
                row = Row(row.where, {}, error)
            yield row

    owner: dict[tuple[str, bytes], int] = {}
    texts: dict[str, str] = {}
    pairs: list[Pair] = []
    found: list[tuple[float, ...]] = []
    plain = replace(options, config=None, split=None)
    # One row is read for each pair, so that ``latest`` is of its row.
    for pair in pairs_from(rows(), corpus_name(path), "document", "summary", plain, skipped, unique_ids=False):
        key = document_key(pair.document)
        place = owner.setdefault((key, summary_digest(pair.summary)), len(pairs))
        if place == len(pairs):
            pairs.append(replace(pair, document=texts.setdefault(key, pair.document)))
        found.append((place, *latest))
    table = pd.DataFrame(found, columns=["owner", *names])
    scores = [_range(path, output, name, table[output], list(known)) for output, name in names.items()]
    low, high = (pd.Series({score["output"]: score[end] for score in scores}) for end in ("low", "high"))
    labels = ((table.groupby("owner").mean() - low) / (high - low)).clip(0, 1)
    if OVERALL not in labels:
        labels[OVERALL] = labels.mean(axis=1, skipna=False)
    labels = labels.dropna(subset=[OVERALL])
    if labels.empty:
        raise InputError(f"{path}: no record has all of {', '.join(names.values())}; give label=NAME beside aspects")
    index = index_of(pairs[place] for place in labels.index)
    labels = labels.iloc[index.number]
    texts_of = index.key.tobytes() + index.summary.tobytes()
    values = labels[sorted(map(str, labels))].to_numpy(np.float64).tobytes()
    about = {
        "file": path,
        "by": list(makers),
        "scores": scores,
        "summaries": len(labels),
        "documents": len(index.group),
        "without_label": len(pairs) - len(labels),
        "averaged": len(table) - len(pairs),
        "fingerprint": hashlib.sha256(texts_of + values).hexdigest(),
    }
    columns = {str(output): column.to_numpy(np.float64) for output, column in labels.items()}
    return Labelled(tuple(pairs[place] for place in labels.index), columns, index, {**about, "told": _told(about)})


def _range(path: str, output: str, name: str, values: "pandas.Series", known: list[str]) -> dict[str, Any]:
    """What is told of a score."""
    if not values.notna().any():
        advice = "name another score" if name in known else f"give label=NAME; {suggestion(name, known)}"
        raise InputError(f"{path}: no record has a number in {name!r}; {advice}")
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise InputError(f"{path}: {name!r} is {low:g} in every record, which teaches nothing; name another score")
    counts = {"n": int(values.notna().sum()), "missing": int(values.isna().sum())}
    return {"output": output, "name": name, "low": low, "high": high, **counts}


def _told(about: Mapping[str, Any]) -> list[str]:
    by = f" by {', '.join(about['by'])}" if about["by"] else ""
    lines = [f"labels: {about['summaries']} summaries of {about['documents']} documents{by} ({about['file']})"]
    for score in about["scores"]:
        ends = f"{short(score['low'])} to {short(score['high'])} becomes 0 to 1"
        lines.append(f"  {score['output']}: {score['name']}, {ends}, {score['missing']} missing")
    if OVERALL not in {score["output"] for score in about["scores"]}:
        lines.append(f"  {OVERALL}: the mean of these")
    if count := about["without_label"]:
        lines.append(f"  {count} summaries left out, for they have no label as a whole")
    if count := about["averaged"]:
        lines.append(f"  {count} records have the texts of another: their scores were averaged")
    return lines


def _given(row: Row) -> dict[str, Any]:
    """What may be a score: the fields, and what the object ``scores`` (or its JSON text) has."""
    own = row.fields.get("scores")
    if isinstance(own, str):
        with suppress(ValueError):
            own = json.loads(own)
    return {**(own if isinstance(own, dict) else {}), **row.fields}


def _number(row: Row, value: Any, name: str) -> float:
    missing = is_missing(value) or (isinstance(value, str) and value.strip().lower() in ("", "nan"))
    return float("nan") if missing else number_field(Row(row.where, {name: value}), name)

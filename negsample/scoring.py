"""Scoring files: records in, the same records with ``score`` out, in order, with flat memory."""

import contextlib
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from negsample.errors import InputError, RecordError
from negsample.io.files import format_of
from negsample.io.read import Row, open_text, open_writer, read_rows, text_field
from negsample.progress import Bar

if TYPE_CHECKING:
    from negsample.scored import Scored

T = TypeVar("T")
# Records in memory at a time.
CHUNK = 1024


class Scorer(Protocol):
    """What scores pairs: an estimator, or (with ``score_items`` in place of ``score_pairs``) a metric dressed as one."""

    @property
    def signature(self) -> str:
        """One line from which another person gets the same numbers."""
        ...

    def score_pairs(self, documents: Sequence[str], summaries: Sequence[str], *, batch_size: int = 32) -> "Scored":
        """Scores, and which pairs were cut."""
        ...


@runtime_checkable
class ItemScorer(Protocol):
    """A scorer that reads references as well (a metric)."""

    @property
    def signature(self) -> str:
        """As a Scorer's."""
        ...

    @property
    def needs(self) -> frozenset[str]:
        """What every record must have: a subset of ``{"document", "references"}``."""
        ...

    def score_items(
        self, documents: Sequence[str], summaries: Sequence[str], references: Sequence[Sequence[str]]
    ) -> "Scored":
        """Scores, NaN with a reason where the metric is undefined."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one record: a ``score``, or a ``reason`` why there is none (``where`` names the record).

    ``aspects``, where they were asked for: name → value in [0, 1], None where it can't be judged, and ``reason`` then says
    why.
    """

    score: float | None
    cut: bool = False
    where: str = ""
    reason: str | None = None
    aspects: Mapping[str, float | None] | None = None

    def fields(self) -> dict[str, Any]:
        """The fields that are added to the record."""
        fields: dict[str, Any] = {"score": None if self.score is None else round(self.score, 7)}
        if self.aspects is not None:
            fields["aspects"] = {
                name: None if value is None else round(value, 7) for name, value in self.aspects.items()
            }
        if self.reason is not None:
            fields["reason"] = f"{self.where}: {self.reason}" if self.where else self.reason
        return fields


Outcomes = Callable[[Sequence[Row]], list[Outcome]]
"""Gives the outcome of each row of a chunk: ``score_rows`` of a scorer, or what other processes have found."""


@dataclass
class Tally:
    """Mean and 95 % interval of scores as they come, and what was left out.

    ``cut`` counts the pairs that were longer than the model reads; ``bad`` the records without a score, by reason.
    """

    n: int = 0
    cut: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    _mean: float = 0.0
    _squares: float = 0.0

    def add(self, outcome: "Outcome") -> None:
        """Take in one outcome."""
        if outcome.score is None:
            self.bad[str(outcome.reason)] += 1
            return
        self.n += 1
        self.cut += outcome.cut
        step = outcome.score - self._mean
        self._mean += step / self.n
        self._squares += step * (outcome.score - self._mean)

    @property
    def mean(self) -> float | None:
        """Mean of the scores; None where there are none."""
        return self._mean if self.n else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Student's t interval of the mean at 95 %; None for fewer than two scores."""
        if self.n < 2:
            return None
        from scipy.special import stdtrit

        half = float(stdtrit(self.n - 1, 0.975)) * math.sqrt(self._squares / (self.n - 1) / self.n)
        return self._mean - half, self._mean + half


def chunks(items: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """``items`` in lists of ``size``."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def _texts(
    row: Row, document_field: str, summary_field: str, needs: frozenset[str] | None
) -> tuple[str, str, list[str]]:
    """Document, summary and references of a record; ``needs`` as a metric's, None for an estimator."""
    if row.error is not None:
        raise row.error
    references = [] if needs is None else references_of(row)
    if needs is not None and "references" in needs and not references:
        raise RecordError(row.where, "field 'references' is missing or empty", "this metric compares with references")
    # A metric that can use either does without the document where there are references.
    optional = bool(references) and "document" not in (needs or ()) and row.fields.get(document_field) in (None, "")
    document = "" if optional else text_field(row, document_field)
    return document, text_field(row, summary_field), references


def references_of(row: Row) -> list[str]:
    """The texts in the field ``references`` (a list, or its JSON text, or one text), or in ``reference``; [] without.

    Raises RecordError where they are not texts.
    """
    value = row.fields.get("references") or row.fields.get("reference") or []
    if isinstance(value, str) and value.lstrip().startswith("["):
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() for text in texts):
        raise RecordError(
            row.where, "field 'references' is not a list of texts", "give a list of texts that are not blank"
        )
    return texts


def score_rows(
    scorer: Scorer | ItemScorer,
    rows: Sequence[Row],
    *,
    document_field: str = "document",
    summary_field: str = "summary",
    batch_size: int = 32,
    on_bad: str = "stop",
    aspects: bool = False,
) -> list[Outcome]:
    """The outcome of each row, with ``aspects`` where asked. Raises the first RecordError, unless ``on_bad`` is "skip"."""
    outcomes: list[Outcome | None] = []
    documents, summaries, references = [], [], []
    needs = scorer.needs if isinstance(scorer, ItemScorer) else None
    for row in rows:
        try:
            document, summary, others = _texts(row, document_field, summary_field, needs)
        except RecordError as error:
            if on_bad != "skip":
                hint = "mend it, or pass over such records with --on-bad skip"
                raise RecordError(error.where, error.reason, hint) from None
            outcomes.append(Outcome(None, where=error.where, reason=error.reason))
        else:
            documents.append(document)
            summaries.append(summary)
            references.append(others)
            outcomes.append(None)
    if isinstance(scorer, ItemScorer):
        scored = scorer.score_items(documents, summaries, references)
    else:
        scored = scorer.score_pairs(documents, summaries, batch_size=batch_size)
    good = iter(_outcomes(scored, aspects))
    return [next(good) if outcome is None else outcome for outcome in outcomes]


def _outcomes(scored: "Scored", aspects: bool) -> Iterator[Outcome]:
    for place, (score, cut) in enumerate(zip(scored.scores, scored.cut, strict=True)):
        if not aspects or scored.aspects is None:
            missing = scored.reasons[place] if scored.reasons and math.isnan(score) else None
            yield Outcome(None, reason=missing) if missing else Outcome(float(score), bool(cut))
            continue
        values = {name: float(column[place]) for name, column in scored.aspects.items()}
        yield Outcome(
            float(score),
            bool(cut),
            reason=scored.reasons[place] if scored.reasons else None,
            aspects={name: None if math.isnan(value) else value for name, value in values.items()},
        )


def table_chunks(source: str) -> Iterator[list[Row]]:
    """The records of ``source``, as many at a time as ``score_table`` scores together."""
    return chunks(read_rows(source))


def score_table(
    scorer: Scorer | ItemScorer,
    source: str,
    target: str,
    *,
    document_field: str = "document",
    summary_field: str = "summary",
    batch_size: int = 32,
    on_bad: str = "stop",
    aspects: bool = False,
    outcomes: Outcomes | None = None,
) -> Tally:
    """Score every record of ``source`` (a table, or ``-``) and write it to ``target`` with ``score`` added.

    Records come out in input order with all their fields but the ``aspects`` and ``reason`` of an earlier scoring. A bad
    record raises RecordError and leaves no output, unless ``on_bad`` is ``"skip"``: then it comes back with
    ``score: null`` and a ``reason``. ``aspects`` adds
    ``{"coverage": …, …}``, null (and a ``reason``) where one can't be judged; the scorer must have them. ``outcomes``,
    where given, answers for each of ``table_chunks`` in place of the scorer.
    """
    format_of(target)
    tally = Tally()
    score = outcomes or partial(
        score_rows,
        scorer,
        document_field=document_field,
        summary_field=summary_field,
        batch_size=batch_size,
        on_bad=on_bad,
        aspects=aspects,
    )
    pieces = table_chunks(source)
    # Tables need their columns before the first line: those of the first chunk.
    first = next(pieces)
    names = list(dict.fromkeys(name for row in first for name in _kept(row)))
    columns = _columns(names, target, scorer, on_bad, aspects)
    with open_writer(target, columns=columns) as writer, Bar("scoring") as bar:
        for chunk in chain([first], pieces):
            for row, outcome in zip(chunk, score(chunk), strict=True):
                tally.add(outcome)
                writer.write({**_kept(row), **outcome.fields()})
            bar.advance(len(chunk))
    return tally


def _kept(row: Row) -> dict[str, Any]:
    """The fields of a record without the ``aspects`` and ``reason`` of an earlier scoring, which its ``score`` tells.

    Beside the new score they would say what is no longer so. Without a ``score`` they are the user's own.
    """
    if "score" not in row.fields:
        return row.fields
    return {name: value for name, value in row.fields.items() if name not in ("aspects", "reason")}


def _columns(
    names: Sequence[str], target: str, scorer: Scorer | ItemScorer, on_bad: str, aspects: bool
) -> list[str] | None:
    """``names``, then what scoring adds to any record, the columns of a table; None where ``target`` needs none."""
    if format_of(target) == "jsonl":
        return None
    added = ["score"]
    if aspects:
        added.append("aspects")
    if on_bad == "skip" or aspects or isinstance(scorer, ItemScorer):
        added.append("reason")
    return [*(name for name in names if name not in added), *added]


def line_chunks(source: str, systems: Sequence[str], references: Sequence[str] = ()) -> Iterator[list[Row]]:
    """The rows of line-aligned files, a row for each line and system, as many at a time as ``score_lines`` scores together.

    Raises InputError where the files differ in length, a system is given twice, or standard input is.
    """
    if len(set(systems)) < len(systems):
        raise InputError(
            f"{next(s for s in systems if list(systems).count(s) > 1)}: given twice; name each system once"
        )
    paths = [source, *references, *systems]
    if paths.count("-") > 1:
        raise InputError("standard input is given twice; name a file for all but one")
    for chunk in chunks(_aligned(paths), max(1, CHUNK // len(systems))):
        yield [
            Row(
                f"{system if document.strip() else source}, line {number}",
                {
                    "document_id": str(number),
                    "system": system,
                    "document": document,
                    "summary": summary,
                    "references": list(texts[: len(references)]),
                },
            )
            for number, document, *texts in chunk
            for system, summary in zip(systems, texts[len(references) :], strict=True)
        ]


def score_lines(
    scorer: Scorer | ItemScorer,
    source: str,
    systems: Sequence[str],
    target: str | None = None,
    *,
    references: Sequence[str] = (),
    batch_size: int = 32,
    on_bad: str = "stop",
    aspects: bool = False,
    outcomes: Outcomes | None = None,
) -> dict[str, Tally]:
    """Score line-aligned text files: line i of each of ``systems`` is a summary of line i of ``source``.

    ``references`` are further files, a reference of that line's document a line, for metrics that read them.
    Returns a tally for each system. With ``target``, one record a line and system is written: ``document_id`` (the line
    number), ``system``, ``summary``, ``score``. ``outcomes``, where given, answers for each of ``line_chunks`` in place of
    the scorer. Raises InputError as ``line_chunks`` does, and RecordError for a blank line unless ``on_bad`` is
    ``"skip"``.
    """
    tallies = {system: Tally() for system in systems}
    score = outcomes or partial(score_rows, scorer, batch_size=batch_size, on_bad=on_bad, aspects=aspects)
    names = ("document_id", "system", "summary")
    with ExitStack() as stack:
        writer = None
        if target:
            columns = _columns(names, target, scorer, on_bad, aspects)
            writer = stack.enter_context(open_writer(target, columns=columns))
        bar = stack.enter_context(Bar("scoring"))
        for rows in line_chunks(source, systems, references):
            for row, outcome in zip(rows, score(rows), strict=True):
                tallies[row.fields["system"]].add(outcome)
                if writer is not None:
                    kept = {key: row.fields[key] for key in names}
                    writer.write({**kept, **outcome.fields()})
            bar.advance(len(rows) // len(systems))
    return tallies


def _aligned(paths: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """(line number, a line of each file) of line-aligned files. Raises InputError where one ends before another."""
    missing = object()
    for number, lines in enumerate(zip_longest(*map(open_text, paths), fillvalue=missing), start=1):
        if missing in lines:
            short = paths[lines.index(missing)]
            other = paths[next(i for i, line in enumerate(lines) if line is not missing)]
            raise InputError(f"{_unlike(short, other, number)}; give one summary a document, line by line")
        yield number, *lines


def _unlike(short: str, other: str, number: int) -> str:
    """What is wrong with two files, of which ``short`` has no line ``number``."""
    # Standard input and other pipes can't be read again to be counted.
    if all(path != "-" and os.path.isfile(path) for path in (short, other)):
        counts = [(path, sum(1 for _ in open_text(path))) for path in (short, other)]
        return " but ".join(f"{path} has {count} lines" for path, count in counts)
    ended, goes_on = ("standard input" if path == "-" else path for path in (short, other))
    return f"{ended} ends after line {number - 1} but {goes_on} goes on"

"""Scoring records: chunks of rows in, the same records with ``score`` out, in order, with flat memory.

Several processes may share an input: each scores one chunk of a round, and the first one writes what all have found. The
chunks are those of a single process, so that every pair is computed beside the same others and the output is the same to
the last byte (on the same kind of device, with the same number of threads; head ``align`` keeps what it has read for later
pairs, and may differ in the last digit).
"""

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

from negsample.errors import InputError, RecordError
from negsample.io.files import format_of
from negsample.io.lines import aligned_lines
from negsample.io.read import document_field, read_rows, text_field, texts_field
from negsample.io.write import Writer, open_writer
from negsample.records import Row, document_key, text_fault, told_document
from negsample.scoring.scorer import Columns, Item, Scorer
from negsample.scoring.tally import Tally, check_name, look
from negsample.terminal import Bar
from negsample.text import is_blank

if TYPE_CHECKING:
    from negsample.processes import Processes

T = TypeVar("T")
# Records in memory at a time, in each process.
CHUNK = 1024
# What stands beside a score, in JSON lines and in tables; the aspects are told by what stands beside them.
_BESIDE = ("percentile", "aspects", "aspect_percentiles", "intervals", "reason")


@dataclass(frozen=True)
class Settings:
    """How records are scored: the fields that hold the texts (of a table), what a bad record does ("stop", or "skip": it
    comes back without a score), and the field that the score goes to, after which all that goes with it is called.
    """

    document_field: str = "document"
    summary_field: str = "summary"
    on_bad: str = "stop"
    output_field: str = "score"

    def __post_init__(self) -> None:
        if self.on_bad not in ("stop", "skip"):
            raise InputError(f"--on-bad {self.on_bad}: give stop or skip")
        if self.output_field in ("", self.document_field, self.summary_field):
            raise InputError(f"--output-field {self.output_field!r}: give a name of its own, which holds no text")

    def called(self, name: str) -> str:
        """What ``name`` of `Columns.flat` is called in the output."""
        if self.output_field == "score":
            return name
        return self.output_field if name == "score" else f"{self.output_field}_{name}"


DEFAULTS = Settings()


@dataclass(frozen=True)
class Input:
    """Records to score, a chunk at a time; of line-aligned files the ``systems``, whose summaries they are."""

    name: str
    chunks: Iterator[list[Row]]
    systems: tuple[str, ...] = ()

    @property
    def unwritten(self) -> tuple[str, ...]:
        """The fields that do not come out again."""
        return ("document", "references") if self.systems else ()


def chunks(items: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """Yield ``items`` in lists of ``size``."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def table(source: str, limit: int | None = None) -> Input:
    """The (first ``limit``) records of a file.

    Its first chunk is read here, so that what is wrong at the beginning is told before a model is loaded; not of standard
    input, which may be long in coming.
    """
    return Input(source, _begun(chunks(islice(read_rows(source), limit)), source))


def lines(source: str, systems: Sequence[str], references: Sequence[str] = ()) -> Input:
    """Line-aligned text files: line i of each of ``systems`` is a summary of line i of ``source``.

    ``references`` are further files, a reference of that line's document a line, for metrics that read them. A record has
    ``document_id`` (the line's number), ``system``, ``document``, ``summary``, ``references``. Raises InputError where the
    files differ in length, a system is given twice, or standard input is.
    """
    if len(set(systems)) < len(systems):
        raise InputError(f"{Counter(systems).most_common(1)[0][0]}: given twice; name each system once")
    files = [source, *references, *systems]
    if files.count("-") > 1:
        raise InputError("standard input is given twice; name a file for all but one")
    return Input(source, _begun(_line_chunks(source, systems, references), *files), tuple(systems))


def _line_chunks(source: str, systems: Sequence[str], references: Sequence[str]) -> Iterator[list[Row]]:
    for chunk in chunks(aligned_lines([source, *references, *systems]), max(1, CHUNK // len(systems))):
        yield [
            Row(
                f"{source if is_blank(document) else system}, line {number}",
                {
                    "document_id": str(number),
                    "system": system,
                    "document": document,
                    "summary": summary,
                    "references": list(texts[: len(references)]),
                },
            )
            for number, (document, *texts) in chunk
            for system, summary in zip(systems, texts[len(references) :], strict=True)
        ]


def _begun(pieces: Iterator[list[Row]], *files: str) -> Iterator[list[Row]]:
    return pieces if "-" in files else chain([next(pieces)], pieces)


def item_of(row: Row, needs: frozenset[str], settings: Settings = DEFAULTS) -> Item:
    """The texts of a record that a scorer with these ``needs`` reads. Raises RecordError where one is missing or no text."""
    if row.error is not None:
        raise row.error
    references = texts_field(row, "references", "reference") if needs != {"document"} else []
    if "references" in needs and not references:
        raise RecordError(row.where, "field 'references' is missing or empty", "what scores compares with references")
    # A metric that can use either does without the document where there are references.
    unneeded = bool(references) and "document" not in needs
    without = unneeded and told_document(row.fields, settings.document_field) in (None, "")
    document = "" if without else document_field(row, settings.document_field)
    return Item(document, text_field(row, settings.summary_field), tuple(references), row.domain)


def score_rows(scorer: Scorer, rows: Sequence[Row], settings: Settings = DEFAULTS) -> Columns:
    """What ``scorer`` says of the rows. Raises the first RecordError, unless bad records are skipped."""
    items, good = [], []
    reasons: list[str | None] = [None] * len(rows)
    for place, row in enumerate(rows):
        try:
            items.append(item_of(row, scorer.needs, settings))
            good.append(place)
        except RecordError as error:
            if settings.on_bad != "skip":
                raise error.or_skip() from None
            reasons[place] = error.reason
    return scorer.score(items).spread(good, reasons)


def scored_chunks(
    scorer: Scorer, pieces: Iterator[list[Row]], settings: Settings = DEFAULTS, processes: "Processes | None" = None
) -> Iterator[tuple[list[Row], Columns]]:
    """Score the rows in order, chunk by chunk; with several processes each scores one chunk of a round."""
    rank, size = (processes.rank, processes.size) if processes else (0, 1)
    with Bar("scoring") as bar:
        # A process reads no further than its own chunk before it has scored that, so that of several mistakes the first
        # one in the input is met by the lowest rank, which tells it.
        while found := list(islice(pieces, rank + 1)):
            own = score_rows(scorer, found[rank], settings) if len(found) > rank else None
            answers = processes.gather(own) if processes else [own]
            found += islice(pieces, size - len(found))
            for rows, columns in zip(found, answers, strict=False):
                assert columns is not None
                yield rows, columns
                bar.advance(len(rows))


def write_scores(
    scorer: Scorer,
    source: Input,
    target: str | None = None,
    settings: Settings = DEFAULTS,
    processes: "Processes | None" = None,
    see: Callable[[list[Row], Columns], None] | None = None,
) -> dict[str, Tally]:
    """Score every record of ``source``, written to ``target`` with ``score`` added; a tally of it, or of each system.

    Records come out in input order with all their fields but those that an earlier scoring has added to its score; what
    they had in fields that are added is replaced; the tally counts both. JSON lines get ``score``, ``percentile``,
    ``aspects``, ``aspect_percentiles``, ``intervals``, and a ``reason`` where something is missing (null); tables the
    columns of `Columns.flat`. A bad record raises RecordError and leaves no output; where it is skipped it comes back
    without a score. Of several ``processes``, which must see the same input, the first one writes. ``see`` is shown each
    chunk and its columns.
    """
    tallies = {name: Tally() for name in source.systems or (source.name,)}
    nested = target is None or format_of(target) == "jsonl"
    # Tables need their columns before the first line: those of the first chunk.
    first = next(source.chunks)
    with contextlib.ExitStack() as stack:
        writer: Writer | None = None
        if target is not None and not (processes and processes.rank):
            writer = stack.enter_context(
                open_writer(target, columns=None if nested else columns_of(first, scorer, settings, source.unwritten))
            )
        for rows, columns in scored_chunks(scorer, chain([first], source.chunks), settings, processes):
            for name, tally in tallies.items():
                own = [k for k, row in enumerate(rows) if row.fields["system"] == name] if source.systems else None
                tally.add(columns if own is None else columns.take(own))
            look(rows, columns.scores, scorer, settings, tallies[next(iter(tallies))])
            # Of line-aligned files all fields are made here.
            counted = Tally() if source.systems else tallies[source.name]
            records = records_of(rows, columns, counted, settings, nested, source.unwritten)
            if see is not None:
                see(rows, columns)
            if writer is not None:
                for record in records:
                    writer.write(record)
    return tallies


def columns_of(rows: Sequence[Row], scorer: Scorer, settings: Settings, unwritten: Sequence[str] = ()) -> list[str]:
    """The columns of a table of ``rows`` and of what scoring adds, in their order."""
    added = [settings.called(name) for name in scorer.columns]
    names = dict.fromkeys(name for row in rows for name in kept_fields(row.fields, settings))
    return [*(name for name in names if name not in added and name not in unwritten), *added]


def records_of(
    rows: Sequence[Row], columns: Columns, tally: Tally, settings: Settings, nested: bool, unwritten: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """The records of ``rows`` with what scoring adds: ``nested`` as JSON lines have it, else flat as tables do.

    A field of the name of one that is added (``reason``, too, where there is none) is replaced; the ``tally`` counts it,
    and what is left out.
    """
    records = []
    reason = settings.called("reason")
    for row, found in zip(rows, columns.nested() if nested else columns.rows(), strict=True):
        if found.get("reason") and found["score"] is None:
            found["reason"] = f"{row.where}: {found['reason']}"
        own = {settings.called(name): value for name, value in found.items()}
        kept = kept_fields(row.fields, settings)
        written = {name: value for name, value in kept.items() if name not in unwritten and name != reason}
        records.append({**written, **own})
        for name in (name for name, value in row.fields.items() if value not in (None, "")):
            if name in own or name == reason:
                tally.replaced[name] += 1
            elif name not in kept:
                tally.removed[name] += 1
    return records


def kept_fields(fields: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """``fields`` of a record without what else an earlier scoring has added, which its score tells.

    Beside the new score they would say what is no longer so. Without a score they are the user's own.
    """
    if settings.output_field not in fields:
        return dict(fields)
    gone = {settings.called(name) for name in _BESIDE}
    others = tuple(f"{name}_" for name in fields if name != settings.output_field)
    for name in fields:
        ends = {end for end in ("_percentile", "_low", "_high") if f"{name}{end}" in fields}
        # What is called after another field goes with that one.
        mine = name.startswith(settings.called("")) and not name.startswith(others)
        if mine and ends not in ({"_low"}, {"_high"}):
            gone |= {name + end for end in ends and {"", *ends}}
    return {name: value for name, value in fields.items() if name not in gone - {settings.output_field}}


@dataclass
class Choice:
    """What was chosen for one document: the record and its value (NaN: no candidate has one, and the first stands for
    all), among ``candidates``.

    ``margin``: its lead over the next best (0 for a tie); NaN where no other candidate has a value.
    """

    record: Mapping[str, Any]
    value: float
    candidates: int = 1
    next_best: float = float("nan")

    @property
    def margin(self) -> float:
        """See the class."""
        return self.value - self.next_best


def select_best(
    scorer: Scorer, source: Input, by: str = "score", settings: Settings = DEFAULTS, nested: bool = True
) -> tuple[list[Choice], Tally]:
    """Score ``source`` and choose by the score, or an aspect: a choice a document, and a tally of all candidates.

    Records are those of `records_of`, with ``margin`` and ``candidates`` called after the output field as well. A bad
    record that is skipped is no candidate, and the tally counts it. Raises InputError for an unknown ``by``.
    """
    check_name(by, scorer.aspects)
    tally = Tally()
    margin, candidates = settings.called("margin"), settings.called("candidates")

    def good(rows: list[Row]) -> Iterator[Row]:
        for row in rows:
            try:
                item_of(row, scorer.needs, settings)
            except RecordError as error:
                if settings.on_bad != "skip":
                    raise error.or_skip() from None
                tally.bad[error.reason] += 1
                continue
            yield row

    def scored() -> Iterator[tuple[dict[str, Any], float]]:
        for rows, columns in scored_chunks(scorer, (list(good(rows)) for rows in source.chunks), settings):
            tally.add(columns)
            look(rows, columns.scores, scorer, settings, tally)
            tally.replaced.update(name for row in rows for name in (margin, candidates) if name in row.fields)
            records = records_of(rows, columns, tally, settings, nested, source.unwritten)
            yield from zip(records, columns.named()[by].tolist(), strict=True)

    chosen = best(scored(), "document_id" if source.systems else settings.document_field)
    for choice in chosen:
        lead = None if math.isnan(choice.margin) else round(choice.margin, 7)
        choice.record = {**choice.record, margin: lead, candidates: choice.candidates}
    return chosen, tally


def best(scored: Iterable[tuple[Mapping[str, Any], float]], key: str) -> list[Choice]:
    """Choose, of the records with the same text in the field ``key``, the one whose value is highest.

    The first of equal ones; documents in the order in which they first come. A candidate without a value (NaN) is never
    preferred to one with a value. A record without the field stands alone.
    """
    found: dict[str, Choice] = {}
    for record, value in scored:
        text = told_document(record, key)
        name = document_key(str(text)) if isinstance(text, list) or text_fault(text) is None else f"alone {len(found)}"
        kept = found.get(name)
        if kept is None:
            found[name] = Choice(record, value)
            continue
        kept.candidates += 1
        if math.isnan(value):
            continue
        # Any comparison with NaN is false.
        if not value <= kept.value:
            kept.record, kept.value, kept.next_best = record, value, kept.value
        elif not value <= kept.next_best:
            kept.next_best = value
    return list(found.values())

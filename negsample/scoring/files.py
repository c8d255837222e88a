"""Scoring files: records in, the same records with ``score`` out, in order, with flat memory.

Several processes may share an input: each scores one chunk of a round, and the first one writes what all have found. The
chunks are those of a single process, so that every pair is computed beside the same others and the output is the same to
the last byte (on the same kind of device, with the same number of threads; head ``align`` keeps what it has read for later
pairs, and may differ in the last digit).
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

from negsample.errors import InputError, RecordError
from negsample.io.files import format_of
from negsample.io.lines import aligned_lines
from negsample.io.read import Row, read_rows, text_field, texts_field
from negsample.io.write import Writer, open_writer
from negsample.progress import Bar
from negsample.scoring.outcomes import DEFAULTS, Outcome, Settings, Tally
from negsample.scoring.scorer import Columns, Item, Scorer, values_at

if TYPE_CHECKING:
    from negsample.processes import Processes

T = TypeVar("T")
# Records in memory at a time, in each process.
CHUNK = 1024


def chunks(items: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """Yield ``items`` in lists of ``size``."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def _item(row: Row, needs: frozenset[str], settings: Settings) -> Item:
    """The texts of a record that a scorer with these ``needs`` reads."""
    if row.error is not None:
        raise row.error
    references = texts_field(row, "references", "reference") if needs != {"document"} else []
    if "references" in needs and not references:
        raise RecordError(row.where, "field 'references' is missing or empty", "this metric compares with references")
    # A metric that can use either does without the document where there are references.
    unneeded = bool(references) and "document" not in needs
    without = unneeded and row.fields.get(settings.document_field) in (None, "")
    document = "" if without else text_field(row, settings.document_field)
    return Item(document, text_field(row, settings.summary_field), tuple(references))


def score_rows(scorer: Scorer, rows: Sequence[Row], settings: Settings = DEFAULTS) -> list[Outcome]:
    """Score each row. Raises the first RecordError, unless bad records are skipped."""
    outcomes: list[Outcome | None] = []
    items = []
    for row in rows:
        try:
            items.append(_item(row, scorer.needs, settings))
        except RecordError as error:
            if settings.on_bad != "skip":
                raise error.or_skip() from None
            outcomes.append(Outcome(None, where=error.where, reason=error.reason))
        else:
            outcomes.append(None)
    good = iter(_outcomes(scorer.score(items), settings))
    return [next(good) if outcome is None else outcome for outcome in outcomes]


def _outcomes(found: Columns, settings: Settings) -> Iterator[Outcome]:
    for place, (score, cut) in enumerate(zip(found.scores, found.cut, strict=True)):
        reason = found.reasons[place]
        percentiles = values_at(found.percentiles, place) if settings.percentiles else None
        if settings.aspects and found.aspects:
            ends = {
                name: (float(both[place, 0]), float(both[place, 1]))
                for name, both in found.intervals.items()
                if not math.isnan(both[place, 0])
            }
            yield Outcome(
                float(score),
                bool(cut),
                reason=reason,
                aspects=values_at(found.aspects, place),
                percentiles=percentiles,
                intervals=ends,
            )
        elif reason and math.isnan(score):
            yield Outcome(None, reason=reason)
        else:
            yield Outcome(float(score), bool(cut), percentiles=percentiles)


def score_stream(
    scorer: Scorer,
    pieces: Iterator[list[Row]],
    settings: Settings = DEFAULTS,
    processes: "Processes | None" = None,
) -> Iterator[tuple[Row, Outcome]]:
    """Score the rows in order, chunk by chunk; with several processes each scores one chunk of a round."""
    rank, size = (processes.rank, processes.size) if processes else (0, 1)
    with Bar("scoring") as bar:
        # A process reads no further than its own chunk before it has scored that, so that of several mistakes the first
        # one in the input is met by the lowest rank, which tells it.
        while found := list(islice(pieces, rank + 1)):
            own = score_rows(scorer, found[rank], settings) if len(found) > rank else []
            outcomes = processes.gather(own) if processes else [own]
            found += islice(pieces, size - len(found))
            for rows, answers in zip(found, outcomes, strict=False):
                yield from zip(rows, answers, strict=True)
                bar.advance(len(rows))


def table_chunks(source: str, limit: int | None = None) -> Iterator[list[Row]]:
    """Read the (first ``limit``) records of ``source``, as many at a time as ``score_table`` scores together."""
    return chunks(islice(read_rows(source), limit))


def score_table(
    scorer: Scorer,
    source: str,
    target: str | None,
    settings: Settings = DEFAULTS,
    processes: "Processes | None" = None,
    see: Callable[[Row, Outcome], None] | None = None,
    limit: int | None = None,
) -> Tally:
    """Score every record (the first ``limit``) of ``source``, a table or ``-``; written to ``target`` with ``score`` added.

    Records come out in input order with all their fields but those that an earlier scoring has added to its score; what
    they had in these fields and in ``settings.output_field`` is replaced, and the tally counts it. A bad
    record raises RecordError and leaves no output; where it is skipped it comes back with ``score: null`` and a
    ``reason``. Aspects come as ``{"coverage": …, …}``, null (and a ``reason``) where one can't be judged. Of several
    ``processes``, which must see the same input, the first one writes. ``see`` is shown each record and its outcome.
    """
    tally = Tally()
    pieces = table_chunks(source, limit)
    # Tables need their columns before the first line: those of the first chunk.
    first = next(pieces)
    added = settings.added()
    names = list(dict.fromkeys(name for row in first for name in kept_fields(row, added)))
    with _writer(target, names, scorer, settings, processes) as writer:
        for row, outcome in score_stream(scorer, chain([first], pieces), settings, processes):
            record = scored_record(row, outcome, added, tally)
            if see is not None:
                see(row, outcome)
            if writer is not None:
                writer.write(record)
    return tally


def scored_record(
    row: Row, outcome: Outcome, added: tuple[str, str, str, str, str, str], tally: Tally
) -> dict[str, Any]:
    """Return the record of ``row`` with what scoring adds to it, called ``added``, and count it in ``tally``."""
    kept, fields = kept_fields(row, added), outcome.fields(added)
    tally.add(outcome)
    tally.replaced.update(
        name for name, value in row.fields.items() if value not in (None, "") and (name in fields or name not in kept)
    )
    return {**kept, **fields}


def kept_fields(row: Row, added: tuple[str, str, str, str, str, str]) -> dict[str, Any]:
    """Return the fields of a record without what else an earlier scoring has added, which its score tells.

    Beside the new score they would say what is no longer so. Without a score they are the user's own.
    """
    if added[0] not in row.fields:
        return row.fields
    return {name: value for name, value in row.fields.items() if name not in added[1:]}


def _writer(
    target: str | None, names: Sequence[str], scorer: Scorer, settings: Settings, processes: "Processes | None"
) -> contextlib.AbstractContextManager[Writer | None]:
    """Open ``target`` in the first process; the columns of a table are ``names``, then what scoring adds to any record."""
    if target is None or (processes and processes.rank):
        return contextlib.nullcontext()
    added = added_columns(scorer, settings)
    columns = [*(name for name in names if name not in added), *added]
    return open_writer(target, columns=None if format_of(target) == "jsonl" else columns)


def added_columns(scorer: Scorer, settings: Settings) -> list[str]:
    """The columns that scoring adds to a table, in their order."""
    score, percentile, aspects, shares, reason, intervals = settings.added()
    added = [score]
    if settings.percentiles:
        added.append(percentile)
    if settings.aspects:
        added += [aspects, shares] if settings.percentiles else [aspects]
        if scorer.fitted_on:
            added.append(intervals)
    if settings.on_bad == "skip" or settings.aspects or scorer.signature.startswith("metric:"):
        added.append(reason)
    return added


def line_chunks(source: str, systems: Sequence[str], references: Sequence[str] = ()) -> Iterator[list[Row]]:
    """Read line-aligned files, a row for each line and system, as many at a time as ``score_lines`` scores together.

    Raises InputError where the files differ in length, a system is given twice, or standard input is.
    """
    if len(set(systems)) < len(systems):
        raise InputError(
            f"{next(s for s in systems if list(systems).count(s) > 1)}: given twice; name each system once"
        )
    paths = [source, *references, *systems]
    if paths.count("-") > 1:
        raise InputError("standard input is given twice; name a file for all but one")
    for chunk in chunks(aligned_lines(paths), max(1, CHUNK // len(systems))):
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
            for number, (document, *texts) in chunk
            for system, summary in zip(systems, texts[len(references) :], strict=True)
        ]


def score_lines(
    scorer: Scorer,
    source: str,
    systems: Sequence[str],
    target: str | None = None,
    references: Sequence[str] = (),
    settings: Settings = DEFAULTS,
    processes: "Processes | None" = None,
    see: Callable[[Row, Outcome], None] | None = None,
) -> dict[str, Tally]:
    """Score line-aligned text files: line i of each of ``systems`` is a summary of line i of ``source``.

    ``references`` are further files, a reference of that line's document a line, for metrics that read them.
    Returns a tally for each system; ``see`` is shown each record and its outcome. With ``target``, one record a line and
    system is written: ``document_id`` (the line number), ``system``, ``summary``, ``score``; by the first one of several
    ``processes``. Raises InputError as
    ``line_chunks`` does, and RecordError for a blank line unless bad records are skipped.
    """
    tallies = {system: Tally() for system in systems}
    names = ("document_id", "system", "summary")
    pieces = line_chunks(source, systems, references)
    with _writer(target, names, scorer, settings, processes) as writer:
        for row, outcome in score_stream(scorer, pieces, settings, processes):
            tallies[row.fields["system"]].add(outcome)
            if see is not None:
                see(row, outcome)
            if writer is not None:
                writer.write({**{name: row.fields[name] for name in names}, **outcome.fields(settings.added())})
    return tallies

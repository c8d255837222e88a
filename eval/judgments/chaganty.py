"""Chaganty et al. 2018: crowd judgments of four neural systems' summaries of CNN/DailyMail articles.

Layout read, at DIR or below it, packed (``data.tar.gz``) or unpacked, as public loaders of the release have it:

- ``lqual.jsonl``, the one with the workers' answers: ``input.contents`` has ``id``, ``system`` (several joined by ``;`` where
  they wrote the same), ``text`` and ``reference``; ``output._responses`` has ``worker_ids`` and each worker's ``overall``,
  ``grammar`` and ``redundancy``. The release's other file of that name has metric values in place of texts and is passed over;
- ``articles.jsonl``: ``id`` and ``text``.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from negsample.errors import InputError, RecordError
from negsample.eval.judgments.archives import files_below
from negsample.eval.judgments.collect import Collector, Unusable
from negsample.io.read import Row, json_row, text_field
from negsample.records import Judged

# Edit distance (``hter``) is not read: whether more is better is not told with the data.
SCORES = ("overall", "grammar", "redundancy")
# Clark et al. 2019, §4.1: only summaries scored by two or more.
JUDGES = 2


def load(path: str, unusable: Unusable) -> list[Judged]:
    """Scores ``overall``, ``grammar``, ``redundancy`` (higher is better) from −1 to 1, each the mean over the workers.

    One reference, the article's human summary; its own judgments are not read. Counted: summaries of fewer than two judges,
    without an article or a reference. A summary that several systems wrote stands once for each, which is told.
    """
    articles: dict[str, str] = {}
    judged: list[Row] = []
    sink = Collector(unusable)
    wanted = ("articles.jsonl", "lqual.jsonl")
    what = "the release's, with lqual.jsonl and articles.jsonl"
    for place, data in files_below(Path(path), lambda place: place.rpartition("/")[2] in wanted, what):
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        rows = [json_row(f"{place}, line {n}", line) for n, line in enumerate(lines, 1) if line.strip()]
        if place.endswith(wanted[0]):
            for row in rows:
                try:
                    articles.setdefault(text_field(row, "id"), text_field(row, "text"))
                except RecordError as error:
                    sink.note(error.reason, row.where)
        elif not judged and any("input" in row.fields for row in rows):
            judged = rows
    for name, found in (("articles.jsonl", articles), ("lqual.jsonl whose records have 'input' and 'output'", judged)):
        if not found:
            raise InputError(f"{path}: no {name} in it, packed (data.tar.gz) or unpacked; add it from the release")
    references = {
        contents["id"]: contents.get("text") for contents in map(_contents, judged) if _is_reference(contents)
    }
    shared = 0
    for row in judged:
        try:
            found_rows = list(_judged(row, articles, references, sink))
        except RecordError as error:
            unusable.note(error.reason, row.where, error.hint)
            continue
        shared += len(found_rows) > 1
        for each in found_rows:
            sink.add(each, row.where)
    if shared:
        unusable.told.append(f"{shared} judged summaries were written by several systems alike: a row for each")
    return sink.rows


def _contents(row: Row) -> dict[str, Any]:
    """The part of a record that says what was judged; {} where there is none."""
    given = row.fields.get("input")
    found = given.get("contents") if isinstance(given, dict) else None
    return found if isinstance(found, dict) else {}


def _is_reference(contents: dict[str, Any]) -> bool:
    return contents.get("system") == "reference" and isinstance(contents.get("id"), str)


def _judged(row: Row, articles: dict[str, str], references: dict[str, Any], sink: Collector) -> Iterator[Judged]:
    """The rows of one judged summary, one a system; none for the human summary."""
    if row.error is not None:
        raise row.error
    contents = _contents(row)
    if _is_reference(contents):
        return
    part = Row(row.where, contents)
    name, summary, systems = (text_field(part, field) for field in ("id", "text", "system"))
    output = row.fields.get("output")
    answers = output.get("_responses") if isinstance(output, dict) else None
    workers = answers.get("worker_ids") if isinstance(answers, dict) else None
    if not isinstance(answers, dict) or not isinstance(workers, list) or len(workers) < JUDGES:
        raise RecordError(row.where, f"a summary of fewer than {JUDGES} judges")
    if name not in articles:
        raise RecordError(row.where, "no article of this id in articles.jsonl")
    reference = contents.get("reference") or references.get(name)
    if not isinstance(reference, str) or not reference.strip():
        raise RecordError(row.where, "no reference: neither a field 'reference' nor a record of system 'reference'")
    given = {score: answers.get(score) for score in SCORES}
    ratings = [
        {score: values[k] if isinstance(values, list) and k < len(values) else None for score, values in given.items()}
        for k in range(len(workers))
    ]
    scores = sink.mean_scores(ratings, SCORES, row.where)
    for system in systems.split(";"):
        if system != "reference":
            yield Judged(name, system, (articles[name],), summary, (reference,), scores, "chaganty")

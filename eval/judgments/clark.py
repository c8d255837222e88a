"""What Clark et al. 2019 measure on: essays of students, and crowd judgments of neural systems.

Essays of the Automated Student Assessment Prize (Hewlett Foundation), scored against a pool of sample essays.

Layout: ``training_set_rel3.tsv`` as Kaggle hands it out (Windows' Latin-1): ``essay_id``, ``essay_set``, ``essay``,
``rater1_domain1`` …, ``domain1_score``; and beside it, put there by its user, ``references/SET*.txt`` with the sample essays
of a set, a file each (``references/3.txt``). Clark et al. 2019, §4.2, have one top-scoring sample essay of set 3, which
their appendix A.2 prints.

Chaganty et al. 2018: crowd judgments of four neural systems' summaries of CNN/DailyMail articles.

Layout read, at DIR or below it, packed (``data.tar.gz``) or unpacked, as public loaders of the release have it:

- ``lqual.jsonl``, the one with the workers' answers: ``input.contents`` has ``id``, ``system`` (several joined by ``;`` where
  they wrote the same), ``text`` and ``reference``; ``output._responses`` has ``worker_ids`` and each worker's ``overall``,
  ``grammar`` and ``redundancy``. The release's other file of that name has metric values in place of texts and is passed over;
- ``articles.jsonl``: ``id`` and ``text``.
"""

import csv
import io
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from negsample.errors import InputError, RecordError
from negsample.eval.judgments.collect import Collector, Unusable, decode, files_below, finite, name_field
from negsample.io.files import failure
from negsample.io.read import Row, json_row, text_field
from negsample.records import Judged
from negsample.sentences import split_sentences

TABLE = "training_set_rel3.tsv"
# Clark et al. 2019, §4.2: student responses of 5 to 15 sentences.
SENTENCES = (5, 15)
RATERS = ("rater1_domain1", "rater2_domain1", "rater3_domain1")
# Edit distance (``hter``) is not read: whether more is better is not told with the data.
SCORES = ("overall", "grammar", "redundancy")
# Clark et al. 2019, §4.1: only summaries scored by two or more.
JUDGES = 2


def load_asap(path: str, unusable: Unusable) -> list[Judged]:
    """Score ``score``, the resolved ``domain1_score``, of the essays of every set that has a sample essay.

    ``path``: the table, or its folder. The sample essays are the references, and stand in the place of the source too
    (a score against the document is the mean over them). An essay is its own document, so that essays are what a bootstrap
    draws. Counted: essays that are shorter or longer than 5 to 15 sentences, or without a score.
    """
    table = Path(path) / TABLE if Path(path).is_dir() else Path(path)
    if not table.is_file():
        raise InputError(f"{table}: no such file; give the folder with Kaggle's {TABLE}, or the file")
    pool = _references(table.parent / "references")
    try:
        lines = csv.DictReader(io.StringIO(decode(table.read_bytes()), newline=""), delimiter="\t")
    except OSError as error:
        raise failure(str(table), error) from error
    if missing := {"essay_id", "essay_set", "essay", "domain1_score"} - set(lines.fieldnames or ()):
        raise InputError(f"{table}: no column {min(missing)!r} in its first line; give {TABLE} as Kaggle has it")
    rows = (Row(f"{table}, line {lines.line_num}", own) for own in lines if (own["essay_set"] or "").strip() in pool)
    return Collector(unusable).read(rows, partial(_essay, pool=pool))


def _essay(row: Row, pool: dict[str, tuple[str, ...]]) -> Judged:
    name, essays = row.fields["essay_set"].strip(), pool[row.fields["essay_set"].strip()]
    text = " ".join(text_field(row, "essay").split())
    low, high = SENTENCES
    if not low <= len(split_sentences(text)) <= high:
        raise RecordError(row.where, f"an essay that is not of {low} to {high} sentences")
    score = finite(row.fields["domain1_score"])
    ratings = tuple(finite(row.fields.get(rater)) for rater in RATERS)
    given = {"score": ratings} if any(n is not None for n in ratings) else {}
    scores = {} if score is None else {"score": score}
    return Judged(name_field(row, "essay_id"), "student", essays, text, essays, scores, f"asap-{name}", ratings=given)


def _references(folder: Path) -> dict[str, tuple[str, ...]]:
    """Set → its sample essays, by the number that a file's name begins with."""
    pool: dict[str, list[str]] = {}
    for file in sorted(folder.glob("[0-9]*.txt")):
        text = " ".join(decode(file.read_bytes()).split())
        if text:
            pool.setdefault(re.match(r"\d+", file.stem)[0], []).append(text)  # type: ignore[index]
    if not pool:
        raise InputError(
            f"{folder}: no sample essay; put one there as SET.txt, such as 3.txt (Clark et al. 2019 print theirs in A.2)"
        )
    return {name: tuple(texts) for name, texts in pool.items()}


def load_chaganty(path: str, unusable: Unusable) -> list[Judged]:
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
    contents = (_inner(row, "input", "contents") for row in judged)
    human = [own for own in contents if own.get("system") == "reference" and isinstance(own.get("id"), str)]
    references = {own["id"]: own.get("text") for own in human}
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


def _inner(row: Row, *path: str) -> dict[str, Any]:
    """The object within objects that a record has at ``path``; {} where there is none."""
    found: Any = row.fields
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _judged(row: Row, articles: dict[str, str], references: dict[str, Any], sink: Collector) -> Iterator[Judged]:
    """The rows of one judged summary, one a system; none for the human summary."""
    if row.error is not None:
        raise row.error
    contents, answers = _inner(row, "input", "contents"), _inner(row, "output", "_responses")
    if contents.get("system") == "reference" and isinstance(contents.get("id"), str):
        return
    name, summary, systems = (text_field(Row(row.where, contents), field) for field in ("id", "text", "system"))
    workers = answers.get("worker_ids")
    if not isinstance(workers, list) or len(workers) < JUDGES:
        raise RecordError(row.where, f"a summary of fewer than {JUDGES} judges")
    if name not in articles:
        raise RecordError(row.where, "no article of this id in articles.jsonl")
    reference = contents.get("reference") or references.get(name)
    if not isinstance(reference, str) or not reference.strip():
        raise RecordError(row.where, "no reference: neither a field 'reference' nor a record of system 'reference'")
    given = {score: own if isinstance(own := answers.get(score), list) else [] for score in SCORES}
    ratings = [{score: dict(enumerate(own)).get(k) for score, own in given.items()} for k in range(len(workers))]
    scores = sink.mean_scores(ratings, SCORES, row.where)
    for system in systems.split(";"):
        if system != "reference":
            yield Judged(name, system, (articles[name],), summary, (reference,), scores, "chaganty")

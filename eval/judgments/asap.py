"""Essays of the Automated Student Assessment Prize (Hewlett Foundation), scored against a pool of sample essays.

Layout: ``training_set_rel3.tsv`` as Kaggle hands it out (Windows' Latin-1): ``essay_id``, ``essay_set``, ``essay``,
``rater1_domain1`` …, ``domain1_score``; and beside it, put there by its user, ``references/SET*.txt`` with the sample essays
of a set, a file each (``references/3.txt``). Clark et al. 2019, §4.2, have one top-scoring sample essay of set 3, which
their appendix A.2 prints.
"""

import csv
import io
from pathlib import Path

from negsample.errors import InputError, RecordError
from negsample.eval.judgments.archives import decode
from negsample.eval.judgments.collect import Collector, Unusable, finite, name_field
from negsample.io.files import failure
from negsample.io.read import Row, text_field
from negsample.records import Judged
from negsample.sentences import split_sentences

TABLE = "training_set_rel3.tsv"
# Clark et al. 2019, §4.2: student responses of 5 to 15 sentences.
SENTENCES = (5, 15)
RATERS = ("rater1_domain1", "rater2_domain1", "rater3_domain1")


def load(path: str, unusable: Unusable) -> list[Judged]:
    """Score ``score``, the resolved ``domain1_score``, of the essays of every set that has a sample essay.

    ``path``: the table, or its folder. The sample essays are the references, and stand in the place of the source too
    (a score against the document is the mean over them). An essay is its own document, so that essays are what a bootstrap
    draws. Counted: essays that are shorter or longer than 5 to 15 sentences, or without a score.
    """
    table = Path(path) / TABLE if Path(path).is_dir() else Path(path)
    if not table.is_file():
        raise InputError(f"{table}: no such file; give the folder with Kaggle's {TABLE}, or the file")
    pool = _references(table.parent / "references")
    sink = Collector(unusable)
    try:
        lines = csv.DictReader(io.StringIO(decode(table.read_bytes()), newline=""), delimiter="\t")
    except OSError as error:
        raise failure(str(table), error) from error
    if missing := {"essay_id", "essay_set", "essay", "domain1_score"} - set(lines.fieldnames or ()):
        raise InputError(f"{table}: no column {min(missing)!r} in its first line; give {TABLE} as Kaggle has it")
    for fields in lines:
        row = Row(f"{table}, line {lines.line_num}", fields)
        essays = pool.get((fields["essay_set"] or "").strip())
        if not essays:
            continue
        try:
            sink.add(_judged(row, essays), row.where)
        except RecordError as error:
            unusable.note(error.reason, row.where, error.hint)
    return sink.rows


def _judged(row: Row, essays: tuple[str, ...]) -> Judged:
    text = " ".join(text_field(row, "essay").split())
    low, high = SENTENCES
    if not low <= len(split_sentences(text)) <= high:
        raise RecordError(row.where, f"an essay that is not of {low} to {high} sentences")
    score = finite(row.fields["domain1_score"])
    ratings = tuple(finite(row.fields.get(name)) for name in RATERS)
    return Judged(
        name_field(row, "essay_id"),
        "student",
        essays,
        text,
        essays,
        {} if score is None else {"score": score},
        f"asap-{row.fields['essay_set'].strip()}",
        ratings={"score": ratings} if any(n is not None for n in ratings) else {},
    )


def _references(folder: Path) -> dict[str, tuple[str, ...]]:
    """Set → its sample essays, by the number that a file's name begins with."""
    pool: dict[str, list[str]] = {}
    for file in sorted(folder.glob("[0-9]*.txt")):
        text = " ".join(decode(file.read_bytes()).split())
        digits = file.stem[: len(file.stem) - len(file.stem.lstrip("0123456789"))]
        if text:
            pool.setdefault(digits, []).append(text)
    if not pool:
        raise InputError(
            f"{folder}: no sample essay; put one there as SET.txt, such as 3.txt (Clark et al. 2019 print theirs in A.2)"
        )
    return {name: tuple(texts) for name, texts in pool.items()}

"""Scores beside texts as people have them: a table, or batches of columns, of whatever hands them out; a gate for tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from negsample.errors import InputError
from negsample.models import load_once
from negsample.records import as_list
from negsample.scoring.scorer import items_of
from negsample.scoring.tally import Gate

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator


def score_columns(estimator: "Estimator", table: Any, document: str, summary: str, prefix: str = "") -> dict[str, Any]:
    """What ``estimator`` says of the texts in ``table``, as `Columns.flat`, each name behind ``prefix``.

    ``table``: columns by name, or a table of pandas, polars or pyarrow; its ``domain`` says what kind of text a row is. A row
    whose text is missing or blank has NaN and a reason; no value is None, since ``datasets`` tells a column's type by its first
    batch. Raises InputError for a column that is not there, and a new one that is there already.
    """
    names = _names(table)
    for name in (document, summary):
        if name not in names:
            told = f"columns: {', '.join(map(str, names))}" if names else "the table has no columns"
            raise InputError(f"there is no column {name!r}; name it with document= or summary= ({told})")
        if isinstance(table[name], str):
            raise InputError(f"{name!r} is a single text, not a column; with datasets: map(…, batched=True)")
    references = table["references"] if "references" in estimator.needs and "references" in names else ()
    domains = table["domain"] if "domain" in names else ()
    found = estimator.scorer().score(items_of(table[document], table[summary], references, domains)).flat()
    if taken := [prefix + name for name in found if prefix + name in map(str, names)]:
        raise InputError(f"the column {taken[0]!r} is there already; give prefix=, or leave it out")
    return {prefix + name: column for name, column in found.items()}


def _names(table: Any) -> list[Any]:
    """The names of the columns: pyarrow's ``columns`` are arrays, and polars' tables are walked through by column."""
    return list(getattr(table, "column_names", getattr(table, "columns", table)))


@dataclass(frozen=True)
class ScoreBatches:
    """A function on batches: columns in, the same columns and those of ``Estimator.score_frame`` out.

    ``model`` is what ``negsample.models.load`` takes, where every process can read it; by default the ready estimator. A
    batch is a mapping of names to columns of one length, or a table of pandas, polars or pyarrow. This is a few words when
    pickled: the model is loaded once in each process, by the first batch there. Scores don't depend on how records are
    divided into batches (to 1e-5). Raises InputError as ``load`` and ``Estimator.score_frame`` do.
    """

    model: str | None = None
    document: str = "document"
    summary: str = "summary"
    prefix: str = ""
    precision: str = "float32"

    def __call__(self, batch: Any) -> dict[str, Any]:
        """Score one batch."""
        found = score_columns(load_once(self.model, self.precision), batch, self.document, self.summary, self.prefix)
        columns = {name: batch[name] for name in _names(batch)}
        if hasattr(batch, "column_names"):  # pyarrow's values are objects of its own
            columns = {name: as_list(column) for name, column in columns.items()}
        return {**columns, **found}


def assert_quality(
    documents: Sequence[str],
    summaries: Sequence[str],
    references: Sequence[Sequence[str]] = (),
    *,
    model: "str | Path | Estimator | None" = None,
    each: bool = False,
    **limits: float,
) -> None:
    """AssertionError, which names the ten lowest pairs, where the mean of a score is under its limit.

    ``limits``: ``score=0.2``, or an aspect's, as in ``support=0.4``. With ``each`` no pair may be under one (a value that
    can't be judged is). ``model``: an estimator, or what ``negsample.models.load`` takes; by default the ready one.
    ``references`` [n] for a model that was fitted with them. Raises InputError for an unknown aspect, no limit or one that
    can't be (``Gate``), no pair at all, and texts that ``Estimator.score`` refuses.
    """
    estimator = load_once(model and str(model)) if model is None or isinstance(model, str | Path) else model
    gate = Gate(limits, estimator.scorer(), each)
    documents = as_list(documents, "documents")
    gate.add([f"pair {n}" for n in range(len(documents))], estimator.score_pairs(documents, summaries, references))
    if failures := gate.failures():
        raise AssertionError("\n".join(failures))

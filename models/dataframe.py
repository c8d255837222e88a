"""Scores beside texts as people have them: a ``pandas.DataFrame``, or batches of columns, of whatever hands them out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from negsample.errors import InputError
from negsample.models import load_once
from negsample.scoring.scorer import Item

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator


def score_columns(
    estimator: "Estimator", columns: Mapping[Any, Any], document: str, summary: str, prefix: str = ""
) -> dict[str, Any]:
    """What ``estimator`` says of the texts in ``columns``, as `Columns.flat`, each name behind ``prefix``.

    A row whose text is missing or blank has NaN and a reason; no value is None, since ``datasets`` tells a column's type by
    its first batch. Raises InputError for a column that is not there, and a new one that is there already.
    """
    for name in (document, summary):
        if name not in columns:
            raise InputError(
                f"there is no column {name!r}; name it with document= or summary=: {', '.join(map(str, columns))}"
            )
    texts = [list(columns[document]), list(columns[summary])]
    references = (
        list(columns["references"]) if "references" in estimator.needs & columns.keys() else [()] * len(texts[0])
    )
    items = [Item(d, s, tuple(r)) for d, s, r in zip(*texts, references, strict=True)]
    found = estimator.scorer().score(items).flat()
    if taken := [prefix + name for name in found if prefix + name in map(str, columns)]:
        raise InputError(f"the column {taken[0]!r} is there already; give prefix=, or leave it out")
    return {prefix + name: column for name, column in found.items()}


@dataclass(frozen=True)
class ScoreBatches:
    """A function on batches: columns in, the same columns and those of ``Estimator.score_frame`` out.

    ``model`` is what ``negsample.models.load`` takes, where every process can read it; by default the ready estimator. A
    batch is a mapping of names to columns of one length: lists, arrays, a pandas DataFrame. This is a few words when
    pickled: the model is loaded once in each process, by the first batch there. Scores don't depend on how records are
    divided into batches (to 1e-5). Raises InputError as ``load`` and ``Estimator.score_frame`` do.
    """

    model: str | None = None
    document: str = "document"
    summary: str = "summary"
    prefix: str = ""
    precision: str = "float32"

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Score one batch."""
        columns = dict(batch.items())
        estimator = load_once(self.model, self.precision)
        return {**columns, **score_columns(estimator, columns, self.document, self.summary, self.prefix)}

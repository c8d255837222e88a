"""Scores beside texts as people have them: a ``pandas.DataFrame``, or batches of columns, of whatever hands them out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from negsample.errors import InputError
from negsample.scoring.scorer import Item

if TYPE_CHECKING:
    import pandas as pd

    from negsample.models.estimator import Estimator


def scored_columns(
    estimator: "Estimator", documents: Sequence[Any], summaries: Sequence[Any], prefix: str = "", batch_size: int = 32
) -> dict[str, Any]:
    """Columns of length n, called ``prefix`` and their name: ``score``, ``percentile``, each aspect and its
    ``…_percentile`` (float64, NaN where there is none), and ``reason`` (why one is missing; "" where none is).

    A text that is missing or blank has no score, and that is its reason. Percentiles only where the estimator has them.
    """
    items = [Item(document, summary) for document, summary in zip(documents, summaries, strict=True)]
    scored = estimator.scorer(batch_size=batch_size).score(items)
    columns: dict[str, Any] = {}
    for name, values in scored.named().items():
        columns[name] = values.astype(np.float64)
        if name in scored.percentiles:
            own = "percentile" if name == "score" else f"{name}_percentile"
            columns[own] = scored.percentiles[name]
    columns["reason"] = [reason or "" for reason in scored.reasons]
    return {f"{prefix}{name}": column for name, column in columns.items()}


def score_frame(
    estimator: "Estimator", frame: "pd.DataFrame", document: str, summary: str, prefix: str, batch_size: int
) -> "pd.DataFrame":
    """A copy of ``frame`` with ``scored_columns`` of its columns ``document`` and ``summary``; see the estimator."""
    texts = _texts(dict(frame.items()), document, summary)
    columns = scored_columns(estimator, list(texts[0]), list(texts[1]), prefix, batch_size)
    _refuse_taken(columns, [str(name) for name in frame.columns])
    return frame.assign(**columns)


def score_batch(
    estimator: "Estimator", batch: Mapping[str, Sequence[Any]], document: str, summary: str, prefix: str
) -> dict[str, Any]:
    """``scored_columns`` of a batch of ``datasets``. No value is None: its type is told by the first batch."""
    documents, summaries = _texts(batch, document, summary)
    columns = scored_columns(estimator, documents, summaries, prefix)
    _refuse_taken(columns, list(batch))
    return columns


@dataclass(frozen=True)
class ScoreBatches:
    """A function on batches: columns in, the same columns and those of ``scored_columns`` out.

    ``model`` is a folder, or ``org/name`` on the hub, that every process can read; by default the ready estimator. A batch is
    a mapping of names to columns of one length: lists, arrays, a pandas DataFrame. This is a few words when pickled: the
    model is loaded once in each process, by the first batch there. Scores don't depend on how records are divided into
    batches (to 1e-5). Raises InputError as ``Estimator.load`` and ``Estimator.score_frame`` do.
    """

    model: str | None = None
    document: str = "document"
    summary: str = "summary"
    prefix: str = ""
    precision: str = "float32"

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Score one batch."""
        columns = dict(batch.items())
        texts = {name: list(columns[name]) for name in (self.document, self.summary) if name in columns}
        estimator = _loaded(self.model, self.precision)
        return {**columns, **score_batch(estimator, {**columns, **texts}, self.document, self.summary, self.prefix)}


@lru_cache(maxsize=4)
def _loaded(model: str | None, precision: str) -> "Estimator":
    from negsample.models.estimator import Estimator

    return Estimator.load(model, precision=precision)


def _texts(columns: Mapping[Any, Any], *names: str) -> list[Any]:
    for name in names:
        if name not in columns:
            raise InputError(
                f"there is no column {name!r}; name it with document= or summary=: {', '.join(map(str, columns))}"
            )
    return [columns[name] for name in names]


def _refuse_taken(columns: Mapping[str, Any], there: Sequence[str]) -> None:
    if taken := [name for name in columns if name in there]:
        raise InputError(f"the column {taken[0]!r} is there already; give prefix=, or leave it out")

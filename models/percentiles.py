"""What a score means: the share of real summaries of the estimator's own corpus that score lower.

A model folder keeps, in ``percentiles.json``, what held-out summaries of its corpus scored. Of at most ``_MOST`` summaries
all values are kept, so that a percentile is exact; of more, as many evenly spaced quantiles, and it is right to 0.3 %.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from negsample.errors import InputError

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator

FILE = "percentiles.json"
_MOST = 200
# Scores of one text differ in the last digits from batch to batch; a summary is not better than itself.
_DIGITS = 5


def percentiles_of(columns: Mapping[str, np.ndarray], corpus: str) -> dict[str, Any]:
    """The content of ``percentiles.json`` from what real summaries of ``corpus`` scored.

    ``columns``: ``score`` and each aspect → float [n] in [0, 1]; NaN, where an aspect can't be judged, is left out and
    not counted. A column with nothing in it is left out.
    """
    finite = {name: np.asarray(column, np.float64)[np.isfinite(column)] for name, column in columns.items()}
    return {
        "corpus": corpus,
        "summaries": {name: len(column) for name, column in finite.items() if len(column)},
        "values": {name: _spaced(column) for name, column in finite.items() if len(column)},
    }


def sample_columns(estimator: "Estimator") -> dict[str, np.ndarray]:
    """What ``estimator`` says of the embedded sample's own summaries: ``score`` and each aspect → float [n]."""
    from negsample.corpora import load_pairs

    pairs = list(load_pairs("sample"))
    return estimator.score_pairs([pair.document for pair in pairs], [pair.summary for pair in pairs]).named()


def _spaced(column: np.ndarray) -> list[float]:
    """The sorted values, or ``_MOST`` of them in the middles of as many equal shares."""
    ordered = np.sort(column)
    if len(ordered) > _MOST:
        ordered = ordered[((np.arange(_MOST) + 0.5) / _MOST * len(ordered)).astype(int)]
    return [round(float(value), _DIGITS) for value in ordered]


def read_percentiles(path: Path) -> dict[str, np.ndarray] | None:
    """The kept values of each column, sorted float64; None where there is no such file (folders of before 0.2).

    Raises InputError for a damaged one.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        values = {str(name): np.asarray(column, np.float64) for name, column in content["values"].items()}
        good = all(v.ndim == 1 and v.size and np.isfinite(v).all() and (np.diff(v) >= 0).all() for v in values.values())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: damaged ({error!r}); copy the model again") from None
    if not good:
        raise InputError(f"{path}: damaged (its values are not sorted numbers); copy the model again")
    return values or None


def share_below(values: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """For each of ``scores`` float [n] the share in [0, 1] of the sorted ``values`` that are lower; NaN of NaN."""
    rounded = np.round(np.asarray(scores, np.float64), _DIGITS)
    return np.where(np.isnan(rounded), np.nan, np.searchsorted(values, rounded, side="left") / len(values))

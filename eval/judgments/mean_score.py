"""The plain mean of a data set's human scores as one more human score."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from negsample.eval.judgments.collect import Unusable
from negsample.records import Judged

# Rating scales in use, the narrowest first.
SCALES = ((0, 1), (-1, 1), (1, 5), (0, 5), (1, 7), (1, 10), (0, 10), (0, 100))
_MEAN = "mean of "


def is_mean(name: str) -> bool:
    """Whether the human score ``name`` is a mean that `with_means` has added."""
    return name.startswith(_MEAN) and name.removeprefix(_MEAN).isdecimal()


def with_means(rows: Sequence[Judged], unusable: Unusable) -> list[Judged]:
    """Return ``rows`` with the score ``mean of N`` beside the N ≥ 2 human scores of their data set, where scales agree.

    A score's scale is the narrowest of ``SCALES`` that holds all its values in the data set, which must take up more than
    half of it. The scales agree where all scores have the same one. The mean is over all N scores of a row; a row that
    lacks one has none. Where scales don't agree no mean is made, which is told in ``unusable``, once for each data set.
    """
    found = list(rows)
    for dataset in dict.fromkeys(row.dataset for row in rows):
        places = [place for place, row in enumerate(rows) if row.dataset == dataset]
        names = list(dict.fromkeys(name for place in places for name in rows[place].scores))
        ranges = {
            name: _range([rows[place].scores[name] for place in places if name in rows[place].scores]) for name in names
        }
        mean = f"{_MEAN}{len(names)}"
        if len(names) < 2 or mean in names:
            continue
        scales = {_scale(*ends) for ends in ranges.values()}
        if len(scales) > 1 or None in scales:
            told = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in ranges.items())
            which = f" of {dataset}" if dataset else ""
            unusable.told.append(
                f"no mean of the human scores{which}, for their scales differ or can't be told: {told}"
            )
            continue
        for place in places:
            scores = rows[place].scores
            if len(scores) == len(names):
                found[place] = replace(rows[place], scores={**scores, mean: float(np.mean(list(scores.values())))})
    return found


def _range(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def _scale(low: float, high: float) -> tuple[int, int] | None:
    """The narrowest scale that holds ``low`` and ``high``, if they are more than half of it apart; None where none does."""
    scale = next((scale for scale in SCALES if scale[0] <= low and high <= scale[1]), None)
    return scale if scale is not None and 2 * (high - low) > scale[1] - scale[0] else None

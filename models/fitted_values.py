"""What a fit to people's scores adds to an estimator, as plain values: weights of its inputs, people's scale, intervals."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from negsample.errors import InputError


@dataclass(frozen=True)
class FittedTarget:
    """A sum of inputs on people's scale: ``offset`` + Σ ``weights``[input]·input is put between ``knots``.

    ``knots``: (sums, people's scores), both rising; a sum beyond an end has the score of the end. ``half_width``: half of
    the interval that holds the score of a new summary with probability ``confidence`` (cut at the ends of the scale).
    """

    human: str
    weights: Mapping[str, float]
    offset: float
    knots: tuple[tuple[float, ...], tuple[float, ...]]
    half_width: float
    confidence: float

    def answer(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """People's score [n] and its interval [n, 2] for ``sums`` [n]; NaN stays NaN."""
        values = np.interp(sums, np.array(self.knots[0]), np.array(self.knots[1]))
        ends = np.stack([values - self.half_width, values + self.half_width], axis=1)
        return values, np.clip(ends, self.knots[1][0], self.knots[1][-1])


@dataclass(frozen=True)
class FurtherMetric:
    """A metric that a fit weighs beside the estimator's own inputs, as (``direction``·value − ``centre``)/``spread``."""

    spec: str
    name: str
    signature: str
    direction: int
    centre: float
    spread: float


@dataclass(frozen=True)
class Fitted:
    """All that a fit adds to an estimator. ``score``, ``offset``: weights of the overall score, whose sigmoid it is.

    ``documents``: keys of the documents whose summaries it was fitted on. ``references``: whether ``metrics`` read them.
    ``about``: what it was fitted on, for people.
    """

    score: Mapping[str, float]
    offset: float
    targets: Mapping[str, FittedTarget]
    metrics: tuple[FurtherMetric, ...]
    references: bool
    documents: tuple[str, ...]
    about: Mapping[str, Any]

    def as_plain(self) -> dict[str, Any]:
        """The entry of ``config.json``."""
        return asdict(self)

    @staticmethod
    def from_plain(data: Any) -> "Fitted":
        """Read what ``as_plain`` gave. Raises InputError for anything else."""
        try:
            targets = {
                str(name): FittedTarget(**{**entry, "knots": tuple(map(tuple, entry["knots"]))})
                for name, entry in data["targets"].items()
            }
            metrics = tuple(FurtherMetric(**entry) for entry in data["metrics"])
            rest = {name: data[name] for name in ("score", "offset", "references", "about")}
            found = Fitted(targets=targets, metrics=metrics, documents=tuple(data["documents"]), **rest)
            for weights in (found.score, *(target.weights for target in targets.values())):
                if not np.isfinite([float(weight) for weight in weights.values()]).all():
                    raise ValueError("a weight is not finite")
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"config.json: what was fitted is damaged ({error!r}); copy the model again") from None
        return found

"""What scoring answers with; apart from the estimator, so that metrics need no torch."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Scored:
    """Scores float [n] (an estimator's float32, in [0, 1]; NaN where a metric is undefined), and which pairs were longer
    than the model reads, bool [n].

    ``aspects``: for a head that has them, the name of each → float32 [n] in [0, 1], NaN where it can't be judged, and
    ``reasons`` [n] says why (None where nothing is missing).
    """

    scores: np.ndarray
    cut: np.ndarray
    aspects: dict[str, np.ndarray] | None = None
    reasons: list[str | None] | None = None

"""Cross pairing (Bao et al. 2021 §3.2): the document with the summary of another document; label 0."""

import numpy as np

from negsample.negatives.context import Context, Damaged
from negsample.records import Pair


def make(pair: Pair, context: Context, rng: np.random.Generator) -> Damaged:
    """The summary of another document of the split, as it is.

    Raises CannotDamage where the split has no document that shares no summary with this one.
    """
    other = context.other_summary(pair, rng)
    return Damaged(other.text, 0.0, {"summary_of": other.id})


# Labels are 0 and 1, so training takes binary cross-entropy.
make.graded = False  # type: ignore[attr-defined]

"""What a caller may have a training run call: for what it says, each validation loss, the validation scores at the end."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from negsample.train.fit.training_log import print_line


@dataclass(frozen=True)
class Callbacks:
    """Functions that a run calls, each where it is given; an exception from one ends the run.

    ``say(text)``: each epoch's losses in words (default: printed). ``after_epoch(epoch, validation_loss)``: epochs from
    0, before the epoch's checkpoint is written. ``after_fit(labels, scores)``: float32 [n] each, the validation split
    under the best weights; on one process.
    """

    say: Callable[[str], None] = print_line
    after_epoch: Callable[[int, float], None] | None = None
    after_fit: Callable[[np.ndarray, np.ndarray], None] | None = None

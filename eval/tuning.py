"""Agreement with people as the objective of a search, on the half of the judgments that is set apart for it.

Only rows with ``half: tune`` are used, so that a search knows nothing of the documents it is reported on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from negsample.errors import InputError
from negsample.eval.agreement.columns import make_scorers, score_columns
from negsample.eval.agreement.figures import agreement
from negsample.eval.agreement.levels import judged_table
from negsample.eval.judgments import Unusable, load_judgments
from negsample.eval.judgments.collect import is_mean, with_means
from negsample.records import Judged
from negsample.registry import suggestion

TUNE = "tune"


@dataclass(frozen=True)
class TuneHalf:
    """The rows of one source of judgments that a search may see, each with the score ``human``."""

    source: str
    human: str
    rows: tuple[Judged, ...]


def load_tune_half(source: str, human: str) -> TuneHalf:
    """Load the tune half of ``source``, as ``--judgments`` takes it, for the human score ``human``, or the mean of all
    (``with_means``).

    Raises InputError where it has no halves, or no row of the tune half has the score.
    """
    unusable = Unusable()
    rows = with_means(load_judgments(source, unusable), unusable)
    if unmarked := sum(not row.half for row in rows):
        told = "no row has the field" if unmarked == len(rows) else f"{unmarked} of {len(rows)} rows have no field"
        raise InputError(
            f"{source}: {told} 'half'; mark each row half: tune (for the search) or half: report (kept from it)"
        )
    mine = [row for row in rows if row.half == TUNE]
    if not mine:
        raise InputError(f"{source}: no row has half: tune, which is the half that a search may use")
    scored = tuple(row for row in mine if human in row.scores)
    if not scored and is_mean(human) and unusable.told:
        raise InputError(f"{source}: {unusable.told[-1]}")
    if not scored:
        known = sorted({score for row in mine for score in row.scores})
        raise InputError(f"{source}: no row with half: tune has the score {human!r}; {suggestion(human, known)}")
    return TuneHalf(source, human, scored)


def agreement_of(model: Path, halves: Sequence[TuneHalf], level: str, coefficient: str) -> float:
    """Measure how well the model in the folder ``model`` agrees with people: the mean over ``halves``, in [−1, 1].

    Raises InputError where a correlation is not defined, with the reason, and for a damaged model.
    """
    scorers, _ = make_scorers([str(model)], [], baselines=False)
    values = []
    for half in halves:
        # The first column is the model's own; its aspects follow.
        column = score_columns(scorers, half.rows)[0]
        table = judged_table(half.source, half.rows, [half.human], {column.name: column.values})
        (figure,) = agreement(table, levels=[level], coefficients=[coefficient], bootstrap=0)
        if figure.value is None:
            raise InputError(f"no {level}-level {coefficient} with {half.human} on {half.source}: {figure.reason}")
        values.append(figure.value)
    return sum(values) / len(values)

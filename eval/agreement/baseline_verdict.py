"""Does a metric beat the trivial baselines? By its value, and whether the data can tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from negsample.eval.agreement.columns import TRIVIAL
from negsample.eval.agreement.figures import AgreementFigure
from negsample.eval.agreement.significance import BeatsMatrix, MetricsComparison, beats_matrix

# The coefficient of each level that is shown first and for which metrics are compared.
MAIN_COEFFICIENT = {"summary": "spearman", "pooled": "pearson", "system": "spearman"}
# Williams is exact where rows are independent (systems); the permutation keeps a document's rows together.
TESTS = {"summary": "permutation", "pooled": "permutation", "system": "williams"}


@dataclass(frozen=True)
class BaselineVerdict:
    """A metric beside the best trivial baseline of the same data set, human score, level and coefficient.

    ``above``: the metric's value is higher. ``clear``: the paired test (Holm over all pairs of the table) finds the
    two different in that direction; None where they were not compared.
    """

    baseline: str
    baseline_value: float
    above: bool
    clear: bool | None

    @property
    def text(self) -> str:
        """For a table: above or below the baseline where the test tells them apart, else more carefully put."""
        if self.above:
            return f"above {self.baseline}" + (", not clearly" if self.clear is False else "")
        return f"{'below' if self.clear else 'not above'} {self.baseline}"


def beats_matrices(comparisons: Sequence[MetricsComparison]) -> dict[tuple[str, str], BeatsMatrix]:
    """(human score, level) → who beats whom, by the test in `TESTS`."""
    groups: dict[tuple[str, str], list[MetricsComparison]] = {}
    for comparison in comparisons:
        groups.setdefault((comparison.human, comparison.level), []).append(comparison)
    return {key: beats_matrix(group, TESTS[key[1]]) for key, group in groups.items()}


def baseline_verdicts(
    figures: Sequence[AgreementFigure], beats: Mapping[tuple[str, str], BeatsMatrix]
) -> dict[tuple[str, str, str, str], BaselineVerdict]:
    """(human, metric, level, coefficient) → verdict, for every figure of one data set that has a value.

    The trivial baselines have none, and neither has a figure beside which no trivial baseline has a value.
    """
    best: dict[tuple[str, str, str], tuple[float, str]] = {}
    for figure in figures:
        key = (figure.human, figure.level, figure.coefficient)
        if figure.metric in TRIVIAL and figure.value is not None and (key not in best or figure.value > best[key][0]):
            best[key] = (figure.value, figure.metric)
    found = {}
    for figure in figures:
        key = (figure.human, figure.level, figure.coefficient)
        if figure.metric in TRIVIAL or figure.value is None or key not in best:
            continue
        value, rival = best[key]
        above, clear = figure.value > value, None
        matrix = beats.get((figure.human, figure.level))
        names = matrix.names if matrix is not None and MAIN_COEFFICIENT[figure.level] == figure.coefficient else ()
        if matrix is not None and figure.metric in names and rival in names:
            i, j = names.index(figure.metric), names.index(rival)
            clear = matrix.beats[i][j] if above else matrix.beats[j][i]
        found[figure.human, figure.metric, figure.level, figure.coefficient] = BaselineVerdict(
            rival, value, above, clear
        )
    return found

"""Does a metric beat the trivial baselines? By its value, and whether the data can tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from negsample.eval.score_columns import TRIVIAL
from negsample.eval.stats.agreement import Figure
from negsample.eval.stats.significance import BeatsMatrix, Comparison, beats_matrix

# The coefficient of each level that is shown first and for which metrics are compared: as P3 and SPEC §9 have it.
HEADLINE = {"summary": "spearman", "pooled": "pearson", "system": "spearman"}
# Williams is exact where rows are independent (systems); the permutation keeps a document's rows together.
TESTS = {"summary": "permutation", "pooled": "permutation", "system": "williams"}


@dataclass(frozen=True)
class Mark:
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


def matrices(comparisons: Sequence[Comparison]) -> dict[tuple[str, str], BeatsMatrix]:
    """(human score, level) → who beats whom, by the test in `TESTS`, Holm-adjusted."""
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in comparisons:
        groups.setdefault((comparison.human, comparison.level), []).append(comparison)
    return {key: beats_matrix(group, test=TESTS[key[1]]) for key, group in groups.items()}


def marks(
    figures: Sequence[Figure], beats: Mapping[tuple[str, str], BeatsMatrix]
) -> dict[tuple[str, str, str, str], Mark]:
    """(human, metric, level, coefficient) → mark, for every figure of one data set that has a value.

    The trivial baselines have none, and neither has a figure beside which no trivial baseline has a value.
    """
    best: dict[tuple[str, str, str], Figure] = {}
    for figure in figures:
        key = (figure.human, figure.level, figure.coefficient)
        if figure.metric in TRIVIAL and figure.value is not None:
            before = best.get(key)
            if before is None or before.value is None or figure.value > before.value:
                best[key] = figure
    found = {}
    for figure in figures:
        rival = best.get((figure.human, figure.level, figure.coefficient))
        if figure.metric in TRIVIAL or figure.value is None or rival is None or rival.value is None:
            continue
        above = figure.value > rival.value
        clear = None
        if HEADLINE[figure.level] == figure.coefficient:
            matrix = beats.get((figure.human, figure.level))
            if matrix is not None and {figure.metric, rival.metric} <= set(matrix.names):
                i, j = matrix.names.index(figure.metric), matrix.names.index(rival.metric)
                clear = matrix.beats[i][j] if above else matrix.beats[j][i]
        found[figure.human, figure.metric, figure.level, figure.coefficient] = Mark(
            rival.metric, rival.value, above, clear
        )
    return found

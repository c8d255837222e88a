"""Headlines judged by people: the three tasks of P4 (§3.3) and its tables of correlations (Tables 3 and 4).

A file has a record for each headline pair: ``story``, ``generated``, ``reference`` (texts), ``gen_story``,
``ref_story``, ``gen_ref`` (people's scores, higher is better: a number, or a list with one for each person, of which
the mean counts), and ``dataset`` (optional).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from negsample.errors import InputError, RecordError
from negsample.eval.metrics import Item, make_metric
from negsample.eval.stats.correlation import p_value
from negsample.io.read import Row, number_field, read_rows, text_field
from negsample.models.evaluation import pearson
from negsample.sentences import split_sentences

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

TASKS = {"Gen-Story": "gen_story", "Ref-Story": "ref_story", "Gen-Ref": "gen_ref"}
METRICS = ("rouge1", "rouge2", "rougeL", "aes")
OVERALL = "Overall"
# P4 cuts stories to five sentences before anything is generated or judged (§3.2).
STORY_SENTENCES = 5


@dataclass(frozen=True)
class Headline:
    """``scores``: people's mean score for each task in ``TASKS``."""

    dataset: str
    story: str
    generated: str
    reference: str
    scores: Mapping[str, float]

    def texts(self, task: str) -> tuple[str, str]:
        """The headline and the text it is compared with in ``task``."""
        summary = self.reference if task == "Ref-Story" else self.generated
        return summary, self.reference if task == "Gen-Ref" else self.story


@dataclass(frozen=True)
class Cell:
    """One correlation of Table 3: Pearson's ``r`` of a metric with people over ``n`` headlines, two-sided ``p``.

    ``missing``: headlines that the metric gave no score. ``significant``: p below the corrected threshold. ``r`` and
    ``p`` are None where r is not defined; ``reason`` says why.
    """

    dataset: str
    metric: str
    task: str
    n: int
    missing: int
    r: float | None
    p: float | None
    significant: bool
    reason: str = ""


@dataclass(frozen=True)
class HeadlineTable:
    """``cells``: datasets × metrics × tasks, the last dataset being ``Overall`` where there are several.

    ``threshold``: alpha / comparisons (Bonferroni). ``signatures``: metric → signature.
    """

    cells: tuple[Cell, ...]
    threshold: float
    signatures: Mapping[str, str]

    def counts(self) -> dict[str, tuple[int, int]]:
        """P4's Table 4: metric → (times it has the highest r of a dataset and task, times it is significant).

        ``Overall`` counts as a dataset, as P4's figures show; metrics that share the highest r all count. P4's own
        Table 4 gives ROUGE-1 four and ROUGE-2 five highest, its Table 3 gives them five and four.
        """
        best = dict.fromkeys(self.signatures, 0)
        significant = dict.fromkeys(self.signatures, 0)
        highest: dict[tuple[str, str], float] = {}
        for cell in self.cells:
            if cell.r is not None:
                place = cell.dataset, cell.task
                highest[place] = max(cell.r, highest.get(place, -np.inf))
        for cell in self.cells:
            best[cell.metric] += cell.r is not None and cell.r == highest[cell.dataset, cell.task]
            significant[cell.metric] += cell.significant
        return {metric: (best[metric], significant[metric]) for metric in self.signatures}

    def as_dict(self) -> dict[str, Any]:
        """Both tables, ready to be written as JSON."""
        table4 = {metric: {"best": b, "significant": s} for metric, (b, s) in self.counts().items()}
        cells = [{name: getattr(cell, name) for name in Cell.__dataclass_fields__} for cell in self.cells]
        return {"threshold": self.threshold, "table3": cells, "table4": table4, "signatures": dict(self.signatures)}


def load_headlines(path: str | Path, *, sentences: int = STORY_SENTENCES) -> list[Headline]:
    """The records of ``path`` (JSONL, CSV, TSV or Parquet), stories cut to their first ``sentences`` (0: not cut).

    Raises RecordError, with file and line, for a record that lacks a field or has a score that is not a finite number.
    """
    found = []
    for row in read_rows(path):
        story = text_field(row, "story")
        if sentences:
            story = " ".join(split_sentences(story)[:sentences])
        scores = {task: _mean_score(row, name) for task, name in TASKS.items()}
        dataset = text_field(row, "dataset") if row.fields.get("dataset") is not None else ""
        if dataset == OVERALL:
            raise RecordError(row.where, f"field 'dataset' is {OVERALL!r}", "rename it: the table uses that name")
        found.append(Headline(dataset, story, text_field(row, "generated"), text_field(row, "reference"), scores))
    return found


def _mean_score(row: Row, name: str) -> float:
    value = row.fields.get(name)
    if not isinstance(value, list):
        return number_field(row, name)
    if not value:
        raise RecordError(row.where, f"field {name!r} is an empty list", "give at least one score")
    return float(np.mean([number_field(Row(row.where, {name: score}), name) for score in value]))


def p4_table3(
    headlines: Sequence[Headline],
    metrics: Sequence[str] = METRICS,
    *,
    alpha: float = 0.05,
    comparisons: int | None = None,
) -> HeadlineTable:
    """Pearson's r of each metric with people, for each dataset and for all headlines together, in each task (P4 §4.2).

    Significance is Bonferroni's: p < ``alpha`` / ``comparisons``, by default metrics × tasks: P4's 0.05/12. Rows are
    taken as independent. Raises InputError where there are no headlines or a metric is not known.
    """
    if not headlines:
        raise InputError("there are no headlines to correlate; give a file with at least three")
    made = {name: make_metric(name) for name in metrics}
    if not 0 < alpha < 1:
        raise InputError(f"alpha={alpha}: give a number between 0 and 1")
    threshold = alpha / (comparisons or len(made) * len(TASKS))
    scores: dict[tuple[str, str], np.ndarray] = {}
    for task in TASKS:
        items = []
        for headline in headlines:
            summary, target = headline.texts(task)
            # As document and as reference: whichever the metric reads, it reads the task's own text.
            items.append(Item(target, summary, (target,)))
        for name, metric in made.items():
            scores[name, task] = metric.score(items).values * (1 if metric.higher_is_better else -1)
    datasets = list(dict.fromkeys(headline.dataset for headline in headlines))
    cells = []
    for dataset in [*datasets, OVERALL] if len(datasets) > 1 else datasets:
        chosen = np.array([dataset in (headline.dataset, OVERALL) for headline in headlines])
        for name in made:
            for task in TASKS:
                human = np.array([headline.scores[task] for headline in headlines])
                cells.append(_cell(dataset, name, task, scores[name, task][chosen], human[chosen], threshold))
    return HeadlineTable(tuple(cells), threshold, {name: metric.signature for name, metric in made.items()})


def _cell(dataset: str, metric: str, task: str, scores: np.ndarray, human: np.ndarray, threshold: float) -> Cell:
    known = np.isfinite(scores)
    n, missing = int(known.sum()), int((~known).sum())
    if n < 3:
        return Cell(dataset, metric, task, n, missing, None, None, False, "fewer than three headlines with a score")
    x, y = scores[known], human[known]
    r = pearson(y, x)
    if not np.isfinite(r):
        return Cell(dataset, metric, task, n, missing, None, None, False, "one side is constant")
    p = p_value(x, y, r, "pearson")
    return Cell(dataset, metric, task, n, missing, r, p, p < threshold)


@dataclass(frozen=True)
class FedPoint:
    """A point of P4's Figure 2: a dataset and task, people's mean score, and FED (lower is better)."""

    dataset: str
    task: str
    human: float
    fed: float


def fed_points(headlines: Sequence[Headline], encoder: "Encoder") -> list[FedPoint]:
    """FED between the two texts of each task, for each dataset, beside people's mean score (P4 §4.2, Figure 2).

    Raises InputError for a dataset with fewer than two headlines.
    """
    from negsample.eval.metrics.frechet import score_fed

    points = []
    for dataset in dict.fromkeys(headline.dataset for headline in headlines):
        chosen = [headline for headline in headlines if headline.dataset == dataset]
        for task in TASKS:
            summaries, targets = zip(*(headline.texts(task) for headline in chosen), strict=True)
            human = float(np.mean([headline.scores[task] for headline in chosen]))
            points.append(FedPoint(dataset, task, human, score_fed(summaries, targets, encoder=encoder).value))
    return points

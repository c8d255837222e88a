"""Headlines judged by people: the three tasks of Moeed et al. 2020 (§3.3) and their correlations (Tables 3 and 4).

A file has a record for each headline pair: ``story``, ``generated``, ``reference`` (texts), ``gen_story``,
``ref_story``, ``gen_ref`` (people's scores, higher is better: a number, or a list with one for each person, of which
the mean counts), and ``dataset`` (optional).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError, RecordError
from negsample.eval.metrics import Item, make_metric
from negsample.eval.stats.correlation import p_value
from negsample.io.read import Row, number_field, read_rows, text_field
from negsample.models.evaluation import pearson
from negsample.sentences import split_sentences

TASKS = {"Gen-Story": "gen_story", "Ref-Story": "ref_story", "Gen-Ref": "gen_ref"}
METRICS = ("rouge1", "rouge2", "rougeL", "aes")
OVERALL = "Overall"
# Moeed et al. 2020 cut stories to five sentences before anything is generated or judged (§3.2).
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
        """Return the headline and the text it is compared with in ``task``."""
        summary = self.reference if task == "Ref-Story" else self.generated
        return summary, self.reference if task == "Gen-Ref" else self.story


@dataclass(frozen=True)
class HeadlineAgreement:
    """One entry of Table 3: Pearson's ``r`` of a metric with people over ``n`` headlines, two-sided ``p``.

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
    """``entries``: datasets × metrics × tasks, the last dataset being ``Overall`` where there are several.

    ``threshold``: alpha / comparisons (Bonferroni). ``signatures``: metric → signature.
    """

    entries: tuple[HeadlineAgreement, ...]
    threshold: float
    signatures: Mapping[str, str]

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return Table 4: metric → (times it has the highest r of a dataset and task, times it is significant).

        ``Overall`` counts as a dataset, as in Moeed et al. 2020; metrics that share the highest r all count. Their
        Table 4 gives ROUGE-1 four and ROUGE-2 five highest, their Table 3 gives them five and four.
        """
        best = dict.fromkeys(self.signatures, 0)
        significant = dict.fromkeys(self.signatures, 0)
        highest: dict[tuple[str, str], float] = {}
        for entry in self.entries:
            if entry.r is not None:
                place = entry.dataset, entry.task
                highest[place] = max(entry.r, highest.get(place, -np.inf))
        for entry in self.entries:
            best[entry.metric] += entry.r is not None and entry.r == highest[entry.dataset, entry.task]
            significant[entry.metric] += entry.significant
        return {metric: (best[metric], significant[metric]) for metric in self.signatures}

    def as_dict(self) -> dict[str, Any]:
        """Return both tables as JSON takes them."""
        table4 = {metric: {"best": b, "significant": s} for metric, (b, s) in self.counts().items()}
        table3 = [asdict(entry) for entry in self.entries]
        return {"threshold": self.threshold, "table3": table3, "table4": table4, "signatures": dict(self.signatures)}


def load_headlines(path: str | Path, *, sentences: int = STORY_SENTENCES) -> list[Headline]:
    """Read the records of ``path`` (JSONL, CSV, TSV or Parquet), stories cut to their first ``sentences`` (0: not cut).

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
    """Correlate each metric with people (Pearson), for each dataset and for all headlines together, in each task.

    As Moeed et al. 2020 §4.2. Significance is Bonferroni's: p < ``alpha`` / ``comparisons``, by default metrics × tasks
    (in the paper 0.05/12). Rows are taken as independent.

    Raises InputError where there are no headlines or a metric is not known.
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
    entries = []
    for dataset in [*datasets, OVERALL] if len(datasets) > 1 else datasets:
        chosen = np.array([dataset in (headline.dataset, OVERALL) for headline in headlines])
        for name in made:
            for task in TASKS:
                human = np.array([headline.scores[task] for headline in headlines])
                found = _agreement(scores[name, task][chosen], human[chosen], threshold)
                entries.append(HeadlineAgreement(dataset, name, task, **found))
    return HeadlineTable(tuple(entries), threshold, {name: metric.signature for name, metric in made.items()})


def _agreement(scores: np.ndarray, human: np.ndarray, threshold: float) -> dict[str, Any]:
    known = np.isfinite(scores)
    n = int(known.sum())
    found = {"n": n, "missing": len(known) - n, "r": None, "p": None, "significant": False}
    if n < 3:
        return {**found, "reason": "fewer than three headlines with a score"}
    x, y = scores[known], human[known]
    r = pearson(y, x)
    if not np.isfinite(r):
        return {**found, "reason": "one side is constant"}
    p = p_value(x, y, r, "pearson")
    return {**found, "r": r, "p": p, "significant": p < threshold}

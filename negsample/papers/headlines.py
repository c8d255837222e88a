"""Headlines judged by people: the three tasks of Moeed et al. 2020 (§3.3) and their correlations (Tables 3 and 4).

A file has a record for each headline pair: ``story``, ``generated``, ``reference`` (texts), ``gen_story``,
``ref_story``, ``gen_ref`` (people's scores, higher is better: a number, or a list with one for each person, of which
the mean counts), and, where there are several, ``dataset`` and ``system``. What needs no people reads records without
their scores, as ``negsample reinforce`` writes them, where ``draw`` counts a system's headlines for one story.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from negsample.errors import InputError, RecordError
from negsample.eval.agreement.correlation import p_value
from negsample.io.read import Row, number_field, read_rows, text_field
from negsample.io.yaml_text import read_mapping
from negsample.models.evaluation import pearson
from negsample.scoring.metrics import make_metric
from negsample.scoring.scorer import Item
from negsample.sentences import STORY_SENTENCES, headline_of, split_sentences, story_of
from negsample.text import word_tokens

TASKS = {"Gen-Story": "gen_story", "Ref-Story": "ref_story", "Gen-Ref": "gen_ref"}
METRICS = ("rouge1", "rouge2", "rougeL", "aes")
OVERALL = "Overall"


@dataclass(frozen=True)
class Headline:
    """``scores``: people's mean score for each task in ``TASKS`` that they judged. ``draw``: of several for a story, from 1."""

    dataset: str
    story: str
    generated: str
    reference: str
    scores: Mapping[str, float]
    system: str = ""
    draw: int = 1

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
        found = {"threshold": self.threshold, "table3": table3, "table4": table4, "signatures": dict(self.signatures)}
        return found | {"published": {"table3": published(3), "table4": published(4)}}


def load_headlines(path: str | Path, *, sentences: int = STORY_SENTENCES, judged: bool = True) -> list[Headline]:
    """Read the records of ``path`` (JSONL, CSV, TSV or Parquet), stories cut to their first ``sentences`` (0: not cut).

    Without ``judged`` people's scores may be missing, and a generated headline may be empty. Raises RecordError, with file
    and line, for a record that lacks a field or has a score that is not a finite number.
    """
    found = []
    for row in read_rows(path):
        story = text_field(row, "story")
        if sentences:
            story = story_of(story, sentences)
        wanted = {task: name for task, name in TASKS.items() if judged or row.fields.get(name) is not None}
        scores = {task: _mean_score(row, name) for task, name in wanted.items()}
        dataset, system = (
            text_field(row, name) if row.fields.get(name) is not None else "" for name in ("dataset", "system")
        )
        if dataset == OVERALL:
            raise RecordError(row.where, f"field 'dataset' is {OVERALL!r}", "rename it: the table uses that name")
        empty = not judged and str(row.fields.get("generated", "-")).strip() == ""
        generated = "" if empty else text_field(row, "generated")
        draw = int(number_field(row, "draw")) if row.fields.get("draw") is not None else 1
        found.append(Headline(dataset, story, generated, text_field(row, "reference"), scores, system, draw))
    return found


def _mean_score(row: Row, name: str) -> float:
    value = row.fields.get(name)
    if not isinstance(value, list):
        return number_field(row, name)
    if not value:
        raise RecordError(row.where, f"field {name!r} is an empty list", "give at least one score")
    return float(np.mean([number_field(Row(row.where, {name: score}), name) for score in value]))


def stand_ins() -> list[Headline]:
    """The embedded sample as headlines of four data sets, for a smoke run: two systems, a story's first and its last sentence,
    and, as people's score from 1 to 5, what part of the other text's words stands in the headline."""
    from negsample.io.read import SAMPLE_PATH

    found = []
    for row in read_rows(SAMPLE_PATH):
        story, reference = story_of(text_field(row, "document")), headline_of(text_field(row, "summary"))
        sentences = split_sentences(story)
        for system, sentence in (("first", sentences[0]), ("last", sentences[-1])):
            made = Headline(text_field(row, "domain"), story, sentence, reference, {}, system)
            pairs = {task: [set(word_tokens(text)) for text in made.texts(task)] for task in TASKS}
            scores = {task: 1 + 4 * len(a & b) / max(1, len(b)) for task, (a, b) in pairs.items()}
            found.append(replace(made, scores=scores))
    return found


def items_of(headlines: Sequence[Headline], task: str) -> list[Item]:
    """What a metric compares in ``task``: as document and as reference, whichever it reads, the task's own text."""
    texts = [headline.texts(task) for headline in headlines]
    return [Item(target, summary, (target,)) for summary, target in texts]


def published(table: int) -> list[dict[str, str]]:
    """The rows printed in Moeed et al. 2020, ``table`` 2, 3 or 4, as they are printed: column → text."""
    tables = read_mapping(Path(__file__).with_name("headlines_published.yaml"), "headlines_published.yaml")
    head, *lines = (line.split() for line in tables[table].splitlines())
    return [dict(zip(head, line, strict=True)) for line in lines]


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
        items = items_of(headlines, task)
        for name, metric in made.items():
            scores[name, task] = metric.score(items).scores * (1 if metric.higher_is_better else -1)
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

"""Headlines and those who wrote them: examples, corpus-level figures, and the Fréchet distance beside people's scores.

Moeed et al. 2020, Table 1, Table 2 (with all three tasks of §3.3) and Figure 2.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.corpus import make_corpus_metric
from negsample.eval.report import plots
from negsample.papers.headlines import TASKS, Headline, items_of
from negsample.resampling import percentile_interval
from negsample.scoring.metrics import make_metric
from negsample.seeds import generator

if TYPE_CHECKING:
    from negsample.eval.metrics.corpus import CorpusMetric
    from negsample.scoring.scorer import Scorer

FED = "fed"
# The tasks' colours in the paper's Figure 2, and marks that tell them apart without.
_MARKS = {"Gen-Story": ("tab:green", "o"), "Ref-Story": ("tab:orange", "s"), "Gen-Ref": ("tab:blue", "^")}


@dataclass(frozen=True)
class Example:
    """A story with its headlines, each ``(system, text, similarity to the story, to the reference)``, the best first."""

    dataset: str
    story: str
    reference: str
    headlines: tuple[tuple[str, str, float | None, float | None], ...]


@dataclass(frozen=True)
class SystemFigure:
    """A metric's mean over a system's ``n`` headlines in a task, its percentile interval, ``missing`` ones left out.

    ``metric`` is a pair metric's name, ``fed`` (one figure of all headlines, without an interval) or ``people``.
    """

    dataset: str
    system: str
    task: str
    metric: str
    n: int
    missing: int
    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class FedPoint:
    """A point of Figure 2: ``fed`` of a data set's ``texts`` headlines in a task, ``people``'s mean over ``judged`` of them."""

    dataset: str
    task: str
    fed: float
    texts: int
    people: float
    judged: int


def examples(headlines: Sequence[Headline], similarity: "Scorer", count: int = 5) -> list[Example]:
    """Stories with all their headlines: ``count`` of those that have most, in their order (Table 1 has one, with three).

    Headlines are sorted by ``similarity`` to the story, where the paper has picked a good, an average and a bad one.
    """
    groups: dict[tuple[str, str], list[Headline]] = {}
    for headline in headlines:
        groups.setdefault((headline.dataset, headline.story), []).append(headline)
    most = sorted(groups, key=lambda key: -len(groups[key]))[:count]
    shown = [headline for key in groups if key in most for headline in groups[key]]
    near, like = (similarity.score(items_of(shown, task)).scores for task in ("Gen-Story", "Gen-Ref"))
    values = {id(one): (_known(a), _known(b)) for one, a, b in zip(shown, near, like, strict=True)}
    found = []
    for key in (key for key in groups if key in most):
        rows = [(one.system or "generated", one.generated, *values[id(one)]) for one in groups[key]]
        rows.sort(key=lambda row: -np.inf if row[2] is None else row[2], reverse=True)
        found.append(Example(key[0], key[1], groups[key][0].reference, tuple(rows)))
    return found


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def system_figures(
    headlines: Sequence[Headline],
    metrics: Sequence[str],
    corpus_metric: str,
    *,
    bootstrap: int = 1000,
    seed: int = 0,
) -> tuple[list[SystemFigure], dict[str, str]]:
    """Every metric in every task, for each data set and system in their order; and the metrics' signatures.

    One headline a story counts (``draw`` 1). Intervals: headlines resampled. Raises InputError for a metric that is not
    known.
    """
    made = {spec.partition("(")[0]: make_metric(spec) for spec in metrics}
    distance = make_corpus_metric(corpus_metric)
    groups: dict[tuple[str, str], list[Headline]] = {}
    for headline in headlines:
        if headline.draw == 1:
            groups.setdefault((headline.dataset, headline.system), []).append(headline)
    if not groups:
        raise InputError("there are no headlines; give a file of records with story, generated and reference")
    found = []
    for (dataset, system), own in groups.items():
        rng = generator(seed, "headlines", dataset, system)
        for task in TASKS:
            items = items_of(own, task)
            columns = {name: metric.score(items).scores for name, metric in made.items()}
            columns["people"] = np.array([headline.scores.get(task, np.nan) for headline in own])
            for name, values in columns.items():
                good = values[np.isfinite(values)]
                if name != "people" or len(good):
                    found.append(_figure(dataset, system, task, name, good, len(values), bootstrap, rng))
            found.append(_distance(dataset, system, task, own, distance))
    signatures = {name: metric.signature for name, metric in made.items()}
    return found, {**signatures, FED: distance.signature}


def _figure(
    dataset: str, system: str, task: str, name: str, good: np.ndarray, n: int, bootstrap: int, rng: np.random.Generator
) -> SystemFigure:
    if not len(good):
        return SystemFigure(dataset, system, task, name, 0, n, None)
    means = np.array([good[rng.integers(len(good), size=len(good))].mean() for _ in range(bootstrap)])
    low, high, _ = percentile_interval(means)
    return SystemFigure(dataset, system, task, name, len(good), n - len(good), float(good.mean()), low, high)


def _distance(dataset: str, system: str, task: str, own: Sequence[Headline], distance: "CorpusMetric") -> SystemFigure:
    texts = [headline.texts(task) for headline in own]
    try:
        score = distance.score([summary for summary, _ in texts], [target for _, target in texts])
    except InputError:  # fewer than two texts with a vector
        return SystemFigure(dataset, system, task, FED, 0, len(own), None)
    return SystemFigure(dataset, system, task, FED, score.generated, len(own) - score.generated, score.value)


def fed_points(
    judged: Sequence[Headline], corpus_metric: str, headlines: Sequence[Headline] = ()
) -> tuple[list[FedPoint], str]:
    """For each data set and task, the distance of headlines and texts, and people's mean score; and the metric's signature.

    The distance is over ``headlines`` of that data set where there are any (it needs many texts), else over ``judged``.
    Raises InputError where a data set has fewer than two texts.
    """
    distance = make_corpus_metric(corpus_metric)
    points = []
    for dataset in dict.fromkeys(headline.dataset for headline in judged):
        rated = [headline for headline in judged if headline.dataset == dataset]
        own = [headline for headline in headlines if headline.dataset == dataset and headline.draw == 1] or rated
        for task in TASKS:
            texts = [headline.texts(task) for headline in own]
            fed = distance.score([summary for summary, _ in texts], [target for _, target in texts]).value
            people = float(np.mean([headline.scores[task] for headline in rated]))
            points.append(FedPoint(dataset, task, fed, len(own), people, len(rated)))
    return points, distance.signature


def draw_fed(points: Sequence[FedPoint]) -> bytes:
    """Figure 2 as SVG: people's mean (x) and the distance (y), a colour and a mark for each task, data sets written beside."""
    from matplotlib.figure import Figure

    with plots.style(plots.NO_FORMULAS):
        figure = Figure(figsize=(6, 4.5), layout="constrained")
        axes = figure.add_subplot()
        for task, (colour, mark) in _MARKS.items():
            own = [point for point in points if point.task == task]
            places = [(point.people, point.fed) for point in own]
            axes.plot(*np.array(places).T, color=colour, marker=mark, linestyle="", label=task)
            for point, place in zip(own, places, strict=True):
                axes.annotate(point.dataset, place, xytext=(4, 4), textcoords="offset points", fontsize=7)
        axes.set_xlabel("people's mean score")
        axes.set_ylabel("Fréchet embedding distance (lower: nearer)")
        axes.legend(frameon=False)
        return plots.picture(figure)


def plain(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Dataclasses as JSON takes them."""
    return [asdict(row) for row in rows]

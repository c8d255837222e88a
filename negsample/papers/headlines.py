"""Headlines of Moeed et al. 2020: their three tasks (§3.3), Tables 1 to 4 and Figures 1 and 2.

A file has a record for each headline pair: ``story``, ``generated``, ``reference`` (texts), ``gen_story``,
``ref_story``, ``gen_ref`` (people's scores, higher is better: a number, or a list with one for each person, of which
the mean counts), and, where there are several, ``dataset`` and ``system``. What needs no people reads records without
their scores, as ``negsample reinforce`` writes them, where ``draw`` counts a system's headlines for one story.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from negsample.errors import InputError, RecordError
from negsample.eval.agreement.correlate import Source
from negsample.eval.agreement.levels import judged_table
from negsample.eval.metrics.corpus import CorpusMetric, make_corpus_metric
from negsample.io.read import Row, number_field, read_rows, text_field
from negsample.papers.declared import Declared
from negsample.papers.judged import Asked, Measured, measure
from negsample.papers.kinds import correlations
from negsample.papers.records import Record, Table
from negsample.records import Judged
from negsample.resampling import mean_interval
from negsample.scoring.metrics import make_metric
from negsample.scoring.scorer import Item
from negsample.seeds import generator
from negsample.sentences import story_of

TASKS = {"Gen-Story": "gen_story", "Ref-Story": "ref_story", "Gen-Ref": "gen_ref"}
OVERALL = "Overall"
FED = "fed"
TABLE_4 = "Table 4: times a metric is best, and significant"
# Level before Bonferroni's correction (§4.2).
ALPHA = 0.05
# Stories shown as Table 1 shows one.
SHOWN = 5


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

    def item(self, task: str) -> Item:
        """What a metric compares in ``task``: as document and as reference, whichever it reads, the task's own text."""
        summary, target = self.texts(task)
        return Item(target, summary, (target,))


def load_headlines(path: str | Path, *, judged: bool | None = True) -> list[Headline]:
    """Read the records of ``path`` (JSONL, CSV, TSV or Parquet), stories cut to their first five sentences.

    Where not ``judged`` people's scores may be missing (None: all or none of a record), and a generated headline may be
    empty. Raises RecordError, with file and line, for a record that lacks a field or has a score that is not a finite number.
    """
    found = []
    for row in read_rows(path):
        story = story_of(text_field(row, "story"))
        given = {task: name for task, name in TASKS.items() if row.fields.get(name) is not None}
        wanted = TASKS if judged or (judged is None and given) else given
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


def _groups(headlines: Sequence[Headline], *keys: str) -> dict[tuple[str, ...], list[Headline]]:
    found: dict[tuple[str, ...], list[Headline]] = {}
    for headline in headlines:
        found.setdefault(tuple(getattr(headline, key) for key in keys), []).append(headline)
    return found


def _measured(spec: Declared, headlines: Sequence[Headline], asked: Asked, out: Path) -> Measured:
    """The headlines scored by the metrics of ``spec``: a table for each data set and task, whose human score is the task's."""
    sources = [
        Source(dataset, f"{dataset} {task}", tuple(_judged(headline, task) for headline in own), ())
        for (dataset,), own in _groups(headlines, "dataset").items()
        for task in TASKS
    ]
    return measure(spec, sources, asked, out)


def _judged(headline: Headline, task: str) -> Judged:
    item, scores = headline.item(task), {name: value for name, value in headline.scores.items() if name == task}
    return Judged(headline.story, headline.system, (item.document,), item.summary, item.references, scores)


def agreement(spec: Declared, headlines: Sequence[Headline], asked: Asked, out: Path) -> Table:
    """Table 3 (§4.2): each metric against people (Pearson) for each data set and for all headlines, in each task; and Table 4.

    Significance is Bonferroni's: p < 0.05 / (metrics × tasks), in the paper 0.05/12. Rows are taken as independent.
    """
    measured = _measured(spec, headlines, asked, out)
    tables, sources = list(measured.tables), measured.sources
    for number, task in enumerate(TASKS if len(sources) > len(TASKS) else ()):
        own = range(number, len(sources), len(TASKS))
        columns = {name: np.concatenate([tables[k].metrics[name] for k in own]) for name in measured.signatures}
        tables.append(judged_table(OVERALL, [row for k in own for row in sources[k].rows], [task], columns))
    threshold = ALPHA / (len(measured.signatures) * len(TASKS))
    stars = replace(spec, stars=((threshold, "*"),))
    records = [
        replace(record, row=f"{record.about['dataset']} {record.row}".strip(), column=record.about["human"])
        for record in correlations(replace(measured, spec=stars, tables=tuple(tables))).records
    ]
    notes = [f"*: p < {threshold:.5f} (Bonferroni)."]
    return measured.table([*records, *times_best(records)], head="data, metric", notes=notes)


def times_best(records: Sequence[Record]) -> list[Record]:
    """Table 4: how often each metric has the highest r of a data set and task, and how often it is significant.

    ``Overall`` counts as a data set, as in the paper; metrics that share the highest r all count. Their Table 4 gives
    ROUGE-1 four and ROUGE-2 five highest, their Table 3 gives them five and four. A record's row ends in its metric.
    """
    places: dict[tuple[str, str], dict[str, Record]] = {}
    for record in records:
        dataset, _, metric = record.row.rpartition(" ")
        places.setdefault((dataset, record.column), {})[metric] = record
    counts: dict[str, dict[str, int]] = {}
    for own in places.values():
        best = max((record.value for record in own.values() if record.value is not None), default=None)
        for metric, record in own.items():
            count = counts.setdefault(metric, {"highest": 0, "significant": 0})
            count["highest"] += record.value is not None and record.value == best
            count["significant"] += bool(record.mark)
    return [Record(name, key, n, section=TABLE_4) for name, own in counts.items() for key, n in own.items()]


def systems(spec: Declared, headlines: Sequence[Headline], asked: Asked, out: Path) -> Table:
    """Table 2, in all tasks: each metric's mean over a system's headlines, people's, and the Fréchet distance of them all.

    One headline a story counts (``draw`` 1). Intervals: headlines resampled.
    """
    first = [headline for headline in headlines if headline.draw == 1]
    measured, distance, records = _measured(spec, first, asked, out), _distance(spec), []
    for (dataset, system), own in _groups(first, "dataset", "system").items():
        rng = generator(measured.seed, "headlines", dataset, system)
        for task, table in zip(TASKS, (each for each in measured.tables if each.dataset == dataset), strict=True):
            mine = table.systems == table.system_names.index(system) if system else table.systems < 0
            row, about = f"{dataset} {system} {task}", {"dataset": dataset, "system": system, "task": task}
            for name, values in [*table.metrics.items(), *(("people", human) for human in table.human.values())]:
                good = values[mine & np.isfinite(values)]
                mean = float(good.mean()) if len(good) else None
                low, high = mean_interval(good, rng, asked.bootstrap)
                records.append(Record(row, name, mean, low, high, n=len(good), about=about))
            value, n = _apart(distance, own, task)
            records.append(Record(row, FED, value, n=n, about=about))
    return measured.table(records, head="data, system, task", signatures={FED: distance.signature})


def _distance(spec: Declared) -> CorpusMetric:
    return make_corpus_metric(f"{FED}(encoder=({spec.parts['USE']}))")


def _apart(distance: CorpusMetric, headlines: Sequence[Headline], task: str) -> tuple[float | None, int]:
    """The distance of headlines and texts in a task, and of how many headlines; None of fewer than two with a vector."""
    texts = [headline.texts(task) for headline in headlines]
    try:
        score = distance.score([summary for summary, _ in texts], [target for _, target in texts])
    except InputError:
        return None, 0
    return score.value, score.generated


def distances(spec: Declared, headlines: Sequence[Headline], asked: Asked, out: Path) -> Table:
    """Figure 2: for each data set and task, the Fréchet distance of headlines and texts, and people's mean score.

    The distance is over the headlines of that data set that nobody has scored where there are any (it needs many texts), else
    over the judged.
    """
    distance, records = _distance(spec), []
    for (dataset,), own in _groups(headlines, "dataset").items():
        rated = [headline for headline in own if headline.scores]
        many = [headline for headline in own if not headline.scores and headline.draw == 1] or rated
        for task in TASKS if rated else ():
            row, about = f"{dataset} {task}".strip(), {"dataset": dataset, "task": task}
            value, n = _apart(distance, many, task)
            if value is None:
                raise InputError(f"{dataset}: fewer than two headlines have a vector; give more")
            people = float(np.mean([headline.scores[task] for headline in rated]))
            records.append(Record(row, FED, value, n=n, about={**about, "people": people}))
            records.append(Record(row, "people", people, n=len(rated), about=about))
    if not records:
        raise InputError("no headline has people's scores; give --data FILE with gen_story, ref_story, gen_ref")
    return spec.table(records, head="data, task", digits=4, signatures={FED: distance.signature})


def examples(spec: Declared, headlines: Sequence[Headline], asked: Asked, out: Path) -> Table:
    """Table 1: of the stories with most headlines the first, with all of theirs, the nearest to the story first (the paper has
    picked a good, an average and a bad one).
    """
    ((_, text),) = spec.metrics()[0].items()
    similarity, records, texts = make_metric(text), [], []
    groups = _groups(headlines, "dataset", "story")
    most = sorted(groups, key=lambda key: -len(groups[key]))[:SHOWN]
    for number, (dataset, story) in enumerate((key for key in groups if key in most), start=1):
        own = groups[dataset, story]
        columns = {
            name: similarity.score([headline.item(task) for headline in own]).scores
            for name, task in (("to story", "Gen-Story"), ("to reference", "Gen-Ref"))
        }
        texts += [(f"{number}, {dataset}", story), (f"{number}, reference", own[0].reference)]
        order = np.argsort(-np.nan_to_num(columns["to story"], nan=-np.inf), kind="stable")
        for place, k in enumerate(order, start=1):
            row = f"{place} {own[k].system or 'generated'}"
            texts.append((f"{number}, {row}", own[k].generated))
            about = {"dataset": dataset, "system": own[k].system}
            for name, values in columns.items():
                value = float(values[k]) if np.isfinite(values[k]) else None
                records.append(Record(row, name, value, section=f"{number}, {dataset}", about=about))
    return spec.table(records, head="AES of", texts=tuple(texts), signatures={"aes": similarity.signature})


def embedding_map(spec: Declared, headlines: Sequence[Headline], asked: Asked, out: Path) -> Table:
    """Figure 1: a map of the generated headlines of two data sets, PCA then t-SNE."""
    from negsample.eval.report.plots import map_texts
    from negsample.models.encoders import make_encoder

    texts: dict[str, list[str]] = {}
    for headline in headlines:
        if headline.draw == 1 and headline.generated:
            texts.setdefault(headline.dataset, []).append(headline.generated)
    if len(texts) < 2:
        raise InputError(f"the map is of two data sets' headlines, and there are {len(texts)}; repeat --data FILE")
    (one, other), left = list(texts)[:2], list(texts)[2:]
    encoder = make_encoder(spec.parts["USE"])
    drawn = map_texts(texts[one], texts[other], encoder, names=(one, other), pool="whole", seed=asked.seed or 0)
    records = [Record(name, "headlines", len(texts[name])) for name in (one, other)]
    notes = (f"not drawn: {', '.join(left)}",) if left else ()
    more = {"encoder": encoder.name, "weights": encoder.fingerprint}
    return spec.table(records, head="data", digits=0, notes=notes, pictures={f"{spec.name}.svg": drawn}, more=more)


KINDS = {
    "headline-examples": examples,
    "headline-systems": systems,
    "headline-agreement": agreement,
    "headline-map": embedding_map,
    "headline-distances": distances,
}

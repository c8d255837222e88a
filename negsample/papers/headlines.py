"""Headlines of Moeed et al. 2020: their three tasks (§3.3), Tables 1 to 4 and Figures 1 and 2.

A file has a record for each headline pair: ``story``, ``generated``, ``reference`` (texts), ``gen_story``,
``ref_story``, ``gen_ref`` (people's scores, higher is better: a number, or a list with one for each person, of which
the mean counts), and, where there are several, ``dataset`` and ``system``. What needs no people reads records without
their scores, as ``negsample reinforce`` writes them, where ``draw`` counts a system's headlines for one story.
``headlines:DIR``: the authors' own (GitHub Abdul-Moeed/headline-gen-metrics), a workbook for each rater.
"""

import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from negsample.errors import InputError, RecordError
from negsample.eval.agreement.levels import ScoreTable, judged_table
from negsample.eval.judgments import Source
from negsample.eval.metrics.corpus import CorpusMetric, make_corpus_metric
from negsample.io.read import number_field, read_rows, text_field
from negsample.papers.declared import Record, Table
from negsample.papers.judged import Measured, correlation_records
from negsample.records import Judged, Row
from negsample.resampling import mean_interval
from negsample.seeds import generator
from negsample.sentences import story_of

# Task → the field of people's score, of the headline, and of the text that it is compared with.
TASKS = {
    "Gen-Story": ("gen_story", "generated", "story"),
    "Ref-Story": ("ref_story", "reference", "story"),
    "Gen-Ref": ("gen_ref", "generated", "reference"),
}
OVERALL = "Overall"
FED = "fed"
TABLE_4 = "Table 4: times a metric is best, and significant"
# Level before Bonferroni's correction (§4.2).
ALPHA = 0.05
# Stories shown as Table 1 shows one.
SHOWN = 5
# The data sets as the paper prints them, by the names in its workbooks.
_PRINTED = {name.lower().replace("/", "-"): name for name in ("Amazon", "CNN/DailyMail", "Newsroom", "Gigaword")}
_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def read_headlines(data: str) -> Iterable[Row]:
    """The records of a file, or of the raters' workbooks in ``headlines:DIR``: columns data set, text, reference, generated, and
    the scores of (reference, generated), (text, reference), (text, generated). Raises InputError where they aren't so."""
    kind, colon, folder = data.partition(":")
    if kind != "headlines" or not colon:
        return read_rows(data)
    paths = sorted(path for path in Path(folder).rglob("*.xlsx") if not path.name.startswith("~"))
    if not paths:
        raise InputError(f"{folder}: no .xlsx in it; give the folder of headline-gen-metrics, or its data/human-eval")
    raters = list(map(_scored_rows, paths))
    if len({tuple(row["D"] for row in rows) for rows in raters}) > 1:
        raise InputError(f"{folder}: the raters' workbooks have not the same headlines")
    found, dataset = [], ""
    for number, rows in enumerate(zip(*raters, strict=True), start=1):
        first = rows[0]
        dataset = first.get("A") or dataset
        texts = {name: first.get(column) for name, column in (("story", "B"), ("reference", "C"), ("generated", "D"))}
        named = (("gen_ref", "E"), ("ref_story", "F"), ("gen_story", "G"))
        # What is no number is told where it is read.
        scores = {name: [row.get(column) for row in rows] for name, column in named}
        printed = _PRINTED.get(dataset.lower().replace("_", "-").replace("cnn-dm", "cnn-dailymail"), dataset)
        found.append(Row(f"{folder}, headline {number}", {"dataset": printed, **texts, **scores}))
    return found


def _scored_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a workbook's first sheet that have a generated headline and a number, by the letters of the columns."""
    try:
        with zipfile.ZipFile(path) as book:
            texts = ElementTree.fromstring(book.read("xl/sharedStrings.xml")).iter(f"{_SHEET}si")
            shared = ["".join(text.itertext()) for text in texts]
            rows = list(ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml")).iter(f"{_SHEET}row"))
    except (OSError, KeyError, zipfile.BadZipFile, ElementTree.ParseError) as error:
        raise InputError(f"{path}: can't be read as a workbook ({error})") from None
    found = []
    for row in rows:
        own = {}
        for cell in row.iter(f"{_SHEET}c"):
            value = cell.findtext(f"{_SHEET}v") or ""
            text = shared[int(value)] if value and cell.get("t") == "s" else value
            own[cell.get("r", "").rstrip("0123456789")] = text
        if own.get("D") and own.get("E", "").replace(".", "", 1).isdigit():
            found.append(own)
    return found


def headline_sources(records: Iterable[Row], kind: str) -> list[Source]:
    """The headlines that a table of ``kind`` needs: a source for each data set and task, rows in the same order.

    A row's document is the text that its headline is compared with, which is its reference too; ``document_id`` is the story, cut
    to its first five sentences. One headline a story and system counts (``draw`` 1) except where examples are shown. People's
    scores must be there for agreement, whole for distances; else a generated headline may be empty too. Raises RecordError, with
    file and line, for a record that lacks a field or has a score that is not a finite number.
    """
    judged = kind == "headline-agreement"
    found: dict[str, list[tuple[Judged, ...]]] = {}
    for row in records:
        given = [task for task, (name, *_) in TASKS.items() if row.fields.get(name) is not None]
        wanted = TASKS if judged or (kind == "headline-distances" and given) else given
        scores = {task: _mean_score(row, TASKS[task][0]) for task in wanted}
        dataset, system = (text_field(row, name) if row.fields.get(name) else "" for name in ("dataset", "system"))
        if dataset == OVERALL:
            raise RecordError(row.where, f"field 'dataset' is {OVERALL!r}", "rename it: the table uses that name")
        empty = not judged and str(row.fields.get("generated", "-")).strip() == ""
        generated = "" if empty else text_field(row, "generated")
        story, reference = story_of(text_field(row, "story")), text_field(row, "reference")
        texts = {"story": story, "generated": generated, "reference": reference}
        draw = number_field(row, "draw") if row.fields.get("draw") is not None else 1
        if draw == 1 or kind == "headline-examples":
            people = {task: {task: scores[task]} if task in scores else {} for task in TASKS}
            tasks = (
                Judged(story, system, (texts[target],), texts[made], (texts[target],), people[task])
                for task, (_, made, target) in TASKS.items()
            )
            found.setdefault(dataset, []).append(tuple(tasks))
    if kind == "headline-examples":
        counts = Counter((dataset, one[0].document_id) for dataset, every in found.items() for one in every)
        shown = {key for key, _ in counts.most_common(SHOWN)}
        kept = {d: [one for one in every if (d, one[0].document_id) in shown] for d, every in found.items()}
        found = {dataset: own for dataset, own in kept.items() if own}
    return [
        Source(dataset, f"{dataset} {task}".strip(), rows, ())
        for dataset, every in found.items()
        for task, rows in zip(TASKS, zip(*every, strict=True), strict=True)
    ]


def _mean_score(row: Row, name: str) -> float:
    value = row.fields.get(name)
    if not isinstance(value, list):
        return number_field(row, name)
    if not value:
        raise RecordError(row.where, f"field {name!r} is an empty list", "give at least one score")
    return float(np.mean([number_field(Row(row.where, {name: score}), name) for score in value]))


def _by_dataset(measured: Measured) -> list[dict[str, tuple[Source, ScoreTable]]]:
    """Source and scores of each task, for each data set."""
    pairs = list(zip(measured.sources, measured.tables, strict=True))
    return [
        dict(zip(TASKS, pairs[start : start + len(TASKS)], strict=True)) for start in range(0, len(pairs), len(TASKS))
    ]


def agreement(measured: Measured) -> Table:
    """Table 3 (§4.2): each metric against people (Pearson) for each data set and for all headlines, in each task; and Table 4.

    Significance is Bonferroni's: p < 0.05 / (metrics × tasks), in the paper 0.05/12. Rows are taken as independent.
    """
    every, tables = _by_dataset(measured), list(measured.tables)
    for task in TASKS if len(every) > 1 else ():
        own = [of[task] for of in every]
        columns = {name: np.concatenate([table.metrics[name] for _, table in own]) for name in measured.signatures}
        tables.append(judged_table(OVERALL, [row for source, _ in own for row in source.rows], [task], columns))
    threshold = ALPHA / (len(measured.signatures) * len(TASKS))
    stars = replace(measured.spec, stars=((threshold, "*"),))
    records = [
        replace(record, row=f"{record.about['dataset']} {record.row}".strip(), column=record.about["human"])
        for record in correlation_records(replace(measured, spec=stars, tables=tuple(tables)))
    ]
    notes = [f"*: p < {threshold:.5f} (Bonferroni)."]
    return measured.table([*records, *times_best(records)], head="data, metric", notes=notes)


def times_best(records: Sequence[Record]) -> list[Record]:
    """Table 4: how often each metric has the highest r of a data set and task, and how often it is significant.

    ``Overall`` counts as a data set, as in the paper; metrics that share the highest r all count. Their Table 4 gives
    ROUGE-1 four and ROUGE-2 five highest, their Table 3 gives them five and four. A record's row ends in its metric.
    """
    best: dict[tuple[str, str], float] = {}
    places = [(record.row.rpartition(" ")[0], record.column) for record in records]
    for place, record in zip(places, records, strict=True):
        if record.value is not None:
            best[place] = max(record.value, best.get(place, record.value))
    counts: dict[str, dict[str, int]] = {}
    for place, record in zip(places, records, strict=True):
        count = counts.setdefault(record.row.rpartition(" ")[2], {"highest": 0, "significant": 0})
        count["highest"] += record.value is not None and record.value == best[place]
        count["significant"] += bool(record.mark)
    return [Record(name, key, n, section=TABLE_4) for name, own in counts.items() for key, n in own.items()]


def systems(measured: Measured) -> Table:
    """Table 2, in all tasks: each metric's mean over a system's headlines, people's, and the Fréchet distance of them all.

    Intervals: headlines resampled.
    """
    distance, records = _distance(measured), []
    for of in _by_dataset(measured):
        dataset, first = of["Gen-Story"][0].name, of["Gen-Story"][0].rows
        for system in dict.fromkeys(row.system for row in first):
            rng = generator(measured.seed, "headlines", dataset, system)
            mine = np.array([row.system == system for row in first])
            for task, (source, table) in of.items():
                row, about = f"{dataset} {system} {task}", {"dataset": dataset, "system": system, "task": task}
                for name, values in [*table.metrics.items(), *(("people", human) for human in table.human.values())]:
                    good = values[mine & np.isfinite(values)]
                    mean = float(good.mean()) if len(good) else None
                    low, high = mean_interval(good, rng, measured.bootstrap)
                    records.append(Record(row, name, mean, low, high, n=len(good), about=about))
                value, n = _apart(distance, [one for one in source.rows if one.system == system])
                records.append(Record(row, FED, value, n=n, about=about))
    return measured.table(records, head="data, system, task", signatures={FED: distance.signature})


def _distance(measured: Measured) -> CorpusMetric:
    return make_corpus_metric(f"{FED}(encoder=({measured.spec.parts['USE']}))")


def _apart(distance: CorpusMetric, rows: Sequence[Judged]) -> tuple[float | None, int]:
    """The distance of headlines and texts, and of how many headlines; None of fewer than two with a vector."""
    try:
        score = distance.score([row.summary for row in rows], [row.documents[0] for row in rows])
    except InputError:
        return None, 0
    return score["value"], score["generated"]


def distances(measured: Measured) -> Table:
    """Figure 2: for each data set and task, the Fréchet distance of headlines and texts, and people's mean score.

    The distance is over the headlines of that data set that nobody has scored where there are any (it needs many texts), else
    over the judged.
    """
    distance, records = _distance(measured), []
    for dataset, task, rows in ((s.name, task, s.rows) for of in _by_dataset(measured) for task, (s, _) in of.items()):
        rated = [row for row in rows if row.scores]
        value, n = _apart(distance, [row for row in rows if not row.scores] or rated) if rated else (None, 0)
        if rated and value is None:
            raise InputError(f"{dataset}: fewer than two headlines have a vector; give more")
        if rated:
            row, about = f"{dataset} {task}".strip(), {"dataset": dataset, "task": task}
            people = float(np.mean([one.scores[task] for one in rated]))
            records.append(Record(row, FED, value, n=n, about={**about, "people": people}))
            records.append(Record(row, "people", people, n=len(rated), about=about))
    if not records:
        raise InputError("no headline has people's scores; give --data FILE with gen_story, ref_story, gen_ref")
    return measured.table(records, head="data, task", digits=4, signatures={FED: distance.signature})


def examples(measured: Measured) -> Table:
    """Table 1: of the stories with most headlines the first, with all of theirs, the nearest to the story first (the paper has
    picked a good, an average and a bad one).
    """
    records, texts, number = [], [], 0
    for of in _by_dataset(measured):
        (by_story, near), (by_reference, same) = of["Gen-Story"], of["Gen-Ref"]
        (to_story,), (to_reference,) = near.metrics.values(), same.metrics.values()
        stories = np.array([row.document_id for row in by_story.rows], dtype=object)
        for story in dict.fromkeys(stories):
            own = np.flatnonzero(stories == story)
            number, section = number + 1, by_story.name
            texts += [(f"{number}, {section}", story), (f"{number}, reference", by_reference.rows[own[0]].documents[0])]
            order = np.argsort(-np.nan_to_num(to_story[own], nan=-np.inf), kind="stable")
            for place, k in enumerate(own[order], start=1):
                headline = by_story.rows[k]
                row, about = (
                    f"{place} {headline.system or 'generated'}",
                    {"dataset": section, "system": headline.system},
                )
                texts.append((f"{number}, {row}", headline.summary))
                for name, value in (("to story", to_story[k]), ("to reference", to_reference[k])):
                    shown = float(value) if np.isfinite(value) else None
                    records.append(Record(row, name, shown, section=f"{number}, {section}", about=about))
    return measured.table(records, head="AES of", texts=tuple(texts))


def embedding_map(measured: Measured) -> Table:
    """Figure 1: a map of the generated headlines of two data sets, PCA then t-SNE."""
    from negsample.eval.report.plots import map_texts
    from negsample.models.encoders import make_encoder

    sources = [of["Gen-Story"][0] for of in _by_dataset(measured)]
    if len(sources) < 2:
        raise InputError(f"the map is of two data sets' headlines, and there are {len(sources)}; repeat --data FILE")
    (one, other), left = sources[:2], [source.name for source in sources[2:]]
    texts, others = ([row.summary for row in source.rows if row.summary] for source in (one, other))
    encoder = make_encoder(measured.spec.parts["USE"])
    drawn = map_texts(texts, others, encoder, names=(one.name, other.name), pool="whole", seed=measured.seed)
    records = [Record(one.name, "headlines", len(texts)), Record(other.name, "headlines", len(others))]
    notes = (f"not drawn: {', '.join(left)}",) if left else ()
    more, pictures = {"encoder": encoder.name, "weights": encoder.fingerprint}, {f"{measured.spec.name}.svg": drawn}
    return measured.table(records, head="data", digits=0, notes=notes, pictures=pictures, more=more)


KINDS: Mapping[str, Callable[[Measured], Table]] = {
    "headline-examples": examples,
    "headline-systems": systems,
    "headline-agreement": agreement,
    "headline-map": embedding_map,
    "headline-distances": distances,
}

"""Studies whose publishers hand out one file: SummEval, QAGS, Newsroom; the layouts assumed are those published.

SummEval (Fabbri et al. 2021), four dimensions, three experts and five crowd workers a summary:
``model_annotations.aligned.paired.jsonl`` (``.gz`` as well), one summary a line: ``id`` (document), ``model_id``, ``decoded``
(summary), ``text`` (document), ``references`` (list), ``expert_annotations`` and ``turker_annotations``: lists of objects with
``coherence``, ``consistency``, ``fluency`` and ``relevance`` from 1 to 5.
The file as distributed has no ``text``; SummEval's ``pair_data.py`` adds it.

QAGS (Wang et al. 2020), is each sentence of a summary supported by the article?
``mturk_cnndm.jsonl`` and ``mturk_xsum.jsonl``, one article a line: ``article`` and
``summary_sentences``, a list of objects with ``sentence`` and ``responses``, a list of objects with ``worker_id`` and
``response``, ``yes`` or ``no``. One system a file, whose name is not given: it is ``0`` here.

Newsroom's human study (Grusky et al. 2018), 60 articles × 7 systems, three raters each:
``newsroom-human-eval.csv`` with one row a rater: ``System``, ``ArticleID``,
``ArticleTitle``, ``ArticleText``, ``SystemSummary``, ``CoherenceRating``, ``FluencyRating``, ``InformativenessRating``
and ``RelevanceRating`` from 1 to 5 (other columns that end in ``Rating`` are read alike: Sun & Nenkova 2019, §4, asked six
questions). The texts are HTML as the raters saw them. There are no references in it. They come from Newsroom itself, where
its ``test.jsonl[.gz]`` (``title``, ``text``, ``summary``) lies in the same folder, or from a column ``ReferenceSummary``.
"""

import html
import re
from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import count
from pathlib import Path

from negsample.errors import InputError, RecordError
from negsample.eval.judgments.collect import Collector, Unusable
from negsample.io.read import Row, read_rows, text_field, texts_field
from negsample.records import Judged
from negsample.sentences import normalise

DIMENSIONS = ("coherence", "consistency", "fluency", "relevance")
TABLE = "newsroom-human-eval.csv"
_RATING = "Rating"
_BREAK = re.compile(r"\s*</?(?:br|p|div)\b[^<>]*>\s*", re.IGNORECASE)
_INLINE = re.compile(r"</?(?:span|b|i|u|em|strong|a|font)\b[^<>]*>", re.IGNORECASE)


def load_summeval(path: str, unusable: Unusable) -> list[Judged]:
    """Scores: each dimension, the mean of the experts; ``turker_…``, the mean of the crowd workers, if any."""
    sink = Collector(unusable)
    return sink.read(read_rows(path, "jsonl"), partial(_summeval, sink=sink))


def _summeval(row: Row, sink: Collector) -> Judged:
    document_id, system, summary = (text_field(row, name) for name in ("id", "model_id", "decoded"))
    if "text" not in row.fields:
        hint = "pair the file with its articles first (SummEval's data_processing/pair_data.py)"
        raise RecordError(row.where, f"no field 'text': {hint}")
    document = text_field(row, "text")
    references = texts_field(row, "references")
    experts, crowd = row.fields.get("expert_annotations"), row.fields.get("turker_annotations") or []
    if not isinstance(experts, list) or not isinstance(crowd, list):
        raise RecordError(row.where, "field 'expert_annotations' or 'turker_annotations' is not a list")
    scores = sink.mean_scores(experts, DIMENSIONS, row.where)
    crowd_scores = sink.mean_scores(crowd, DIMENSIONS, row.where)
    scores |= {f"turker_{name}": value for name, value in crowd_scores.items()}
    return Judged(document_id, system, (document,), summary, tuple(references), scores, "summeval")


def load_qags(path: str, unusable: Unusable) -> list[Judged]:
    """Score ``fact`` in [0, 1]: share of the summary's sentences that most workers call supported.

    ``document_id`` is the record's place in the file, from 0. A sentence without any yes or no spoils its summary.
    """
    sink = Collector(unusable)
    name = Path(path).name
    dataset = next((f"qags_{part}" for part in ("cnndm", "xsum") if part in name), "qags")
    places = count()

    def judged(row: Row) -> Judged:
        place, (summary, fact) = next(places), _sentences(row)
        return Judged(str(place), "0", (text_field(row, "article"),), summary, (), {"fact": fact}, dataset)

    return sink.read(read_rows(path, "jsonl"), judged)


def _sentences(row: Row) -> tuple[str, float]:
    if row.error is not None:
        raise row.error
    sentences = row.fields.get("summary_sentences")
    if not isinstance(sentences, list) or not sentences:
        raise RecordError(row.where, "field 'summary_sentences' is missing, empty or not a list")
    texts, supported = [], 0
    for sentence in sentences:
        text = sentence.get("sentence") if isinstance(sentence, dict) else None
        if not isinstance(text, str) or not text.strip():
            raise RecordError(row.where, "a summary sentence has no text")
        responses = sentence.get("responses")
        answers = Counter(
            str(response.get("response")).strip().lower()
            for response in (responses if isinstance(responses, list) else [])
            if isinstance(response, dict)
        )
        if not answers["yes"] + answers["no"]:
            raise RecordError(row.where, "a summary sentence has no 'yes' or 'no' response")
        texts.append(text.strip())
        supported += answers["yes"] > answers["no"]
    return " ".join(texts), supported / len(sentences)


def load_newsroom(path: str, unusable: Unusable) -> list[Judged]:
    """Scores: ``coherence``, ``fluency``, ``informativeness``, ``relevance``, each the mean over the raters.

    ``path``: the CSV, or its folder with Newsroom's ``test.jsonl[.gz]`` beside it for the references, found by title (of
    equal titles the article that has most words in common); articles without one are counted. The document is the
    article's text without its title. A summary or article that differs between the raters of one pair is counted, and the
    first is kept.
    """
    sink = Collector(unusable)
    groups: dict[tuple[str, str], list[Row]] = {}
    folder = Path(path) if Path(path).is_dir() else None
    if folder is not None and not (folder / TABLE).is_file():
        raise InputError(f"{path}: no {TABLE} in it; add it, or give the file")
    for row in read_rows(folder / TABLE if folder else path, "csv"):
        try:
            key = (text_field(row, "ArticleID").strip(), text_field(row, "System").strip())
            for name in ("ArticleText", "SystemSummary"):
                text_field(row, name)
        except RecordError as error:
            sink.note(error.reason, row.where)
            continue
        groups.setdefault(key, []).append(row)
    references = _references(folder, (rows[0] for rows in groups.values()), sink) if folder else {}
    for (article, system), rows in groups.items():
        first = rows[0]
        document, summary = plain_text(first.fields["ArticleText"]), plain_text(first.fields["SystemSummary"])
        if not document or not summary:
            sink.note("the article or the summary holds no text besides its markup", first.where)
            continue
        for row in rows[1:]:
            if any(row.fields[name] != first.fields[name] for name in ("ArticleText", "SystemSummary")):
                sink.note("article or summary differs from that of the pair's first rater", row.where)
        names = {column: column.removesuffix(_RATING).lower() for column in first.fields if column.endswith(_RATING)}
        ratings = [{names[column]: row.fields.get(column) for column in names} for row in rows]
        scores = sink.mean_scores(ratings, names.values(), first.where)
        reference = plain_text(first.fields.get("ReferenceSummary") or "") or references.get(article)
        given = (reference,) if reference else ()
        sink.add(Judged(article, system, (document,), summary, given, scores, "newsroom"), first.where)
    return sink.rows


def _references(folder: Path, rows: Iterable[Row], sink: Collector) -> dict[str, str]:
    """Article id → its summary in Newsroom, for the articles of ``rows`` whose title Newsroom has."""
    release = next((file for name in ("test.jsonl.gz", "test.jsonl") if (file := folder / name).is_file()), None)
    if release is None:
        raise InputError(
            f"{folder}: no test.jsonl or test.jsonl.gz of Newsroom in it for the references; or give the CSV"
        )

    def key(title: object) -> str:
        return normalise(plain_text(title)) if isinstance(title, str) else ""

    wanted = {row.fields["ArticleID"].strip(): row for row in rows}
    found: dict[str, list[tuple[str, str]]] = {key(row.fields.get("ArticleTitle")): [] for row in wanted.values()}
    for entry in read_rows(release):
        if (title := key(entry.fields.get("title"))) and title in found:
            found[title].append((text_field(entry, "text"), text_field(entry, "summary")))
    references = {}
    for name, row in wanted.items():
        words = set(plain_text(row.fields["ArticleText"]).split())
        if same := found[key(row.fields.get("ArticleTitle"))]:
            references[name] = plain_text(max(same, key=lambda pair: len(words & set(pair[0].split())))[1])
        else:
            sink.note(f"an article whose title is not in {release.name}: no reference", row.where)
    return references


def plain_text(markup: str) -> str:
    """The text of a piece of HTML: entities resolved, breaks and paragraphs as line breaks, inline tags dropped."""
    text = _INLINE.sub("", _BREAK.sub("\n", html.unescape(markup)))
    return "\n".join(line for line in (" ".join(part.split()) for part in text.split("\n")) if line)

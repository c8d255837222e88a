"""Newsroom's human study (Grusky et al. 2018): 60 articles × 7 systems, three raters each.

Layout assumed, as published: ``newsroom-human-eval.csv`` with one row a rater: ``System``, ``ArticleID``,
``ArticleTitle``, ``ArticleText``, ``SystemSummary``, ``CoherenceRating``, ``FluencyRating``, ``InformativenessRating``
and ``RelevanceRating`` from 1 to 5 (other columns that end in ``Rating`` are read alike: Sun & Nenkova 2019, §4, asked six
questions). The texts are HTML as the raters saw them. There are no references in it. They come from Newsroom itself, where
its ``test.jsonl[.gz]`` (``title``, ``text``, ``summary``) lies in the same folder, or from a column ``ReferenceSummary``.
"""

import html
import re
from collections.abc import Iterable
from pathlib import Path

from negsample.errors import InputError, RecordError
from negsample.eval.judgments.collect import Collector, Unusable
from negsample.io.read import Row, read_rows, text_field
from negsample.records import Judged
from negsample.sentences import normalise

TABLE = "newsroom-human-eval.csv"
_RATING = "Rating"
_BREAK = re.compile(r"\s*</?(?:br|p|div)\b[^<>]*>\s*", re.IGNORECASE)
_INLINE = re.compile(r"</?(?:span|b|i|u|em|strong|a|font)\b[^<>]*>", re.IGNORECASE)


def load(path: str, unusable: Unusable) -> list[Judged]:
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
    wanted = {row.fields["ArticleID"].strip(): row for row in rows}
    titles = {name: _key(row.fields.get("ArticleTitle")) for name, row in wanted.items()}
    found: dict[str, list[tuple[str, str]]] = {title: [] for title in titles.values() if title}
    for entry in read_rows(release):
        title = _key(entry.fields.get("title"))
        if title in found:
            found[title].append((text_field(entry, "text"), text_field(entry, "summary")))
    references = {}
    for name, row in wanted.items():
        words = set(plain_text(row.fields["ArticleText"]).split())
        same = found.get(titles[name], [])
        if same:
            references[name] = plain_text(max(same, key=lambda pair: len(words & set(pair[0].split())))[1])
        else:
            sink.note(f"an article whose title is not in {release.name}: no reference", row.where)
    return references


def _key(title: object) -> str:
    return normalise(plain_text(title)) if isinstance(title, str) else ""


def plain_text(markup: str) -> str:
    """The text of a piece of HTML: entities resolved, breaks and paragraphs as line breaks, inline tags dropped."""
    text = _INLINE.sub("", _BREAK.sub("\n", html.unescape(markup)))
    return "\n".join(line for line in (" ".join(part.split()) for part in text.split("\n")) if line)

"""Newsroom's human study (Grusky et al. 2018): 60 articles × 7 systems, three raters each.

Layout assumed, as published: ``newsroom-human-eval.csv`` with one row a rater: ``System``, ``ArticleID``,
``ArticleTitle``, ``ArticleText``, ``SystemSummary``, ``CoherenceRating``, ``FluencyRating``, ``InformativenessRating``
and ``RelevanceRating`` from 1 to 5. The texts are HTML as the raters saw them. There are no references.
"""

import html
import re

from negsample.errors import RecordError
from negsample.eval.judgments.collect import Collector, Unusable
from negsample.io.read import Row, read_rows, text_field
from negsample.records import Judged

RATINGS = {f"{name.capitalize()}Rating": name for name in ("coherence", "fluency", "informativeness", "relevance")}
_BREAK = re.compile(r"\s*</?(?:br|p|div)\b[^<>]*>\s*", re.IGNORECASE)
_INLINE = re.compile(r"</?(?:span|b|i|u|em|strong|a|font)\b[^<>]*>", re.IGNORECASE)


def load(path: str, unusable: Unusable) -> list[Judged]:
    """Scores: ``coherence``, ``fluency``, ``informativeness``, ``relevance``, each the mean over the raters.

    The document is the article's text without its title. A summary or article that differs between the raters of one
    pair is counted, and the first is kept.
    """
    sink = Collector(unusable)
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in read_rows(path, "csv"):
        try:
            key = (text_field(row, "ArticleID").strip(), text_field(row, "System").strip())
            for name in ("ArticleText", "SystemSummary"):
                text_field(row, name)
        except RecordError as error:
            sink.note(error.reason, row.where)
            continue
        groups.setdefault(key, []).append(row)
    for (article, system), rows in groups.items():
        first = rows[0]
        document, summary = plain_text(first.fields["ArticleText"]), plain_text(first.fields["SystemSummary"])
        if not document or not summary:
            sink.note("the article or the summary holds no text besides its markup", first.where)
            continue
        for row in rows[1:]:
            if any(row.fields[name] != first.fields[name] for name in ("ArticleText", "SystemSummary")):
                sink.note("article or summary differs from that of the pair's first rater", row.where)
        ratings = [{RATINGS[column]: row.fields.get(column) for column in RATINGS} for row in rows]
        scores = sink.mean_scores(ratings, RATINGS.values(), first.where)
        sink.add(Judged(article, system, (document,), summary, (), scores, "newsroom"), first.where)
    return sink.rows


def plain_text(markup: str) -> str:
    """The text of a piece of HTML: entities resolved, breaks and paragraphs as line breaks, inline tags dropped."""
    text = _INLINE.sub("", _BREAK.sub("\n", html.unescape(markup)))
    return "\n".join(line for line in (" ".join(part.split()) for part in text.split("\n")) if line)

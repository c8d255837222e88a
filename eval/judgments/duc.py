"""DUC 2001 and 2002, single-document summaries of about 100 words (licensed by NIST): the coverage that Sun & Nenkova 2019 use.

Layout read, at DIR or below it, packed or unpacked, from public loaders and not from the data itself:

- articles, SGML: ``docs/d04a/FT923-5089`` (2001), ``docs…/d061j/AP880911-0016[.S]`` (2002), their text in ``<LP>``,
  ``<LEADPARA>`` and ``<TEXT>``;
- human summaries: ``d04aa/perdocs``, ``<SUM … DOCREF="FT923-5089" … SUMMARIZER="A" …>text</SUM>``;
- machine summaries, as the judges' tool SEE had them: ``D061.P.100.J.19.AP880911-0016.html`` (docset, single document, words,
  selector, summarizer, article), a sentence in each ``<a href=…>``;
- results, a file with ``table`` in its name, lines of white-space columns that begin ``D061 P AP880911-0016 100``. 2002
  (``short.results.table``): 33 columns, the 7th the model's writer, the 9th the summarizer, the 28th the mean coverage.
  2001: the 6th the model's writer, the 8th the summarizer, the 15th the number of model units, then from the 18th three
  columns a unit, of which the middle one says how much of the unit is expressed, 0 (none) to 4 (all).
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from negsample.errors import InputError
from negsample.eval.judgments.archives import decode, files_below, without_tags
from negsample.eval.judgments.collect import Collector, Unusable, finite
from negsample.records import Judged

_TABLE = re.compile(r"(?:^|/)[^/]*table[^/]*$", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:^|/)docs[^/]*/(?:[^/]+/)*d\d+[a-z]?/([^/.][^/]*?)(?:\.S)?$", re.IGNORECASE)
_WRITTEN = re.compile(r"(?:^|/)d\d+[a-z]+/perdocs$", re.IGNORECASE)
_PEER = re.compile(r"(?:^|/)D\d+\.P\.\d+\.(?:[A-Z]\.)?(\d+)\.([^/]+?)(?:\.html?)?$", re.IGNORECASE)
_LINE = re.compile(r"D\d+\s+P\s", re.IGNORECASE)
_BODY = re.compile(r"<(LP|LEADPARA|TEXT)\b[^>]*>(.*?)</\1>", re.IGNORECASE | re.DOTALL)
_SUM = re.compile(r"<SUM\b([^>]*)>(.*?)(?=</SUM>|<SUM\b|$)", re.IGNORECASE | re.DOTALL)
_ATTRIBUTE = re.compile(r"([A-Z]+)\s*=\s*\"?([^\s\">]+)", re.IGNORECASE)
_UNIT = re.compile(r"<a\b[^>]*\bhref\b[^>]*>(.*?)</a>", re.IGNORECASE | re.DOTALL)
_BREAK = re.compile(r"</s>|</?p\b[^>]*>", re.IGNORECASE)


class _Line(NamedTuple):
    """One line of a table of results; ``writer``: who wrote the model that the judge compared with."""

    article: str
    summarizer: str
    writer: str
    coverage: float | None


def _line_2001(cells: list[str]) -> _Line | None:
    units = int(cells[14]) if len(cells) > 14 and cells[14].isdigit() else 0
    if not units or len(cells) != 17 + 3 * units:
        return None
    expressed = [finite(cell) for cell in cells[18::3]]
    known = [value for value in expressed if value is not None and 0 <= value <= 4]
    return _Line(cells[2], cells[7], cells[5], sum(known) / (4 * units) if len(known) == units else None)


def _line_2002(cells: list[str]) -> _Line | None:
    return _Line(cells[2], cells[8], cells[6], finite(cells[27])) if len(cells) == 33 else None


def load_2001(path: str, unusable: Unusable) -> list[Judged]:
    """Score ``coverage`` in [0, 1]: the mean over the model's units of the share expressed (none 0, all 1; Lin & Hovy 2003).

    One row an article and machine summarizer, the baseline among them. The reference is the human summary that the judge
    compared with, or all of the article's where its writer is not known. Counted by name: what lacks its other half.
    Raises InputError where there is no table of results in this layout.
    """
    return _load(path, unusable, "duc2001", _line_2001)


def load_2002(path: str, unusable: Unusable) -> list[Judged]:
    """Score ``coverage`` in [0, 1], NIST's own mean; the rest as for `load_2001`."""
    return _load(path, unusable, "duc2002", _line_2002)


def _load(path: str, unusable: Unusable, dataset: str, read: Callable[[list[str]], _Line | None]) -> list[Judged]:
    sink = Collector(unusable)
    articles: dict[str, str] = {}
    written: dict[str, dict[str, str]] = {}
    peers: dict[tuple[str, str], str] = {}
    lines: dict[tuple[str, str], _Line] = {}
    what = f"the one that holds {dataset.upper()}'s articles, summaries and results"
    for place, data in files_below(Path(path), _wanted, what):
        text = decode(data)
        if match := _PEER.search(place):
            peers.setdefault(
                (match[2], match[1]), "\n".join(filter(None, map(without_tags, _UNIT.findall(text) or [text])))
            )
        elif _WRITTEN.search(place):
            _read_written(text, place, written, sink)
        elif match := _ARTICLE.search(place):
            articles.setdefault(match[1], "\n".join(_sentences(text)))
        else:
            _read_table(text, place, read, lines, sink)
    if not lines:
        raise InputError(
            f"{path}: no line of single-document results in {dataset.upper()}'s layout (a file named …table… with lines that "
            "begin 'D061 P AP880911-0016 100'), packed or unpacked; add NIST's results"
        )
    # A summary without results was not judged: of 2001's articles five a docset were.
    for key in sorted(lines):
        article, summarizer = key
        where = f"{article}, summarizer {summarizer}"
        if not peers.get(key):
            sink.note("results without a summary", where)
        elif not articles.get(article):
            sink.note("results whose article has no text", where)
        else:
            own = written.get(article, {})
            model = own.get(lines[key].writer)
            references = (model,) if model else tuple(text for _, text in sorted(own.items()))
            if not model:
                sink.note("the model's writer has no summary of the article (all others are its references)", where)
            coverage = lines[key].coverage
            scores = {} if coverage is None else {"coverage": coverage}
            sink.add(Judged(article, summarizer, (articles[article],), peers[key], references, scores, dataset), where)
    return sink.rows


def _read_table(
    text: str,
    place: str,
    read: Callable[[list[str]], _Line | None],
    lines: dict[tuple[str, str], _Line],
    sink: Collector,
) -> None:
    """Add the lines on single-document summaries by machines."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not _LINE.match(line):
            continue
        found = read(line.split())
        if found is None:
            sink.note("a line of results with another number of columns", f"{place}, line {number}")
        elif found.summarizer.isdigit():
            lines.setdefault((found.article, found.summarizer), found)


def _read_written(text: str, place: str, written: dict[str, dict[str, str]], sink: Collector) -> None:
    """Add the human summaries of a docset: article → writer → text."""
    for head, body in _SUM.findall(text):
        about = {name.upper(): value for name, value in _ATTRIBUTE.findall(head)}
        if not about.get("DOCREF") or not about.get("SUMMARIZER") or not without_tags(body):
            sink.note("a human summary without DOCREF, SUMMARIZER or text", place)
        else:
            written.setdefault(about["DOCREF"], {}).setdefault(about["SUMMARIZER"], without_tags(body))


def _sentences(markup: str) -> list[str]:
    """An article's text: a line a sentence or paragraph that is marked, one for all where none is."""
    pieces = (piece for _, body in _BODY.findall(markup) for piece in _BREAK.split(body))
    return [text for piece in pieces if (text := without_tags(piece))]


def _wanted(place: str) -> bool:
    return any(pattern.search(place) for pattern in (_PEER, _WRITTEN, _ARTICLE, _TABLE))

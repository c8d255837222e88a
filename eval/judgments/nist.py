"""Evaluations by NIST, whose data are licensed; the layouts are from public loaders and not from the data itself. Archives are
read member by member.

DUC 2001 and 2002, single-document summaries of about 100 words (licensed by NIST): the coverage that Sun & Nenkova 2019 use.

Layout read, at DIR or below it, packed or unpacked:

- articles, SGML: ``docs/d04a/FT923-5089`` (2001), ``docs…/d061j/AP880911-0016[.S]`` (2002), their text in ``<LP>``,
  ``<LEADPARA>`` and ``<TEXT>``;
- human summaries: ``d04aa/perdocs``, ``<SUM … DOCREF="FT923-5089" … SUMMARIZER="A" …>text</SUM>``;
- machine summaries, as the judges' tool SEE had them: ``D061.P.100.J.19.AP880911-0016.html`` (docset, single document, words,
  selector, summarizer, article), a sentence in each ``<a href=…>``;
- results, a file with ``table`` in its name, lines of white-space columns that begin ``D061 P AP880911-0016 100``. 2002
  (``short.results.table``): 33 columns, the 7th the model's writer, the 9th the summarizer, the 28th the mean coverage.
  2001: the 6th the model's writer, the 8th the summarizer, the 15th the number of model units, then from the 18th three
  columns a unit, of which the middle one says how much of the unit is expressed, 0 (none) to 4 (all).

TAC 2010 guided summarization (licensed by NIST): initial summaries (docset A), ten articles a docset.

Layout assumed, at DIR or below it, packed or unpacked:

- ``GuidedSumm10_test_docs_files[.tar.gz]/D1001A/D1001A-A/*``: articles, SGML, their text in ``<TEXT>``, mostly in
  ``<P>`` (the archive may lie inside ``TAC2010_Summarization_Documents.tgz``);
- ``GuidedSumm2010_eval[.tgz]/ROUGE/peers/D1001-A.M.100.A.7`` (docset, M, 100, assessor, summarizer) and
  ``…/ROUGE/models/D1001-A.M.100.A.E``, one sentence a line;
- ``GuidedSumm2010_eval/manual/manual.peer.A``: white-space columns docset, summarizer, modified pyramid, SCUs,
  repetitions, two more, modified pyramid with three models (jackknifed), linguistic quality, responsiveness;
- ``GuidedSumm2010_eval/ROUGE/rouge_A.m.out`` (``nist_rouge``): lines ``7 ROUGE-1 Eval D1001-A… R:0.37 P:0.36 F:0.37``.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from negsample.errors import InputError
from negsample.eval.judgments.collect import Collector, Unusable, decode, files_below, finite, without_tags
from negsample.records import Judged

_DUC_TABLE = re.compile(r"(?:^|/)[^/]*table[^/]*$", re.IGNORECASE)
_DUC_ARTICLE = re.compile(r"(?:^|/)docs[^/]*/(?:[^/]+/)*d\d+[a-z]?/([^/.][^/]*?)(?:\.S)?$", re.IGNORECASE)
_DUC_WRITTEN = re.compile(r"(?:^|/)d\d+[a-z]+/perdocs$", re.IGNORECASE)
_DUC_PEER = re.compile(r"(?:^|/)D\d+\.P\.\d+\.(?:[A-Z]\.)?(\d+)\.([^/]+?)(?:\.html?)?$", re.IGNORECASE)
_LINE = re.compile(r"D\d+\s+P\s", re.IGNORECASE)
_BODY = re.compile(r"<(LP|LEADPARA|TEXT)\b[^>]*>(.*?)(?:</\1>|$)", re.IGNORECASE | re.DOTALL)
_SUM = re.compile(r"<SUM\b([^>]*)>(.*?)(?=</SUM>|<SUM\b|$)", re.IGNORECASE | re.DOTALL)
_ATTRIBUTE = re.compile(r"([A-Z]+)\s*=\s*\"?([^\s\">]+)", re.IGNORECASE)
_UNIT = re.compile(r"<a\b[^>]*\bhref\b[^>]*>(.*?)</a>", re.IGNORECASE | re.DOTALL)
_BREAK = re.compile(r"</s>|</?p\b[^>]*>", re.IGNORECASE)
ARTICLES = 10
# Place of each human score among the columns of manual.peer.A, from 0.
COLUMNS = {
    "modified_pyramid": 2,
    "modified_pyramid_jackknife": 7,
    "linguistic_quality": 8,
    "overall_responsiveness": 9,
}
_WHAT = "the one that holds TAC2010's documents and GuidedSumm2010_eval"
_TAC_ARTICLE = re.compile(r"(?:^|/)(D\d+)[A-Z]?/\1[A-Z]?-A/([^/.][^/]*)$", re.IGNORECASE)
_TAC_SUMMARY = re.compile(r"(?:^|/)ROUGE/(?:peers|models)/(D\d+)-A\.M\.100\.\w+\.(\w+)$", re.IGNORECASE)
_MANUAL = re.compile(r"(?:^|/)manual/manual\.peer\.A$", re.IGNORECASE)
_ROUGE = re.compile(r"(?:^|/)ROUGE/rouge_A\.m\.out$", re.IGNORECASE)
_ROUGE_LINE = re.compile(r"(\d+) (ROUGE-\S+) Eval \S*?(D\d+)[A-Z]?-A\S* R:(\S+) P:(\S+) F:(\S+)\s*")


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
    for place, data in files_below(Path(path), _any_of(_DUC_PEER, _DUC_WRITTEN, _DUC_ARTICLE, _DUC_TABLE), what):
        text = decode(data)
        if match := _DUC_PEER.search(place):
            peers.setdefault(
                (match[2], match[1]), "\n".join(filter(None, map(without_tags, _UNIT.findall(text) or [text])))
            )
        elif _DUC_WRITTEN.search(place):
            for head, body in _SUM.findall(text):
                about = {name.upper(): value for name, value in _ATTRIBUTE.findall(head)}
                if not about.get("DOCREF") or not about.get("SUMMARIZER") or not without_tags(body):
                    sink.note("a human summary without DOCREF, SUMMARIZER or text", place)
                else:
                    written.setdefault(about["DOCREF"], {}).setdefault(about["SUMMARIZER"], without_tags(body))
        elif match := _DUC_ARTICLE.search(place):
            articles.setdefault(match[1], article_text(text))
        else:
            for number, line in enumerate(text.splitlines(), start=1):
                found = read(line.split()) if _LINE.match(line) else None
                if found is not None and found.summarizer.isdigit():
                    if lines.setdefault((found.article, found.summarizer), found) != found:
                        sink.note("other results of a summary again (the first are kept)", f"{place}, line {number}")
                elif found is None and _LINE.match(line):
                    sink.note("a line of results with another number of columns", f"{place}, line {number}")
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


def article_text(markup: str) -> str:
    """An article's text: a line a sentence or paragraph that is marked, one for all where none is."""
    pieces = (piece for _, body in _BODY.findall(markup) for piece in _BREAK.split(body))
    return "\n".join(filter(None, map(without_tags, pieces)))


def load_tac2010(path: str, unusable: Unusable) -> list[Judged]:
    """One row a docset and machine summarizer, with all the docset's readable articles as ``documents``.

    Scores: ``modified_pyramid``, ``modified_pyramid_jackknife``, ``linguistic_quality``, ``overall_responsiveness``.
    ``references`` are the human summaries of the docset, in the order of their writers' letters. Counted by reason:
    unreadable articles, docsets with another number of readable articles than ten (their rows are kept, but a sum
    over articles would not compare with the others), summaries without scores and scores without a summary,
    broken lines.
    """
    sink = Collector(unusable)
    articles: dict[str, dict[str, str]] = {}
    peers: dict[tuple[str, str], str] = {}
    models: dict[str, dict[str, str]] = {}
    manual: str | None = None
    for place, data in files_below(Path(path), _any_of(_TAC_ARTICLE, _TAC_SUMMARY, _MANUAL), _WHAT):
        if match := _TAC_ARTICLE.search(place):
            docset = match[1].upper()
            text = article_text(decode(data))
            if not text:
                sink.note("an article without text", place)
            else:
                articles.setdefault(docset, {}).setdefault(match[2], text)
        elif match := _TAC_SUMMARY.search(place):
            docset, summarizer, text = match[1].upper(), match[2], decode(data).strip()
            if not text:
                sink.note("a blank summary", place)
            elif summarizer.isdigit():
                peers.setdefault((docset, summarizer), text)
            else:
                models.setdefault(docset, {}).setdefault(summarizer, text)
        elif manual is None and _MANUAL.search(place):
            manual = decode(data)
    if manual is None:
        raise InputError(f"{path}: no manual/manual.peer.A in it, packed or unpacked; add GuidedSumm2010_eval")
    if not articles:
        raise InputError(
            f"{path}: no article as D1001A/D1001A-A/NAME in it, packed or unpacked; add GuidedSumm10_test_docs_files"
        )
    if not peers:
        raise InputError(
            f"{path}: no summary as ROUGE/peers/D1001-A.M.100.A.7 in it, packed or unpacked; add GuidedSumm2010_eval"
        )
    scores = _scores(manual, sink)
    for docset in sorted({docset for docset, _ in scores}):
        count = len(articles.get(docset, {}))
        if count != ARTICLES:
            sink.note(f"a docset with {count} readable articles instead of {ARTICLES}", f"{docset}-A")
        if not models.get(docset):
            sink.note("a docset without a human summary", f"{docset}-A")
    for docset, summarizer in sorted(peers.keys() | scores.keys(), key=lambda key: (key[0], int(key[1]))):
        where = f"{docset}-A, summarizer {summarizer}"
        found = articles.get(docset, {})
        if (docset, summarizer) not in scores:
            sink.note("a summary without scores in manual.peer.A", where)
        elif (docset, summarizer) not in peers:
            sink.note("scores without a summary", where)
        elif not found:
            sink.note("a summary whose docset has no readable article", where)
        else:
            documents = tuple(found[name] for name in sorted(found))
            references = tuple(text for _, text in sorted(models.get(docset, {}).items()))
            summary, given = peers[docset, summarizer], scores[docset, summarizer]
            sink.add(Judged(f"{docset}-A", summarizer, documents, summary, references, given, "tac2010"), where)
    return sink.rows


def nist_rouge(path: str) -> dict[tuple[str, str], dict[str, float]]:
    """The ROUGE figures that NIST hands out (Bao et al. 2021 §5.0.3): docset and machine summarizer, as ``Judged`` has them,
    → ``{"ROUGE-1 R": 0.37, …}``; {} where there is no ``ROUGE/rouge_A.m.out``.

    Raises InputError where not one line of it is a figure.
    """
    for place, data in files_below(Path(path), _any_of(_ROUGE), _WHAT):
        found: dict[tuple[str, str], dict[str, float]] = {}
        for line in decode(data).splitlines():
            if match := _ROUGE_LINE.fullmatch(line.strip()):
                summarizer, kind, docset, *values = match.groups()
                numbers = {f"{kind} {letter}": finite(value) for letter, value in zip("RPF", values, strict=True)}
                own = found.setdefault((f"{docset.upper()}-A", summarizer), {})
                own |= {name: value for name, value in numbers.items() if value is not None}
        if not found:
            raise InputError(f"{path}: {place}: no line as '7 ROUGE-1 Eval D1001-A.M.100.A.7 R:0.37 P:0.36 F:0.37'")
        return found
    return {}


def _scores(table: str, sink: Collector) -> dict[tuple[str, str], dict[str, float]]:
    """Scores by docset and machine summarizer from the text of ``manual.peer.A``."""
    scores: dict[tuple[str, str], dict[str, float]] = {}
    for number, line in enumerate(table.splitlines(), start=1):
        cells, where = line.split(), f"manual.peer.A, line {number}"
        if not cells:
            continue
        match = re.fullmatch(r"(D\d+)[A-Z]?-A", cells[0], re.IGNORECASE)
        if len(cells) <= max(COLUMNS.values()) or match is None or not cells[1].isdigit():
            sink.note("a line that is not docset, summarizer and eight columns", where)
            continue
        given = {name: finite(cells[column]) for name, column in COLUMNS.items()}
        for name, value in given.items():
            if value is None:
                sink.note(f"score {name!r} is not a number", where)
        key = (match[1].upper(), cells[1])
        if key in scores:
            sink.note("scores of the same summary again (the first are kept)", where)
            continue
        scores[key] = {name: value for name, value in given.items() if value is not None}
    return scores


def _any_of(*patterns: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda place: any(pattern.search(place) for pattern in patterns)

"""TAC 2010 guided summarization (licensed by NIST): initial summaries (docset A), ten articles a docset.

Layout assumed, from public loaders and not from the data itself, at DIR or below it, packed or unpacked:

- ``GuidedSumm10_test_docs_files[.tar.gz]/D1001A/D1001A-A/*``: articles, SGML, their text in ``<TEXT>``, mostly in
  ``<P>`` (the archive may lie inside ``TAC2010_Summarization_Documents.tgz``);
- ``GuidedSumm2010_eval[.tgz]/ROUGE/peers/D1001-A.M.100.A.7`` (docset, M, 100, assessor, summarizer) and
  ``…/ROUGE/models/D1001-A.M.100.A.E``, one sentence a line;
- ``GuidedSumm2010_eval/manual/manual.peer.A``: white-space columns docset, summarizer, modified pyramid, SCUs,
  repetitions, two more, modified pyramid with three models (jackknifed), linguistic quality, responsiveness;
- ``GuidedSumm2010_eval/ROUGE/rouge_A.m.out`` (``nist_rouge``): lines ``7 ROUGE-1 Eval D1001-A… R:0.37 P:0.36 F:0.37``.

Archives are read member by member; nothing is unpacked to disk.
"""

import re
from collections.abc import Callable
from pathlib import Path

from negsample.errors import InputError
from negsample.eval.judgments.archives import decode, files_below, without_tags
from negsample.eval.judgments.collect import Collector, Unusable, finite
from negsample.records import Judged

ARTICLES = 10
# Place of each human score among the columns of manual.peer.A, from 0.
COLUMNS = {
    "modified_pyramid": 2,
    "modified_pyramid_jackknife": 7,
    "linguistic_quality": 8,
    "overall_responsiveness": 9,
}
_WHAT = "the one that holds TAC2010's documents and GuidedSumm2010_eval"
_ARTICLE = re.compile(r"(?:^|/)(D\d+)[A-Z]?/\1[A-Z]?-A/([^/.][^/]*)$", re.IGNORECASE)
_SUMMARY = re.compile(r"(?:^|/)ROUGE/(?:peers|models)/(D\d+)-A\.M\.100\.\w+\.(\w+)$", re.IGNORECASE)
_MANUAL = re.compile(r"(?:^|/)manual/manual\.peer\.A$", re.IGNORECASE)
_ROUGE = re.compile(r"(?:^|/)ROUGE/rouge_A\.m\.out$", re.IGNORECASE)
_ROUGE_LINE = re.compile(r"(\d+) (ROUGE-\S+) Eval \S*?(D\d+)[A-Z]?-A\S* R:(\S+) P:(\S+) F:(\S+)\s*")
_TEXT = re.compile(r"<TEXT[^>]*>(.*?)(?:</TEXT>|$)", re.IGNORECASE | re.DOTALL)
_PARAGRAPH = re.compile(r"<P\b[^>]*>(.*?)(?=</P>|<P\b|$)", re.IGNORECASE | re.DOTALL)


def load(path: str, unusable: Unusable) -> list[Judged]:
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
    for place, data in files_below(Path(path), _any_of(_ARTICLE, _SUMMARY, _MANUAL), _WHAT):
        if match := _ARTICLE.search(place):
            docset = match[1].upper()
            text = article_text(decode(data))
            if not text:
                sink.note("an article without text", place)
            else:
                articles.setdefault(docset, {}).setdefault(match[2], text)
        elif match := _SUMMARY.search(place):
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


def article_text(markup: str) -> str:
    """Text of an article: the paragraphs inside ``<TEXT>``, one a line; all of ``<TEXT>`` where it has none."""
    pieces = [piece for body in _TEXT.findall(markup) for piece in _PARAGRAPH.findall(body) or [body]]
    return "\n".join(filter(None, map(without_tags, pieces)))

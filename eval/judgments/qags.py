"""QAGS (Wang et al. 2020): is each sentence of a summary supported by the article?

Layout assumed, as published: ``mturk_cnndm.jsonl`` and ``mturk_xsum.jsonl``, one article a line: ``article`` and
``summary_sentences``, a list of objects with ``sentence`` and ``responses``, a list of objects with ``worker_id`` and
``response``, ``yes`` or ``no``. One system a file, whose name is not given: it is ``0`` here.
"""

from collections import Counter
from pathlib import Path

from negsample.errors import RecordError
from negsample.eval.judgments.collect import Collector, Unusable
from negsample.io.read import Row, read_rows, text_field
from negsample.records import Judged


def load(path: str, unusable: Unusable) -> list[Judged]:
    """Score ``fact`` in [0, 1]: share of the summary's sentences that most workers call supported.

    ``document_id`` is the record's place in the file, from 0. A sentence without any yes or no spoils its summary.
    """
    sink = Collector(unusable)
    name = Path(path).name
    dataset = next((f"qags_{part}" for part in ("cnndm", "xsum") if part in name), "qags")
    for place, row in enumerate(read_rows(path, "jsonl")):
        try:
            summary, fact = _summary(row)
            document = text_field(row, "article")
            sink.add(Judged(str(place), "0", (document,), summary, (), {"fact": fact}, dataset), row.where)
        except RecordError as error:
            sink.note(error.reason, row.where)
    return sink.rows


def _summary(row: Row) -> tuple[str, float]:
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

"""SummEval (Fabbri et al. 2021): four dimensions, three experts and five crowd workers a summary.

Layout assumed, as published: ``model_annotations.aligned.paired.jsonl`` (``.gz`` as well), one summary a line:
``id`` (document), ``model_id``, ``decoded`` (summary), ``text`` (document), ``references`` (list),
``expert_annotations`` and ``turker_annotations``: lists of objects with ``coherence``, ``consistency``, ``fluency``
and ``relevance`` from 1 to 5. The file as distributed has no ``text``; SummEval's ``pair_data.py`` adds it.
"""

from functools import partial

from negsample.errors import RecordError
from negsample.eval.judgments.collect import Collector, Unusable
from negsample.io.read import Row, read_rows, text_field, texts_field
from negsample.records import Judged

DIMENSIONS = ("coherence", "consistency", "fluency", "relevance")


def load(path: str, unusable: Unusable) -> list[Judged]:
    """Scores: each dimension, the mean of the experts; ``turker_…``, the mean of the crowd workers, if any."""
    sink = Collector(unusable)
    return sink.read(read_rows(path, "jsonl"), partial(_judged, sink=sink))


def _judged(row: Row, sink: Collector) -> Judged:
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

"""``align-untrained``: the equal-weight sum of the align features, which a trained ``align`` must beat."""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from negsample.eval.metrics.base import choice, pair_metric
from negsample.models.align.named_features import ASPECTS
from negsample.scoring.scorer import Columns, Item, Scorer, collect

if TYPE_CHECKING:
    from negsample.models.features.align import AlignFeatures

_BATCH = 64


def align_untrained(*, aspect: str = "score", encoder: str = "sentence-transformer") -> Scorer:
    """``align-untrained``: head ``align`` as it is before training, without a judge; in [0, 1].

    ``aspect``: ``score`` (all of them), ``coverage``, ``support``, ``coherence`` or ``form``. ``encoder``: any
    sentence-transformer (``negsample.models.encoders``). Missing where a text has no word. Nothing random is in it but
    hidden units whose weight is next to nothing, drawn from a fixed seed.
    """
    choice("aspect", aspect, ("score", *ASPECTS))
    options = {"aspect": aspect, "encoder": encoder}
    score = partial(_score, aspect=aspect, encoder=encoder)
    return pair_metric("align-untrained", align_untrained, options, {"document"}, score)


def _score(items: Sequence[Item], *, aspect: str, encoder: str) -> Columns:
    import torch

    from negsample.models.features.align import stack

    features, network = _made(encoder)
    column = ("score", *ASPECTS).index(aspect)
    # Summaries of one document together, so that it is read once.
    order = sorted(range(len(items)), key=lambda i: items[i].document)
    results: list[float | str] = [""] * len(items)
    for start in range(0, len(order), _BATCH):
        batch = order[start : start + _BATCH]
        documents = [items[i].document for i in batch]
        compared = features.compare(documents, [items[i].summary for i in batch])
        with torch.inference_mode():
            scores = torch.sigmoid(network(**stack(compared))).numpy()
        for i, row, item in zip(batch, scores, compared, strict=True):
            if item.present.all():
                results[i] = float(row[column])
            else:
                results[i] = features.reason(items[i].document, items[i].summary) or "no aspect can be judged"
    return collect(results)


@lru_cache(maxsize=2)
def _made(encoder: str) -> tuple["AlignFeatures", Any]:
    from negsample.models.encoders import make_encoder
    from negsample.models.features.align import AlignFeatures
    from negsample.models.heads.align import untrained

    return AlignFeatures(make_encoder(encoder)), untrained()

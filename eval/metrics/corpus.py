"""Metrics of one set of texts against another, by name: the same specifications as pair metrics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from negsample.errors import InputError
from negsample.registry import Registry
from negsample.scoring.metrics import METRICS
from negsample.spec import build

CORPUS_METRICS = Registry("corpus metric", {"fed": "negsample.eval.metrics.frechet:fed"}, plural="corpus_metrics")


@dataclass(frozen=True)
class CorpusScore:
    """``value``; how many ``generated`` and ``reference`` texts it stands on; ``missing``: reason → texts left out."""

    value: float
    generated: int
    reference: int
    missing: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class CorpusMetric:
    """``name`` and ``signature`` as in ``Metric``; ``score`` takes generated and reference texts, in any order."""

    name: str
    signature: str
    higher_is_better: bool
    score: Callable[[Sequence[str], Sequence[str]], CorpusScore] = field(repr=False)


def make_corpus_metric(spec: str) -> CorpusMetric:
    """Make the corpus metric that ``spec`` names, e.g. ``"fed"`` or ``"fed(encoder=sentence-transformer,pool=mean)"``.

    Raises InputError for an unknown name, option or value.
    """
    name = spec.partition(":")[0]
    if name not in CORPUS_METRICS and name in METRICS:
        raise InputError(
            f"{name} scores pairs, not corpora; use negsample score --metric {name} (known here: "
            f"{', '.join(CORPUS_METRICS.names())})"
        )
    return build(CORPUS_METRICS, spec, CorpusMetric)


def corpus_metric(spec: str, generated: Sequence[str], reference: Sequence[str]) -> dict[str, Any]:
    """Compute the metric ``spec`` of ``generated`` texts against ``reference`` texts, ready to be written as JSON.

    Keys: ``metric``, ``value``, ``higher_is_better``, ``generated`` and ``reference`` (texts used), ``missing``
    (reason → texts left out), ``signature``. Raises InputError for a bad ``spec`` and for too few texts.
    """
    metric = make_corpus_metric(spec)
    score = metric.score(generated, reference)
    return {
        "metric": metric.name,
        "value": score.value,
        "higher_is_better": metric.higher_is_better,
        "generated": score.generated,
        "reference": score.reference,
        "missing": dict(score.missing),
        "signature": metric.signature,
    }

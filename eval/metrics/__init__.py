"""Metrics of a summary against its document or references, by name.

A specification is ``NAME[:option=value[,option=value]]``; a value that has commas of its own stands in parentheses:
``cosine:encoder=(glove:path=/x/vectors.txt,unit=word),against=references``.
"""

import inspect
from collections.abc import Callable
from typing import TypeVar

from negsample.errors import InputError
from negsample.eval.metrics.base import Item, Metric, Scores, score_judged, split_outside, unquote
from negsample.registry import Registry, suggestion

M = TypeVar("M")

METRICS = Registry(
    "metric",
    {
        "words": "negsample.eval.metrics.trivial:words",
        "copied": "negsample.eval.metrics.trivial:copied",
        "tf-recall": "negsample.eval.metrics.trivial:tf_recall",
        "lead-overlap": "negsample.eval.metrics.trivial:lead_overlap",
        "cosine": "negsample.eval.metrics.cosine:cosine",
        "enc-avg": "negsample.eval.metrics.cosine:enc_avg",
        "aes": "negsample.eval.metrics.angular:aes",
        "wms": "negsample.eval.metrics.movers:wms",
        "sms": "negsample.eval.metrics.movers:sms",
        "s+wms": "negsample.eval.metrics.movers:s_wms",
        "rouge1": "negsample.eval.metrics.rouge:rouge1",
        "rouge2": "negsample.eval.metrics.rouge:rouge2",
        "rouge3": "negsample.eval.metrics.rouge:rouge3",
        "rouge4": "negsample.eval.metrics.rouge:rouge4",
        "rougeL": "negsample.eval.metrics.rouge:rougel",
        "rougeLsum": "negsample.eval.metrics.rouge:rougelsum",
        "rougeW": "negsample.eval.metrics.rouge:rougew",
        "align-untrained": "negsample.eval.metrics.align_untrained:align_untrained",
        "novelty1": "negsample.eval.metrics.novelty:novelty1",
        "novelty2": "negsample.eval.metrics.novelty:novelty2",
        "novelty3": "negsample.eval.metrics.novelty:novelty3",
        "novelty4": "negsample.eval.metrics.novelty:novelty4",
        "textrank": "negsample.eval.metrics.textrank:textrank",
        "summaqa-f1": "negsample.eval.metrics.summaqa:summaqa_f1",
        "summaqa-conf": "negsample.eval.metrics.summaqa:summaqa_conf",
        "bartscore": "negsample.eval.metrics.bartscore:bartscore",
        "mlm": "negsample.eval.metrics.language_model:mlm",
        "perplexity": "negsample.eval.metrics.language_model:perplexity",
        "learned": "negsample.eval.metrics.learned:learned",
        "external": "negsample.eval.metrics.external:external",
    },
)

__all__ = ["METRICS", "Item", "Metric", "Scores", "build", "make_metric", "score_judged"]


def make_metric(spec: str) -> Metric:
    """Make the metric that ``spec`` names, e.g. ``"words"`` or ``"rouge1:value=recall,stem=true"``.

    A piece without ``=`` is the metric's own argument, for those that have one (``learned:FILE``).
    Raises InputError for an unknown name, option or value, with the nearest that there is.
    """
    return build(METRICS, spec, Metric)


def build(registry: Registry, spec: str, kind: type[M]) -> M:
    """Make what the factory that ``spec`` names in ``registry`` makes of the options in ``spec``.

    Raises InputError for an unknown name, option or value, with the nearest that there is.
    """
    name, _, rest = spec.partition(":")
    factory = registry.get(name)
    positional, keywords, required = _parameters(factory)
    arguments: list[str] = []
    options: dict[str, str] = {}
    pieces = split_outside(rest, ",")
    if pieces is None:
        raise InputError(f"metric {spec!r}: a parenthesis is not closed or not opened")
    for piece in filter(None, pieces):
        key, equals, value = piece.partition("=")
        if not equals:
            if len(arguments) >= len(positional):
                hint = "write option=value; " + (f"known: {', '.join(keywords)}" if keywords else "it has no options")
                raise InputError(f"metric {spec!r}: {piece!r} is not an option; {hint}")
            arguments.append(unquote(piece))
        elif key not in keywords:
            hint = suggestion(key, keywords) if keywords else "it has no options"
            raise InputError(f"metric {name!r} has no option {key!r}; {hint}")
        elif key in options:
            raise InputError(f"metric {spec!r}: option {key!r} is given twice")
        else:
            options[key] = unquote(value)
    if len(arguments) < required:
        raise InputError(f"metric {name!r} needs an argument: {name}:{positional[len(arguments)].upper()}")
    made = factory(*arguments, **options)
    if not isinstance(made, kind):
        raise InputError(f"{registry.kind} {name!r}: its factory gave a {type(made).__name__}, not a {kind.__name__}")
    return made


def _parameters(factory: Callable[..., object]) -> tuple[list[str], list[str], int]:
    """Names of the factory's positional parameters and of its options (keyword-only), and how many it must have."""
    parameters = inspect.signature(factory).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in positional)
    return [p.name for p in positional], [p.name for p in parameters if p.kind == p.KEYWORD_ONLY], required

"""Metrics by name. They live in ``negsample.eval.metrics``; that they are named here lets models and rewards weigh them.

A specification is that of ``negsample.spec``: ``words``, ``rouge1(value=recall)``, ``learned:FILE``.
"""

from negsample.registry import Registry
from negsample.scoring.scorer import Scorer
from negsample.spec import build

METRICS = Registry(
    "metric",
    {
        "words": "negsample.eval.metrics.baselines:words",
        "copied": "negsample.eval.metrics.baselines:copied",
        "tf-recall": "negsample.eval.metrics.baselines:tf_recall",
        "lead-overlap": "negsample.eval.metrics.baselines:lead_overlap",
        "cosine": "negsample.eval.metrics.cosine:cosine",
        "enc-avg": "negsample.eval.metrics.cosine:enc_avg",
        "aes": "negsample.eval.metrics.cosine:aes",
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
        "align-untrained": "negsample.eval.metrics.baselines:align_untrained",
        "novelty1": "negsample.eval.metrics.baselines:novelty1",
        "novelty2": "negsample.eval.metrics.baselines:novelty2",
        "novelty3": "negsample.eval.metrics.baselines:novelty3",
        "novelty4": "negsample.eval.metrics.baselines:novelty4",
        "textrank": "negsample.eval.metrics.textrank:textrank",
        "summaqa-f1": "negsample.eval.metrics.summaqa:summaqa_f1",
        "summaqa-conf": "negsample.eval.metrics.summaqa:summaqa_conf",
        "bartscore": "negsample.eval.metrics.language_models:bartscore",
        "mlm": "negsample.eval.metrics.language_models:mlm",
        "perplexity": "negsample.eval.metrics.language_models:perplexity",
        "learned": "negsample.eval.metrics.learned:learned",
        "external": "negsample.eval.metrics.external:external",
    },
)


def make_metric(spec: str) -> Scorer:
    """Make the metric that ``spec`` names, e.g. ``"words"`` or ``"rouge1(value=recall, stem=true)"``.

    Raises InputError for an unknown name, option or value, with the nearest that there is.
    """
    return build(METRICS, spec, Scorer)

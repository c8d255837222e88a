"""Metrics by name. They live in ``negsample.eval.metrics``; that they are named here lets models and rewards weigh them.

A specification is that of ``negsample.registry``: ``words``, ``rouge1(value=recall)``, ``learned:FILE``.
"""

from negsample.errors import InputError
from negsample.registry import Registry, build, quote
from negsample.scoring.scorer import Scorer

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
        "judge": "negsample.eval.metrics.judge:judge",
        "judge-pairs": "negsample.eval.metrics.judge_pairs:judge_pairs",
        "learned": "negsample.eval.metrics.learned:learned",
        "external": "negsample.eval.metrics.external:external",
    },
)


def make_metric(spec: str) -> Scorer:
    """Make the metric that ``spec`` names, e.g. ``"words"`` or ``"rouge1(value=recall, stem=true)"``.

    Raises InputError for an unknown name, option or value, with the nearest that there is.
    """
    return build(METRICS, spec, Scorer)


def p2(model: str) -> dict[str, float]:
    """0.8576·ROUGE-L + 2.274·QA_conf + 0.6413·QA_fscore, as metric → weight (Scialom et al. 2019, equation 1).

    The QA scores are from the document, by the question-answering ``model``; ROUGE-L is F1 against the references.
    """
    if not model:
        raise InputError("the sum of Scialom et al. needs a question-answering model: give model=FOLDER or a hub id")
    reading = f"model={quote(model)},against=document"
    return {"rougeL(against=references)": 0.8576, f"summaqa-conf({reading})": 2.274, f"summaqa-f1({reading})": 0.6413}

"""Metrics by name. They live in ``negsample.eval.metrics``; that they are named here lets models and rewards weigh them.

A specification is that of ``negsample.registry``: ``words``, ``rouge1(value=recall)``, ``learned:FILE``.
"""

import re

from negsample.errors import InputError
from negsample.registry import Registry, build, quote
from negsample.scoring.scorer import Scorer

# A file of ``negsample.eval.metrics`` → its metrics; each one's function is called as it, in lower case.
_FAMILIES = {
    "baselines": "words copied tf-recall lead-overlap align-untrained novelty1 novelty2 novelty3 novelty4",
    "cosine": "cosine enc-avg aes",
    "external": "external",
    "judge": "judge",
    "judge_pairs": "judge-pairs",
    "language_models": "bartscore mlm perplexity",
    "learned": "learned",
    "movers": "wms sms s+wms",
    "rouge": "rouge1 rouge2 rouge3 rouge4 rougeL rougeLsum rougeW",
    "summaqa": "summaqa-f1 summaqa-conf",
    "textrank": "textrank",
}
METRICS = Registry(
    "metric",
    {
        name: f"negsample.eval.metrics.{family}:{re.sub('[^a-z0-9]', '_', name.lower())}"
        for family, names in _FAMILIES.items()
        for name in names.split()
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

"""The scorer ``negsample/summary_quality`` of ``inspect_ai``, which finds it as an entry point."""

import math

import anyio
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from negsample.errors import InputError
from negsample.models import load_once
from negsample.scoring.scorer import Item


@scorer(metrics={"*": [mean(), stderr()]})
def summary_quality(model: str | None = None, document: str | None = None) -> Scorer:
    """Quality of an answer as a summary of the sample's document: ``score`` and each aspect, in [0, 1], higher is better.

    ``document``: the key of a sample's metadata that has the document; by default it is the sample's input. ``model``: what
    ``negsample.models.load`` takes; by default the ready estimator. Targets are references, to a model that was fitted with
    them. An answer that can't be scored (a blank one) stands without a value, with the reason, and is in no mean. Raises
    InputError where a sample has no such document.
    """

    async def score(state: TaskState, target: Target) -> Score:
        text = state.metadata.get(document) if document else state.input_text
        if not isinstance(text, str) or not text.strip():
            where = f"metadata[{document!r}] of" if document else "the input of"
            raise InputError(f"{where} sample {state.sample_id} is no document; name its key with document=")
        item = Item(text, state.output.completion, tuple(target))
        found = await anyio.to_thread.run_sync(lambda: load_once(model).scorer().score([item]))
        values = {name: float(column[0]) for name, column in found.named().items()}
        if math.isnan(values["score"]):
            reason = "scoring_failed" if item.summary.strip() else "no_response"
            return Score.unscored(reason=reason, answer=item.summary, explanation=found.reasons[0])
        shares = {name: float(share[0]) for name, share in found.percentiles.items()}
        return Score(value=values, answer=item.summary, explanation=found.reasons[0], metadata={"percentiles": shares})

    return score

"""What language models say: perplexity, masked or causal (Scialom et al. 2019, §2.2.1), and BARTScore (Yuan et al. 2021)."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.base import Results, Score, metric, number
from negsample.models.language.language_model import (
    PROMPTS,
    SMALLEST_WINDOW,
    Asked,
    framed,
    load_lm,
    losses_given,
    token_losses,
)
from negsample.scoring.scorer import Item
from negsample.text import readable


@metric("mlm", higher_is_better=False)
def mlm(*, model: str = "", window: int = 0, device: str = "auto") -> tuple[Score, str]:
    """``mlm``: pseudo-perplexity of the summary, exp(−1/N·Σ_t log P(w_t | the other tokens)); ≥ 1, lower is better.

    Each of the N tokens is masked in turn (Wang & Cho 2019; Salazar et al. 2020, §2.1). ``model``: folder or hub id of a masked
    language model (Scialom et al.: BERT base); none is packaged. ``window``: tokens read at a time (0: as many as the model can);
    in a longer text each token is read in the middle of a window of its own. Cost: N inputs of up to ``window`` tokens a summary.
    Missing where it has no token.
    """
    return _by_losses("mlm", "masked", model, window, device)


@metric("perplexity", higher_is_better=False)
def perplexity(*, model: str = "", window: int = 0, device: str = "auto") -> tuple[Score, str]:
    """``perplexity``: exp(−1/N·Σ_t log P(w_t | the tokens before it)) under a causal model; ≥ 1, lower is better.

    ``model``: folder or hub id of a causal language model; none is packaged. The first token is predicted from the
    model's beginning-of-sequence token; where it has none, the first token is not counted. ``window``: as
    for ``mlm``; a longer text is read in windows that overlap by half, so that every token has at least half a window
    before it (or all that there is). Missing where no token can be predicted.
    """
    return _by_losses("perplexity", "causal", model, window, device)


def _by_losses(name: str, kind: str, model: str, window: int, device: str) -> tuple[Score, str]:
    lm = load_lm(need_model(name, model, f"a {kind} language model"), kind, device)
    size = number("window", window, 0, 10**9) or lm.window
    if not SMALLEST_WINDOW <= size <= lm.window:
        raise InputError(f"option window={size}: this model reads {SMALLEST_WINDOW} to {lm.window} tokens at a time")

    def score(items: Sequence[Item]) -> Results:
        texts = list(dict.fromkeys(item.summary for item in items))
        losses = dict(zip(texts, token_losses(lm, texts, size), strict=True))
        for item in items:
            loss = float(losses[item.summary].mean()) if losses[item.summary].size else math.nan
            if math.isnan(loss):
                yield "the summary has no token to predict"
            else:
                yield math.exp(loss) if loss < 700 else "the perplexity is too large for a number"

    return score, f"|read:{size}|weights:{lm.fingerprint[:12]}"


def _side(options: Any) -> tuple[str]:
    return ("document" if options["direction"] == "faithfulness" else "references",)


@metric("bartscore", needs=_side)
def bartscore(
    *, model: str = "", direction: Literal["faithfulness", "precision", "recall"] = "faithfulness", device: str = "auto"
) -> tuple[Score, str]:
    """``bartscore``: mean log P of a text's tokens given another text, in nats, at most 0; higher is better.

    ``direction`` (Yuan et al. 2021 §3.2): ``faithfulness``, the summary given the document; ``precision``, the summary
    given a reference; ``recall``, a reference given the summary; the mean over several references. ``model``: folder,
    hub id, ``gguf:FILE`` or ``packaged``: an encoder–decoder (theirs: facebook/bart-large-cnn) or a causal model, which
    reads ``TL;DR:`` between the two. What is given is cut at what the model can read, its beginning kept; so is the other
    text, at half of that. Missing where a text has no token.
    """
    head = load_lm(need_model("bartscore", model, "an encoder–decoder or a causal language model"), device=device)
    decodes = head.kind == "encoder-decoder"
    before, after = framed(head, PROMPTS[head.kind])

    def ids(text: str, special: bool) -> tuple[int, ...]:
        return tuple(head.tokenizer(readable(text), add_special_tokens=special, verbose=False)["input_ids"])

    def pairs(item: Item) -> list[tuple[str, str]]:
        """What is given, and what is then to be told."""
        if direction == "faithfulness":
            return [(item.document, item.summary)]
        both = [(reference, item.summary) for reference in item.references]
        return both if direction == "precision" else [(summary, reference) for reference, summary in both]

    def score(items: Sequence[Item]) -> Results:
        asked, counts = [], []
        for item in items:
            for given, target in pairs(item):
                wanted = ids(target, special=decodes)[: head.window // 2]
                room = head.window - len(before) - len(after) - (0 if decodes else len(wanted))
                asked.append(Asked((*before, *ids(given, special=False)[:room]), after, wanted))
            counts.append(len(pairs(item)))
        losses = [-float(found.mean()) if found.size else np.nan for found in losses_given(head, asked)]
        for own in np.split(np.array(losses), np.cumsum(counts)[:-1]) if counts else ():
            yield float(own.mean()) if len(own) and np.isfinite(own).all() else "a text has no token to predict"

    return score, f"|read:{head.window}|weights:{head.fingerprint[:12]}"


def need_model(metric: str, model: str, task: str) -> str:
    """``model``; InputError where it is blank, for no weights of this kind come with the package."""
    if not model:
        raise InputError(f"metric {metric!r} needs {task}: give {metric}(model=FOLDER) or a hub id (none is packaged)")
    return model

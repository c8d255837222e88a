"""Perplexity under a language model, masked, each token in turn, or causal (Scialom et al. 2019, §2.2.1)."""

import math
from collections.abc import Callable, Sequence
from functools import partial

from negsample.eval.metrics.base import choice, pair_metric
from negsample.eval.metrics.pretrained import need_model, pick_window
from negsample.models.language.language_models import SMALLEST_WINDOW, LanguageModel, load_lm
from negsample.scoring.scorer import Columns, Item, Scorer, collect


def mlm(*, model: str = "", value: str = "perplexity", window: int | str = 0, device: str = "auto") -> Scorer:
    """``mlm``: pseudo-perplexity of the summary, exp(−1/N·Σ_t log P(w_t | the other tokens)); ≥ 1, lower is better.

    Each of the N tokens is masked in turn (Wang & Cho 2019; Salazar et al. 2020, §2.1). ``model``: folder or hub id of
    a masked language model (Scialom et al.: BERT base); none is packaged. ``value``: ``perplexity``, or ``loss``, its
    logarithm. ``window``: tokens read at a time (0: as many as the model can); in a longer text each token is read in
    the middle of a window of its own. Cost: N inputs of up to ``window`` tokens a summary. Missing where it has no
    token.
    """
    return _metric("mlm", mlm, "masked", model, value, window, device)


def perplexity(*, model: str = "", value: str = "perplexity", window: int | str = 0, device: str = "auto") -> Scorer:
    """``perplexity``: exp(−1/N·Σ_t log P(w_t | the tokens before it)) under a causal model; ≥ 1, lower is better.

    ``model``: folder or hub id of a causal language model; none is packaged. The first token is predicted from the
    model's beginning-of-sequence token; where it has none, the first token is not counted. ``value``, ``window``: as
    for ``mlm``; a longer text is read in windows that overlap by half, so that every token has at least half a window
    before it (or all that there is). Missing where no token can be predicted.
    """
    return _metric("perplexity", perplexity, "causal", model, value, window, device)


def _metric(
    name: str, factory: Callable[..., Scorer], kind: str, model: str, value: str, window: int | str, device: str
) -> Scorer:
    need_model(name, model, f"a {kind} language model")
    choice("value", value, ("perplexity", "loss"))
    lm = load_lm(kind, model, device)
    size = pick_window(lm.head, window, SMALLEST_WINDOW)
    options = {"model": model, "value": value, "window": int(window)}
    score = partial(_score, lm=lm, window=size, value=value)
    more = f"|read:{size}|weights:{lm.head.fingerprint[:12]}"
    return pair_metric(name, factory, options, (), score, higher_is_better=False, more=more)


def _score(items: Sequence[Item], *, lm: LanguageModel, window: int, value: str) -> Columns:
    texts = list(dict.fromkeys(item.summary for item in items))
    means: dict[str, float | str] = {}
    for text, found in zip(texts, lm.losses(texts, window), strict=True):
        loss = float(found.mean()) if found.size else math.nan
        if not found.size:
            means[text] = "the summary has no token to predict"
        elif value == "loss":
            means[text] = loss
        else:
            means[text] = math.exp(loss) if loss < 700 else "the perplexity is too large for a number"
    return collect(means[item.summary] for item in items)

"""BARTScore (Yuan, Neubig & Liu 2021): how likely one text is given another, by an encoder–decoder or a causal model."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from negsample.eval.metrics.base import choice, pair_metric
from negsample.eval.metrics.pretrained import need_model
from negsample.models.language.conditional import PROMPTS, Asked, framed, losses_given
from negsample.models.language.gguf import lm_folder
from negsample.models.language.head_models import HeadModel, load_head
from negsample.models.language.language_models import KINDS, lm_kind
from negsample.scoring.scorer import Columns, Item, Scorer, collect
from negsample.text import readable

DIRECTIONS = ("faithfulness", "precision", "recall")


def bartscore(*, model: str = "", direction: str = "faithfulness", device: str = "auto") -> Scorer:
    """``bartscore``: mean log P of a text's tokens given another text, in nats, at most 0; higher is better.

    ``direction`` (Yuan et al. 2021 §3.2): ``faithfulness``, the summary given the document; ``precision``, the summary
    given a reference; ``recall``, a reference given the summary; the mean over several references. ``model``: folder,
    hub id, ``gguf:FILE`` or ``packaged``: an encoder–decoder (theirs: facebook/bart-large-cnn) or a causal model, which
    reads ``TL;DR:`` between the two. What is given is cut at what the model can read, its beginning kept; so is the other
    text, at half of that. Missing where a text has no token.
    """
    choice("direction", direction, DIRECTIONS)
    need_model("bartscore", model, "an encoder–decoder or a causal language model")
    folder = str(lm_folder(model))
    head = load_head(KINDS[lm_kind(folder)], folder, device)
    score = partial(_score, head=head, direction=direction)
    options = {"model": model, "direction": direction}
    needs = {"document"} if direction == "faithfulness" else {"references"}
    more = f"|read:{head.window}|weights:{head.fingerprint[:12]}"
    return pair_metric("bartscore", bartscore, options, needs, score, more=more)


def _score(items: Sequence[Item], *, head: HeadModel, direction: str) -> Columns:
    decodes = bool(head.network.config.is_encoder_decoder)
    before, after = framed(head, PROMPTS["encoder-decoder" if decodes else "causal"])
    half = head.window // 2

    def ids(text: str, special: bool) -> tuple[int, ...]:
        found = head.tokenizer(readable(text), add_special_tokens=special, verbose=False)["input_ids"]
        return tuple(found)

    asked, owner = [], []
    for number, item in enumerate(items):
        pairs = [(item.document, item.summary)]
        if direction == "precision":
            pairs = [(reference, item.summary) for reference in item.references]
        elif direction == "recall":
            pairs = [(item.summary, reference) for reference in item.references]
        for given, target in pairs:
            wanted = ids(target, special=decodes)[:half]
            room = head.window - len(before) - len(after) - (0 if decodes else len(wanted))
            asked.append(Asked((*before, *ids(given, special=False)[:room]), after, wanted))
            owner.append(number)
    results: list[list[float]] = [[] for _ in items]
    for number, losses in zip(owner, losses_given(head, asked), strict=True):
        results[number].append(-float(losses.mean()) if losses.size else np.nan)
    return collect(
        float(np.mean(found)) if np.isfinite(found).all() and found else "a text has no token to predict"
        for found in results
    )

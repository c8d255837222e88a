"""Damage to the first three sentences of an article, one kind at a time, as the tests and measurements use it."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from negsample.models.features.align import stack
from negsample.negatives.context import CannotDamage, context_of
from negsample.negatives.kinds import entity
from negsample.records import Pair
from negsample.sentences import split_sentences

SENTENCES = 3
SHUFFLED = 8


def lead(document: str) -> list[str] | None:
    """The first three sentences, None where there are not as many, or one has fewer than four words."""
    found = split_sentences(document)[:SENTENCES]
    return found if len(found) == SENTENCES and min(len(s.split()) for s in found) >= 4 else None


def damaged(document: str, other: str, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """(kind, summary) for each kind of damage to the lead of ``document``; ``other`` is another article."""
    sentences, foreign = lead(document), lead(other)
    assert sentences is not None
    assert foreign is not None
    place = int(rng.integers(SENTENCES))
    twin = (place + 1 + int(rng.integers(SENTENCES - 1))) % SENTENCES

    def instead(text: str) -> str:
        return " ".join([*sentences[:place], text, *sentences[place + 1 :]])

    yield "delete", " ".join(sentences[:place] + sentences[place + 1 :])
    yield "copy", instead(sentences[twin])
    yield "foreign", instead(foreign[int(rng.integers(SENTENCES))])
    long = [i for i, sentence in enumerate(sentences) if len(sentence.split()) >= SHUFFLED]
    if long:
        number = long[int(rng.integers(len(long)))]
        words = sentences[number].split()
        start = int(rng.integers(len(words) - SHUFFLED + 1))
        window = words[start : start + SHUFFLED]
        mixed = window
        while mixed == window:
            mixed = [window[i] for i in rng.permutation(SHUFFLED)]
        changed = " ".join([*words[:start], *mixed, *words[start + SHUFFLED :]])
        yield "shuffle", " ".join([*sentences[:number], changed, *sentences[number + 1 :]])
    last = sentences[-1].split()
    yield "cut", " ".join([*sentences[:-1], " ".join(last[: len(last) // 2])])
    yield "all foreign", " ".join(foreign)
    pair = Pair("0", document, " ".join(sentences))
    with suppress(CannotDamage):
        yield "exchange", entity.make(pair, context_of([pair]), rng, most=1).summary


def shares_that_fall(features: Any, network: Any, documents: list[str]) -> dict[str, list[bool]]:
    """Kind of damage → whether each damaged lead of ``documents`` has a lower overall score than the lead itself."""
    rows = [("none", document, " ".join(lead(document) or []), number) for number, document in enumerate(documents)]
    for number, document in enumerate(documents):
        drawn = damaged(document, documents[number - 1], np.random.default_rng(number))
        rows += [(kind, document, summary, number) for kind, summary in drawn]
    with torch.inference_mode():
        compared = features.compare([row[1] for row in rows], [row[2] for row in rows])
        scores = network(**stack(compared))[:, 0].numpy()
    fell: dict[str, list[bool]] = {}
    for (kind, _, _, number), score in zip(rows, scores, strict=True):
        if kind != "none":
            fell.setdefault(kind, []).append(bool(score < scores[number]))
    return fell

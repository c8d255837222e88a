"""Word, sentence, and sentence-and-word mover's similarity (Clark, Celikyilmaz & Smith 2019).

similarity = exp(−EMD(A, B)), EMD the least Σ T_ij ‖v_i − v_j‖₂ over T ≥ 0 whose row sums are the weights of A and whose
column sums are the weights of B (their eq. 2–3). In (0, 1], 1 for equal texts, symmetric. Stop words and punctuation
are left out (A.1), and so are words that the encoder does not know; |A| counts the words that remain (reading).

- ``wms``: word types, weight count/|A| (eq. 1). - ``sms``: sentences, weight |i|/|A| (eq. 4).
- ``s+wms``: both, weights halved (eq. 5).

Cost: time grows with the cube of the number of distinct words, memory with its square; weight that both texts have on
one word is not moved, so copied words cost nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from negsample.errors import InputError
from negsample.eval.metrics.bags import make_space, reads_tokens
from negsample.eval.metrics.base import pair_metric
from negsample.eval.metrics.targets import compare_with_targets, needs_of, target_options, targets_of
from negsample.eval.metrics.transport import mover_distance
from negsample.eval.metrics.vectors import weights_of
from negsample.scoring.scorer import Columns, Item, Scorer, collect

if TYPE_CHECKING:
    from negsample.models.encoders import Encoder

_POINTS = {"wms": (True, False), "sms": (False, True), "s+wms": (True, True)}
# Characters of text whose vectors are in memory at a time: 250 MB of contextual vectors at 384 dimensions.
_BLOCK = 500_000


def wms(*, encoder: str = "glove", against: str = "auto", references: str = "max") -> Scorer:
    """``wms``: word mover's similarity, exp(−WMD), in (0, 1], higher is better (Clark et al. 2019, eq. 1–3).

    ``encoder``: word vectors (``glove``, ``word2vec:path=…,unit=word``), one for a word type; or ``hf``, one for each
    token in its sentence. ``against``: ``references``, ``document``, or ``auto``, references where the record has any.
    ``references``: ``max`` or ``mean`` over several (reading: the paper has one). Missing where a text has no content
    word that the encoder knows, or where the two have more than 25,000,000 distances between words that they don't
    share. Raises InputError for an encoder of sentences.
    """
    return _metric("wms", wms, encoder, against, references)


def sms(*, encoder: str = "glove", against: str = "auto", references: str = "max") -> Scorer:
    """``sms``: sentence mover's similarity, in (0, 1], higher is better (Clark et al. 2019, eq. 4).

    Options as for ``wms``; a sentence's vector is the mean of its words' vectors. ``encoder`` may also be an encoder of
    sentences, whose own vectors are then used.
    """
    return _metric("sms", sms, encoder, against, references)


def s_wms(*, encoder: str = "glove", against: str = "auto", references: str = "max") -> Scorer:
    """``s+wms``: sentence and word mover's similarity, in (0, 1], higher is better (Clark et al. 2019, eq. 5).

    Options as for ``wms``. Weight may move between words and sentences, so both must live in one space: an encoder of
    sentences won't do.
    """
    return _metric("s+wms", s_wms, encoder, against, references)


def _metric(name: str, factory: Callable[..., Scorer], encoder: str, against: str, references: str) -> Scorer:
    from negsample.models.encoders import make_encoder

    options = {"encoder": encoder, **target_options(against, references)}
    made = make_encoder(encoder)
    words, sentences = _POINTS[name]
    if words and made.unit != "word" and not reads_tokens(made):
        raise InputError(
            f"{name} moves words, and encoder {encoder!r} gives vectors of sentences; "
            "give glove, word2vec:path=PATH,unit=word, or hf (or use sms)"
        )
    score = partial(_score, encoder=made, words=words, sentences=sentences, against=against, references=references)
    return pair_metric(name, factory, options, needs_of(against), score, more=weights_of(made))


def _score(
    items: Sequence[Item], *, encoder: "Encoder", words: bool, sentences: bool, against: str, references: str
) -> Columns:
    results: list[float | str] = [""] * len(items)
    for block in _blocks(items, against):
        texts = {text for row in block for text in (items[row].summary, *targets_of(items[row], against))}
        space = make_space(sorted(texts), encoder, words=words, sentences=sentences)

        def problem(text: str, space=space) -> str | None:  # type: ignore[no-untyped-def]
            bag = space.bags[text]
            return bag if isinstance(bag, str) else None

        def similarity(summary: str, target: str, space=space) -> float | str:  # type: ignore[no-untyped-def]
            distance = mover_distance(space.vectors, space.bags[summary], space.bags[target])
            return distance if isinstance(distance, str) else float(np.exp(-distance))

        for row in block:
            results[row] = compare_with_targets(items[row], against, references, problem, similarity)
    return collect(results)


def _blocks(items: Sequence[Item], against: str) -> Iterator[list[int]]:
    """Numbers of ``items``, those with the same targets side by side, in blocks of about ``_BLOCK`` characters."""
    targets = [targets_of(item, against) for item in items]
    block: list[int] = []
    seen: set[str] = set()
    size = 0
    for row in sorted(range(len(items)), key=lambda row: targets[row]):
        new = {items[row].summary, *targets[row]} - seen
        if block and size + sum(map(len, new)) > _BLOCK:
            yield block
            block, seen, size = [], set(), 0
            new = {items[row].summary, *targets[row]}
        block.append(row)
        seen |= new
        size += sum(map(len, new))
    if block:
        yield block

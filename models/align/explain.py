"""Why a pair scores as it does: what is covered, what each sentence rests on, what has no support, what is repeated."""

import re
from collections.abc import Callable, Collection, Mapping
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from negsample.models.align.alignment import Alignment, DocumentView
from negsample.models.align.aspects import matches, repeated_runs, telling_facts
from negsample.models.align.reader import Text
from negsample.models.align.words import read_words
from negsample.scoring.scorer import values_at
from negsample.text import as_written

if TYPE_CHECKING:
    from negsample.models.features.align import AlignFeatures
    from negsample.scoring.scorer import Columns

# A summary word is called unsupported where it is not in the document and its best match is below this; a number or a
# name wherever it is not in the document. Function words are left out.
_UNSUPPORTED = 0.7
_TELLING = 0.25
# Two sentences of a summary that are more alike than this say the same.
_SAME = 0.85
# A salient document sentence is called missing below this match.
_COVERED = 0.6
_MOST_MISSING = 3
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def explain(
    features: "AlignFeatures", network: nn.Module, document: str, summary: str, scored: "Columns", place: int = 0
) -> dict[str, Any]:
    """Plain values, as ``negsample explain`` prints them; the pair is the one at ``place`` in ``scored``.

    ``score`` and ``aspects`` (null where missing, then ``reason``); ``document``: for each sentence ``covered`` (its best
    match, [0, 1]), ``said`` (whether that is enough), ``by`` (which summary sentence, from 0) and ``weight`` (its share of
    the salience); ``missing``: the places of salient sentences that the summary leaves out; ``summary``: for each sentence
    ``support`` ([0, 1]), ``rests_on`` (place of the document sentence), ``unsupported`` words, and ``faults``
    (``"no end mark"``, of fewer than five words: ``"fragment"`` without one, else ``"short"``); ``repetitions``: pairs of
    alike sentences, and runs of three words said again. ``unsupported_at`` and ``repeated_at`` are where these words and
    runs stand: [start, stop] in characters of ``sentence``.
    """
    pair = features.view_pairs([document], [summary])[0]
    told: dict[str, Any] = {
        "score": round(float(scored.scores[place]), 7),
        "aspects": values_at(scored.aspects, place),
    }
    if pair.alignment is None:
        told["reason"] = features.reason(document, summary)
        return {**told, "document": [], "missing": [], "summary": [], "repetitions": {"sentences": [], "phrases": []}}
    weights = _salience(network, pair.document)
    covered = _covered(pair.document, pair.summary, pair.alignment)
    order = np.argsort(-weights, kind="stable")
    likely = order[: max(1, len(order) // 4)]
    source, own = pair.document.text.pieces, pair.summary.pieces
    told["document"] = [
        {
            "sentence": show(0, len(sentence)),
            "covered": round(float(covered[n]), 4),
            "said": bool(covered[n] >= _COVERED),
            "by": int(np.argmax(pair.alignment.focus[n] + pair.alignment.sentences[n])),
            "weight": round(float(weights[n]), 4),
        }
        for n, (sentence, show) in enumerate(zip(source, as_written(document, source), strict=True))
    ]
    told["missing"] = [int(n) for n in likely if covered[n] < _COVERED][:_MOST_MISSING]
    runs = repeated_runs(pair.summary)
    again = {word for places in runs.values() for words in places for word in words}
    told["summary"] = [
        _sentence(pair.document, pair.summary, pair.alignment, m, again, show)
        for m, show in enumerate(as_written(summary, own))
    ]
    told["repetitions"] = {"sentences": _alike(pair.summary), "phrases": list(runs)}
    return told


def _salience(network: nn.Module, document: DocumentView) -> np.ndarray:
    with torch.inference_mode():
        device = next(network.parameters()).device
        salience = torch.from_numpy(document.salience).unsqueeze(0).to(device)
        mask = torch.ones(salience.shape[:2], dtype=torch.bool, device=device)
        weights: torch.Tensor = network.sentence_weights(salience, mask)  # type: ignore[operator]
    return weights[0].mean(dim=1).cpu().numpy()


def _covered(document: DocumentView, summary: Text, alignment: Alignment) -> np.ndarray:
    """Mean of the match by word vectors and by word forms, [N] in [0, 1]."""
    found = matches(document, summary, alignment)
    return np.clip((found[:, 1] + found[:, 2]) / 2, 0, 1)


def _sentence(
    document: DocumentView,
    summary: Text,
    alignment: Alignment,
    place: int,
    again: Collection[int],
    show: Callable[[int, int], str],
) -> dict[str, Any]:
    """What is told of sentence ``place``; ``show`` gives a part of it as the user wrote it, ``again``: repeated words."""
    piece = summary.pieces[place]
    own = np.flatnonzero(summary.place == place)
    faults = []
    if not summary.ends[place]:
        faults.append("no end mark")
    if len(own) < 5 and summary.whole[place]:
        faults.append("short" if summary.ends[place] else "fragment")
    if _doubled(piece):
        faults.append("a word stands twice in a row")
    spans = dict(zip(own.tolist(), read_words(piece, lambda _: 0.0).spans, strict=True))
    unsupported = _unsupported(document, summary, alignment, piece, spans)
    # Words that follow one another are one stretch.
    said = enumerate(word for word in spans if word in again)
    runs = [[word for _, word in run] for _, run in groupby(said, lambda item: item[1] - item[0])]
    repeated = [(spans[run[0]][0], spans[run[-1]][1]) for run in runs]
    return {
        "sentence": show(0, len(piece)),
        "support": round(float(np.clip(alignment.focus[:, place].max(), 0, 1)), 4),
        "rests_on": int(alignment.rests_on[place]),
        "unsupported": list(dict.fromkeys(show(begin, stop) for begin, stop in unsupported)),
        "unsupported_at": [_shown_at(show, *span) for span in unsupported],
        "repeated_at": [_shown_at(show, *span) for span in repeated],
        "faults": faults,
    }


def _shown_at(show: Callable[[int, int], str], begin: int, stop: int) -> list[int]:
    """Where ``show(begin, stop)`` stands in the sentence as it is shown: what is shown up to ``stop`` ends with it."""
    end = len(show(0, stop))
    return [end - len(show(begin, stop)), end]


def _unsupported(
    document: DocumentView, summary: Text, alignment: Alignment, piece: str, spans: Mapping[int, tuple[int, int]]
) -> list[tuple[int, int]]:
    """Where the unsupported words of ``piece`` stand; ``spans``: of each of its words."""
    facts = telling_facts(summary)
    told = []
    for word, span in spans.items():
        unknown = summary.forms[word] not in document.frequency
        weak = alignment.support[word] < _UNSUPPORTED and summary.weights[word] > _TELLING
        if unknown and (facts[word] or weak):
            told.append(_whole(piece, *span))
    return list(dict.fromkeys(told))


def _whole(piece: str, begin: int, stop: int) -> tuple[int, int]:
    """The word, or all of the number of which it is a part."""
    number = next((found for found in _NUMBER.finditer(piece) if found.start() <= begin and stop <= found.end()), None)
    return number.span() if number else (begin, stop)


def _doubled(piece: str) -> bool:
    """Whether a word stands twice in a row; numbers, and scripts in which each character is a word, aside."""
    said = [piece[begin:stop].lower() for begin, stop in read_words(piece, lambda _: 0.0).spans]
    return any(a == b and a.isalpha() and (len(a) > 1 or a.isascii()) for a, b in pairwise(said))


def _alike(summary: Text) -> list[list[int]]:
    alike = summary.vectors @ summary.vectors.T
    first, second = np.nonzero(np.triu(alike > _SAME, 1))
    return [[int(a), int(b)] for a, b in zip(first, second, strict=True)]

"""Why a pair scores as it does: what is covered, what each sentence rests on, what has no support, what is repeated."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from negsample.models.align.alignment import Alignment, DocumentView
from negsample.models.align.aspects import matches, repeated_runs, telling_facts
from negsample.models.align.reader import Text
from negsample.models.align.support import Verdict, sentences_of
from negsample.models.align.words import read_words
from negsample.scoring.scorer import values_at
from negsample.text import as_written

if TYPE_CHECKING:
    from negsample.models.features.align import AlignFeatures
    from negsample.scoring.scorer import Columns

# A summary word is a doubtful one where it is not in the document and its best match is below this; a number or a
# name wherever it is not in the document. Function words are left out.
_UNSUPPORTED = 0.7
_TELLING = 0.25
# A support judge's mark of a word, and doubt of a sentence, above which they are told of. Of 80 faultless summaries in their
# writers' own words one sentence in seven has such a mark, one in ten such a doubt; of damaged ones two thirds have.
_WRONG, _DOUBTED = 0.5, 0.8
# Two sentences of a summary that are more alike than this say the same.
_SAME, _MOST_ALIKE = 0.85, 1000
# A salient document sentence is called missing below this match.
_COVERED = 0.6
# Or where no stretch of the summary is so like one of it: what was said in other words was said, and a sentence says several
# things, which a summary puts together otherwise (embedded sample: of six sentences in ten one is in their own summary, of one
# in a hundred in another of the same domain). Words of a stretch; each begins in the middle of the one before.
_SAID_ALIKE, _STRETCH = 0.5, 8
_MOST_MISSING = 3
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def explain(
    features: "AlignFeatures", network: nn.Module, document: str, summary: str, scored: "Columns", place: int = 0
) -> dict[str, Any]:
    """Plain values, as ``negsample explain`` prints them; the pair is the one at ``place`` in ``scored``.

    ``score`` and ``aspects`` (null where missing, then ``reason``); ``document``: for each sentence ``covered`` (its best
    match, [0, 1]), ``said`` (whether that is enough), ``by`` (which summary sentence, from 0) and ``weight`` (its share of
    the salience); ``missing``: the places of salient sentences that the summary leaves out; ``summary``: for each sentence
    ``support`` ([0, 1]), ``rests_on`` (place of the document sentence), of several documents ``borne_out_by`` (the numbers,
    from 0, of those that bear it out: their sentences have ``of``), ``unsupported`` words, ``own_words`` (not the document's,
    yet not held to be wrong: only a support judge can tell them apart), ``doubt`` (such a judge's, [0, 1]: .5 is usual where
    nothing is wrong; null without one) and ``faults`` (``"no end mark"``, of fewer than five words: ``"fragment"`` without
    one, else ``"short"``); ``repetitions``: pairs of alike sentences, and runs of three words said again; ``lowers``: in words
    what speaks most against the summary, or null. ``unsupported_at``, ``own_words_at`` and ``repeated_at`` are where these
    words and runs stand: [start, stop] in characters of ``sentence``.
    """
    pair = features.view_pairs([document], [summary])[0]
    told: dict[str, Any] = {"score": round(float(scored.scores[place]), 7), "aspects": values_at(scored.aspects, place)}
    if pair.alignment is None:
        nothing: dict[str, Any] = {name: [] for name in ("document", "missing", "summary")}
        nothing |= {"lowers": None, "repetitions": {"sentences": [], "phrases": []}}
        return {**told, "reason": features.reason(document, summary), **nothing}
    document_view, read, found = pair.document, pair.summary, pair.alignment
    with torch.inference_mode():
        salience = torch.from_numpy(document_view.salience).unsqueeze(0).to(next(network.parameters()).device)
        every = torch.ones(salience.shape[:2], dtype=torch.bool, device=salience.device)
        weights = network.sentence_weights(salience, every)[0].mean(dim=1).cpu().numpy()  # type: ignore[operator]
    # The mean of the match by word vectors and by word forms.
    covered = np.clip(matches(document_view, read, found)[:, 1:].mean(axis=1), 0, 1)
    source, several = document_view.text.pieces, len(found.by_document) > 1
    alike, said_by = _most_alike(features, document_view.text, read)
    said = (covered >= _COVERED) | (alike >= _SAID_ALIKE)
    likely = np.argsort(-weights, kind="stable")[: max(1, len(weights) // 4)]
    told["document"] = [
        {
            "sentence": show(0, len(sentence)),
            "covered": round(float(covered[n]), 4),
            "said": bool(said[n]),
            "by": int(said_by[n]),
            "weight": round(float(weights[n]), 4),
            **({"of": int(document_view.text.documents[n])} if several else {}),
        }
        for n, (sentence, show) in enumerate(zip(source, as_written(document, source), strict=True))
    ]
    told["missing"] = [int(n) for n in likely if not said[n]][:_MOST_MISSING]
    runs = repeated_runs(read)
    again = {word for places in runs.values() for words in places for word in words}
    verdicts: Sequence[Verdict | None] = [None] * len(read.pieces)
    if features.support is not None:
        verdicts = features.support.verdicts([(sentences_of(document_view.text), read.pieces)])[0]
    told["summary"] = [
        _sentence(document_view, read, found, m, again, verdict, show)
        for m, (verdict, show) in enumerate(zip(verdicts, as_written(summary, read.pieces), strict=True))
    ]
    told["repetitions"] = {"sentences": _alike(read.vectors), "phrases": list(runs)}
    return {**told, "lowers": _what_lowers(told)}


def _most_alike(features: "AlignFeatures", document: Text, summary: Text) -> tuple[np.ndarray, np.ndarray]:
    """How alike the most alike stretches of each sentence of the document and of the summary are, [N] in [-1, 1]; of which
    sentence of the summary that one is, int [N]."""
    (owner, own), (other, theirs) = (_read_stretches(features, side) for side in (document, summary))
    likeness = own @ theirs.T
    best = likeness.argmax(axis=1)
    alike, by = np.zeros(len(document.pieces), np.float32), np.zeros(len(document.pieces), int)
    # The most alike of a sentence come last, and stay.
    for row in np.argsort(likeness.max(axis=1), kind="stable").tolist():
        alike[owner[row]], by[owner[row]] = likeness[row, best[row]], other[best[row]]
    return alike, by


def _read_stretches(features: "AlignFeatures", text: Text) -> tuple[list[int], np.ndarray]:
    """Of which sentence each stretch is, and their unit vectors [n, d]; the sentences themselves come first, read already."""
    parts = [(place, part) for place, piece in enumerate(text.pieces) for part in _stretches(piece)[1:]]
    if not parts:
        return list(range(len(text.pieces))), text.vectors
    places, texts = zip(*parts, strict=True)
    vectors = np.asarray(features.encoder.encode(texts), np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return [*range(len(text.pieces)), *places], np.concatenate([text.vectors, vectors])


def _stretches(sentence: str) -> list[str]:
    """The sentence, and where it has more words than ``_STRETCH`` its stretches of so many."""
    words = sentence.split()
    half = _STRETCH // 2
    starts = range(0, len(words) - half, half) if len(words) > _STRETCH else ()
    return [sentence, *(" ".join(words[start : start + _STRETCH]) for start in starts)]


def _what_lowers(told: Mapping[str, Any]) -> str | None:
    """In words, what most speaks against the summary; where nothing does, its lowest aspect, None where all are at least .5."""
    own = told["summary"]
    untrue = sum(bool(item["unsupported"]) if item["doubt"] is None else item["doubt"] > _DOUBTED for item in own)
    broken = sum(bool(set(item["faults"]) - {"short"}) for item in own)
    again = len({second for _, second in told["repetitions"]["sentences"]})
    left = sum(item["weight"] for item in told["document"] if not item["said"])
    shares = {
        f"{_of(untrue, own, 'says', 'say')} what the document does not bear out": untrue / len(own),
        f"{_of(broken, own, 'is', 'are')} broken": broken / len(own),
        f"{_of(again, own, 'says', 'say')} again what was said before": again / len(own),
        # Every summary leaves most of its document out.
        f"{left:.0%} of what the document is about, by weight, is left out": max(0.0, 2 * left - 1),
    }
    worst = max(shares, key=lambda text: shares[text])
    if shares[worst]:
        return worst
    # Below a middling real summary's.
    low = {name: value for name, value in told["aspects"].items() if value is not None and value < 0.5}
    return f"{min(low, key=lambda name: low[name])}, by no single sentence's fault" if low else None


def _of(some: int, every: Sequence[Any], one: str, several: str) -> str:
    return f"{some} of {len(every)} sentence{'s' if len(every) > 1 else ''} {one if some == 1 else several}"


def _sentence(
    document: DocumentView,
    summary: Text,
    alignment: Alignment,
    place: int,
    again: Collection[int],
    verdict: Verdict | None,
    show: Callable[[int, int], str],
) -> dict[str, Any]:
    """What is told of sentence ``place``; ``show`` gives a part of it as the user wrote it, ``again``: repeated words."""
    own = summary.stretch(place, place + 1)
    (piece,), (ends,), (whole,) = own.pieces, own.ends, own.whole
    spans = read_words(piece, lambda _: 0.0).spans
    before = int(np.searchsorted(summary.place, place))
    faults = []
    if not ends:
        faults.append("no end mark")
    if len(spans) < 5 and whole:
        faults.append("short" if ends else "fragment")
    # Numbers, and scripts in which each character is a word, aside.
    following = pairwise(piece[begin:stop].lower() for begin, stop in spans)
    if any(a == b and a.isalpha() and (len(a) > 1 or a.isascii()) for a, b in following):
        faults.append("a word stands twice in a row")
    weak = (alignment.support[before : before + len(spans)] < _UNSUPPORTED) & (own.weights > _TELLING)
    new = np.array([form not in document.terms for form in own.forms], bool)
    wrong, facts = np.zeros(len(spans), bool), telling_facts(own) & new
    if verdict is None:
        wrong = weak & new
    else:
        for begin, stop, mark in verdict.marks:
            wrong |= [mark > _WRONG and first < stop and begin < last for first, last in spans]
        if verdict.probability > _DOUBTED:
            wrong |= weak & new
    unsupported, apart = (
        list(dict.fromkeys(_whole(piece, *span) for span, there in zip(spans, which, strict=True) if there))
        for which in (wrong | facts, weak & new & ~wrong & ~facts)
    )
    borne = alignment.by_document[:, place] >= _UNSUPPORTED
    # Words that follow one another are one stretch.
    said = enumerate(word for word in range(len(spans)) if before + word in again)
    runs = [[word for _, word in run] for _, run in groupby(said, lambda item: item[1] - item[0])]
    return {
        "sentence": show(0, len(piece)),
        "support": round(float(np.clip(alignment.focus[place], 0, 1)), 4),
        "rests_on": int(alignment.rests_on[place]),
        # The documents whose best match of the sentence is good enough.
        **({"borne_out_by": np.unique(document.text.documents)[borne].tolist()} if len(borne) > 1 else {}),
        "unsupported": list(dict.fromkeys(show(begin, stop) for begin, stop in unsupported)),
        "unsupported_at": [_shown_at(show, *span) for span in unsupported],
        "own_words": list(dict.fromkeys(show(begin, stop) for begin, stop in apart)),
        "own_words_at": [_shown_at(show, *span) for span in apart],
        "doubt": None if verdict is None else round(verdict.probability, 4),
        "repeated_at": [_shown_at(show, spans[run[0]][0], spans[run[-1]][1]) for run in runs],
        "faults": faults,
    }


def _shown_at(show: Callable[[int, int], str], begin: int, stop: int) -> list[int]:
    """Where ``show(begin, stop)`` stands in the sentence as it is shown: what is shown up to ``stop`` ends with it."""
    end = len(show(0, stop))
    return [end - len(show(begin, stop)), end]


def _whole(piece: str, begin: int, stop: int) -> tuple[int, int]:
    """The word, or all of the number of which it is a part."""
    number = next((found for found in _NUMBER.finditer(piece) if found.start() <= begin and stop <= found.end()), None)
    return number.span() if number else (begin, stop)


def _alike(vectors: np.ndarray) -> list[list[int]]:
    """Pairs of sentences (places, the earlier first) that say the same: in order, the first thousand."""
    pairs: list[list[int]] = []
    for place, own in enumerate(vectors):
        later = place + 1 + np.flatnonzero(vectors[place + 1 :] @ own > _SAME)
        pairs += [[place, int(other)] for other in later]
        if len(pairs) > _MOST_ALIKE:
            break
    return pairs[:_MOST_ALIKE]

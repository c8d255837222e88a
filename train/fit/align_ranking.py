"""Which examples of a document rank above which: what the ``align`` head learns from, and how well it does."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from negsample.models.align.named_features import ASPECTS
from negsample.negatives.aspects import ASPECT_OF, kinds_for
from negsample.resampling import percentile_interval
from negsample.seeds import generator
from negsample.train.data.prepare import ORIGINAL, Split

# Copies of one kind are compared with each other only where their labels are this far apart.
_GAP = 0.1
_CALIBRATION = 0.1
_RESAMPLES = 500


@dataclass(frozen=True)
class Ranked:
    """Pairs of a split's examples, the first better than the second: int [p, 2] for the score, then each aspect.

    ``judged``: for each of these outputs, bool [n], the examples whose label says something of it. ``documents``: the
    examples of each document.
    """

    pairs: tuple[np.ndarray, ...]
    judged: tuple[np.ndarray, ...]
    documents: list[np.ndarray]


def rank(split: Split) -> Ranked:
    """Rank the examples of each document, for the overall score and each aspect.

    An original stands above its damaged copies, and a copy above another of the same kind with a lower label. Aspects
    see the kinds that damage them (``negatives.aspects``); the overall score sees all kinds.
    """
    original, kinds, labels = split.is_original, split.kinds, split.labels
    judged = [np.ones(len(split), bool)]
    judged += [np.isin(split.kind_of, [*kinds_for(aspect, also=True), ORIGINAL]) for aspect in ASPECTS]
    order = np.argsort(split.document_of, kind="stable")
    documents = np.split(order, np.flatnonzero(np.diff(split.document_of[order])) + 1)
    found = [np.empty((0, 2), np.int64)]
    for rows in documents:
        first, second = np.repeat(rows, len(rows)), np.tile(rows, len(rows))
        gap = labels[first] - labels[second]
        above = np.where(original[first], gap > 0, (kinds[first] == kinds[second]) & (gap > _GAP))
        above &= ~original[second]
        found.append(np.stack([first[above], second[above]], axis=1))
    pairs = np.concatenate(found)
    return Ranked(tuple(pairs[able[pairs].all(axis=1)] for able in judged), tuple(judged), documents)


def ranking_loss(logits: Tensor, labels: np.ndarray, ranks: Ranked, rows: np.ndarray) -> Tensor:
    """Ranking loss within documents plus a tenth of cross-entropy with the labels, summed over score and aspects.

    Σ over outputs of mean softplus(z_worse − z_better) + 0.1 · BCE(z, label). ``rows``: the examples of some documents,
    ``logits`` [len(rows), 5] theirs; NaN (no such aspect) counts as 0. ``labels`` [n], of all examples.
    """
    logits = logits.nan_to_num(0.0)
    place = np.full(len(labels), -1)
    place[rows] = np.arange(len(rows))
    target = torch.from_numpy(np.array(labels[rows], np.float32))
    total = torch.zeros(())
    for number, (pairs, judged) in enumerate(zip(ranks.pairs, ranks.judged, strict=True)):
        own = pairs[place[pairs[:, 0]] >= 0]
        if len(own):
            z = logits[:, number]
            total = total + functional.softplus(z[place[own[:, 1]]] - z[place[own[:, 0]]]).mean()
            told = torch.from_numpy(judged[rows])
            total = total + _CALIBRATION * functional.binary_cross_entropy_with_logits(z[told], target[told])
    return total


def compare_untrained(split: Split, trained: np.ndarray, plain: np.ndarray, seed: int) -> list[dict[str, Any]]:
    """For each kind of negative: the share of copies that rank below their original, trained and untrained.

    ``trained``, ``plain``: logits [n, 5]. A row for the overall score and one for the aspect that the kind damages;
    ``gain`` is trained − untrained, ``low`` and ``high`` its 95 % bootstrap interval over documents.
    """
    kinds = split.kind_of
    # A pair's copies follow its original (``negatives.examples``); its document may have other summaries.
    original = np.maximum.accumulate(np.where(split.is_original, np.arange(len(split)), -1))
    paired = (original >= 0) & (split.document_of[original] == split.document_of)
    rows = []
    for kind in sorted(set(split.kind_names) - {ORIGINAL}):
        own = np.flatnonzero((kinds == kind) & paired)
        for output in ("score", *([ASPECT_OF[kind]] if kind in ASPECT_OF else [])):
            column = ("score", *ASPECTS).index(output)
            right = [_below(z[own, column], z[original[own], column]) for z in (trained, plain)]
            if np.isnan(right[0]).all():
                continue
            gain = right[0] - right[1]
            low, high = _interval(gain, split.document_of[own], seed)
            rows.append(
                {
                    "kind": kind,
                    "output": output,
                    "n": len(own),
                    "trained": float(np.nanmean(right[0])),
                    "untrained": float(np.nanmean(right[1])),
                    "gain": float(np.nanmean(gain)),
                    "low": low,
                    "high": high,
                }
            )
    return rows


def _below(copies: np.ndarray, originals: np.ndarray) -> np.ndarray:
    """1 where a copy is below its original, 0.5 where it is level with it; NaN where either is."""
    right = np.where(copies < originals, 1.0, np.where(copies == originals, 0.5, 0.0))
    right[np.isnan(copies) | np.isnan(originals)] = np.nan
    return right


def _interval(values: np.ndarray, documents: np.ndarray, seed: int) -> tuple[float | None, float | None]:
    values, documents = values[~np.isnan(values)], documents[~np.isnan(values)]
    _, place = np.unique(documents, return_inverse=True)
    sums, counts = np.bincount(place, values), np.bincount(place)
    if len(sums) < 2:
        return None, None
    drawn = generator(seed, "align-interval").integers(len(sums), size=(_RESAMPLES, len(sums)))
    return percentile_interval(sums[drawn].sum(1) / counts[drawn].sum(1))[:2]

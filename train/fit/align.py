"""Training the ``align`` head: the judge, the features once, each aspect by the damage that concerns it, then the mix."""

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from negsample.models.align.judge import new_judge
from negsample.models.align.named_features import ASPECTS
from negsample.models.build import Parts
from negsample.models.features.align import AlignFeatures
from negsample.models.heads.align import Align, untrained
from negsample.negatives.aspects import ASPECT_OF, kinds_for
from negsample.seeds import generator, seed_from
from negsample.train.config import TrainConfig
from negsample.train.data.align_features import Matrix, matrix_of
from negsample.train.data.prepare import Split
from negsample.train.fit.judge import MOST_DOCUMENTS, train_judge
from negsample.train.fit.training_log import Journal

ORIGINAL = "original"
# Copies of one kind are compared with each other only where their labels are this far apart.
_GAP = 0.1
_CALIBRATION = 0.1
# How strongly the head is held to the sum it begins as: damage made by rule is narrower than what systems do (SPEC §9).
# Chosen on human judgments set apart for it (docs/recipes.md): below 0.1 the aspects agree less with people.
_PRIOR = 0.5
_RESAMPLES = 500
# Original summaries that tell what a language model finds ordinary.
_ORDINARY = 256
# Examples that go through the head at a time.
_BLOCK = 512
# Examples the head learns from at most: it has a few hundred weights, and reading a pair takes far longer than learning.
MOST_EXAMPLES = 3000


@dataclass(frozen=True)
class Ranked:
    """Pairs of a split's examples, the first better than the second: int [p, 2] for the score, then each aspect."""

    pairs: tuple[np.ndarray, ...]
    judged: tuple[np.ndarray, ...]
    documents: list[np.ndarray]


def ranked(split: Split) -> Ranked:
    """Which examples of a document rank above which, for the overall score and each aspect.

    An original stands above its damaged copies, and a copy above another of the same kind with a lower label. Aspects
    see the kinds that damage them (``negatives.aspects``); the overall score sees all kinds. ``judged``: for each output,
    bool [n], the examples whose label says something of it.
    """
    kinds = np.array(split.kind_names)[split.kinds]
    outputs = [None, *(set(kinds_for(aspect, also=True)) | {ORIGINAL} for aspect in ASPECTS)]
    judged = tuple(
        np.ones(len(split), bool) if allowed is None else np.isin(kinds, list(allowed)) for allowed in outputs
    )
    order = np.argsort(split.document_of, kind="stable")
    bounds = np.flatnonzero(np.diff(split.document_of[order])) + 1
    documents = np.split(order, bounds)
    pairs: list[list[tuple[int, int]]] = [[] for _ in outputs]
    for rows in documents:
        for first in rows:
            for second in rows:
                if not _above(split, kinds, first, second):
                    continue
                for number, able in enumerate(judged):
                    if able[first] and able[second]:
                        pairs[number].append((first, second))
    return Ranked(tuple(np.array(p, np.int64).reshape(-1, 2) for p in pairs), judged, documents)


def _above(split: Split, kinds: np.ndarray, first: int, second: int) -> bool:
    if kinds[second] == ORIGINAL or first == second:
        return False
    if kinds[first] == ORIGINAL:
        return bool(split.labels[first] > split.labels[second])
    return bool(kinds[first] == kinds[second] and split.labels[first] - split.labels[second] > _GAP)


def loss_of(network: Align, matrix: Matrix, labels: np.ndarray, ranks: Ranked, rows: np.ndarray) -> Tensor:
    """Ranking loss within documents plus a tenth of cross-entropy with the labels, summed over score and aspects.

    Σ over outputs of mean softplus(z_worse − z_better) + 0.1 · BCE(z, label). ``rows``: the examples of some documents.
    """
    logits = _forward(network, matrix, rows).nan_to_num(0.0)
    place = np.full(len(labels), -1)
    place[rows] = np.arange(len(rows))
    target = torch.from_numpy(np.array(labels[rows], np.float32))
    total = torch.zeros(())
    for number, (pairs, judged) in enumerate(zip(ranks.pairs, ranks.judged, strict=True)):
        own = pairs[place[pairs[:, 0]] >= 0] if len(pairs) else pairs
        if len(own):
            z = logits[:, number]
            total = total + functional.softplus(z[place[own[:, 1]]] - z[place[own[:, 0]]]).mean()
            told = torch.from_numpy(judged[rows])
            total = total + _CALIBRATION * functional.binary_cross_entropy_with_logits(z[told], target[told])
    return total


def _forward(network: Align, matrix: Matrix, rows: np.ndarray) -> Tensor:
    """Logits [len(rows), 5]; in blocks, for one long document makes all that go through with it as long."""
    blocks = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]
    return torch.cat([network(**matrix.tensors(block)) for block in blocks])


def fit_head(
    network: Align,
    config: TrainConfig,
    train: tuple[Split, Matrix],
    validation: tuple[Split, Matrix],
    work: Path,
    say: Callable[[str], None],
    after_epoch: Callable[[int, float], None] | None = None,
) -> None:
    """Train ``network`` in place with Adam over batches of documents; the weights best on ``validation`` at the end.

    It takes seconds, so a run that is killed begins it again, with the same result.
    """
    split, matrix = train
    ranks, held = ranked(split), ranked(validation[0])
    journal = Journal(work / "training.jsonl")
    journal.rewind(0, 0)
    optimizer = torch.optim.Adam(network.parameters(), lr=float(config.learning_rate or 0.02))
    everything = np.concatenate(held.documents)
    best, best_loss, stale, steps = copy.deepcopy(network.state_dict()), math.inf, 0, 0
    for epoch in range(int(config.epochs or 0)):
        network.train()
        torch.manual_seed(seed_from(config.seed, "align", epoch))
        order = generator(config.seed, "align", epoch).permutation(len(ranks.documents))
        losses = []
        size = int(config.batch_size or 64)
        for start in range(0, len(order), size):
            rows = np.concatenate([ranks.documents[i] for i in order[start : start + size]])
            loss = loss_of(network, matrix, split.labels, ranks, rows)
            (loss + _PRIOR * network.drift()).backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach()))
            steps += 1
        network.eval()
        with torch.no_grad():
            found = float(loss_of(network, validation[1], validation[0].labels, held, everything))
        journal.write(kind="epoch", epoch=epoch, steps=steps, train_loss=float(np.mean(losses)), validation_loss=found)
        say(f"epoch {epoch + 1}: train loss {np.mean(losses):.4f}, validation loss {found:.4f}")
        if after_epoch is not None:
            after_epoch(epoch, found)
        stale = 0 if found < best_loss else stale + 1
        if found < best_loss:
            best, best_loss = copy.deepcopy(network.state_dict()), found
        if stale >= config.patience:
            break
    network.load_state_dict(best)
    network.eval()
    if not config.epochs:
        journal.write(kind="epoch", epoch=0, steps=0, train_loss=None, validation_loss=None)


@torch.no_grad()
def logits_of(network: Align, matrix: Matrix) -> np.ndarray:
    """Logits float32 [n, 5] of a split."""
    network.eval()
    return _forward(network, matrix, np.arange(len(matrix))).numpy()


def compare_untrained(split: Split, trained: np.ndarray, plain: np.ndarray, seed: int) -> list[dict[str, Any]]:
    """For each kind of negative: the share of copies that rank below their original, trained and untrained.

    ``trained``, ``plain``: logits [n, 5]. A row for the overall score and one for the aspect that the kind damages;
    ``gain`` is trained − untrained, ``low`` and ``high`` its 95 % bootstrap interval over documents.
    """
    kinds = np.array(split.kind_names)[split.kinds]
    # A pair's copies follow its original (``negatives.examples``); its document may have other summaries.
    original = np.maximum.accumulate(np.where(kinds == ORIGINAL, np.arange(len(kinds)), -1))
    paired = (original >= 0) & (split.document_of[original] == split.document_of)
    rows = []
    for kind in sorted(set(kinds) - {ORIGINAL}):
        own = np.flatnonzero((kinds == kind) & paired)
        if not len(own):
            continue
        base = original[own]
        for output in ("score", *([ASPECT_OF[kind]] if kind in ASPECT_OF else [])):
            column = ("score", *ASPECTS).index(output)
            right = [_below(z[own, column], z[base, column]) for z in (trained, plain)]
            if np.isnan(right[0]).all():
                continue
            low, high = _interval(right[0] - right[1], split.document_of[own], seed)
            rows.append(
                {
                    "kind": kind,
                    "output": output,
                    "n": len(own),
                    "trained": float(np.nanmean(right[0])),
                    "untrained": float(np.nanmean(right[1])),
                    "gain": float(np.nanmean(right[0] - right[1])),
                    "low": low,
                    "high": high,
                }
            )
    return rows


def _below(copies: np.ndarray, originals: np.ndarray) -> np.ndarray:
    right = np.where(copies < originals, 1.0, np.where(copies == originals, 0.5, 0.0))
    right[np.isnan(copies) | np.isnan(originals)] = np.nan
    return right


def _interval(values: np.ndarray, documents: np.ndarray, seed: int) -> tuple[float | None, float | None]:
    values, documents = values[~np.isnan(values)], documents[~np.isnan(values)]
    _, place = np.unique(documents, return_inverse=True)
    if not len(values) or place.max() < 1:
        return None, None
    sums, counts = np.bincount(place, values), np.bincount(place)
    drawn = generator(seed, "align-interval").integers(len(sums), size=(_RESAMPLES, len(sums)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def beginning(split: Split, most: int) -> Split:
    """The first documents of a split, whole ones, of about ``most`` examples; their order is a random one."""
    if len(split) <= most:
        return split
    last = split.document_of[most - 1]
    stop = most + int(np.argmax(np.append(split.document_of[most:] != last, True)))
    columns = {name: getattr(split, name)[:stop] for name in ("document_of", "summary_of", "labels", "kinds")}
    return replace(split, **columns)


def texts_of(split: Split) -> list[str]:
    """The different documents of a split, in order, at most as many as a judge can use."""
    found: dict[str, None] = {}
    for row in dict.fromkeys(split.document_of.tolist()):
        found.setdefault(bytes(split.documents[row]).decode("utf-8", "surrogatepass"))
        if len(found) == MOST_DOCUMENTS:
            break
    return list(found)


def originals(split: Split) -> list[str]:
    """The different original summaries of a split, in order, at most ``_ORDINARY`` of them."""
    own = np.flatnonzero(np.array(split.kind_names)[split.kinds] == ORIGINAL)
    rows = list(dict.fromkeys(split.summary_of[own].tolist()))[:_ORDINARY]
    return [bytes(split.summaries[row]).decode("utf-8", "surrogatepass") for row in rows]


def fit_align(
    config: TrainConfig,
    parts: Parts,
    splits: Mapping[str, Split],
    work: Path,
    say: Callable[[str], None],
    after_epoch: Callable[[int, float], None] | None = None,
    device: torch.device | None = None,
) -> dict[str, Any]:
    """Train the judge (where ``config.judges``) and the head of ``parts`` on the train and validation splits.

    A language model is not trained; what is ordinary for it is learned from the originals. Where ``parts``
    have a head already (loaded from a model folder), its training goes on; its judge and its language model stay.
    The judge computes on ``device`` (default: where it is), the head, with its few hundred weights, on the CPU.
    Returns what the judge learned. What is finished lies in ``work``: the judge's checkpoints, the features of each split.
    """
    features, network = _parts(parts)
    found: dict[str, Any] = {}
    fresh = network is None and config.judges and bool(config.epochs)
    if fresh:
        features.judge = new_judge(features.encoder, config.attention, config.seed)
    if network is None and features.lm is not None:
        features.lm.calibrate(originals(splits["train"]))
    features.to(device)
    if fresh:
        assert features.judge is not None
        documents, held_out = (texts_of(splits[name]) for name in ("train", "validation"))
        right = train_judge(features.judge, documents, held_out, config.judge_steps, config.seed, work)
        found["judge"] = right
        say(
            "judge: " + ", ".join(f"{name} {share:.3f}" for name, share in right.items()) + " of damaged stretches seen"
        )
    network = network if network is not None else untrained(features.sources, config.seed)
    learnt, held = (beginning(splits[name], MOST_EXAMPLES) for name in ("train", "validation"))
    if len(learnt) < len(splits["train"]):
        say(f"the head learns from the first {len(learnt)} of {len(splits['train'])} examples")
    train, validation = (
        (split, matrix_of(features, split, work / "features", name))
        for name, split in (("train", learnt), ("validation", held))
    )
    fit_head(network, config, train, validation, work, say, after_epoch)
    parts.network, parts.options = network, {"sources": features.sources}
    return found


def align_scores(parts: Parts, split: Split, work: Path, name: str) -> np.ndarray:
    """Overall scores float32 [n] of a split; its features are kept in ``work/features`` as ``name``."""
    logits = _split_logits(parts, split, work, name)[1][:, 0].astype(np.float64)
    return (1 / (1 + np.exp(-logits))).astype(np.float32)


def ranking_on(parts: Parts, split: Split, work: Path, seed: int) -> list[dict[str, Any]]:
    """``compare_untrained`` of trained ``parts`` on the test split, whose features are kept in ``work/features``."""
    matrix, logits = _split_logits(parts, split, work, "test")
    plain = logits_of(untrained(_parts(parts)[0].sources, seed), matrix)
    return compare_untrained(split, logits, plain, seed)


def _parts(parts: Parts) -> tuple[AlignFeatures, Align | None]:
    features, network = parts.features, parts.network
    assert isinstance(features, AlignFeatures)
    assert network is None or isinstance(network, Align)
    return features, network


def _split_logits(parts: Parts, split: Split, work: Path, name: str) -> tuple[Matrix, np.ndarray]:
    features, network = _parts(parts)
    assert network is not None
    matrix = matrix_of(features, split, work / "features", name)
    return matrix, logits_of(network, matrix)

"""Training the ``align`` head: the judge, the features once, each aspect by the damage that concerns it, then the mix.

What it learns from is which examples of a document rank above which (``rank``, ``ranking_loss``).
"""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from negsample.errors import InputError
from negsample.models import ready
from negsample.models.align.aspects import ASPECTS
from negsample.models.align.judge import new_judge
from negsample.models.align.support import new_network
from negsample.models.build import Parts
from negsample.models.features.align import AlignFeatures, Compared, stack, texts_of
from negsample.models.heads.align import Align, untrained
from negsample.negatives import ASPECT_OF, kinds_for
from negsample.records import LABELLED, Pair
from negsample.resampling import resampled_interval
from negsample.seeds import generator, seed_from
from negsample.sentences import split_sentences
from negsample.train.data import FOUND, ORIGINAL, Split
from negsample.train.fit.align_features import compute_features, stored_features
from negsample.train.fit.checkpoint import Checkpoints, Position, TrainingLog
from negsample.train.fit.judge import MOST_DOCUMENTS, train_judge
from negsample.train.fit.loop import Run, run_epochs
from negsample.train.fit.support import Judged, judged, train_support

# How strongly the head is held to the sum it begins as: damage made by rule is narrower than what systems do.
# Chosen on human judgments set apart for it (docs/recipes.md): below 0.1 the aspects agree less with people.
_PRIOR = 0.5
# The same where labels were given, of what systems wrote; and how many steps an epoch has then at least, of few documents.
_PRIOR_OF_LABELS, _STEPS = 0.1, 8
# Original summaries that tell what a language model finds ordinary.
_READ = 64
# Examples that go through the head at a time.
_BLOCK = 512
# Examples the head learns from at most: it has a few hundred weights, and reading a pair takes far longer than learning.
MOST_EXAMPLES = 3000
# A language model that reads documents takes a hundred times as long as the rest.
_MOST_READ = 400
# Sentences of a document that stand for a summary of it.
_FIRST = 3
# Copies of one kind are compared with each other only where their labels are this far apart.
_GAP = 0.1
_CALIBRATION = 0.1
_RESAMPLES = 500


@dataclass(frozen=True)
class Ranked:
    """Pairs of a split's examples, the first better than the second: int [p, 2] for the score, then each aspect.

    ``labels`` float32 [5, n]: what is said of each of these outputs, NaN where that is nothing. ``weights`` float32 [n].
    ``documents``: the examples of each document.
    """

    pairs: tuple[np.ndarray, ...]
    labels: np.ndarray
    weights: np.ndarray
    documents: list[np.ndarray]


def rank(split: Split) -> Ranked:
    """Rank the examples of each document, for the overall score and each aspect.

    An original stands above its damaged copies, and above a labelled summary of its document with a lower label; a copy above
    another of the same kind with a lower label, and a labelled summary above another. Aspects see the kinds that damage them
    (``negsample.negatives``) and the labels given of them; the overall score sees all.
    """
    original, kinds, said = split.of(ORIGINAL), split.kinds, np.tile(split.labels, (1 + len(ASPECTS), 1))
    for own, aspect in zip(said[1:], ASPECTS, strict=True):
        own[~np.isin(split.kind_of, [*kinds_for(aspect), ORIGINAL])] = np.nan
    if split.aspects is not None:
        said[1:, split.of(LABELLED)] = split.aspects[:, split.of(LABELLED)]
    # Of an aspect that nothing damages the originals teach nothing.
    said[[len(set(own[np.isfinite(own)].tolist())) < 2 for own in said]] = np.nan
    order = np.argsort(split.document_of, kind="stable")
    documents = np.split(order, np.flatnonzero(np.diff(split.document_of[order])) + 1)
    found: list[list[np.ndarray]] = [[np.empty((0, 2), np.int64)] for _ in said]
    for rows in documents:
        first, second = np.repeat(rows, len(rows)), np.tile(rows, len(rows))
        alike = (kinds[first] == kinds[second]) & ~original[second]
        for own, labels in zip(found, said, strict=True):
            gap = labels[first] - labels[second]
            above = np.where(original[first], (gap > 0) & ~original[second], alike & (gap > _GAP))
            own.append(np.stack([first[above], second[above]], axis=1))
    return Ranked(tuple(np.concatenate(own) for own in found), said, split.weights, documents)


def ranking_loss(logits: Tensor, ranks: Ranked, rows: np.ndarray, squared: bool = False) -> Tensor:
    """Ranking loss within documents plus a tenth of cross-entropy with the labels, summed over score and aspects.

    Σ over outputs of mean softplus(z_worse − z_better) + 0.1 · BCE(z, label), means weighted by ``ranks.weights``; with
    ``squared`` the mean of (sigmoid(z) − label)² alone. ``rows``: the examples of some documents, ``logits``
    [len(rows), 5] theirs; NaN (no such aspect) counts as 0.
    """
    logits = logits.nan_to_num(0.0)
    place = np.full(ranks.labels.shape[1], -1)
    place[rows] = np.arange(len(rows))
    total = torch.zeros(())
    for z, pairs, said in zip(logits.T, ranks.pairs, ranks.labels[:, rows], strict=True):
        own = pairs[place[pairs[:, 0]] >= 0]
        told = torch.from_numpy(np.isfinite(said))
        answered, label = z[told], torch.from_numpy(said)[told]
        weights = torch.from_numpy(ranks.weights[rows])[told]
        if squared and len(label):
            total = total + _mean((torch.sigmoid(answered) - label) ** 2, weights)
        elif len(own):
            margins = functional.softplus(z[place[own[:, 1]]] - z[place[own[:, 0]]])
            total = total + _mean(margins, torch.from_numpy(ranks.weights[own[:, 0]]))
            entropy = functional.binary_cross_entropy_with_logits(answered, label, reduction="none")
            total = total + _CALIBRATION * _mean(entropy, weights)
    return total


def _mean(values: Tensor, weights: Tensor) -> Tensor:
    return (values * weights).sum() / weights.sum()


def forward(network: Align, computed: Sequence[Compared], rows: np.ndarray) -> Tensor:
    """Logits [len(rows), 5]; in blocks, for one long document makes all that go through with it as long."""
    blocks = [[computed[row] for row in rows[start : start + _BLOCK]] for start in range(0, len(rows), _BLOCK)]
    return torch.cat([network(**stack(block)) for block in blocks])


class _InMemory(Checkpoints):
    """The best weights of ``network``. It learns in seconds: a run that is killed begins it again, with the same result."""

    def __init__(self, network: Align) -> None:
        self.network = network
        self.keep_best(0)

    def save(self, position: Position) -> None:
        """Nothing."""

    def keep_best(self, epoch: int) -> None:
        """Keep the weights as the best so far."""
        self.best = copy.deepcopy(self.network.state_dict())


def fit_head(
    run: Run,
    network: Align,
    train: tuple[Ranked, list[Compared]],
    validation: tuple[Ranked, list[Compared]],
    labelled: bool,
) -> None:
    """Train ``network`` in place with Adam over batches of documents of ``train``; the weights best on ``validation`` at the
    end. ``labelled``: whether labels were given of some summaries."""
    config, (ranks, computed), (held, held_computed) = run.config, train, validation
    position, kept = Position(), _InMemory(network)
    log = TrainingLog(run.work / "training.jsonl", run.callbacks)
    log.rewind(position)
    optimizer = torch.optim.Adam(network.parameters(), lr=float(config.learning_rate or 0.02))
    everything, squared = np.concatenate(held.documents), config.loss == "mse"
    size, epochs, prior = int(config.batch_size or 64), int(config.epochs or 0), _PRIOR
    if labelled:
        size, prior = max(1, min(size, len(ranks.documents) // _STEPS)), _PRIOR_OF_LABELS

    def batches(epoch: int, _: int) -> Iterable[np.ndarray]:
        network.train()
        torch.manual_seed(seed_from(config.seed, "align", epoch))
        order = generator(config.seed, "align", epoch).permutation(len(ranks.documents))
        for start in range(0, len(order), size):
            yield np.concatenate([ranks.documents[i] for i in order[start : start + size]])

    def step(rows: np.ndarray) -> tuple[float, int]:
        loss = ranking_loss(forward(network, computed, rows), ranks, rows, squared)
        (loss + prior * network.drift()).backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach()), 1

    @torch.no_grad()
    def validate() -> float:
        network.eval()
        logits = forward(network, held_computed, everything)
        return log.losses(position, float(ranking_loss(logits, held, everything, squared)))

    steps = epochs * -(-len(ranks.documents) // size)
    run_epochs(position, epochs, config, batches=batches, step=step, validate=validate, kept=kept, steps=steps)
    network.load_state_dict(kept.best)
    network.eval()
    if not epochs:
        log.write(kind="epoch", epoch=0, steps=0, train_loss=None, validation_loss=None)


def beginning(split: Split, most: int) -> Split:
    """The first documents of a split, whole ones, of about ``most`` examples; their order is a random one."""
    if len(split) <= most:
        return split
    last = split.document_of[most - 1]
    stop = most + int(np.argmax(np.append(split.document_of[most:] != last, True)))
    same = ("document_of", "summary_of", "labels", "kinds", "domains")
    columns = {name: getattr(split, name)[:stop] for name in same}
    return replace(split, **columns, aspects=None if split.aspects is None else split.aspects[:, :stop])


def documents_of(split: Split) -> list[str]:
    """The different documents of a split, in order, at most as many as a judge can use."""
    texts = (texts_of([split.documents[row]])[0] for row in dict.fromkeys(split.document_of.tolist()))
    found: dict[str, None] = {}
    while len(found) < MOST_DOCUMENTS and (text := next(texts, None)) is not None:
        found.setdefault(text)
    return list(found)


def pairs_to_damage(split: Split, most: int) -> list[Pair]:
    """A split's first ``most`` documents with their summaries, no summary twice, their numbers for ids; where all summaries are
    there to be judged, and may be untrue, with the documents' first sentences in their place."""
    documents, summaries = originals(split, most, ORIGINAL)
    if not documents:
        documents = list(dict.fromkeys(originals(split, most)[0]))
        summaries = [" ".join(split_sentences(document)[:_FIRST]) for document in documents]
    return [Pair(str(number), *texts) for number, texts in enumerate(zip(documents, summaries, strict=True))]


def originals(split: Split, most: int, *kinds: str) -> tuple[list[str], list[str]]:
    """The documents and the summaries of a split's first ``most`` pairs that are not damaged (or are of the ``kinds``), no
    summary twice."""
    rows = np.flatnonzero(split.of(*(kinds or FOUND)))
    _, first = np.unique(split.summary_of[rows], return_index=True)
    documents, summaries = split.read(rows[np.sort(first)][:most])
    return texts_of(documents), texts_of(summaries)


def support_labels(split: Split) -> list[Judged]:
    """The summaries of a split whose support was judged."""
    if split.aspects is None:
        return []
    said = split.aspects[ASPECTS.index("support")]
    rows = np.flatnonzero(split.of(LABELLED) & np.isfinite(said))
    documents, summaries = split.read(rows)
    return judged(texts_of(documents), texts_of(summaries), said[rows].tolist())


def fit_align(run: Run) -> dict[str, Any]:
    """Train the judges (where ``config.judges``) and the head.

    A language model is not trained; what is ordinary for it is learned from the originals. Where there
    is a head already, its training goes on; its judges and its language model stay.
    The processes read the features and train the judge together, on its device; the main one trains
    the head, with its few hundred weights, on the CPU, and it alone has the trained head then.
    Returns what the judges learned. What is finished lies in ``run.work``: their checkpoints, the features of each split.
    """
    accelerator, config, splits, work = run.accelerator, run.config, run.splits, run.work
    features, network = _parts(run.parts)
    tell = run.callbacks.say if accelerator.is_main_process else lambda _: None
    found: dict[str, Any] = {}
    fresh = network is None and config.judges and bool(config.epochs)
    most = MOST_EXAMPLES if features.evidence is None else _MOST_READ
    learnt, held = (beginning(splits[name], most) for name in ("train", "validation"))
    ranks, held_ranks = rank(learnt), rank(held)
    for name, own in (("train", ranks), ("validation", held_ranks)):
        if config.epochs and config.loss != "mse" and not any(map(len, own.pairs)):
            why = (
                f"no two labelled summaries of a document in the split {name} differ, so that there is nothing to rank"
            )
            raise InputError(f"{why}; give head=align loss=mse, and another folder")
    if fresh:
        features.judge = new_judge(features.encoder, config.attention, config.seed)
    if network is None and features.evidence is not None:
        features.evidence.calibrate(features.view_pairs(*originals(splits["train"], _READ)))
    features.to(accelerator.device)
    if fresh:
        assert features.judge is not None
        documents, held_out = (documents_of(splits[name]) for name in ("train", "validation"))
        right = train_judge(accelerator, features.judge, documents, held_out, config.judge_steps, config.seed, work)
        shares = ", ".join(f"{name} {share:.3f}" for name, share in right.items())
        tell(f"judge: {shares} of damaged stretches seen")
        begun, tokenizer = new_network(features.encoder, config.attention, config.seed, ready.SUPPORT)
        by_people = support_labels(splits["train"])
        pairs, held_pairs = (pairs_to_damage(splits[name], MOST_DOCUMENTS) for name in ("train", "validation"))
        features.support, seen = train_support(
            accelerator, begun, tokenizer, features.encoder.fingerprint, pairs, held_pairs, config.support_steps, config.seed,
            work, by_people,
        )  # fmt: skip
        found = {"judge": right, "support": seen}
        by_labels = "support" in (config.aspects or ())
        also = f"; {len(by_people)} judged summaries taught it too" if by_labels else ""
        tell(f"support judge: {seen['all']:.3f} of untrue sentences doubted more than true ones{also}")
    network = network if network is not None else untrained(features.sources, config.seed)
    if len(learnt) < len(splits["train"]):
        tell(f"the head learns from the first {len(learnt)} of {len(splits['train'])} examples")
    computed, held_computed = (
        compute_features(accelerator, features, split, work / "features", name)
        for name, split in (("train", learnt), ("validation", held))
    )
    if accelerator.is_main_process:
        fit_head(run, network, (ranks, computed), (held_ranks, held_computed), bool(learnt.of(LABELLED).any()))
    run.parts.network, run.parts.options = network, {"sources": features.sources}
    return found


def align_outputs(run: Run, split: Split, name: str) -> dict[str, np.ndarray]:
    """``score`` and each aspect, float32 [n], of a split; its features are kept in ``work/features`` as ``name``.

    The processes share out the features; the scores are those of the head that each has.
    """
    features, network = _parts(run.parts)
    assert network is not None
    computed = compute_features(run.accelerator, features, split, run.work / "features", name)
    logits = _logits(network, computed).astype(np.float64)
    return dict(zip(Align.outputs, (1 / (1 + np.exp(-logits))).astype(np.float32).T, strict=True))


def ranking_on(run: Run, split: Split) -> list[dict[str, Any]]:
    """``compare_untrained`` on the test split; only on the main process, and after ``align_outputs`` of that split."""
    features, network = _parts(run.parts)
    assert network is not None
    computed = stored_features(split, run.work / "features", "test")
    plain = _logits(untrained(features.sources, run.config.seed), computed)
    return compare_untrained(split, _logits(network, computed), plain, run.config.seed)


def _parts(parts: Parts) -> tuple[AlignFeatures, Align | None]:
    features, network = parts.features, parts.network
    assert isinstance(features, AlignFeatures)
    assert network is None or isinstance(network, Align)
    return features, network


@torch.no_grad()
def _logits(network: Align, computed: Sequence[Compared]) -> np.ndarray:
    """Logits float32 [n, 5] of a split."""
    network.eval()
    return forward(network, computed, np.arange(len(computed))).numpy()


def compare_untrained(split: Split, trained: np.ndarray, plain: np.ndarray, seed: int) -> list[dict[str, Any]]:
    """For each kind of negative: the share of copies that rank below their original, trained and untrained.

    ``trained``, ``plain``: logits [n, 5]. A row for the overall score and one for the aspect that the kind damages;
    ``gain`` is trained − untrained, ``low`` and ``high`` its 95 % bootstrap interval over documents, None as of
    `resampled_interval`.
    """
    kinds = split.kind_of
    # A pair's copies follow its original (``negatives.generate``); its document may have other summaries.
    original = np.maximum.accumulate(np.where(split.of(ORIGINAL), np.arange(len(split)), -1))
    paired = (original >= 0) & (split.document_of[original] == split.document_of)
    rows = []
    for kind in sorted(set(split.kind_names) - {ORIGINAL, LABELLED}):
        own = np.flatnonzero((kinds == kind) & paired)
        for output in ("score", *([ASPECT_OF[kind]] if kind in ASPECT_OF else [])):
            column = ("score", *ASPECTS).index(output)
            right = [_below(z[own, column], z[original[own], column]) for z in (trained, plain)]
            if np.isnan(right[0]).all():
                continue
            gain = right[0] - right[1]
            known = ~np.isnan(gain)
            _, place = np.unique(split.document_of[own][known], return_inverse=True)
            sums, counts = np.bincount(place, gain[known]), np.bincount(place)
            drawn = generator(seed, "align-interval").integers(len(sums), size=(_RESAMPLES, len(sums)))
            low, high, _ = resampled_interval(sums[drawn].sum(1) / counts[drawn].sum(1), len(sums))
            means = (float(np.nanmean(values)) for values in (*right, gain))
            names = ("kind", "output", "n", "trained", "untrained", "gain", "low", "high")
            rows.append(dict(zip(names, (kind, output, len(own), *means, low, high), strict=True)))
    return rows


def _below(copies: np.ndarray, originals: np.ndarray) -> np.ndarray:
    """1 where a copy is below its original, 0.5 where it is level with it; NaN where either is."""
    return np.where(np.isnan(copies - originals), np.nan, (np.sign(originals - copies) + 1) / 2)

"""Training the ``align`` head: the judge, the features once, each aspect by the damage that concerns it, then the mix."""

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from negsample.models.align.judge import new_judge
from negsample.models.build import Parts
from negsample.models.features.align import AlignFeatures, text_of
from negsample.models.heads.align import Align, untrained
from negsample.seeds import generator, seed_from
from negsample.train.config import TrainConfig
from negsample.train.data.align_features import ComputedFeatures, compute_features
from negsample.train.data.prepare import Split
from negsample.train.fit.align_ranking import compare_untrained, rank, ranking_loss
from negsample.train.fit.judge import MOST_DOCUMENTS, train_judge
from negsample.train.fit.training_log import TrainingLog

if TYPE_CHECKING:
    from accelerate import Accelerator

# How strongly the head is held to the sum it begins as: damage made by rule is narrower than what systems do.
# Chosen on human judgments set apart for it (docs/recipes.md): below 0.1 the aspects agree less with people.
_PRIOR = 0.5
# Original summaries that tell what a language model finds ordinary.
_ORDINARY = 256
_READ = 64
# Examples that go through the head at a time.
_BLOCK = 512
# Examples the head learns from at most: it has a few hundred weights, and reading a pair takes far longer than learning.
MOST_EXAMPLES = 3000
# A language model that reads documents takes a hundred times as long as the rest.
_MOST_READ = 400


def forward(network: Align, computed: ComputedFeatures, rows: np.ndarray) -> Tensor:
    """Logits [len(rows), 5]; in blocks, for one long document makes all that go through with it as long."""
    blocks = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]
    return torch.cat([network(**computed.tensors(block)) for block in blocks])


def fit_head(
    network: Align,
    config: TrainConfig,
    train: tuple[Split, ComputedFeatures],
    validation: tuple[Split, ComputedFeatures],
    work: Path,
    say: Callable[[str], None],
    after_epoch: Callable[[int, float], None] | None = None,
) -> None:
    """Train ``network`` in place with Adam over batches of documents; the weights best on ``validation`` at the end.

    It takes seconds, so a run that is killed begins it again, with the same result.
    """
    (split, computed), (held_split, held_computed) = train, validation
    ranks, held = rank(split), rank(held_split)
    log = TrainingLog(work / "training.jsonl", say)
    log.rewind(0, 0)
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
            loss = ranking_loss(forward(network, computed, rows), split.labels, ranks, rows)
            (loss + _PRIOR * network.drift()).backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach()))
            steps += 1
        network.eval()
        with torch.no_grad():
            logits = forward(network, held_computed, everything)
            found = float(ranking_loss(logits, held_split.labels, held, everything))
        log.epoch(epoch, steps, float(np.mean(losses)), found)
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
        log.write(kind="epoch", epoch=0, steps=0, train_loss=None, validation_loss=None)


@torch.no_grad()
def logits_of(network: Align, computed: ComputedFeatures) -> np.ndarray:
    """Logits float32 [n, 5] of a split."""
    network.eval()
    return forward(network, computed, np.arange(len(computed))).numpy()


def beginning(split: Split, most: int) -> Split:
    """The first documents of a split, whole ones, of about ``most`` examples; their order is a random one."""
    if len(split) <= most:
        return split
    last = split.document_of[most - 1]
    stop = most + int(np.argmax(np.append(split.document_of[most:] != last, True)))
    columns = {name: getattr(split, name)[:stop] for name in ("document_of", "summary_of", "labels", "kinds")}
    return replace(split, **columns)


def documents_of(split: Split) -> list[str]:
    """The different documents of a split, in order, at most as many as a judge can use."""
    found: dict[str, None] = {}
    for row in dict.fromkeys(split.document_of.tolist()):
        found.setdefault(text_of(split.documents[row]))
        if len(found) == MOST_DOCUMENTS:
            break
    return list(found)


def originals(split: Split, most: int = _ORDINARY) -> tuple[list[str], list[str]]:
    """The documents and the summaries of a split's first ``most`` originals, no summary twice."""
    _, first = np.unique(split.summary_of, return_index=True)
    kept = np.zeros(len(split), bool)
    kept[first] = True
    documents, summaries = split.read(np.flatnonzero(kept & split.is_original)[:most])
    return list(map(text_of, documents)), list(map(text_of, summaries))


def fit_align(
    config: TrainConfig,
    parts: Parts,
    splits: Mapping[str, Split],
    work: Path,
    say: Callable[[str], None],
    after_epoch: Callable[[int, float], None] | None = None,
    device: torch.device | None = None,
    accelerator: "Accelerator | None" = None,
) -> dict[str, Any]:
    """Train the judge (where ``config.judges``) and the head of ``parts`` on the train and validation splits.

    A language model is not trained; what is ordinary for it is learned from the originals. Where ``parts``
    have a head already (loaded from a model folder), its training goes on; its judge and its language model stay.
    The judge computes on ``device`` (default: where it is), the head, with its few hundred weights, on the CPU.
    The processes of ``accelerator`` read the features and train the judge together; the main one trains the head, and it
    alone has the trained head then.
    Returns what the judge learned. What is finished lies in ``work``: the judge's checkpoints, the features of each split.
    """
    features, network = _parts(parts)
    main = accelerator is None or accelerator.is_main_process
    tell = say if main else lambda _: None
    found: dict[str, Any] = {}
    fresh = network is None and config.judges and bool(config.epochs)
    if fresh:
        features.judge = new_judge(features.encoder, config.attention, config.seed)
    if network is None and features.lm is not None:
        features.lm.calibrate(originals(splits["train"])[1])
    if network is None and features.evidence is not None:
        features.evidence.calibrate(features.view_pairs(*originals(splits["train"], _READ)))
    features.to(device)
    if fresh:
        assert features.judge is not None
        documents, held_out = (documents_of(splits[name]) for name in ("train", "validation"))
        right = train_judge(features.judge, documents, held_out, config.judge_steps, config.seed, work, accelerator)
        found["judge"] = right
        tell(
            "judge: " + ", ".join(f"{name} {share:.3f}" for name, share in right.items()) + " of damaged stretches seen"
        )
    network = network if network is not None else untrained(features.sources, config.seed)
    most = MOST_EXAMPLES if features.evidence is None else _MOST_READ
    learnt, held = (beginning(splits[name], most) for name in ("train", "validation"))
    if len(learnt) < len(splits["train"]):
        tell(f"the head learns from the first {len(learnt)} of {len(splits['train'])} examples")
    train, validation = (
        (split, compute_features(features, split, work / "features", name, accelerator))
        for name, split in (("train", learnt), ("validation", held))
    )
    if main:
        fit_head(network, config, train, validation, work, say, after_epoch)
    parts.network, parts.options = network, {"sources": features.sources}
    return found


def align_outputs(
    parts: Parts, split: Split, work: Path, name: str, accelerator: "Accelerator | None" = None
) -> dict[str, np.ndarray]:
    """``score`` and each aspect, float32 [n], of a split; its features are kept in ``work/features`` as ``name``.

    The processes of ``accelerator`` share out the features; the scores are those of the head that each has.
    """
    logits = _split_logits(parts, split, work, name, accelerator)[1].astype(np.float64)
    return dict(zip(Align.outputs, (1 / (1 + np.exp(-logits))).astype(np.float32).T, strict=True))


def ranking_on(parts: Parts, split: Split, work: Path, seed: int) -> list[dict[str, Any]]:
    """``compare_untrained`` of trained ``parts`` on the test split, whose features are kept in ``work/features``."""
    computed, logits = _split_logits(parts, split, work, "test")
    plain = logits_of(untrained(_parts(parts)[0].sources, seed), computed)
    return compare_untrained(split, logits, plain, seed)


def _parts(parts: Parts) -> tuple[AlignFeatures, Align | None]:
    features, network = parts.features, parts.network
    assert isinstance(features, AlignFeatures)
    assert network is None or isinstance(network, Align)
    return features, network


def _split_logits(
    parts: Parts, split: Split, work: Path, name: str, accelerator: "Accelerator | None" = None
) -> tuple[ComputedFeatures, np.ndarray]:
    features, network = _parts(parts)
    assert network is not None
    computed = compute_features(features, split, work / "features", name, accelerator)
    return computed, logits_of(network, computed)

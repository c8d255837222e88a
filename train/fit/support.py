"""Teaching the support judge: sentences of summaries and documents against copies in which something was made untrue.

What a sentence is read beside is what its document says of it; the copy is told from the original by the words that were
changed. Innocent rewording is no damage, so that copying is never the answer. No human label is used, unless summaries
are given that were judged: these are read last, a summary being as untrue as its most doubted sentence.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from negsample.errors import InputError
from negsample.models.align.support import SupportJudge, SupportNetwork, named, passages, tokenize
from negsample.models.align.words import pieces
from negsample.negatives import NEGATIVES
from negsample.negatives.context import CannotDamage, Context, context_of
from negsample.negatives.reported import reported
from negsample.negatives.reword import reword
from negsample.records import Pair
from negsample.seeds import generator
from negsample.sentences import Turn, split_sentences, turns
from negsample.terminal import Bar
from negsample.train.config import TrainConfig
from negsample.train.fit.judge import fine_tune
from negsample.train.fit.loop import set_learning_rate

if TYPE_CHECKING:
    from accelerate import Accelerator

KINDS: Mapping[str, float] = {
    "entity": 3, "foreign": 2, "number": 1.5, "negate": 2, "antonym": 2.5, "roles": 1.5, "word": 4.5, "detail": 2,
    "join": 1.5, "speaker": 4, "sentence-replace": 0.7,
}  # fmt: skip
"""Kinds of negatives that claims are damaged by → how often each is tried."""
REAL, REWORDED = "real", "reworded"
BATCH = 32
# Claims of a document: of its summary, of its own sentences, at least;
# of a long document one in so many; turns before and after one whose sentence is taken.
_FROM_SUMMARY, _FROM_DOCUMENT = 4, 2
_A_CLAIM, _AROUND = 15, 5
# Words of what is taken as it was said.
_SAID_LEAST = 7
_WORDS = (4, 50)
# Damaged copies of a claim, and how often each has an innocently reworded one beside it.
_COPIES, _REWORDED = 2, 0.5
_TRIES = 6
# Batches whose claims are sorted by length together, so that little is padded.
_SORTED = 20
_PLAN = TrainConfig(optimizer="adamw", learning_rate=1e-3, weight_decay=0.01, warmup=0.06, schedule="linear")
# Judged summaries of a step. They are shown once: shown twice they teach nothing more of other texts, and the rest is forgotten.
_JUDGED = 14
_BY_PEOPLE = replace(_PLAN, learning_rate=3e-4)
_EPOCHS = 3
# A few words among many are damaged.
_WRONG_WEIGHT = 2.0
_CHECKED, _FEW = 400, 8


@dataclass(frozen=True)
class Claim:
    """A ``sentence`` to be read beside ``passages``; of which ``kind`` it is, and the (start, stop) that were made ``wrong``."""

    passages: str
    sentence: str
    kind: str
    wrong: tuple[tuple[int, int], ...] = ()

    @property
    def doubtful(self) -> bool:
        """Whether it is damaged."""
        return self.kind not in (REAL, REWORDED)


@dataclass(frozen=True)
class Judged:
    """A summary's ``sentences``, each after the passages that it is read beside, and how ``untrue`` it was found, in [0, 1]."""

    sentences: tuple[tuple[str, str], ...]
    untrue: float


def judged(documents: Sequence[str], summaries: Sequence[str], support: Sequence[float]) -> list[Judged]:
    """Summaries and what was said of their ``support``, in [0, 1]; those with no sentence that has to be read are left out."""
    found = []
    for document, summary, said in zip(documents, summaries, support, strict=True):
        own = [piece.text for piece in pieces(summary)]
        read = passages([named(piece.text, piece.speaker) for piece in pieces(document)], own)
        if asked := tuple(question for question in zip(read, own, strict=True) if question[0]):
            found.append(Judged(asked, 1 - said))
    return found


def claims(pairs: Sequence[Pair], most: int, seed: int) -> list[Claim]:
    """About ``most`` claims of ``pairs``, real, reworded and damaged; those of a pair depend on (seed, pair, number of pairs)
    and what the other pairs lend."""
    context = context_of(pairs)
    found: list[Claim] = []
    order = generator(seed, "support-pairs").permutation(len(pairs))
    with Bar("claims", most) as bar:
        for place in order:
            own = list(_claims_of(pairs[place], context, generator(seed, "support-claims", int(place))))
            found.extend(own)
            bar.advance(len(own))
            if len(found) >= most:
                break
    return found[:most]


def _claims_of(pair: Pair, context: Context, rng: np.random.Generator) -> Iterator[Claim]:
    spoken = turns(pair.document)
    own = _fit([piece.text for piece in pieces(pair.summary)])
    drawn = [(pair, own[place]) for place in rng.permutation(len(own))[:_FROM_SUMMARY]]
    if spoken is not None:
        drawn += _said(pair, spoken, rng)
    else:
        own = _fit([piece.text for piece in pieces(pair.document)])
        drawn += [(pair, own[place]) for place in rng.permutation(len(own))[: _of_document(len(own))]]
    for beside, sentence in drawn:
        made = [(sentence, REAL)]
        for _ in range(_COPIES):
            if rng.random() < _REWORDED and (other := reword(sentence, rng)):
                made.append((other, REWORDED))
            if damaged := _damage(beside, sentence, context, rng):
                made.append(damaged)
        document = [named(piece.text, piece.speaker) for piece in pieces(beside.document)]
        read = passages(document, [text for text, _ in made], copied=True)
        for passage, (text, kind) in zip(read, made, strict=True):
            yield Claim(passage, text, kind, changed(sentence, text) if kind in KINDS else ())


def _fit(sentences: Sequence[str]) -> list[str]:
    return [sentence for sentence in sentences if _WORDS[0] <= len(sentence.split()) <= _WORDS[1]]


def _of_document(sentences: int) -> int:
    """Claims that are taken of a document's own sentences: more of a long one."""
    return max(_FROM_DOCUMENT, sentences // _A_CLAIM)


def _said(pair: Pair, spoken: Sequence[Turn], rng: np.random.Generator) -> list[tuple[Pair, str]]:
    """Sentences of a dialogue, as they were said or as they are told of their speaker, each with the turns around it."""
    found: list[tuple[Pair, str]] = []
    wanted = _of_document(len(spoken))
    for place in rng.permutation(len(spoken))[: 4 * wanted].tolist():
        around = spoken[max(0, place - _AROUND) : place + _AROUND + 1]
        turn = spoken[place]
        others = [other.speaker for other in around if other.speaker not in ("", turn.speaker)]
        sentences = _fit(split_sentences(turn.text))
        if not sentences or not others or not turn.speaker or len(found) == wanted:
            continue
        sentence = sentences[rng.integers(len(sentences))]
        told = reported(sentence, turn.speaker, others[0])
        if told is None and len(sentence.split()) < _SAID_LEAST:
            continue
        sentence = told or named(sentence, turn.speaker)
        found.append((Pair(pair.id, "\n".join(other.line for other in around), sentence), sentence))
    return found


def _damage(pair: Pair, sentence: str, context: Context, rng: np.random.Generator) -> tuple[str, str] | None:
    names, weights = list(KINDS), np.array(list(KINDS.values()))
    alone = Pair(pair.id, pair.document, sentence)
    for place in rng.choice(len(names), _TRIES, replace=False, p=weights / weights.sum()):
        kind = names[place]
        try:
            damaged = NEGATIVES.get(kind)(alone, context, rng).summary
        except CannotDamage:
            continue
        if damaged.split() != sentence.split():
            return damaged, kind
    return None


def changed(before: str, after: str) -> tuple[tuple[int, int], ...]:
    """Where the words of ``after`` stand, (start, stop), that are not those of ``before``; a word after a gap where some went."""
    was, now = before.split(), after.split()
    places: set[int] = set()
    for what, _, _, begin, stop in SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
        if what in ("replace", "insert"):
            places.update(range(begin, stop))
        elif what == "delete" and now:
            places.add(min(begin, len(now) - 1))
    spans, at = [], 0
    for place, word in enumerate(now):
        at = after.index(word, at)
        if place in places:
            spans.append((at, at + len(word)))
        at += len(word)
    return tuple(spans)


def claims_loss(
    network: SupportNetwork, tokenizer: Any, batch: Sequence[Claim], device: torch.device
) -> tuple[Tensor, Tensor]:
    """Mean over the claims of ``batch`` of the cross-entropy of their doubt and, on average, of their tokens' marks; and the
    doubts [B]."""
    encoded, own, offsets = tokenize(tokenizer, [(claim.passages, claim.sentence) for claim in batch])
    wrong = np.zeros(own.shape, bool)
    for row, claim in enumerate(batch):
        for begin, stop in claim.wrong:
            wrong[row] |= (offsets[row, :, 0] < stop) & (offsets[row, :, 1] > begin)
    marks, doubts = network(own.to(device), **{name: tensor.to(device) for name, tensor in encoded.items()})
    target = torch.tensor([float(claim.doubtful) for claim in batch], device=device)
    sentence = functional.binary_cross_entropy_with_logits(doubts, target)
    own, told = own.to(device), torch.from_numpy(wrong).to(device).float()
    weight = torch.tensor(_WRONG_WEIGHT, device=device)
    each = functional.binary_cross_entropy_with_logits(marks, told, reduction="none", pos_weight=weight) * own
    # A claim counts the same however long it is, and with whichever others it is computed.
    token = (each.sum(1) / own.sum(1).clamp(min=1)).mean()
    return sentence + token, doubts.detach()


def judged_loss(
    network: SupportNetwork, tokenizer: Any, batch: Sequence[Judged], device: torch.device
) -> tuple[Tensor, Tensor]:
    """Mean over the summaries of ``batch`` of the cross-entropy of their highest doubt, and these doubts [B]."""
    encoded, own, _ = tokenize(tokenizer, [question for each in batch for question in each.sentences])
    _, doubts = network(own.to(device), **{name: tensor.to(device) for name, tensor in encoded.items()})
    highest = torch.stack([part.max() for part in doubts.split([len(each.sentences) for each in batch])])
    target = torch.tensor([each.untrue for each in batch], dtype=torch.float32, device=device)
    return functional.binary_cross_entropy_with_logits(highest, target), highest.detach()


def batches(lengths: Sequence[int], steps: int, seed: int, size: int) -> list[np.ndarray]:
    """``steps`` batches of ``size`` by number: each once before any comes again, those of like length together."""
    found: list[np.ndarray] = []
    sizes = np.asarray(lengths)
    epoch = 0
    while len(found) < steps:
        rng = generator(seed, "support-order", epoch)
        order, own = rng.permutation(len(sizes)), []
        for start in range(0, len(order), size * _SORTED):
            part = order[start : start + size * _SORTED]
            part = part[np.argsort(sizes[part], kind="stable")]
            own += [part[at : at + size] for at in range(0, len(part), size)]
        found += [own[at] for at in rng.permutation(len(own))]
        epoch += 1
    return found[:steps]


def train_support(
    accelerator: "Accelerator",
    network: SupportNetwork,
    tokenizer: Any,
    encoder: str,
    pairs: Sequence[Pair],
    held_out: Sequence[Pair],
    steps: int,
    seed: int,
    work: Path,
    by_people: Sequence[Judged] = (),
) -> tuple[SupportJudge, dict[str, float]]:
    """Train ``network``, made from the encoder with the fingerprint ``encoder``, for ``steps`` steps of ``BATCH`` claims, or as
    many as show each claim three times; goes on from the last whole checkpoint in ``work``.

    After the claims each of the summaries ``by_people`` is shown once, ``_JUDGED`` a step. The processes of ``accelerator``
    share out each step's claims and come to the same weights. Returns the judge, and of each kind of damage how often one of
    its claims on ``held_out`` pairs (of the training ones where those are too few) is doubted more than one that is true
    ("all" of them together): AUC. The weights depend on pairs, labels, seed and steps, not on interruptions. Raises
    InputError where nothing can be damaged.
    """
    from sklearn.metrics import roc_auc_score

    learnt = claims(pairs, steps * BATCH, seed)
    if not any(claim.doubtful for claim in learnt):
        raise InputError("no sentence of the training pairs can be made untrue; set judges=false")
    steps = min(steps, -(-_EPOCHS * len(learnt) // BATCH))
    device = accelerator.device
    network.to(device)
    rank, size = accelerator.process_index, accelerator.num_processes
    order = batches([len(claim.passages) + len(claim.sentence) for claim in learnt], steps, seed, BATCH)
    lengths = [sum(map(len, chain(*each.sentences))) for each in by_people]
    shown = batches(lengths, -(-len(by_people) // _JUDGED), seed, _JUDGED)

    def learn(optimizer: torch.optim.Optimizer, step: int, mixed: bool) -> float:
        if step < steps:
            set_learning_rate(optimizer, _PLAN, step, steps)
            batch: Sequence[Any] = [learnt[place] for place in order[step]]
        else:
            set_learning_rate(optimizer, _BY_PEOPLE, step - steps, len(shown))
            batch = [by_people[place] for place in shown[step - steps]]
        # A process without a row takes part in the exchange, with weight 0.
        part = batch[rank::size] or batch[:1]
        with torch.autocast(device.type, torch.bfloat16, enabled=mixed):
            loss = (claims_loss if step < steps else judged_loss)(network, tokenizer, part, device)[0]
        (loss * len(batch[rank::size]) / len(batch)).backward()
        return float(loss.detach())

    fine_tune(accelerator, network, work / "support.pt", steps + len(shown), "support judge", learn)
    # What is kept is what scores.
    network.take(network.learnt())
    held = claims(held_out, _CHECKED, seed + 1)
    if sum(claim.doubtful for claim in held) <= _FEW or all(claim.doubtful for claim in held):
        held = learnt[:_CHECKED]
    doubts, untrue = _doubts(network, tokenizer, held, device), np.array([claim.doubtful for claim in held])
    kinds = np.array([claim.kind for claim in held])
    with torch.no_grad():
        real = doubts[kinds == REAL]
        network.centre.fill_(float(real.mean()))
        network.scale.fill_(max(float(real.std()), 1e-3))
        # A sentence of the document is borne out as well as the best of the real ones are.
        network.copied.fill_(float(np.quantile(real, 0.1)))
    found = {"all": float(roc_auc_score(untrue, doubts))}
    for kind in sorted(set(kinds[untrue].tolist())):
        asked = ~untrue | (kinds == kind)
        found[kind] = float(roc_auc_score(untrue[asked], doubts[asked]))
    return SupportJudge(network, tokenizer, encoder), found


@torch.inference_mode()
def _doubts(network: SupportNetwork, tokenizer: Any, held: Sequence[Claim], device: torch.device) -> np.ndarray:
    order = np.argsort([len(claim.passages) + len(claim.sentence) for claim in held], kind="stable")
    found = np.zeros(len(held))
    for start in range(0, len(order), BATCH):
        places = order[start : start + BATCH]
        found[places] = claims_loss(network, tokenizer, [held[place] for place in places], device)[1].cpu().numpy()
    return found

"""Fine-tuning the judge of form and coherence: stretches of real sentences ranked above damaged copies.

A group is a stretch of a document and copies of it that are damaged in one aspect: of form a single sentence, for that
is how form is read, of coherence two to four sentences. The aspect's mark learns to rank the stretch above its copies. No
human label and no summary is used.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from negsample.errors import InputError
from negsample.io.files import replacing
from negsample.models.align.judge import MARKS, Judge, tokenize
from negsample.models.align.words import count_words
from negsample.negatives import NEGATIVES
from negsample.negatives.context import CannotDamage, Context, context_of
from negsample.records import Pair
from negsample.seeds import generator, seed_from
from negsample.sentences import split_sentences
from negsample.terminal import Bar
from negsample.train.config import TrainConfig
from negsample.train.fit.loop import check_sound, make_optimizer, set_learning_rate, sum_gradients

if TYPE_CHECKING:
    from accelerate import Accelerator

KINDS = {
    "form": ("shuffle", "drop", "double", "glue", "truncate", "add", "replace"),
    "coherence": ("swap", "repeat", "intrude", "sentence-replace"),
}
"""Aspect → the kinds of negatives that damage its stretches."""
# Groups of a step, copies in a group, and sentences in a stretch.
GROUPS = {"form": 8, "coherence": 5}
_COPIES = 3
_SIZES = {"form": (1,), "coherence": (2, 2, 3, 3, 4)}
# Words of a stretch at least: in a shorter one damage hardly shows.
_LEAST_WORDS = 6
# Draws for each group that is wanted; some stretches can't be damaged.
_DRAWS = 8
# Sentences that a document must have for stretches to be taken from it.
_LEAST = 4
# Held-out documents, or groups of them, that are too few to tell anything: training ones are taken in their place.
_FEW = 8
# Groups of like length that are computed together.
_PART = 4
# Groups of each aspect that the trained judge is checked on.
_CHECKED = 64
# Documents that stretches are taken from at most; a step sees a dozen of them.
MOST_DOCUMENTS = 8192
_PLAN = TrainConfig(optimizer="adamw", learning_rate=1e-4, weight_decay=0.01, warmup=0.1, schedule="linear")
_CLIP = 1.0
SAVE_EVERY = 25


@dataclass(frozen=True)
class Group:
    """A stretch and its copies, damaged in ``aspect``: that mark of theirs must be lower."""

    aspect: str
    stretch: str
    copies: tuple[str, ...]


class Stretches:
    """Groups drawn from ``documents``; a group depends on (seed, aspect, number) alone."""

    def __init__(self, documents: Sequence[str], seed: int) -> None:
        read = [(text, split_sentences(text)) for text in documents]
        self._documents = [(text, sentences) for text, sentences in read if len(sentences) >= _LEAST]
        self._seed = seed
        # Foreign sentences come from another document's middle.
        self._context: Context = context_of(
            [
                Pair(str(number), text, " ".join(sentences[1:5]))
                for number, (text, sentences) in enumerate(self._documents)
            ]
        )

    def __len__(self) -> int:
        return len(self._documents)

    def group(self, aspect: str, number: int) -> Group | None:
        """Group ``number`` of ``aspect``; None where its stretch is too short, or nothing of it can be damaged."""
        rng = generator(self._seed, "judge", aspect, number)
        which = int(rng.integers(len(self._documents)))
        text, sentences = self._documents[which]
        size = int(rng.choice(_SIZES[aspect]))
        # Summaries begin like articles more often than chance would have it.
        begin = 0 if rng.random() < 0.2 else int(rng.integers(len(sentences) - size + 1))
        stretch = " ".join(sentences[begin : begin + size])
        if count_words(stretch) < _LEAST_WORDS:
            return None
        copies: list[str] = []
        kinds = KINDS[aspect]
        for place in rng.permutation(len(kinds)):
            if len(copies) == _COPIES:
                break
            kind = kinds[place]
            # A sentence that is glued to the next is read as one; more sentences than one are glued among themselves.
            taken = 2 if kind == "glue" and size == 1 else size
            pair = Pair(str(which), text, " ".join(sentences[begin : begin + taken]))
            try:
                damaged = NEGATIVES.get(kind)(pair, self._context, rng)
            except CannotDamage:
                continue
            if damaged.summary.split() != stretch.split():
                copies.append(damaged.summary)
        return Group(aspect, stretch, tuple(copies)) if copies else None

    def batch(self, step: int, sizes: Mapping[str, int] = GROUPS) -> list[Group]:
        """The groups of a step, as many of each aspect as ``sizes`` says; fewer where draws run out."""
        found: list[Group] = []
        for aspect, size in sizes.items():
            draws = range(step * size * _DRAWS, (step + 1) * size * _DRAWS)
            groups = (self.group(aspect, number) for number in draws)
            found.extend(islice((group for group in groups if group is not None), size))
        return found


def group_loss(marks: torch.Tensor, groups: Sequence[Group]) -> tuple[torch.Tensor, dict[str, float]]:
    """Mean of softplus(mark of copy − mark of stretch), and the share of copies ranked below, by mark.

    ``marks`` [texts, 2] of the groups' texts, each stretch followed by its copies.
    """
    copies = [len(group.copies) for group in groups]
    better = np.repeat(first_rows(groups), copies)
    # Each copy stands one row below the one before it, or below its stretch.
    worse = np.arange(sum(copies)) + np.repeat(np.arange(len(groups)), copies) + 1
    columns = np.repeat([MARKS.index(group.aspect) for group in groups], copies)
    gap = marks[better, columns] - marks[worse, columns]
    right = (gap.detach() > 0).cpu().numpy()
    return functional.softplus(-gap).mean(), {
        name: float(right[columns == number].mean()) for number, name in enumerate(MARKS) if (columns == number).any()
    }


def first_rows(groups: Sequence[Group]) -> np.ndarray:
    """Where the stretch of each group stands among the groups' texts."""
    return np.cumsum([0, *(1 + len(group.copies) for group in groups)])[:-1]


def texts_of(groups: Sequence[Group]) -> list[str]:
    """The texts of the groups, each stretch followed by its copies."""
    return [text for group in groups for text in (group.stretch, *group.copies)]


def fast_bf16() -> bool:
    """Whether this CPU multiplies bf16 matrices in hardware (AMX), so that mixed precision pays (2.6× measured)."""
    check = getattr(torch.cpu, "_is_amx_tile_supported", None)
    return bool(check and check())


def fine_tune(
    accelerator: "Accelerator",
    network: nn.Module,
    path: Path,
    steps: int,
    what: str,
    learn: Callable[[torch.optim.Optimizer, int, bool], float],
) -> None:
    """Train ``network`` in place for ``steps`` steps, told on the bar as ``what``; goes on from the last whole checkpoint, at
    ``path``, and ends with the same weights as if it had not been stopped.

    ``learn(optimizer, step, mixed)`` sets the rate of a step, adds its gradient on every process of ``accelerator``, in
    bfloat16 where that is ``mixed``, and returns this process' loss. Raises InputError as ``check_sound``.
    """
    optimizer, trained = make_optimizer(network, _PLAN), [p for p in network.parameters() if p.requires_grad]
    device, start, recent = accelerator.device, 0, list[float]()
    if path.is_file():
        state = torch.load(path, map_location=device, weights_only=True)
        network.load_state_dict(state["learnt"], strict=False)
        optimizer.load_state_dict(state["optimizer"])
        start = int(state["step"])
    mixed = device.type == "cpu" and fast_bf16()
    network.train()
    with Bar(what, steps, start) as bar:
        for step in range(start, steps):
            recent = [*recent[-49:], learn(optimizer, step, mixed)]
            sum_gradients(accelerator, network)
            nn.utils.clip_grad_norm_(trained, _CLIP)
            optimizer.step()
            optimizer.zero_grad()
            bar.advance(note=f"loss {np.mean(recent):.3f}")
            if (step + 1) % SAVE_EVERY and step + 1 < steps:
                continue
            check_sound(step, float(np.mean(recent)), network)
            if accelerator.is_main_process:
                kept = {name: p.detach() for name, p in network.named_parameters() if p.requires_grad}
                state = {"learnt": kept, "optimizer": optimizer.state_dict(), "step": step + 1}
                with replacing(path) as handle:
                    torch.save(state, handle)
    network.eval()


def train_judge(
    accelerator: "Accelerator",
    judge: Judge,
    documents: Sequence[str],
    held_out: Sequence[str],
    steps: int,
    seed: int,
    work: Path,
) -> dict[str, Any]:
    """Train ``judge`` in place for ``steps`` steps; goes on from the last whole checkpoint in ``work``.

    The processes of ``accelerator`` share out each step's groups, which are the same however many they are, and all come
    to the same weights; only dropout depends on (seed, step, process).
    Returns the share of damaged copies that are ranked below their stretch on ``held_out`` documents, by mark. The weights
    depend on the documents, the seed and the steps, not on interruptions. Raises InputError where no training document
    is long enough for a stretch, or no stretch can be damaged in one of the aspects.
    """
    stretches = Stretches(documents, seed)
    if not len(stretches):
        raise InputError(f"no training document has {_LEAST} sentences or more; set judges=false")
    able = {group.aspect for group in stretches.batch(0)}
    for aspect in MARKS:
        if aspect not in able:
            raise InputError(
                f"no stretch of the training documents can be damaged in {aspect} (sentences of {_LEAST_WORDS} words are "
                "needed); set judges=false"
            )
    network = judge.network
    # Half of a small encoder's numbers are its word vectors; with them fixed a step is cheaper and nothing is lost.
    network.encoder.get_input_embeddings().requires_grad_(False)  # type: ignore[union-attr, operator]

    def learn(optimizer: torch.optim.Optimizer, step: int, mixed: bool) -> float:
        set_learning_rate(optimizer, _PLAN, step, steps)
        rank = accelerator.process_index
        torch.manual_seed(seed_from(seed, "judge-step", step, *([rank] if rank else [])))
        return _backward(accelerator, judge, stretches.batch(step), mixed)

    fine_tune(accelerator, network, work / "judge.pt", steps, "judge", learn)
    checked = _checked(held_out, documents, seed + 1)
    marks = torch.from_numpy(judge._run(texts_of(checked))).to(accelerator.device)
    # The scale of real text: the spread between whole and broken text is far wider than what tells summaries apart.
    aspects, stretches_at = np.array([group.aspect for group in checked]), first_rows(checked)
    network.calibrate([marks[stretches_at[aspects == name], column] for column, name in enumerate(MARKS)])
    return group_loss(marks, checked)[1]


def _checked(held_out: Sequence[str], documents: Sequence[str], seed: int) -> list[Group]:
    """Groups of each aspect to check a judge on: from ``held_out``, where those give too few from training ``documents``."""
    held = Stretches(held_out, seed)
    groups = held.batch(0, dict.fromkeys(MARKS, _CHECKED)) if len(held) > _FEW else []
    found = {aspect: [group for group in groups if group.aspect == aspect] for aspect in MARKS}
    if few := [aspect for aspect, own in found.items() if len(own) <= _FEW]:
        stretches = Stretches(documents, seed)
        found |= {aspect: stretches.batch(0, {aspect: _CHECKED}) for aspect in few}
    return [group for own in found.values() for group in own]


def _backward(accelerator: "Accelerator", judge: Judge, groups: Sequence[Group], mixed: bool) -> float:
    """Add the gradient of the groups' loss, computed in parts of groups of like length so that little is padded.

    The processes of ``accelerator`` take turns with the parts. Returns the loss of this process' parts.
    """
    rank, size = accelerator.process_index, accelerator.num_processes
    device = next(judge.network.parameters()).device
    order = sorted(range(len(groups)), key=lambda i: len(groups[i].stretch))
    total = sum(len(group.copies) for group in groups)
    step = max(1, min(_PART, len(order) // size))
    parts = [order[begin : begin + step] for begin in range(0, len(order), step)]
    if not parts:  # of some documents few stretches can be damaged
        return 0.0
    found = 0.0
    # A process without a part still takes part in the exchange, with weight 0.
    for number in range(rank, len(parts), size) if rank < len(parts) else [-1]:
        part = [groups[i] for i in parts[number]]
        encoded = {name: tensor.to(device) for name, tensor in tokenize(judge.tokenizer, texts_of(part)).items()}
        with torch.autocast(device.type, torch.bfloat16, enabled=mixed):
            marks = judge.network(**encoded)
        loss = group_loss(marks, part)[0] * sum(len(group.copies) for group in part) * (number >= 0) / total
        loss.backward()
        found += float(loss.detach())
    return found

"""The training loop: steps, validation, early stopping, best weights, checkpoints; and how it trains a head on batches.

``run_epochs`` is the loop of all that is trained: these heads, head ``align``, summarizers by a reward. What differs (which
batches, what a step and a validation are) it is given as functions.

The batches are a function of (lengths, seed, epoch, batch size) and of nothing else: they are worked out here and not left
to a data loader's state, so that a resumed run starts at the next step by counting, and so that the number of processes
changes only who computes a step's examples, not which they are.
"""

import contextlib
import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from negsample.errors import InputError
from negsample.models.build import Parts, make_network
from negsample.models.features import Features
from negsample.seeds import generator, seed_from
from negsample.terminal import Bar
from negsample.train.config import TrainConfig, Training
from negsample.train.data import FOUND, Split
from negsample.train.fit.checkpoint import PRINTED, Callbacks, Checkpoints, Position, TrainingLog

if TYPE_CHECKING:
    from accelerate import Accelerator

B = TypeVar("B")
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(logits [B], labels [B], documents int [B]) → losses [B]."""
# mallopt's names for its parameters (malloc.h), their defaults, and what a run sets them to.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_DEFAULT, _TRIM, _MMAP = 128 << 10, 1 << 28, 1 << 25
# No loss and no weight of a training that goes well is so large.
_MOST = 1e6
# Batches whose examples are sorted by length together: long enough to waste little padding, short against an epoch.
_GROUP = 50


@dataclass(frozen=True)
class Run:
    """A training: how the resolved ``config`` trains the network of ``parts`` on prepared ``splits``, by ``loss``.

    Parts that have a network already (loaded from a model folder) are trained on. ``work`` holds checkpoints and
    ``training.jsonl``.
    """

    accelerator: "Accelerator"
    config: TrainConfig
    loss: str
    parts: Parts
    splits: Mapping[str, Split]
    work: Path
    callbacks: Callbacks = PRINTED


def run_epochs(
    position: Position,
    last: int,
    config: Training,
    *,
    batches: Callable[[int, int], Iterable[B]],
    step: Callable[[B], tuple[float, int]],
    validate: Callable[[], float],
    kept: Checkpoints,
    steps: int,
) -> None:
    """Train from ``position``, which moves along, to epoch ``last``, or until validation has stopped improving.

    ``batches(epoch, start)`` gives those of an epoch from the ``start``-th on; ``step(batch)`` makes one optimiser step and
    returns the sum of the losses and of how many examples; ``validate()`` returns what is to become lower, told before the
    epoch's checkpoint is written. Early stopping moves on to epoch ``last``. ``steps``: of all epochs, for the bar.
    Raises InputError as ``check_sound``.
    """
    with Bar("training", steps, position.step) as bar:
        while position.epoch < last:
            start = position.batch
            for batch in batches(position.epoch, start):
                if position.batch > start and position.step % config.checkpoint_every == 0:
                    kept.save(position)
                loss, count = step(batch)
                check_sound(position.step, loss / max(1, count))
                position.loss_sum += loss
                position.loss_count += count
                position.batch += 1
                position.step += 1
                bar.advance(note=f"loss {position.train_loss:.4f}")
            check_sound(position.step, network=kept.network)
            found = validate()
            check_sound(position.step, found)
            position.stale += 1
            if found < position.best_loss:
                position.best_loss, position.best_epoch, position.stale = found, position.epoch, 0
                kept.keep_best(position.epoch)
            position.epoch = position.epoch + 1 if position.stale < config.patience else last
            position.batch, position.loss_sum, position.loss_count = 0, 0.0, 0
            kept.save(position)


def sum_gradients(accelerator: "Accelerator", network: nn.Module) -> None:
    """Give each process of ``accelerator`` the sum of all processes' gradients; each has gradients of the same weights."""
    own = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
    if accelerator.num_processes == 1 or not own:
        return
    summed = accelerator.reduce(torch.cat([gradient.flatten() for gradient in own]), "sum")
    for gradient, found in zip(own, summed.split([gradient.numel() for gradient in own]), strict=True):
        gradient.copy_(found.view_as(gradient))


def check_sound(step: int, loss: float = 0.0, network: nn.Module | None = None) -> None:
    """Raise InputError where a training has run away by ``step``: a loss, or a weight, is no number or beyond a million."""
    weights = [] if network is None else [float(p.detach().abs().max()) for p in network.parameters() if p.numel()]
    for what, value in (("loss", loss), *(("largest weight", weight) for weight in weights)):
        if not abs(value) < _MOST:
            told = f"is {value:.1e}" if np.isfinite(value) else "is not finite"
            raise InputError(f"the {what} {told} at step {step}; lower learning_rate, or set mixed_precision=no")


def fit(run: Run) -> None:
    """Train until the epochs are over or validation has stopped improving; the best weights at the end.

    Goes on from the newest checkpoint in ``run.work`` where there is one. The weights that come out are the same whether or
    not the run was killed and resumed (same machine and number of processes): the order of the examples and every random
    number of a step depend only on (seed, step), and a checkpoint holds all the rest. Raises InputError as ``check_sound``.
    """
    config, features, accelerator = run.config, run.parts.features, run.accelerator
    train, validation = run.splits["train"], run.splits["validation"]
    # Padding is that of the corpus' own pairs.
    features.fit(*train.units(np.flatnonzero(train.of(*FOUND))))
    network = make_network(run.parts, config.seed)
    epochs, size = int(config.epochs or 0), int(config.batch_size or 1)
    costs, documents = train.costs(features), train.document_of if run.loss in GROUPED else None
    sets = [None] if config.redraws == 1 else redrawn(train.of(*FOUND), config.negatives, config.redraws)
    orders = [BatchOrder(costs, size, documents, rows) for rows in sets]
    steps = sum(orders[epoch % len(orders)].per_epoch for epoch in range(epochs))
    prepared, optimizer = accelerator.prepare(network, make_optimizer(network, config))
    kept = Checkpoints(accelerator, run.work, network)
    position = kept.resume()
    log = TrainingLog(run.work / "training.jsonl" if accelerator.is_main_process else None, run.callbacks)
    log.rewind(position)

    def batches(epoch: int, start: int) -> Iterable[list[np.ndarray]]:
        prepared.train()
        return orders[epoch % len(orders)].epoch(config.seed, epoch, start)

    def step(batch: list[np.ndarray]) -> tuple[float, int]:
        set_learning_rate(optimizer, config, position.step, steps)
        torch.manual_seed(seed_from(config.seed, "step", position.step, accelerator.process_index))
        total = train_step(run, prepared, optimizer, batch)
        if config.log_examples:
            log.write(kind="step", step=position.step, ids=[train.id(i) for unit in batch for i in unit])
        return total, sum(map(len, batch))

    def validate() -> float:
        logits = predict(run, validation)
        labels, documents, weights = _truth(validation, slice(None))
        return log.losses(position, float((LOSSES[run.loss](logits, labels, documents) * weights).mean()))

    run_epochs(position, epochs, config, batches=batches, step=step, validate=validate, kept=kept, steps=steps)
    kept.load_best(position.best_epoch)


def bce(logits: Tensor, labels: Tensor, documents: Tensor) -> Tensor:
    """Binary cross-entropy of ``sigmoid(logits)`` with labels in [0, 1] (Bao et al. 2021 §3.2, cross pairing)."""
    return functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")


def mse(logits: Tensor, labels: Tensor, documents: Tensor) -> Tensor:
    """Squared error of ``sigmoid(logits)`` with labels in [0, 1] (Bao et al. 2021 §3.2, mutation)."""
    return (torch.sigmoid(logits) - labels) ** 2


def ranking(logits: Tensor, labels: Tensor, documents: Tensor) -> Tensor:
    """Within a document, a better-labelled example should score higher than a worse one (see docs/recipes.md).

    An example's loss is its squared error (which anchors the scale that differences alone leave open) plus the mean of
    log(1 + exp(worse − it)) over the examples of its document with a lower label; just the former where there are none.
    """
    order = torch.argsort(documents, stable=True)
    _, sizes = torch.unique_consecutive(documents[order], return_counts=True)
    # One row a document, padded: [G, K]. Pairs are then compared within rows only, never across the whole split.
    width = int(sizes.max())
    real = torch.arange(width, device=logits.device) < sizes[:, None]
    scores = torch.zeros(real.shape, dtype=logits.dtype, device=logits.device).masked_scatter(real, logits[order])
    grades = torch.zeros(real.shape, dtype=labels.dtype, device=logits.device).masked_scatter(real, labels[order])
    better = (grades[:, :, None] > grades[:, None, :]) & real[:, :, None] & real[:, None, :]
    margins = functional.softplus(scores[:, None, :] - scores[:, :, None]) * better
    mean = margins.sum(2) / better.sum(2).clamp(min=1)
    losses = torch.zeros_like(logits).scatter(0, order, mean[real])
    return losses + mse(logits, labels, documents)


LOSSES: dict[str, Loss] = {"bce": bce, "mse": mse, "ranking": ranking}
# Losses that compare the examples of a document with each other, which must then stand in one batch.
GROUPED = frozenset({"ranking"})


def train_step(run: Run, network: nn.Module, optimizer: Any, batch: list[np.ndarray]) -> float:
    """One optimiser step over ``batch``, shared by the processes; the sum of the batch's losses over all of them."""
    accelerator, config, split = run.accelerator, run.config, run.splits["train"]
    pieces = share(batch, config.gradient_accumulation, accelerator.num_processes, accelerator.process_index)
    total = torch.zeros((), device=accelerator.device)
    for piece in pieces:
        with accelerator.accumulate(network):
            # A process without an example still takes part in the exchange of gradients, with weight 0.
            rows = piece if len(piece) else batch[0]
            tensors = gather(run.parts.features, split, rows, accelerator.device)
            labels, documents, weights = (values.to(accelerator.device) for values in _truth(split, rows))
            losses = LOSSES[run.loss](network(**tensors), labels, documents) * weights * float(len(piece) > 0)
            # Gradients are averaged over processes and parts; this makes the step the mean over the batch's examples.
            scale = accelerator.num_processes * config.gradient_accumulation / sum(map(len, batch))
            accelerator.backward(losses.sum() * scale)
            if accelerator.sync_gradients and config.max_gradient_norm:
                accelerator.clip_grad_norm_(network.parameters(), config.max_gradient_norm)
            optimizer.step()
            optimizer.zero_grad()
            total += losses.detach().sum()
    return float(accelerator.reduce(total, "sum"))


def gather(features: Features, split: Split, rows: np.ndarray, device: torch.device) -> dict[str, Tensor]:
    """The network's arguments for the examples ``rows``, on ``device``."""
    return {name: tensor.to(device) for name, tensor in features.collate(*split.read(rows)).items()}


def _truth(split: Split, rows: np.ndarray | slice) -> tuple[Tensor, ...]:
    """Labels, documents and weights of the examples ``rows``."""
    return tuple(torch.from_numpy(np.array(v[rows])) for v in (split.labels, split.document_of, split.weights))


@torch.inference_mode()
def predict(run: Run, split: Split) -> Tensor:
    """Logits float32 [n] of a split on the CPU, computed in full precision, shared by the processes."""
    accelerator, features = run.accelerator, run.parts.features
    network = make_network(run.parts, run.config.seed).eval()
    # Accelerate puts its mixed precision around the instance's forward; scores are computed without it, as in scoring.
    forward = type(network).forward
    logits = torch.zeros(len(split))
    # Pairs of like length together, so that little is padded.
    order, size = np.argsort(-split.costs(features), kind="stable"), 2 * int(run.config.batch_size or 1)
    for number, start in enumerate(range(0, len(order), size)):
        if number % accelerator.num_processes == accelerator.process_index:
            rows = order[start : start + size]
            tensors = gather(features, split, rows, accelerator.device)
            logits[rows] = forward(network, **tensors).float().cpu()
    return accelerator.reduce(logits.to(accelerator.device), "sum").cpu()


def redrawn(original: np.ndarray, negatives: int, redraws: int) -> list[np.ndarray]:
    """The examples of each set, int64 [n] each, ascending: all originals, and every pair's next ``negatives``.

    A network with many weights learns one fixed set by heart; with another one each epoch it has to look at the document.
    ``original`` bool [n]; a pair's examples stand together, its original first. Where a pair has fewer negatives than
    ``negatives * redraws``, the later sets lack them.
    """
    places = np.arange(len(original))
    number = places - np.maximum.accumulate(np.where(original, places, 0))
    drawn = (number - 1) // negatives
    return [np.flatnonzero(original | (drawn == each)) for each in range(redraws)]


class BatchOrder:
    """The order of examples of ``lengths`` (int [n]) in batches of ``batch_size``; every epoch has ``per_epoch`` batches.

    ``documents`` (int [n]), where given, says which examples must stay together: a batch then holds whole documents,
    about ``batch_size`` examples of them. ``rows`` (int [m]): the examples that are seen at all (default: every one).
    """

    def __init__(
        self, lengths: np.ndarray, batch_size: int, documents: np.ndarray | None = None, rows: np.ndarray | None = None
    ) -> None:
        rows = np.arange(len(lengths)) if rows is None else rows
        codes = np.arange(len(rows)) if documents is None else np.unique(documents[rows], return_inverse=True)[1]
        counts = np.bincount(codes)
        # The examples of unit i lie from ends[i] to ends[i + 1].
        self._rows = rows[np.argsort(codes, kind="stable")].astype(np.int32)
        self._ends = np.concatenate([[0], np.cumsum(counts)])
        self._lengths = np.zeros(len(counts), np.int32)
        np.maximum.at(self._lengths, codes, lengths[rows])
        self._units = max(1, round(batch_size / counts.mean()))
        self.per_epoch = -(-len(counts) // self._units)

    def epoch(self, seed: int, epoch: int, start: int = 0) -> Iterator[list[np.ndarray]]:
        """The batches of one epoch from the ``start``-th on, each a list of units (an example, or a document's examples).

        Units are shuffled, sorted by length within groups of 50 batches, cut into batches, and the batches shuffled, so
        that units of like length are computed together. Over all batches each example stands exactly once.
        """
        rng = generator(seed, "order", epoch)
        order = rng.permutation(len(self._lengths))
        for first in range(0, len(order), _GROUP * self._units):
            group = order[first : first + _GROUP * self._units]
            group[:] = group[np.argsort(self._lengths[group], kind="stable")]
        for number in rng.permutation(self.per_epoch)[start:]:
            units = order[number * self._units : (number + 1) * self._units]
            yield [self._rows[self._ends[unit] : self._ends[unit + 1]].astype(np.int64) for unit in units]


def share(batch: list[np.ndarray], parts: int, processes: int, rank: int) -> list[np.ndarray]:
    """What process ``rank`` of ``processes`` computes of one batch, in ``parts`` pieces (gradient accumulation).

    Over all ranks and parts each example stands exactly once, units whole; a piece may be empty.
    """
    bounds = np.linspace(0, len(batch), parts * processes + 1).round().astype(int)
    pieces = [batch[a:b] for a, b in pairwise(bounds)]
    mine = [pieces[part * processes + rank] for part in range(parts)]
    return [np.concatenate(piece) if piece else np.zeros(0, np.int64) for piece in mine]


def make_optimizer(network: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """The optimiser that a resolved ``config`` names, over the parameters that are trained; biases and norms don't decay."""
    rate = float(config.learning_rate or 0)
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if config.optimizer == "rmsprop":
        # Bao et al. 2021 don't give the decay: 0.9 is Tieleman and Hinton's, and Keras' default. PyTorch's is 0.99, whose
        # first steps are three times as long: ``fc`` over 700 words saturates at once and gives every pair one score.
        return torch.optim.RMSprop(groups, lr=rate, alpha=0.9)
    return torch.optim.AdamW(groups, lr=rate)


def set_learning_rate(optimizer: torch.optim.Optimizer, config: TrainConfig, step: int, steps: int) -> None:
    """Set the rate of ``step`` (from 0) of ``steps``: rising linearly over the warm-up, then constant or falling to 0."""
    warm, rate = int((config.warmup or 0) * steps), float(config.learning_rate or 0)
    if step < warm:
        rate *= (step + 1) / warm
    elif config.schedule == "linear":
        rate *= max(0.0, (steps - step) / max(1, steps - warm))
    for group in optimizer.param_groups:
        group["lr"] = rate


@contextlib.contextmanager
def own_state() -> Iterator[None]:
    """A random state of the run's own inside the block, and denormal numbers flushed to zero; the caller's after it.

    Vanishing gradients, and their squares in RMSProp, end as denormal numbers, with which a CPU is many times slower (an
    LSTM over 600 words: 0.17 s a step, 0.04 s without). Enter it before any heavy work: threads inherit the setting when
    they are started.

    Inside the block glibc also keeps the memory of freed tensors: by default it gives large ones back to the system and
    fetches them again, page by page, in every step (a quarter of the time of the ``fc`` and ``cnn`` heads).
    """
    torch.set_flush_denormal(True)
    _set_malloc(_TRIM, _MMAP)
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if torch.cuda.is_available() else []):
            yield
    finally:
        torch.set_flush_denormal(False)
        _set_malloc(_DEFAULT, _DEFAULT)


def _set_malloc(trim: int, mmap: int) -> None:
    """Set glibc's thresholds, in bytes; other C libraries have no such call, and nothing happens."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, trim)
        mallopt(_MMAP_THRESHOLD, mmap)

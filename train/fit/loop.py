"""The training loop, top to bottom: data, network, steps, validation, early stopping, checkpoint, resume."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from negsample.errors import InputError
from negsample.models.features import Features
from negsample.progress import Bar
from negsample.seeds import seed_from
from negsample.train.config import Optimisation, TrainConfig
from negsample.train.data.order import share
from negsample.train.data.prepare import Split
from negsample.train.data.turns import Turns
from negsample.train.fit.checkpoint import (
    Position,
    find_checkpoint,
    load_best,
    save_best,
    save_checkpoint,
)
from negsample.train.fit.losses import GROUPED, LOSSES, Loss
from negsample.train.fit.training_log import Journal

if TYPE_CHECKING:
    from accelerate import Accelerator


def fit(
    accelerator: "Accelerator",
    config: TrainConfig,
    loss_name: str,
    network: nn.Module,
    features: Features,
    train: Split,
    validation: Split,
    work: Path,
    say: Callable[[str], None] | None = None,
    after_epoch: Callable[[int, float], None] | None = None,
) -> Position:
    """Train ``network`` in place until the epochs are over or validation has stopped improving; best weights at the end.

    ``say`` is told each epoch's losses; by default they are printed. ``after_epoch(epoch, validation_loss)`` is called
    on every process before the epoch's checkpoint is written; an exception from it ends the run.

    Goes on from the newest checkpoint in ``work`` where there is one. The weights that come out are the same whether or
    not the run was killed and resumed (same machine and number of processes): the order of the examples and every
    random number of a step depend only on (seed, step), and a checkpoint holds all the rest. Raises InputError where
    the loss is not finite.
    """
    plan = config.optimisation()
    order = Turns(
        train,
        features,
        plan.batch_size,
        together=loss_name in GROUPED,
        negatives=config.negatives,
        redraws=config.redraws,
    )
    steps = order.steps(plan.epochs)
    prepared, optimizer = accelerator.prepare(network, make_optimizer(network, plan))
    loss = LOSSES[loss_name]
    position = Position()
    journal = Journal(work / "training.jsonl" if accelerator.is_main_process else None)
    if (found := find_checkpoint(work)) is not None:
        accelerator.load_state(str(found[0]))
        position = found[1]
    journal.rewind(position.step, position.epoch)
    say = say or partial(accelerator.print, flush=True)

    with Bar("training", steps, position.step) as bar:
        while not position.finished:
            prepared.train()
            for batch in order.batches(config.seed, position.epoch, position.batch):
                for group in optimizer.param_groups:
                    group["lr"] = learning_rate(plan, position.step, steps)
                torch.manual_seed(seed_from(config.seed, "step", position.step, accelerator.process_index))
                total = train_step(accelerator, config, loss, prepared, optimizer, features, train, batch)
                if not np.isfinite(total):
                    raise InputError(
                        f"the loss is not finite at step {position.step}; lower learning_rate={plan.learning_rate}"
                        + ("" if config.mixed_precision == "no" else " or set mixed_precision=no")
                    )
                if config.log_examples:
                    ids = [train.id(i) for unit in batch for i in unit]
                    journal.write(kind="step", step=position.step, ids=ids)
                position.loss_sum += total
                position.loss_count += sum(map(len, batch))
                position.batch += 1
                position.step += 1
                bar.advance(note=f"loss {position.loss_sum / position.loss_count:.4f}")
                if position.step % config.checkpoint_every == 0:
                    save_checkpoint(accelerator, work, position)

            logits = predict(accelerator, network, features, validation, plan.batch_size)
            validation_loss = float(loss(logits, *_truth(validation, slice(None))).mean())
            train_loss = position.loss_sum / max(1, position.loss_count)
            journal.write(
                kind="epoch",
                epoch=position.epoch,
                steps=position.step,
                train_loss=train_loss,
                validation_loss=validation_loss,
            )
            say(f"epoch {position.epoch + 1}: train loss {train_loss:.4f}, validation loss {validation_loss:.4f}")
            if after_epoch is not None:
                after_epoch(position.epoch, validation_loss)
            if validation_loss < position.best_loss:
                position.best_loss, position.best_epoch, position.stale = validation_loss, position.epoch, 0
                if accelerator.is_main_process:
                    save_best(network, work, position.epoch)
            else:
                position.stale += 1
            position.epoch, position.batch, position.loss_sum, position.loss_count = position.epoch + 1, 0, 0.0, 0
            position.finished = position.epoch >= plan.epochs or position.stale >= config.patience
            save_checkpoint(accelerator, work, position)
    if position.best_epoch < 0:
        raise InputError("the validation loss was never a number; lower the learning rate or check the data")
    load_best(network, work, position.best_epoch)
    return position


def train_step(
    accelerator: "Accelerator",
    config: TrainConfig,
    loss: Loss,
    network: nn.Module,
    optimizer: Any,
    features: Features,
    split: Split,
    batch: list[np.ndarray],
) -> float:
    """One optimiser step over ``batch``, shared by the processes; the sum of the batch's losses over all of them."""
    pieces = share(batch, config.gradient_accumulation, accelerator.num_processes, accelerator.process_index)
    total = torch.zeros((), device=accelerator.device)
    for piece in pieces:
        with accelerator.accumulate(network):
            # A process without an example still takes part in the exchange of gradients, with weight 0.
            rows = piece if len(piece) else batch[0]
            tensors = gather(features, split, rows, accelerator.device)
            labels, documents = (values.to(accelerator.device) for values in _truth(split, rows))
            losses = loss(network(**tensors), labels, documents) * float(len(piece) > 0)
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
    documents = [split.documents[i] for i in split.document_of[rows]]
    summaries = [split.summaries[i] for i in split.summary_of[rows]]
    return {name: tensor.to(device) for name, tensor in features.collate(documents, summaries).items()}


def _truth(split: Split, rows: np.ndarray | slice) -> tuple[Tensor, Tensor]:
    """Labels and documents of the examples ``rows``."""
    return torch.from_numpy(np.array(split.labels[rows])), torch.from_numpy(np.array(split.document_of[rows]))


def _length_batches(lengths: np.ndarray, size: int) -> Iterator[np.ndarray]:
    order = np.argsort(-lengths, kind="stable")
    for start in range(0, len(order), size):
        yield order[start : start + size]


@torch.inference_mode()
def predict(
    accelerator: "Accelerator", network: nn.Module, features: Features, split: Split, batch_size: int
) -> Tensor:
    """Logits float32 [n] of a split on the CPU, computed in full precision, shared by the processes."""
    network.eval()
    # Accelerate puts its mixed precision around the instance's forward; scores are computed without it, as in scoring.
    forward = type(network).forward
    logits = torch.zeros(len(split))
    for number, rows in enumerate(_length_batches(split.costs(features), 2 * batch_size)):
        if number % accelerator.num_processes == accelerator.process_index:
            tensors = gather(features, split, rows, accelerator.device)
            logits[rows] = forward(network, **tensors).float().cpu()
    return accelerator.reduce(logits.to(accelerator.device), "sum").cpu()


def make_optimizer(network: nn.Module, plan: Optimisation) -> torch.optim.Optimizer:
    """The optimiser that ``plan`` names, over the parameters that are trained; biases and norms are not decayed."""
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": plan.weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if plan.optimizer == "rmsprop":
        # P3 does not give the decay: 0.9 is Tieleman and Hinton's, and Keras' default. PyTorch's is 0.99, whose first steps
        # are three times as long: ``fc`` over 700 words saturates at once and gives every pair the same score.
        return torch.optim.RMSprop(groups, lr=plan.learning_rate, alpha=0.9)
    return torch.optim.AdamW(groups, lr=plan.learning_rate)


def learning_rate(plan: Optimisation, step: int, steps: int) -> float:
    """The rate of ``step`` (from 0): rising linearly over the warm-up, then constant or falling linearly towards 0."""
    warm = int(plan.warmup * steps)
    if step < warm:
        return plan.learning_rate * (step + 1) / warm
    if plan.schedule == "linear":
        return plan.learning_rate * max(0.0, (steps - step) / max(1, steps - warm))
    return plan.learning_rate

"""The training loop, top to bottom: data, network, steps, validation, early stopping, checkpoint, resume."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from negsample.errors import InputError
from negsample.models.features import Features
from negsample.progress import Bar
from negsample.seeds import seed_from
from negsample.train.config import TrainConfig
from negsample.train.data.batches import Batches, share
from negsample.train.data.prepare import Split
from negsample.train.fit.checkpoint import Position, find_checkpoint, load_best, save_best, save_checkpoint
from negsample.train.fit.losses import GROUPED, LOSSES, Loss
from negsample.train.fit.optimizer import make_optimizer, set_learning_rate
from negsample.train.fit.training_log import TrainingLog, print_line

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
    say: Callable[[str], None] = print_line,
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
    together = loss_name in GROUPED
    batches = Batches(
        train, features, plan.batch_size, together=together, negatives=config.negatives, redraws=config.redraws
    )
    steps = batches.steps(plan.epochs)
    prepared, optimizer = accelerator.prepare(network, make_optimizer(network, plan))
    loss = LOSSES[loss_name]
    position = Position()
    log = TrainingLog(work / "training.jsonl" if accelerator.is_main_process else None, say)
    if (found := find_checkpoint(work)) is not None:
        accelerator.load_state(str(found[0]))
        position = found[1]
    log.rewind(position.step, position.epoch)

    with Bar("training", steps, position.step) as bar:
        while not position.finished:
            prepared.train()
            for batch in batches.epoch(config.seed, position.epoch, position.batch):
                set_learning_rate(optimizer, plan, position.step, steps)
                torch.manual_seed(seed_from(config.seed, "step", position.step, accelerator.process_index))
                total = train_step(accelerator, config, loss, prepared, optimizer, features, train, batch)
                if not np.isfinite(total):
                    raise InputError(
                        f"the loss is not finite at step {position.step}; lower learning_rate={plan.learning_rate}"
                        + ("" if config.mixed_precision == "no" else " or set mixed_precision=no")
                    )
                if config.log_examples:
                    ids = [train.id(i) for unit in batch for i in unit]
                    log.write(kind="step", step=position.step, ids=ids)
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
            log.epoch(position.epoch, position.step, train_loss, validation_loss)
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
    return {name: tensor.to(device) for name, tensor in features.collate(*split.read(rows)).items()}


def _truth(split: Split, rows: np.ndarray | slice) -> tuple[Tensor, Tensor]:
    """Labels and documents of the examples ``rows``."""
    return torch.from_numpy(np.array(split.labels[rows])), torch.from_numpy(np.array(split.document_of[rows]))


@torch.inference_mode()
def predict(
    accelerator: "Accelerator", network: nn.Module, features: Features, split: Split, batch_size: int
) -> Tensor:
    """Logits float32 [n] of a split on the CPU, computed in full precision, shared by the processes."""
    network.eval()
    # Accelerate puts its mixed precision around the instance's forward; scores are computed without it, as in scoring.
    forward = type(network).forward
    logits = torch.zeros(len(split))
    # Pairs of like length together, so that little is padded.
    order, size = np.argsort(-split.costs(features), kind="stable"), 2 * batch_size
    for number, start in enumerate(range(0, len(order), size)):
        if number % accelerator.num_processes == accelerator.process_index:
            rows = order[start : start + size]
            tensors = gather(features, split, rows, accelerator.device)
            logits[rows] = forward(network, **tensors).float().cpu()
    return accelerator.reduce(logits.to(accelerator.device), "sum").cpu()

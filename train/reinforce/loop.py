"""The training loop by a reward, top to bottom: maximum likelihood first, then the mixed loss, resumable at any step."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor

from negsample.errors import InputError
from negsample.progress import Bar
from negsample.seeds import seed_from
from negsample.train.fit.checkpoint import Position, find_checkpoint, load_best, load_own, save_best, save_checkpoint
from negsample.train.fit.training_log import TrainingLog, print_line
from negsample.train.reinforce.config import ReinforceConfig
from negsample.train.reinforce.data import epoch_order
from negsample.train.reinforce.losses import likelihood, mixed, self_critical
from negsample.train.reinforce.policy import Policy, Source

if TYPE_CHECKING:
    from accelerate import Accelerator

# The weights as they were before the first reward (before the training, where there is none), for the test table.
START = "start.safetensors"


class RewardFunction(Protocol):
    """What the loop asks of a reward (``negsample.rewards.Reward``); its numbers are always defined."""

    def score(
        self, documents: Sequence[str], summaries: Sequence[str], references: Sequence[Sequence[str]]
    ) -> np.ndarray:
        """Rewards float64 [n]."""
        ...

    def report(self) -> dict[str, float | None]:
        """What the last outputs were like."""
        ...

    def state(self) -> dict[str, Any]:
        """What later rewards depend on."""
        ...

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from ``state``."""
        ...


def fit(
    accelerator: "Accelerator",
    config: ReinforceConfig,
    policy: Policy,
    reward: RewardFunction,
    train: Sequence[Source],
    alone: Sequence[Source],
    validation: Sequence[Source],
    work: Path,
    say: Callable[[str], None] = print_line,
) -> Position:
    """Train ``policy.network`` in place; the weights with the highest validation reward at the end.

    First ``config.ml_epochs`` of maximum likelihood (kept: those with the lowest validation loss), then ``config.epochs``
    of the mixed loss (kept: those with the highest mean reward of greedy summaries; those it starts from count too),
    each with a fresh Adam (Clark et al. 2019, A.3). Goes on from the newest checkpoint in ``work``, with the same weights
    at the end as if it had not been stopped. Raises InputError where the loss is not finite.
    """
    network, optimizer = accelerator.prepare(policy.network, torch.optim.Adam(policy.network.parameters()))
    position = Position()
    log = TrainingLog(work / "training.jsonl" if accelerator.is_main_process else None, say)
    if (found := find_checkpoint(work)) is not None:
        accelerator.load_state(str(found[0]))
        position = found[1]
        reward.load_state(load_own(accelerator, found[0]))
    elif accelerator.is_main_process and not config.epochs:
        save_start(policy, work)
    log.rewind(position.step, position.epoch)
    last = config.ml_epochs + config.epochs
    per_epoch = -(-len(epoch_order(train, alone, config.unsupervised_share, config.seed, 0)) // config.batch_size)
    with Bar("training", last * per_epoch, position.step) as bar:
        while position.epoch < last:
            rewarded = position.epoch >= config.ml_epochs
            if position.epoch == config.ml_epochs and position.batch == 0:
                _begin_rewards(accelerator, policy, reward, optimizer, validation, config, position, work, say)
            extra = alone if rewarded else []
            order = epoch_order(train, extra, config.unsupervised_share, config.seed, position.epoch)
            batches = [order[i : i + config.batch_size] for i in range(0, len(order), config.batch_size)]
            rate = config.learning_rate if rewarded else config.ml_learning_rate
            for group in optimizer.param_groups:
                group["lr"] = rate
            policy.network.train()
            for batch in batches[position.batch :]:
                gamma = gamma_at(config, position.epoch - config.ml_epochs, position.batch, len(batches))
                torch.manual_seed(seed_from(config.seed, "reinforce", position.step, accelerator.process_index))
                loss, earned = step(
                    accelerator, config, policy, network, optimizer, reward, batch, position.step,
                    gamma if rewarded else 0.0,
                )  # fmt: skip
                if not np.isfinite(loss):
                    raise InputError(f"the loss is not finite at step {position.step}; lower the learning rate {rate}")
                log.write(kind="step", step=position.step, loss=loss, **({} if earned is None else {"reward": earned}))
                position.loss_sum += loss * len(batch)
                position.loss_count += len(batch)
                position.batch += 1
                position.step += 1
                bar.advance(note=f"loss {position.loss_sum / position.loss_count:.3f}")
                if position.step % config.checkpoint_every == 0 and position.batch < len(batches):
                    save_checkpoint(accelerator, work, position, reward.state())
            _end_epoch(accelerator, config, policy, reward, validation, work, log, say, position)
            done = position.stale >= config.patience
            position.epoch, position.batch, position.loss_sum, position.loss_count = position.epoch + 1, 0, 0.0, 0
            if done:
                position.epoch = last if rewarded else config.ml_epochs
            position.finished = position.epoch == last
            save_checkpoint(accelerator, work, position, reward.state())
    load_best(policy.network, work, position.best_epoch)
    return position


def gamma_at(config: ReinforceConfig, epoch: int, batch: int, batches: int) -> float:
    """The reward's weight: fixed, or rising evenly to ``gamma_end`` over the rewarded epochs (``epoch`` from 0)."""
    if config.gamma_end is None:
        return config.gamma
    share = (epoch * batches + batch) / max(1, config.epochs * batches - 1)
    return config.gamma + (config.gamma_end - config.gamma) * share


def step(
    accelerator: "Accelerator",
    config: ReinforceConfig,
    policy: Policy,
    network: Any,
    optimizer: Any,
    reward: RewardFunction,
    batch: Sequence[Source],
    number: int,
    gamma: float,
) -> tuple[float, float | None]:
    """One optimiser step over ``batch``, shared by the processes: its mean loss, and the mean reward of what was drawn (None
    where γ is 0, which is plain fine-tuning)."""
    parts = config.gradient_accumulation
    own = list(batch[accelerator.process_index :: accelerator.num_processes])
    pieces = [own[part::parts] for part in range(parts)]
    # A process (or part) without a document still takes part in the exchange of gradients, with weight 0.
    filled = [piece or list(batch[:1]) for piece in pieces]
    inputs = [
        {name: tensor.to(accelerator.device) for name, tensor in policy.inputs(piece).items()} for piece in filled
    ]
    # All are drawn, and earn what they do, before any is learned from.
    drawn = _rewarded_samples(config, policy, reward, pieces, inputs, number, accelerator.device) if gamma > 0 else None
    total = torch.zeros(3, device=accelerator.device)
    for part, piece in enumerate(filled):
        weight = float(bool(pieces[part]))
        with accelerator.accumulate(network):
            zeros = torch.zeros(len(piece), device=accelerator.device)
            reinforced, supervised = zeros, zeros
            if drawn is not None:
                rows = drawn[part] or [(policy.greedy(inputs[part]), zeros, zeros)] * config.samples
                losses = [self_critical(network(inputs[part], made), r, base) for made, r, base in rows]
                reinforced = torch.stack(losses).mean(0)
                total[1] += weight * torch.stack([r for _, r, _ in rows]).sum()
                total[2] += weight * len(rows) * len(piece)
            if gamma < 1:
                has = torch.tensor([float(bool(source.references)) for source in piece], device=accelerator.device)
                sequences = policy.targets(piece).to(accelerator.device)
                supervised = has * likelihood(network(inputs[part], sequences))
            loss = mixed(gamma, reinforced, supervised).sum() * weight
            # Gradients are averaged over processes and parts; this makes the step the mean over the batch's documents.
            accelerator.backward(loss * accelerator.num_processes * parts / len(batch))
            if accelerator.sync_gradients and config.max_gradient_norm:
                accelerator.clip_grad_norm_(network.parameters(), config.max_gradient_norm)
            optimizer.step()
            optimizer.zero_grad()
            total[0] += loss.detach()
    lost, earned, count = accelerator.reduce(total, "sum").tolist()
    return lost / len(batch), earned / count if count else None


def _rewarded_samples(
    config: ReinforceConfig,
    policy: Policy,
    reward: RewardFunction,
    pieces: Sequence[Sequence[Source]],
    inputs: Sequence[dict[str, Tensor]],
    number: int,
    device: torch.device,
) -> list[list[tuple[Tensor, Tensor, Tensor]]]:
    """For each of ``pieces`` (with their ``inputs``), and each of ``config.samples``: sequences, their rewards [B] and those
    of the greedy ones [B]; none for a piece without a document."""
    training = policy.network.training
    policy.network.eval()
    draws = [(config.seed, "reinforce", number, draw) for draw in range(config.samples)]
    made = [
        [policy.greedy(own), *(policy.sample(own, piece, draw) for draw in draws)] if piece else []
        for piece, own in zip(pieces, inputs, strict=True)
    ]
    policy.network.train(training)
    texts = [text for piece, own in zip(pieces, made, strict=True) for one in own for text in policy.texts(piece, one)]
    sources = [source for piece, own in zip(pieces, made, strict=True) for _ in own for source in piece]
    # In one call, for some rewards compare the summaries of a call with each other.
    found = torch.from_numpy(score(reward, sources, texts) if texts else np.zeros(0)).float().to(device)
    result: list[list[tuple[Tensor, Tensor, Tensor]]] = []
    for piece, own in zip(pieces, made, strict=True):
        rewards, found = found[: len(piece) * len(own)].reshape(len(own), len(piece)), found[len(piece) * len(own) :]
        result.append([(one, rewards[k], rewards[0]) for k, one in enumerate(own) if k])
    return result


def score(reward: RewardFunction, sources: Sequence[Source], texts: Sequence[str]) -> np.ndarray:
    """Rewards float64 [n] of a summary of each source."""
    return reward.score([s.document for s in sources], texts, [s.references for s in sources])


def _begin_rewards(
    accelerator: "Accelerator",
    policy: Policy,
    reward: RewardFunction,
    optimizer: Any,
    validation: Sequence[Source],
    config: ReinforceConfig,
    position: Position,
    work: Path,
    say: Callable[[str], None],
) -> None:
    """From likelihood to rewards: the best weights so far, a fresh Adam, and what they earn as they are."""
    if position.best_epoch >= 0:
        load_best(policy.network, work, position.best_epoch)
    position.best_epoch, position.stale = max(0, position.epoch - 1), 0
    optimizer.optimizer.state.clear()
    before = reward.state()
    earned = _mean_reward(accelerator, config, policy, reward, validation)
    # Summaries that nothing is learned from leave no trace in the reward.
    reward.load_state({**reward.state(), "length": before["length"]})
    position.best_loss = -earned
    if accelerator.is_main_process:
        say(f"validation reward before: {earned:.4f}")
        save_best(policy.network, work, position.best_epoch)
        save_start(policy, work)
    accelerator.wait_for_everyone()


def save_start(policy: Policy, work: Path) -> None:
    """Keep the weights that rewards have not touched yet."""
    from safetensors.torch import save_model

    save_model(policy.network, str(work / f"{START}.tmp"))
    (work / f"{START}.tmp").replace(work / START)


def _end_epoch(
    accelerator: "Accelerator",
    config: ReinforceConfig,
    policy: Policy,
    reward: RewardFunction,
    validation: Sequence[Source],
    work: Path,
    log: TrainingLog,
    say: Callable[[str], None],
    position: Position,
) -> None:
    rewarded = position.epoch >= config.ml_epochs
    train_loss = position.loss_sum / max(1, position.loss_count)
    facts: dict[str, Any] = {"epoch": position.epoch, "steps": position.step, "train_loss": train_loss}
    if rewarded:
        facts["outputs"] = reward.report()
        before = reward.state()
        earned = _mean_reward(accelerator, config, policy, reward, validation)
        reward.load_state({**reward.state(), "length": before["length"]})
        facts["validation_reward"] = earned
        found, told = -earned, f"validation reward {earned:.4f}"
    else:
        found = facts["validation_loss"] = _validation_loss(accelerator, config, policy, validation)
        told = f"validation loss {found:.4f}"
    log.write(kind="epoch", phase="reward" if rewarded else "likelihood", **facts)
    if accelerator.is_main_process:
        say(f"epoch {position.epoch + 1} ({'reward' if rewarded else 'likelihood'}): loss {train_loss:.4f}, {told}")
    if found < position.best_loss:
        position.best_loss, position.best_epoch, position.stale = found, position.epoch, 0
        if accelerator.is_main_process:
            save_best(policy.network, work, position.epoch)
    else:
        position.stale += 1


def _own_batches(accelerator: "Accelerator", config: ReinforceConfig, sources: Sequence[Source]) -> list[list[Source]]:
    own = sources[accelerator.process_index :: accelerator.num_processes]
    return [list(own[i : i + config.batch_size]) for i in range(0, len(own), config.batch_size)]


def _total(accelerator: "Accelerator", values: Sequence[float]) -> float:
    found = torch.tensor([sum(values), len(values)], device=accelerator.device, dtype=torch.float32)
    both = accelerator.reduce(found, "sum")
    return float(both[0] / both[1].clamp(min=1))


@torch.no_grad()
def _mean_reward(
    accelerator: "Accelerator",
    config: ReinforceConfig,
    policy: Policy,
    reward: RewardFunction,
    sources: Sequence[Source],
) -> float:
    """Mean reward of the greedy summaries of ``sources``, shared by the processes."""
    policy.network.eval()
    earned: list[float] = []
    for batch in _own_batches(accelerator, config, sources):
        inputs = {name: tensor.to(accelerator.device) for name, tensor in policy.inputs(batch).items()}
        earned += score(reward, batch, policy.texts(batch, policy.greedy(inputs))).tolist()
    policy.network.train()
    return _total(accelerator, earned)


@torch.no_grad()
def _validation_loss(
    accelerator: "Accelerator", config: ReinforceConfig, policy: Policy, sources: Sequence[Source]
) -> float:
    """Mean −log p of the references of ``sources``, shared by the processes."""
    policy.network.eval()
    losses: list[float] = []
    for batch in _own_batches(accelerator, config, [source for source in sources if source.references]):
        inputs = {name: tensor.to(accelerator.device) for name, tensor in policy.inputs(batch).items()}
        sequences = policy.targets(batch).to(accelerator.device)
        losses += likelihood(policy.network(inputs, sequences)).tolist()
    policy.network.train()
    return _total(accelerator, losses)

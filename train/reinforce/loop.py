"""Training by a reward: maximum likelihood first, then the mixed loss, resumable at any step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor

from negsample.models.summarizers.extractor import Extractor
from negsample.models.summarizers.language_model import LanguageSummarizer
from negsample.records import Source
from negsample.seeds import generator, seed_from
from negsample.terminal import say
from negsample.train.fit.checkpoint import Callbacks, Checkpoints, TrainingLog, save_weights
from negsample.train.fit.loop import run_epochs
from negsample.train.reinforce.config import ReinforceConfig

if TYPE_CHECKING:
    from accelerate import Accelerator

# The weights as they were before the first reward (before the training, where there is none), for the test table.
START = "start.safetensors"


# What can be trained by a reward. ``network(inputs, sequences)`` gives the log probability [B] of sequences int64 [B, T]
# (negative after their end) for the documents in ``inputs``.
Policy = Extractor | LanguageSummarizer


class RewardFunction(Protocol):
    """What the loop asks of a reward (``negsample.rewards.Reward``); its numbers are always defined."""

    def score(
        self, documents: Sequence[str], summaries: Sequence[str], references: Sequence[Sequence[str]]
    ) -> np.ndarray: ...

    def state(self) -> dict[str, Any]: ...

    def load_state(self, state: dict[str, Any]) -> None: ...

    def report(self) -> dict[str, float | None]: ...


@dataclass(frozen=True)
class Rewarding:
    """A training by a reward: what every part of it needs."""

    accelerator: "Accelerator"
    config: ReinforceConfig
    policy: Policy
    reward: RewardFunction

    def score(self, sources: Sequence[Source], texts: Sequence[str]) -> np.ndarray:
        """Rewards float64 [n] of a summary of each source."""
        return self.reward.score([s.document for s in sources], texts, [s.references for s in sources])

    def inputs(self, sources: Sequence[Source]) -> dict[str, Tensor]:
        """What the network takes of documents, on its device."""
        return {name: tensor.to(self.accelerator.device) for name, tensor in self.policy.inputs(sources).items()}

    @torch.no_grad()
    def mean(self, sources: Sequence[Source], rewarded: bool) -> float:
        """Mean reward of the greedy summaries of ``sources``, or else mean −log p of their references, shared by the processes;
        0 of none. Nothing is learned from them, so they leave no trace in what the reward knows of length."""
        accelerator, policy, size, found = self.accelerator, self.policy, self.config.batch_size, list[float]()
        length = self.reward.state()["length"]
        policy.network.eval()
        every = [source for source in sources if rewarded or source.references]
        own = every[accelerator.process_index :: accelerator.num_processes]
        for batch in (own[i : i + size] for i in range(0, len(own), size)):
            inputs = self.inputs(batch)
            if rewarded:
                found += self.score(batch, policy.texts(batch, policy.decode(inputs, batch))).tolist()
            else:
                found += (-policy.network(inputs, policy.targets(batch).to(accelerator.device))).tolist()
        policy.network.train()
        if rewarded:
            self.reward.load_state({**self.reward.state(), "length": length})
        both = torch.tensor([sum(found), len(found)], device=accelerator.device, dtype=torch.float32)
        total, count = accelerator.reduce(both, "sum")
        return float(total / count.clamp(min=1))


def self_critical(log_probs: Tensor, sampled: Tensor, baseline: Tensor) -> Tensor:
    """Losses [n] = (r(greedy) − r(sample)) · log p(sample); least where better samples become more probable.

    Clark et al. (2019), eq. 7, and Scialom et al. (2019), eq. 4, after Rennie et al. (2017). ``log_probs`` [n]: of whole
    sampled sequences; ``sampled``, ``baseline`` [n]: rewards of the sample and of the greedy sequence.
    """
    return (baseline - sampled) * log_probs


def mixed(gamma: float, reinforced: Tensor, supervised: Tensor) -> Tensor:
    """γ · L_rl + (1 − γ) · L_ml (Clark et al. 2019, eq. 8; Scialom et al. 2019, eq. 2); L_ml = −log p(reference)."""
    return gamma * reinforced + (1 - gamma) * supervised


def fit(
    run: Rewarding,
    train: Sequence[Source],
    alone: Sequence[Source],
    validation: Sequence[Source],
    work: Path,
    say: Callable[[str], None] = say,
) -> None:
    """Train the policy's network in place; the weights with the highest validation reward at the end.

    First ``config.ml_epochs`` of maximum likelihood (kept: those with the lowest validation loss), then ``config.epochs``
    of the mixed loss (kept: those with the highest mean reward of greedy summaries; those it starts from count too),
    each with a fresh Adam (Clark et al. 2019, A.3). Goes on from the newest checkpoint in ``work``, with the same weights
    at the end as if it had not been stopped. Raises InputError as ``check_sound``.
    """
    accelerator, config, policy, reward = run.accelerator, run.config, run.policy, run.reward
    network, optimizer = accelerator.prepare(policy.network, torch.optim.Adam(policy.network.parameters()))
    main, last = accelerator.is_main_process, config.ml_epochs + config.epochs
    kept = Checkpoints(accelerator, work, policy.network, reward)
    position = kept.resume()
    log = TrainingLog(work / "training.jsonl" if main else None, Callbacks(say=say))
    log.rewind(position)
    if main and not position.step and not config.epochs:
        save_weights(policy.network, work / START)

    def phase(last: int, rewarded: bool) -> None:
        extra, rate = (alone, config.learning_rate) if rewarded else ([], config.ml_learning_rate)
        count = -(-len(epoch_order(train, extra, config.unsupervised_share, config.seed, 0)) // config.batch_size)

        def batches(epoch: int, start: int) -> list[list[Source]]:
            order = epoch_order(train, extra, config.unsupervised_share, config.seed, epoch)
            for group in optimizer.param_groups:
                group["lr"] = rate
            policy.network.train()
            return [order[i : i + config.batch_size] for i in range(0, len(order), config.batch_size)][start:]

        def one(batch: list[Source]) -> tuple[float, int]:
            gamma = gamma_at(config, position.epoch - config.ml_epochs, position.batch, count) if rewarded else 0.0
            torch.manual_seed(seed_from(config.seed, "reinforce", position.step, accelerator.process_index))
            loss, earned = step(run, network, optimizer, batch, position.step, gamma)
            log.write(kind="step", step=position.step, loss=loss, **({} if earned is None else {"reward": earned}))
            return loss * len(batch), len(batch)

        def validate() -> float:
            facts: dict[str, Any] = {"epoch": position.epoch, "steps": position.step, "train_loss": position.train_loss}
            if rewarded:
                facts |= {"phase": "reward", "outputs": reward.report()}
                earned = facts["validation_reward"] = run.mean(validation, rewarded)
                found, told = -earned, f"validation reward {earned:.4f}"
            else:
                facts["phase"] = "likelihood"
                found = facts["validation_loss"] = run.mean(validation, rewarded)
                told = f"validation loss {found:.4f}"
            log.write(kind="epoch", **facts)
            if main:
                say(f"epoch {position.epoch + 1} ({facts['phase']}): loss {position.train_loss:.4f}, {told}")
            return found

        steps = last * count
        run_epochs(position, last, config, batches=batches, step=one, validate=validate, kept=kept, steps=steps)

    phase(config.ml_epochs, rewarded=False)
    if config.epochs and position.epoch == config.ml_epochs and not position.batch:
        # The best weights so far, a fresh Adam, and what they earn as they are.
        if position.best_epoch >= 0:
            kept.load_best(position.best_epoch)
        optimizer.optimizer.state.clear()
        earned = run.mean(validation, rewarded=True)
        position.best_loss, position.best_epoch, position.stale = -earned, max(0, position.epoch - 1), 0
        kept.keep_best(position.best_epoch)
        if main:
            say(f"validation reward before: {earned:.4f}")
            save_weights(policy.network, work / START)
        accelerator.wait_for_everyone()
    phase(last, rewarded=True)
    kept.load_best(position.best_epoch)


def epoch_order(train: Sequence[Source], alone: Sequence[Source], share: float, seed: int, epoch: int) -> list[Source]:
    """The documents of an epoch in a random order; ``alone`` make up ``share`` of them where there are any."""
    order = [train[i] for i in generator(seed, "reinforce", "order", epoch).permutation(len(train))]
    if not alone:
        return order
    rng = generator(seed, "reinforce", "alone", epoch)
    wanted = max(1, round(len(order) * share / (1 - share)))
    rounds = [rng.permutation(len(alone)) for _ in range(-(-wanted // len(alone)))]
    order += [alone[i] for i in np.concatenate(rounds)[:wanted]]
    return [order[i] for i in rng.permutation(len(order))]


def gamma_at(config: ReinforceConfig, epoch: int, batch: int, batches: int) -> float:
    """The reward's weight: fixed, or rising evenly to ``gamma_end`` over the rewarded epochs (``epoch`` from 0)."""
    if config.gamma_end is None:
        return config.gamma
    share = (epoch * batches + batch) / max(1, config.epochs * batches - 1)
    return config.gamma + (config.gamma_end - config.gamma) * share


def step(
    run: Rewarding, network: Any, optimizer: Any, batch: Sequence[Source], number: int, gamma: float
) -> tuple[float, float | None]:
    """One optimiser step over ``batch``, shared by the processes: its mean loss, and the mean reward of what was drawn (None
    where γ is 0, which is plain fine-tuning)."""
    accelerator, config, policy = run.accelerator, run.config, run.policy
    parts = config.gradient_accumulation
    own = list(batch[accelerator.process_index :: accelerator.num_processes])
    pieces = [own[part::parts] for part in range(parts)]
    # A process (or part) without a document still takes part in the exchange of gradients, with weight 0.
    filled = [piece or list(batch[:1]) for piece in pieces]
    inputs = [run.inputs(piece) for piece in filled]
    # All are drawn, and earn what they do, before any is learned from.
    drawn = _rewarded_samples(run, pieces, inputs, number) if gamma > 0 else None
    total = torch.zeros(3, device=accelerator.device)
    for part, piece in enumerate(filled):
        weight = float(bool(pieces[part]))
        with accelerator.accumulate(network):
            zeros = torch.zeros(len(piece), device=accelerator.device)
            reinforced, supervised = zeros, zeros
            if drawn is not None:
                rows = drawn[part] or [(policy.decode(inputs[part], piece), zeros, zeros)] * config.samples
                losses = [self_critical(network(inputs[part], made), r, base) for made, r, base in rows]
                reinforced = torch.stack(losses).mean(0)
                total[1] += weight * torch.stack([r for _, r, _ in rows]).sum()
                total[2] += weight * len(rows) * len(piece)
            if gamma < 1:
                has = torch.tensor([float(bool(source.references)) for source in piece], device=accelerator.device)
                sequences = policy.targets(piece).to(accelerator.device)
                supervised = -has * network(inputs[part], sequences)
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
    run: Rewarding, pieces: Sequence[Sequence[Source]], inputs: Sequence[dict[str, Tensor]], number: int
) -> list[list[tuple[Tensor, Tensor, Tensor]]]:
    """For each of ``pieces`` (with their ``inputs``), and each of ``config.samples``: sequences, their rewards [B] and those
    of the greedy ones [B]; none for a piece without a document."""
    config, policy = run.config, run.policy
    training = policy.network.training
    policy.network.eval()
    draws = [(config.seed, "reinforce", number, draw) for draw in range(config.samples)]
    made = [
        [policy.decode(own, piece), *(policy.decode(own, piece, draw) for draw in draws)] if piece else []
        for piece, own in zip(pieces, inputs, strict=True)
    ]
    policy.network.train(training)
    texts = [text for piece, own in zip(pieces, made, strict=True) for one in own for text in policy.texts(piece, one)]
    sources = [source for piece, own in zip(pieces, made, strict=True) for _ in own for source in piece]
    # In one call, for some rewards compare the summaries of a call with each other.
    found = torch.from_numpy(run.score(sources, texts) if texts else np.zeros(0)).float()
    found, result = found.to(run.accelerator.device), list[list[tuple[Tensor, Tensor, Tensor]]]()
    for piece, own in zip(pieces, made, strict=True):
        rewards, found = found[: len(piece) * len(own)].reshape(len(own), len(piece)), found[len(piece) * len(own) :]
        result.append([(one, rewards[k], rewards[0]) for k, one in enumerate(own) if k])
    return result

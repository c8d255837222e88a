"""The losses of training by a reward: self-critical policy gradient, maximum likelihood, and their mixture."""

from torch import Tensor


def self_critical(log_probs: Tensor, sampled: Tensor, baseline: Tensor) -> Tensor:
    """Losses [n] = (r(greedy) − r(sample)) · log p(sample); least where better samples become more probable.

    Clark et al. (2019), eq. 7, and Scialom et al. (2019), eq. 4, after Rennie et al. (2017). ``log_probs`` [n]: of whole
    sampled sequences; ``sampled``, ``baseline`` [n]: rewards of the sample and of the greedy sequence.
    """
    return (baseline - sampled) * log_probs


def likelihood(log_probs: Tensor) -> Tensor:
    """Losses [n] = −log p(reference), of whole sequences (Clark et al. 2019, eq. 6; Scialom et al. 2019, eq. 3)."""
    return -log_probs


def mixed(gamma: float, reinforced: Tensor, supervised: Tensor) -> Tensor:
    """γ · L_rl + (1 − γ) · L_ml (Clark et al. 2019, eq. 8; Scialom et al. 2019, eq. 2)."""
    return gamma * reinforced + (1 - gamma) * supervised

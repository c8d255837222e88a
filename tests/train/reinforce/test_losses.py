"""The losses, against numbers worked out by hand."""

import math

import pytest
import torch

from negsample.train.reinforce.losses import likelihood, mixed, self_critical


def test_the_gradient_of_two_tokens_is_that_worked_out_by_hand() -> None:
    # Two steps over two tokens, p = (¼, ¾) at each; the sample is (first, second), and earns 0.6 more than the greedy one.
    logits = torch.tensor([[0.0, math.log(3)], [0.0, math.log(3)]], requires_grad=True)
    log_probs = torch.log_softmax(logits, 1)
    log_prob = (log_probs[0, 0] + log_probs[1, 1]).unsqueeze(0)
    loss = self_critical(log_prob, torch.tensor([1.0]), torch.tensor([0.4]))
    assert float(loss.detach()) == pytest.approx(-0.6 * math.log(0.25 * 0.75))
    loss.sum().backward()
    # (r(greedy) − r(sample)) · (chosen − p): −0.6·(1 − ¼, 0 − ¾) and −0.6·(0 − ¼, 1 − ¾).
    assert logits.grad is not None
    assert logits.grad.flatten().tolist() == pytest.approx([-0.45, 0.45, 0.15, -0.15])


def test_a_sample_that_earns_what_the_greedy_one_earns_teaches_nothing() -> None:
    log_prob = torch.tensor([-2.0], requires_grad=True)
    self_critical(log_prob, torch.tensor([0.7]), torch.tensor([0.7])).sum().backward()
    assert log_prob.grad is not None
    assert float(log_prob.grad) == 0.0


def test_the_mixture_is_linear_in_gamma() -> None:
    reinforced, supervised = torch.tensor([2.0]), likelihood(torch.tensor([-4.0]))
    assert [float(mixed(gamma, reinforced, supervised)) for gamma in (0.0, 0.25, 1.0)] == [4.0, 3.5, 2.0]

"""The fc, cnn and lstm heads against plain numpy, and the law that padding never changes a score."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from negsample.models.batching import pad
from negsample.models.heads import HEADS

NAMES = ["fc", "cnn", "lstm"]


def made(name: str, dim: int, max_document: int, max_summary: int, seed: int = 0, **options: Any) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return HEADS.get(name)(dim, max_document, max_summary, **options)


def rows(rng: np.random.Generator, count: int, dim: int) -> np.ndarray:
    return rng.standard_normal((count, dim)).astype(np.float32)


def alone(head: nn.Module, document: np.ndarray, summary: np.ndarray) -> float:
    """The score of one example, without any padding."""
    with torch.no_grad():
        return head(
            torch.from_numpy(document)[None],
            torch.from_numpy(summary)[None],
            torch.ones(1, len(document), dtype=torch.bool),
            torch.ones(1, len(summary), dtype=torch.bool),
        ).item()


def weights(head: nn.Module) -> dict[str, np.ndarray]:
    return {name: value.numpy().astype(np.float64) for name, value in head.state_dict().items()}


def frame_of(document: np.ndarray, summary: np.ndarray, max_document: int, max_summary: int) -> np.ndarray:
    frame = np.zeros((max_document + max_summary, document.shape[1]))
    frame[: len(document)] = document
    frame[max_document : max_document + len(summary)] = summary
    return frame


def numpy_fc(head: nn.Module, document: np.ndarray, summary: np.ndarray, most: tuple[int, int]) -> float:
    w = weights(head)
    hidden = w["hidden.weight"] @ frame_of(document, summary, *most).ravel() + w["hidden.bias"]
    return float(w["output.weight"][0] @ np.maximum(hidden, 0) + w["output.bias"][0])


def numpy_cnn(head: nn.Module, document: np.ndarray, summary: np.ndarray, most: tuple[int, int]) -> float:
    """Every window over the whole frame, one after the other."""
    w = weights(head)
    kernels = w["convolution.weight"]  # [kernels, dim, width]
    width = kernels.shape[2]
    frame = frame_of(document, summary, *most)
    frame = np.concatenate([frame, np.zeros((max(0, width - len(frame)), frame.shape[1]))])
    windows = [
        np.einsum("kdw,wd->k", kernels, frame[start : start + width]) + w["convolution.bias"]
        for start in range(len(frame) - width + 1)
    ]
    pooled = np.maximum(np.array(windows), 0).max(axis=0)
    return float(w["output.weight"][0] @ pooled + w["output.bias"][0])


def numpy_lstm(head: nn.Module, document: np.ndarray, summary: np.ndarray, most: tuple[int, int]) -> float:
    """The recurrence as it is printed: gates i, f, g, o."""
    w = weights(head)
    units = w["output.weight"].shape[1]
    state, cell = np.zeros(units), np.zeros(units)
    for row in np.concatenate([document, summary]):
        gates = w["recurrence.weight_ih_l0"] @ row + w["recurrence.bias_ih_l0"]
        gates = gates + w["recurrence.weight_hh_l0"] @ state + w["recurrence.bias_hh_l0"]
        i, f, g, o = gates.reshape(4, units)
        cell = cell / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        state = np.tanh(cell) / (1 + np.exp(-o))
    return float(w["output.weight"][0] @ state + w["output.bias"][0])


REFERENCE = {"fc": numpy_fc, "cnn": numpy_cnn, "lstm": numpy_lstm}


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    most=st.tuples(st.integers(1, 14), st.integers(1, 9)),
    lengths=st.lists(st.tuples(st.integers(0, 14), st.integers(0, 9)), min_size=1, max_size=5),
    extra=st.tuples(st.integers(0, 14), st.integers(0, 9)),
    seed=st.integers(0, 1000),
)
def test_heads_equal_numpy_alone_and_in_any_padded_batch(
    name: str, most: tuple[int, int], lengths: list[tuple[int, int]], extra: tuple[int, int], seed: int
) -> None:
    dim = 3
    head = made(name, dim, *most, seed=seed)
    rng = np.random.default_rng(seed)
    examples = [(rows(rng, min(n, most[0]), dim), rows(rng, min(m, most[1]), dim)) for n, m in lengths]
    expected = [REFERENCE[name](head, document, summary, most) for document, summary in examples]
    np.testing.assert_allclose([alone(head, *example) for example in examples], expected, atol=1e-5)

    # What stands in the padding is no number at all, and the batch may be padded further than it need be.
    batch = []
    for side in (0, 1):
        padded, mask = pad([example[side] for example in examples], fill=np.nan)
        more = min(extra[side], most[side] - padded.shape[1])
        padded = np.pad(padded, ((0, 0), (0, more), (0, 0)), constant_values=np.nan)
        batch += [torch.from_numpy(padded), torch.from_numpy(np.pad(mask, ((0, 0), (0, more))))]
    documents, document_mask, summaries, summary_mask = batch
    scores = head(documents, summaries, document_mask, summary_mask)
    assert scores.shape == (len(examples),)
    np.testing.assert_allclose(scores.detach().numpy(), expected, atol=1e-5)
    scores.sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in head.parameters() if parameter.grad is not None)


def test_cnn_over_many_windows_has_the_gradient_of_the_plain_formula() -> None:
    head = made("cnn", 3, 12, 5, kernels=4)
    rng = np.random.default_rng(0)
    document, summary = (torch.from_numpy(rng.normal(size=(6, n, 3)).astype(np.float32)) for n in (12, 5))
    full = [torch.ones(6, n, dtype=torch.bool) for n in (12, 5)]
    logits = head(document, summary, *full)
    weights = torch.arange(1.0, 7.0)
    (logits * weights).sum().backward()
    found = [parameter.grad.clone() for parameter in head.parameters() if parameter.grad is not None]
    head.zero_grad()
    frame = torch.cat([document, summary], dim=1).transpose(1, 2)
    plain = head.output(head.convolution(frame).relu().amax(dim=2)).squeeze(-1)  # type: ignore[operator, union-attr]
    (plain * weights).sum().backward()
    assert torch.allclose(logits, plain, atol=1e-6)
    assert len(found) == 4
    for gradient, parameter in zip(found, head.parameters(), strict=True):
        assert parameter.grad is not None
        assert parameter.grad.abs().sum() > 0
        assert torch.allclose(gradient, parameter.grad, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "options", "count"),
    [
        ("fc", {}, (50 * 512 + 1) * 128 + 129),
        ("cnn", {}, (5 * 512 + 1) * 128 + 129),
        ("lstm", {}, 4 * 128 * (512 + 128 + 2) + 129),
        ("lstm", {"unit": "word"}, 4 * 25 * (512 + 25 + 2) + 26),
        ("lstm", {"unit": "word", "units": 7}, 4 * 7 * (512 + 7 + 2) + 8),
        ("fc", {"unit": "word"}, (50 * 512 + 1) * 128 + 129),
    ],
)
def test_the_sizes_are_the_papers_and_weights_come_from_the_callers_generator(
    name: str, options: dict[str, Any], count: int
) -> None:
    assert sum(parameter.numel() for parameter in made(name, 512, 47, 3, **options).parameters()) == count
    one, two, other = (made(name, 3, 2, 2, seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert not all(torch.equal(one[key], other[key]) for key in one)

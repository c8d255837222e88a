"""Packed linear layers: the same answers, whatever the shape and the company, and nothing that training or saving notices."""

import copy
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests_support import story
from tiny_lm import WORDS, build
from torch import nn

from negsample.errors import InputError
from negsample.models import kernels, load
from negsample.models.kernels import Packed, pack, packs
from negsample.models.language.language_model import Asked, load_lm, losses_given
from negsample.models.language.networks import load_pretrained

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this PyTorch has no oneDNN")


@pytest.fixture(scope="module", autouse=True)
def _packing() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEGSAMPLE_KERNELS", "onednn")
        patch.setattr(kernels, "_LEAST_WEIGHT", 1)
        yield


def pair(size: tuple[int, int], bias: bool = True) -> tuple[nn.Linear, nn.Linear]:
    """A layer, and the same packed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        plain = nn.Linear(*size, bias=bias)
    packed = copy.deepcopy(plain)
    pack(packed)
    assert isinstance(packed, Packed)
    return plain, packed


@given(st.integers(0, 70), st.integers(1, 4), st.booleans(), st.integers(0, 99))
def test_each_row_is_what_the_plain_layer_says_alone_and_in_any_batch(n: int, k: int, bias: bool, seed: int) -> None:
    plain, packed = pair((48, 40), bias)
    given_rows = torch.from_numpy(np.random.default_rng(seed).normal(size=(n, 48, k)).astype(np.float32))
    with torch.inference_mode():
        rows = given_rows.transpose(1, 2)  # [n, k, 48], not contiguous
        expected, found = plain(rows), packed(rows)
        assert found.shape == expected.shape == (n, k, 40)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
        torch.testing.assert_close(
            kernels.linear(rows[:, 0], packed.weight, packed.bias), expected[:, 0], atol=1e-5, rtol=0
        )
        for row in range(0, n, 9):
            torch.testing.assert_close(packed(rows[row]), found[row], atol=1e-5, rtol=0)


def test_training_copying_and_saving_see_a_plain_layer() -> None:
    plain, packed = pair((32, 24))
    rows = torch.randn(16, 32)
    assert [(name, value.data_ptr()) for name, value in packed.state_dict().items()] == [
        ("weight", packed.weight.data_ptr()),
        ("bias", packed.bias.data_ptr()),
    ]
    for copied in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
        with torch.inference_mode():
            assert torch.equal(copied(rows), plain(rows))
    for layer in (plain, packed):
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
        layer(rows).square().sum().backward()
        optimizer.step()
    with torch.inference_mode():
        assert torch.equal(packed(rows), plain(rows))  # the weights of before are forgotten
    for change in (lambda layer: layer.bfloat16().float(), lambda layer: layer.load_state_dict(plain.state_dict())):
        packed = pair((32, 24))[1]
        change(packed)
        with torch.inference_mode():
            assert torch.equal(packed(rows), nn.functional.linear(rows, packed.weight, packed.bias))
    packed = pair((32, 24))[1]
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        assert packed(rows).dtype == torch.bfloat16


@pytest.mark.parametrize("kind", ["cls_model", "align_model", "fitted_model"])
def test_scores_are_those_of_plain_layers(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    documents, summaries = map(list, zip(*(story(n) for n in range(24)), strict=True))
    folder = request.getfixturevalue(kind)
    found = {}
    for kernel in ("onednn", "torch"):
        monkeypatch.setenv("NEGSAMPLE_KERNELS", kernel)
        monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path / kernel))
        model = load(folder, "cpu")
        networks: list[Any] = [model.parts.network]
        networks += [model.parts.features.encoder.model.network] if kind != "cls_model" else []  # type: ignore[attr-defined]
        layers = [module for network in networks for module in network.modules() if isinstance(module, nn.Linear)]
        assert {type(layer) for layer in layers} == {Packed if kernel == "onednn" else nn.Linear}
        found[kernel] = model.score(documents, summaries)
        alone = [float(model.score([d], [s])[0]) for d, s in zip(documents[:5], summaries[:5], strict=True)]
        np.testing.assert_allclose(alone, found[kernel][:5], atol=1e-5)
    np.testing.assert_allclose(found["onednn"], found["torch"], atol=1e-5)


def test_threads_may_share_a_layer() -> None:
    plain, packed = pair((64, 48))
    batches = [torch.randn(size, 64) for size in (1, 9, 30, 200) * 10]

    def read(rows: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            return packed(rows)

    with ThreadPoolExecutor(8) as pool:
        for rows, found in zip(batches, pool.map(read, batches), strict=True):
            torch.testing.assert_close(found, plain(rows).detach(), atol=1e-5, rtol=0)


def test_a_language_model_and_its_vocabulary_and_none_that_is_to_be_trained(
    tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(build(tmp_path, "gpt", limit=128))
    draw = np.random.default_rng(0)
    asked = [
        Asked((), tuple(draw.integers(1, len(WORDS), 9)), tuple(draw.integers(1, len(WORDS), n))) for n in range(12)
    ]
    found = []
    for kernel in ("onednn", "torch"):
        monkeypatch.setenv("NEGSAMPLE_KERNELS", kernel)
        found.append(losses_given(load_lm(folder, shared=False), asked))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    monkeypatch.setenv("NEGSAMPLE_KERNELS", "onednn")
    for network in (load_pretrained(str(tiny_bert))[0], load_lm(folder, shared=False, only_reads=False).network):
        assert not any(isinstance(module, Packed) for module in network.modules())


def test_who_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, slow, expected in (
        ("onednn", False, True),
        ("torch", True, False),
        ("", True, True),
        ("auto", False, False),
    ):
        monkeypatch.setenv("NEGSAMPLE_KERNELS", value)
        monkeypatch.setattr(kernels, "_slow_mkl", lambda slow=slow: slow)
        assert packs() is expected
    monkeypatch.setenv("NEGSAMPLE_KERNELS", "mkl")
    with pytest.raises(InputError, match="NEGSAMPLE_KERNELS=mkl is not known; choose one of auto, torch, onednn"):
        packs()

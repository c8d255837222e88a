"""Tokens given what stands before them: against one plain call for each, for both kinds of model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_lm import WORDS, build

from negsample.models.language import language_model
from negsample.models.language.language_model import Asked, load_lm, losses_given
from negsample.models.language.networks import Pretrained


@pytest.fixture(scope="module", params=["gpt", "bart"])
def head(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pretrained:
    folder = build(tmp_path_factory.mktemp(request.param), request.param, limit=128)
    return load_lm(str(folder), shared=False)


def plain(head: Pretrained, one: Asked) -> np.ndarray:
    """−log P of the targets by one whole call, without a cache, in float64."""
    before, target = [*one.shared, *one.own], list(one.target)
    with torch.no_grad():
        if head.network.config.is_encoder_decoder:
            ids, start = torch.tensor([before]), head.network.config.decoder_start_token_id
            logits = head.network(input_ids=ids, decoder_input_ids=torch.tensor([[start, *target[:-1]]])).logits[0]
        else:
            logits = head.network(input_ids=torch.tensor([before + target])).logits[0, len(before) - 1 : -1]
    logs = torch.log_softmax(logits.double(), dim=-1)
    return -logs[range(len(target)), target].numpy()


def questions(seed: int) -> list[Asked]:
    """Long beginnings that several share, short ones, with and without something of their own; lengths of 0 to 20."""
    draw = np.random.default_rng(seed)
    shared = [tuple(draw.integers(1, len(WORDS), size).tolist()) for size in (70, 70, 9)]
    return [
        Asked(shared[k % 3], tuple(draw.integers(1, len(WORDS), k % 4).tolist()),
              tuple(draw.integers(1, len(WORDS), size).tolist()))
        for k, size in enumerate([5, 20, 1, 12, 3, 7, 0, 20, 2, 11])
    ]  # fmt: skip


def test_as_one_plain_call_each(head: Pretrained) -> None:
    asked = questions(0)
    for one, found in zip(asked, losses_given(head, asked), strict=True):
        assert found.shape == (len(one.target),)
        if one.target:
            np.testing.assert_allclose(found, plain(head, one), atol=1e-5)


def test_company_and_order_change_nothing(head: Pretrained) -> None:
    asked = questions(1)
    together = losses_given(head, asked)
    alone = [losses_given(head, [one])[0] for one in asked]
    backwards = losses_given(head, asked[::-1])[::-1]
    for one, other, third in zip(together, alone, backwards, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
        np.testing.assert_allclose(one, third, atol=1e-5)


def test_a_document_is_read_once(tmp_path: Path) -> None:
    head = load_lm(str(build(tmp_path, "gpt", limit=128)), shared=False)
    read: list[int] = []
    handle = head.network.base_model.register_forward_pre_hook(
        lambda _, own, given: read.append((own[0] if own else given["input_ids"]).shape[1]), with_kwargs=True
    )
    shared = tuple([5, 6, 7, 8] * 20)
    losses_given(head, [Asked(shared, (), (5, 6, 7, n)) for n in range(5, 10)])
    handle.remove()
    # But for the probe of three tokens: the document once, then the five in one batch.
    assert [size for size in read if size > 3] == [79, 4]


def test_blocks_of_the_vocabulary_and_a_head_that_does_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    head = load_lm(str(build(tmp_path, "gpt", limit=128)), shared=False)
    asked = questions(2)
    whole = losses_given(head, asked)
    monkeypatch.setattr(language_model, "_VOCABULARY_BLOCK", 3)
    monkeypatch.setattr(language_model, "_PLACES", 2)
    for one, other in zip(whole, losses_given(head, asked), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    # A last layer with a scale behind it is noticed, and computed as the model computes it.
    last = head.network.get_output_embeddings()
    handle = head.network.register_forward_hook(lambda _, __, out: setattr(out, "logits", out.logits * 0.5))
    assert isinstance(last, torch.nn.Linear)
    # What is known of a network is asked once.
    head = replace(head)
    for one, found in zip(asked, losses_given(head, asked), strict=True):
        if one.target:
            np.testing.assert_allclose(found, plain(head, one), atol=1e-5)
    handle.remove()

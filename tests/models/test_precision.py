"""bfloat16 for scoring: close to float32, told in the signature, never mixed with it, refused where it would be slow."""

import json

import numpy as np
import pytest
import torch
from tests_support import save_untrained, story, write_pairs

from negsample import Estimator
from negsample.errors import InputError
from negsample.models import precision
from negsample.models.embedding_cache import EmbeddingCache
from negsample.models.encoders import make_encoder


@pytest.fixture(autouse=True)
def _able(monkeypatch):
    """Any processor computes bfloat16 rightly, if not fast."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})


@pytest.fixture(scope="module", params=["cls", "fc", "align"])
def model(request, tiny_bert, tmp_path_factory):
    spec = {"cls": str(tiny_bert), "fc": f"hf:{tiny_bert}", "align": f"sentence-transformer(model={tiny_bert})"}
    return save_untrained(tmp_path_factory.mktemp("models") / request.param, request.param, spec[request.param])


def test_scores_are_near_those_of_float32_and_the_signature_says_so(model):
    documents, summaries = zip(*(story(n) for n in range(20)), strict=True)
    full, half = Estimator.load(model, "cpu"), Estimator.load(model, "cpu", precision="bf16")
    before, after = full.score(documents, summaries), half.score(documents, summaries)
    assert after.dtype == np.float32
    np.testing.assert_allclose(after, before, atol=2e-3)
    assert (after != before).any()
    # A cache that held float32's vectors would have answered with the same.
    np.testing.assert_array_equal(Estimator.load(model, "cpu").score(documents, summaries), before)
    assert "precision" not in full.signature
    assert half.signature == full.signature + "|precision:bf16"
    alone = np.array([half.score([d], [s])[0] for d, s in zip(documents, summaries, strict=True)])
    np.testing.assert_allclose(alone, after, atol=2e-3)


@pytest.mark.parametrize("name", ["hf", "sentence-transformer"])
def test_the_embedding_cache_keeps_the_precisions_apart(name, tiny_bert, tmp_path):
    full = make_encoder(f"{name}(model={tiny_bert})")
    half = full.in_bf16()
    assert full.model.network.encoder.layer[0].output.dense.weight.dtype == torch.float32
    assert half.model.network.encoder.layer[0].output.dense.weight.dtype == torch.bfloat16
    assert half.fingerprint != full.fingerprint
    assert make_encoder(f"{name}(model={tiny_bert})").in_bf16().fingerprint == half.fingerprint
    texts = [story(n)[1] for n in range(5)]
    one, other = full.encode(texts), half.encode(texts)
    assert other.dtype == np.float32
    assert (one != other).any()
    cosines = (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
    assert cosines.min() > 0.9999
    folders = {EmbeddingCache(encoder, tmp_path / "a" if encoder is full else None).folder for encoder in (full, half)}
    assert len(folders) == 2
    with pytest.raises(InputError, match="holds vectors of encoder"):
        EmbeddingCache(half, tmp_path / "a")


@pytest.mark.parametrize("flags", [{}, {"avx512_bf16": False, "amx_bf16": False}, {"avx512_f": True, "neon": True}])
def test_a_processor_without_the_instructions_is_refused(flags, tiny_bert, model, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: flags)
    with pytest.raises(InputError, match=r"no bfloat16 instructions .* leave it at float32"):
        Estimator.load(model, "cpu", precision="bf16")
    with pytest.raises(InputError, match="no bfloat16 instructions"):
        make_encoder(f"hf(model={tiny_bert},device=cpu)").in_bf16()
    Estimator.load(model, "cpu")


def test_what_counts_as_an_instruction_and_a_warning_where_it_does_not_pay(monkeypatch, caplog):
    for flag in ("avx512_bf16", "amx_bf16", "bf16"):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda flag=flag: {flag: True})
        assert precision.has_bf16("cpu")
    assert not precision.has_bf16("meta")
    assert 0.01 < precision.bf16_gain() < 100
    for gain, told in ((0.5, "float32 is 2.0 times as fast on this processor"), (3.0, "")):
        caplog.clear()
        monkeypatch.setattr(precision, "bf16_gain", lambda gain=gain: gain)
        precision.check_precision("bf16", "cpu")
        assert told in caplog.text
        assert bool(told) == bool(caplog.text)
    with pytest.raises(InputError, match="precision='int8' is not known; choose float32 or bf16"):
        precision.check_precision("int8", "cpu")


def test_commands_that_score_take_a_precision(model, tmp_path, negsample):
    path = tmp_path / "pairs.jsonl"
    write_pairs(path, 4)
    done = negsample("score", "--model", model, path, "-o", tmp_path / "out.jsonl", "--precision", "bf16")
    assert "|precision:bf16" in done.stdout
    assert len([json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]) == 4
    wrong = negsample(
        "score", "--metric", "words", path, "-o", tmp_path / "o.jsonl", "--precision", "bf16", check=2
    ).stderr
    assert "--precision goes with --model" in wrong

"""The estimator: one score a pair, whatever stands beside it; a folder that is whole or refused."""

import json
import random
import shutil
import socket
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests_support import save_untrained, story

from negsample import Estimator
from negsample.errors import InputError
from negsample.models.build import make_network, new_parts


@pytest.fixture(scope="module")
def fc_model(tiny_bert, tmp_path_factory):
    return save_untrained(tmp_path_factory.mktemp("m") / "fc", "fc", f"hf:{tiny_bert}")


@pytest.fixture(params=["cls", "fc"])
def model(request, cls_model, fc_model):
    return cls_model if request.param == "cls" else fc_model


def pairs():
    many = [story(n) for n in range(30)]
    many += [
        ("word " * 200, "lamp boat"),
        ("Lamp.", "boat " * 100),
        ("A. B. C. D.", "x"),
        ("😀 مرحبا بالعالم", "שלום 😀"),
    ]
    return [d for d, _ in many], [s for _, s in many]


def test_score_is_the_same_alone_in_any_batch_and_order(model):
    estimator = Estimator.load(model)
    documents, summaries = pairs()
    together = estimator.score(documents, summaries)
    assert together.dtype == np.float32
    assert together.shape == (34,)
    assert ((together >= 0) & (together <= 1)).all()
    assert np.ptp(together) > 1e-4
    alone = np.concatenate([estimator.score([d], [s]) for d, s in zip(documents, summaries, strict=True)])
    small = estimator.score(documents, summaries, batch_size=1)
    order = list(range(34))
    random.Random(5).shuffle(order)
    shuffled = estimator.score([documents[i] for i in order], [summaries[i] for i in order])
    assert np.abs(together - alone).max() <= 1e-5
    assert np.abs(together - small).max() <= 1e-5
    assert np.abs(together[order] - shuffled).max() <= 1e-5
    assert estimator.score([], []).shape == (0,)


def test_cls_score_is_the_networks_own(cls_model, tiny_bert):
    # Independent: transformers' own pair encoding, the saved weights, and the two layers written out.
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    document, summary = story(4)
    weights = load_file(str(cls_model / "model.safetensors"))
    encoder = AutoModel.from_config(AutoConfig.from_pretrained(tiny_bert)).eval()
    prefix = "encoder."
    encoder.load_state_dict({k[len(prefix) :]: v for k, v in weights.items() if k.startswith(prefix)}, strict=False)
    batch = AutoTokenizer.from_pretrained(tiny_bert)(document, summary, return_tensors="pt")
    with torch.no_grad():
        first = encoder(**batch).last_hidden_state[0, 0].double()
        hidden = torch.clamp(weights["hidden.weight"].double() @ first + weights["hidden.bias"].double(), min=0)
        logit = weights["out.weight"].double() @ hidden + weights["out.bias"].double()
    expected = 1 / (1 + np.exp(-float(logit)))
    assert Estimator.load(cls_model).score([document], [summary])[0] == pytest.approx(expected, abs=1e-6)


def test_loads_and_scores_without_network(model, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    scored = Estimator.load(model).score_pairs(["lamp " * 200, "The baker sold a lamp."], ["boat", "A lamp."])
    assert scored.cut[0] or "fc" in str(model)
    assert not scored.cut[1]
    assert not {path.suffix for path in model.rglob("*")} & {".pkl", ".bin", ".pt", ".pth", ".pickle"}


def test_folder_stands_alone(tiny_bert, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(tiny_bert, source)
    # Of one that was killed while it was written.
    (tmp_path / "model" / ".draft" / "encoder").mkdir(parents=True)
    save_untrained(tmp_path / "model", "cls", str(source))
    names = ["README.md", "config.json", "encoder", "model.safetensors"]
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == names
    before = Estimator.load(tmp_path / "model").score(["The baker sold a lamp."], ["A lamp."])
    shutil.rmtree(source)
    shutil.move(tmp_path / "model", tmp_path / "elsewhere")
    after = Estimator.load(tmp_path / "elsewhere").score(["The baker sold a lamp."], ["A lamp."])
    assert before.tolist() == after.tolist()


def _edit(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def _flip(path):
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (shutil.rmtree, "no such folder"),
        (lambda m: (m / "config.json").unlink(), "not a model folder"),
        (lambda m: (m / "config.json").write_text("{"), "damaged"),
        (lambda m: (m / "config.json").write_text('{"model_type": "bert"}'), "another kind"),
        (lambda m: _edit(m / "config.json", format_version=99), "newer"),
        (lambda m: _edit(m / "config.json", head="nonesuch"), "nonesuch"),
        (lambda m: _edit(m / "config.json", head_options={"hidden": 7}), "does not fit|size"),
        (lambda m: _flip(m / "model.safetensors"), "damaged or changed"),
        (lambda m: (m / "model.safetensors").write_bytes(b"x" * 20), "damaged or changed"),
        (lambda m: (m / "model.safetensors").unlink(), "missing"),
        (lambda m: shutil.rmtree(m / "encoder"), "damaged or missing"),
        (lambda m: (m / "encoder" / "config.json").write_text("[]"), "damaged or missing"),
    ],
)
def test_harmed_folders_are_refused(cls_model, tmp_path, harm, told):
    folder = tmp_path / "harmed"
    shutil.copytree(cls_model, folder)
    harm(folder)
    with pytest.raises(InputError, match=told) as error:
        Estimator.load(folder)
    assert "harmed" in str(error.value) or "nonesuch" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("documents", "summaries", "told"),
    [
        (["a"], ["b", "c"], "1 documents but 2 summaries"),
        ("text", ["a"], "list"),
        (["a", " "], ["b", "c"], "pair 1: the document is blank"),
        (["a", "b"], ["b", None], "pair 1: the summary is missing"),
    ],
)
def test_wrong_arguments(cls_model, documents, summaries, told):
    with pytest.raises(InputError, match=told):
        Estimator.load(cls_model).score(documents, summaries)


def test_signature_tells_models_apart(cls_model, tiny_bert, tmp_path):
    first = Estimator.load(cls_model).signature
    other = Estimator.load(save_untrained(tmp_path / "o", "cls", str(tiny_bert), seed=9)).signature
    assert first.startswith("model:")
    assert "|recipe:crosspair|" in first
    assert first.split("|")[0] != other.split("|")[0]


def test_texts_of_any_size_and_script(model):
    estimator = Estimator.load(model)
    documents = ["lamp " * 100_000, "x" * 100_000, "a\x00b lamp", "\u202eمرحبا 😀 lamp"]
    scores = estimator.score(documents, ["lamp", "x" * 100_000, "\x00 lamp", "😀"])
    assert np.isfinite(scores).all()


def test_the_judge_goes_where_the_network_goes(tiny_bert):
    parts = new_parts("align", f"sentence-transformer:{tiny_bert}")
    make_network(parts, seed=0)
    moved = []

    class Network(torch.nn.Module):
        def to(self, device):
            moved.append(device)
            return self

    parts.features.judge = SimpleNamespace(network=Network())
    Estimator(parts, {}, "cpu")
    assert moved == [torch.device("cpu")]

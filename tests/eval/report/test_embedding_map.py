"""The embedding map: groups stay apart, equal calls give equal pictures, small and degenerate sets."""

from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from negsample.errors import InputError
from negsample.eval.report import embedding_map
from negsample.eval.report.embedding_map import draw, map_texts, project


def groups(n: int = 30, m: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 12)), rng.normal(size=(m, 12)) + 9


def test_separate_groups_stay_separate_and_calls_repeat() -> None:
    first, second = project(*groups())
    everything = np.concatenate([first, second])
    near = np.linalg.norm(everything[:, None] - everything[None], axis=2) + np.diag([np.inf] * 50)
    own = np.arange(50) < 30
    assert (own[near.argmin(axis=1)] == own).all()
    assert np.array_equal(first, project(*groups())[0])


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 1), (3, 2), (1, 7)])
def test_few_points(n: int, m: int) -> None:
    first, second = project(*groups(n, m))
    assert (first.shape, second.shape) == ((n, 2), (m, 2))
    assert np.isfinite(np.concatenate([first, second])).all()


def test_one_point_many_times_and_one_dimension() -> None:
    assert (project(np.ones((8, 3)), np.ones((9, 3)))[0] == 0).all()
    assert np.isfinite(project(np.arange(9.0)[:, None], np.arange(9.0)[:, None] + 0.5)[0]).all()


@pytest.mark.parametrize("format", ["svg", "png"])
def test_pictures(format: str) -> None:
    places = project(*groups(8, 8))
    drawn = draw(places, ("one & two", "$x$"), format)
    assert drawn == draw(places, ("one & two", "$x$"), format)
    if format == "svg":
        assert ElementTree.fromstring(drawn).tag.endswith("svg")
        assert b"one &amp; two" in drawn
    assert drawn.startswith(b"\x89PNG") == (format == "png")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.ones((0, 3)), np.ones((2, 3))),
        (np.ones((2, 3)), np.ones((2, 4))),
        (np.full((2, 3), np.nan), np.ones((2, 3))),
    ],
)
def test_bad_vectors_are_refused(first: np.ndarray, second: np.ndarray) -> None:
    with pytest.raises(InputError):
        project(first, second)


class Letters:
    name, dim, unit, fingerprint = "letters", 3, "sentence", "8" * 64

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=np.float32).reshape(-1, 3)


def test_texts_beyond_the_limit_and_without_a_vector_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path))
    texts = (["a", "aab", "b", "?"], ["c", "cc", "bc"])
    svg = map_texts(*texts, Letters(), names=("left", "right"))  # type: ignore[arg-type]
    assert b"left (3 of 4)" in svg
    assert b"right (3)" in svg
    monkeypatch.setattr(embedding_map, "LIMIT", 2)
    assert b"right (2 of 3)" in map_texts(*texts, Letters(), names=("left", "right"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="none of the 1 reference texts"):
        map_texts(["a"], ["?"], Letters())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="svg or png"):
        map_texts(*texts, Letters(), format="pdf")  # type: ignore[arg-type]

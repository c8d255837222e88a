"""The embedding map: groups stay apart, equal calls give equal pictures, small and degenerate sets."""

from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from negsample.errors import InputError
from negsample.eval.report.embedding_map import draw, map_texts, project


def groups(n: int = 30, m: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 12)), rng.normal(size=(m, 12)) + 9


def test_separate_groups_stay_separate_and_calls_repeat() -> None:
    first, second = groups()
    layout = project(first, second)
    assert layout.first.shape == (30, 2)
    assert layout.second.shape == (20, 2)
    everything = np.concatenate([layout.first, layout.second])
    near = np.linalg.norm(everything[:, None] - everything[None], axis=2) + np.diag([np.inf] * 50)
    own = np.arange(50) < 30
    assert (own[near.argmin(axis=1)] == own).all()
    again = project(first, second)
    assert np.array_equal(layout.first, again.first)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 1), (3, 2), (1, 7)])
def test_few_points(n: int, m: int) -> None:
    first, second = groups(n, m)
    layout = project(first, second)
    assert layout.first.shape == (n, 2)
    assert layout.second.shape == (m, 2)
    assert np.isfinite(np.concatenate([layout.first, layout.second])).all()


def test_one_point_many_times_and_one_dimension() -> None:
    same = project(np.ones((8, 3)), np.ones((9, 3)))
    assert (same.first == 0).all()
    line = project(np.arange(9.0)[:, None], np.arange(9.0)[:, None] + 0.5)
    assert np.isfinite(line.first).all()


def test_limit_draws_a_sample_and_says_so() -> None:
    first, second = groups(40, 6)
    layout = project(first, second, limit=10)
    assert (len(layout.first), len(layout.second)) == (10, 6)
    assert layout.left_out == (30, 0)
    assert b"generated (10 of 40)" in draw(layout)


def test_pictures() -> None:
    layout = project(*groups(8, 8))
    svg = draw(layout, ("one & two", "$x$"), title="A < B")
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert b"one &amp; two (8)" in svg
    assert svg == draw(layout, ("one & two", "$x$"), title="A < B")
    png = draw(layout, format="png")
    assert png.startswith(b"\x89PNG")
    assert png == draw(layout, format="png")
    with pytest.raises(InputError, match="svg or png"):
        draw(layout, format="pdf")


def test_bad_vectors_are_refused() -> None:
    for first, second in (
        (np.ones((0, 3)), np.ones((2, 3))),
        (np.ones((2, 3)), np.ones((2, 4))),
        (np.full((2, 3), np.nan), np.ones((2, 3))),
    ):
        with pytest.raises(InputError):
            project(first, second)


class Letters:
    name, dim, unit, fingerprint = "letters", 3, "sentence", "8" * 64

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=np.float32).reshape(-1, 3)


def test_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEGSAMPLE_CACHE", str(tmp_path))
    svg = map_texts(["a", "aab", "b", "?"], ["c", "cc", "bc"], Letters(), names=("left", "right"))  # type: ignore[arg-type]
    assert b"left (3 of 4)" in svg
    assert b"right (3)" in svg
    with pytest.raises(InputError, match="none of the 1 reference texts"):
        map_texts(["a"], ["?"], Letters())  # type: ignore[arg-type]

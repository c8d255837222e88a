"""Figures of models on the same examples, and their paired differences."""

import numpy as np
import pytest

from negsample.models.evaluation import figures
from negsample.papers.transfer_report import compare_on

LABELS = np.array([1, 0, 1, 0, 1, 0, 1, 0], float)
DOCUMENTS = np.array([0, 0, 1, 1, 2, 2, 3, 3])


def test_values_and_differences_worked_out_by_hand():
    right = np.array([0.9, 0.1, 0.9, 0.1, 0.9, 0.1, 0.5, 0.4])  # all eight; 0.5 counts as good
    half = np.full(8, 0.7)  # the four originals
    found = compare_on("accuracy", LABELS, DOCUMENTS, {"a": [right], "b": [half]}, {"b": {"delta": "a"}})
    assert (found["a"]["value"], found["a"]["low"], found["a"]["high"]) == (1, 1, 1)
    assert (found["b"]["value"], found["b"]["n"], found["b"]["documents"]) == (0.5, 8, 4)
    gap = found["b"]["delta"]
    # Every document has one of two right, so every resample has the same difference.
    assert (gap["value"], gap["low"], gap["high"]) == (-0.5, -0.5, -0.5)
    assert "delta" not in found["a"]


def test_a_difference_is_paired():
    # Both models are right on document 0 and wrong on the others: each is uncertain, their difference is not.
    scores = np.array([0.9, 0.1, 0.1, 0.9, 0.1, 0.9, 0.1, 0.9])
    found = compare_on("accuracy", LABELS, DOCUMENTS, {"a": [scores], "b": [scores]}, {"b": {"delta": "a"}})
    assert found["a"]["low"] < found["a"]["value"] < found["a"]["high"]
    assert found["b"]["delta"]["low"] == found["b"]["delta"]["high"] == 0


def test_a_model_is_the_mean_of_its_seeds():
    right, wrong = LABELS, 1 - LABELS
    found = compare_on("accuracy", LABELS, DOCUMENTS, {"a": [right, right, wrong]}, {})["a"]
    assert found["value"] == pytest.approx(2 / 3)
    assert found["low"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(("seed", "documents", "graded"), [(0, 2, False), (1, 9, True), (2, 5, False), (3, 3, True)])
def test_one_seed_has_the_figures_and_intervals_of_train(seed, documents, graded):
    rng = np.random.default_rng(seed)
    codes = rng.integers(documents, size=40)
    codes[:documents] = np.arange(documents)
    labels = rng.random(40) if graded else rng.integers(2, size=40).astype(float)
    scores = rng.random(40).astype(np.float32)
    name = "pearson" if graded else "accuracy"
    other = figures(labels, scores, codes, seed=seed)[name]
    own = compare_on(name, labels, codes, {"a": [scores]}, {}, seed=seed)["a"]
    assert own["value"] == pytest.approx(other["value"], abs=1e-9)
    assert own["low"] == pytest.approx(other["low"], abs=1e-9)
    assert own["high"] == pytest.approx(other["high"], abs=1e-9)


def test_what_is_not_defined_is_told():
    flat = np.full(8, 0.3)
    labels = np.linspace(0, 1, 8)
    found = compare_on(
        "pearson", labels, DOCUMENTS, {"flat": [flat], "good": [labels]}, {"good": {"delta": "flat"}, "flat": {}}
    )
    assert (found["flat"]["value"], found["flat"]["low"]) == (None, None)
    assert "all the same" in found["flat"]["reason"]
    assert found["good"]["value"] == pytest.approx(1)
    assert found["good"]["delta"] is None
    alone = compare_on("accuracy", LABELS[:2], np.array([7, 7]), {"a": [LABELS[:2]]}, {})["a"]
    assert (alone["value"], alone["low"]) == (1, None)
    assert alone["reason"] == "one document: no interval"

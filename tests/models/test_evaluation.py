"""Accuracy, AUC, Pearson, Spearman, MSE: against values by hand and from scipy and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from negsample.models import evaluation as f
from negsample.terminal import figure_text

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4).map(lambda k: k / 4)), min_size=3, max_size=40)


def test_by_hand():
    labels = np.array([1, 1, 0, 0, 1.0])
    scores = np.array([0.9, 0.4, 0.5, 0.1, 0.5])
    # Right: 0.9→1, 0.1→0, 0.5→1; wrong: 0.4→0 (is 1), 0.5→1 (is 0).
    assert f.accuracy(labels, scores) == pytest.approx(3 / 5)
    # Pairs (positive, negative): .9>.5 .9>.1 .4<.5 .4>.1 .5=.5 .5>.1 → 4.5 of 6.
    assert f.auc(labels, scores) == pytest.approx(4.5 / 6)
    assert f.mse(labels, scores) == pytest.approx((0.01 + 0.36 + 0.25 + 0.01 + 0.25) / 5)


@given(PAIRS)
def test_against_libraries(pairs):
    from scipy import stats
    from sklearn.metrics import roc_auc_score

    labels, scores = np.array(pairs).T
    if np.ptp(labels) > 1e-6 and np.ptp(scores) > 1e-6:
        assert f.pearson(labels, scores) == pytest.approx(stats.pearsonr(labels, scores)[0], abs=1e-6)
        assert f.spearman(labels, scores) == pytest.approx(stats.spearmanr(labels, scores)[0], abs=1e-9)
    binary = scores >= 0.5
    if 0 < binary.sum() < len(binary):
        assert f.auc(binary, labels) == pytest.approx(roc_auc_score(binary, labels), abs=1e-12)


def test_which_figures_and_their_intervals():
    rng = np.random.default_rng(0)
    labels = np.repeat([1.0, 0.0], 200)
    scores = labels * 0.2 + rng.random(400)
    found = f.figures(labels, scores, np.tile(np.arange(200), 2))
    assert list(found) == ["accuracy", "auc"]
    for figure in found.values():
        assert figure["low"] < figure["value"] < figure["high"]
        assert figure["n"] == 400
    # The interval of a share: about ± 1.96 · sqrt(p (1 − p) / n) when documents are nearly independent.
    p = found["accuracy"]["value"]
    width = 2 * 1.96 * np.sqrt(p * (1 - p) / 400)
    assert found["accuracy"]["high"] - found["accuracy"]["low"] == pytest.approx(width, rel=0.25)


def test_examples_of_one_document_are_drawn_together():
    # Ten documents of 60 equal examples each, one half right: as uncertain as ten observations.
    labels = np.repeat([1.0, 0.0], 300)
    scores = np.full(600, 0.9)
    found = f.figures(labels, scores, np.arange(600) // 60)
    assert (found["accuracy"]["low"], found["accuracy"]["high"]) == pytest.approx(
        binom.ppf([0.025, 0.975], 10, 0.5) / 10
    )
    few = f.figures(labels, scores, np.minimum(np.arange(600) // 60, 8))["accuracy"]
    assert (few["value"], few["low"], few["high"]) == (0.5, None, None)
    assert figure_text(few) == "0.500 (fewer than 10 documents, or resamples all alike, give no interval, n = 600)"


def test_what_is_not_defined_says_why():
    one_class = f.figures(np.ones(4), np.array([0.1, 0.2, 0.9, 0.4]), range(4))
    assert one_class["auc"]["value"] is None
    assert "one class" in one_class["auc"]["reason"]
    constant = f.figures(np.array([0.2, 0.5, 1.0]), np.full(3, 0.5), range(3))
    assert list(constant) == ["pearson", "spearman", "mse"]
    assert constant["pearson"]["value"] is None
    assert constant["mse"]["value"] == pytest.approx((0.09 + 0 + 0.25) / 3)


def test_means_by_kind():
    rows = f.by_kind(np.array([1, 0.5, 0.7]), np.array([0.9, 0.4, 0.2]), ["original", "delete", "delete"])
    assert rows["delete"] == {"n": 2, "label": pytest.approx(0.6), "score": pytest.approx(0.3)}

"""Losses by hand, and that a batch's losses do not depend on how it is shared out."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from negsample.train.fit.loop import LOSSES


def run(name, logits, labels, documents):
    values = LOSSES[name](torch.tensor(logits), torch.tensor(labels), torch.tensor(documents))
    return values.tolist()


def test_bce_and_mse_by_hand():
    # sigmoid(0) = 1/2; sigmoid(ln 3) = 3/4.
    logits, labels = [0.0, math.log(3)], [1.0, 0.25]
    assert run("mse", logits, labels, [0, 0]) == pytest.approx([0.25, 0.25], abs=1e-6)
    expected = [math.log(2), -(0.25 * math.log(0.75) + 0.75 * math.log(0.25))]
    assert run("bce", logits, labels, [0, 0]) == pytest.approx(expected, abs=1e-6)


def test_ranking_by_hand():
    # Document 5: labels 1, 0.5, 0.5 with logits 0, ln 3, 0; document 2 alone.
    logits, labels, documents = [0.0, 0.0, math.log(3), 0.0], [1.0, 0.0, 0.5, 0.5], [5, 2, 5, 5]
    squared = run("mse", logits, labels, documents)
    # The best is compared with two worse ones: log(1 + 3) and log(1 + 1). Equal labels are not compared.
    expected = [squared[0] + (math.log(4) + math.log(2)) / 2, *squared[1:]]
    assert run("ranking", logits, labels, documents) == pytest.approx(expected, abs=1e-6)


ROWS = st.lists(
    st.tuples(st.floats(-5, 5, width=32), st.integers(0, 4).map(lambda k: k / 4), st.integers(0, 5)),
    min_size=1,
    max_size=30,
)


@given(ROWS, st.randoms(use_true_random=False))
def test_ranking_is_the_plain_double_loop_in_any_order(rows, random):
    rows = list(rows)
    random.shuffle(rows)
    logits, labels, documents = (list(column) for column in zip(*rows, strict=True))
    got = run("ranking", [float(x) for x in logits], [float(x) for x in labels], documents)
    for i, (x, y, d) in enumerate(rows):
        worse = [np.logaddexp(0, a - x) for a, b, e in rows if e == d and b < y]
        expected = (1 / (1 + math.exp(-x)) - y) ** 2 + (np.mean(worse) if worse else 0)
        assert got[i] == pytest.approx(expected, abs=1e-5)

"""Sums on people's scale, and intervals."""

import numpy as np
import pytest

from negsample.eval.learn.inputs import Inputs, Target
from negsample.eval.learn.scale import fit_target, half_width, held_out, line
from negsample.eval.learn.weights import problem


def test_the_line_and_the_half_width_by_hand() -> None:
    # Least squares of (0, 1), (1, 1), (2, 4) has slope 1.5 through (1, 2).
    assert line(np.array([0.0, 1, 2]), np.array([1.0, 1, 4])) == pytest.approx((0.5, 1.5))
    for sums in (np.ones(4), np.array([4.0, 3, 2, 1])):
        assert line(sums, np.array([1.0, 2, 3, 4])) == (2.5, 0)
    errors = np.array([0.1, -0.4, 0.2, 0.3])
    # (4 + 1) · 0.6 = the third smallest.
    assert (half_width(errors, 0.6, 9.0), half_width(errors, 0.9, 9.0)) == (0.3, 9.0)


@pytest.mark.parametrize("slope", [0, -1, 1])
def test_intervals_of_new_documents_hold_what_they_promise(slope: int) -> None:
    """Also where people's scores don't rise with the inputs: one level for all, its interval cut at the ends of the scale."""
    rng, inside, documents = np.random.default_rng(3), [], 80
    for _ in range(25):
        x = rng.normal(size=(2 * documents, 2))
        people = slope * x.sum(axis=1) + rng.normal(size=len(x))
        found = Inputs(x, [None] * len(x), {"score": 1, "other": 1}, 2, ())
        task = problem(found, Target("h", people, np.ones(len(x))), [f"{n:03}" for n in range(len(x))])
        made = fit_target(task.part(np.arange(documents)), 0.9)
        values, ends = made.answer(made.weights.sums(x[documents:]))
        inside.append((ends[:, 0] <= people[documents:]) & (people[documents:] <= ends[:, 1]))
        low, high = made.scale
        np.testing.assert_allclose(ends[:, 0], np.maximum(values - made.half_width, low))
        np.testing.assert_allclose(ends[:, 1], np.minimum(values + made.half_width, high))
        assert slope >= 0 or (values == made.level).all()
    assert 0.86 <= np.mean(inside) <= 0.94


def test_a_document_is_answered_by_a_fit_that_has_not_seen_it() -> None:
    # People's scores of one document are turned round; its own answers must not follow.
    rng = np.random.default_rng(0)
    x, ids = rng.normal(size=(60, 3)), [f"d{n // 5:02}" for n in range(60)]
    y, mine = x[:, 1] + 0.1 * rng.normal(size=60), np.arange(60) // 5 == 3
    found = Inputs(x, [None] * 60, dict.fromkeys("abc", 1), 3, ())
    answers = [
        held_out(problem(found, Target("h", values, np.ones(60)), ids), 0.9).sums[mine]
        for values in (y, np.where(mine, -y, y))
    ]
    np.testing.assert_allclose(*answers, atol=1e-12)

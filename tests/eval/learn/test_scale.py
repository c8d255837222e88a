"""Sums on people's scale, and intervals."""

import numpy as np
import pytest

from negsample.eval.learn.inputs import Inputs, Target
from negsample.eval.learn.scale import fit_target, half_width, held_out, line
from negsample.eval.learn.weights import problem


def test_the_line_is_cut_at_the_ends_of_peoples_scale() -> None:
    # Least squares of (0, 1), (1, 1), (2, 4) has slope 1.5 through (1, 2).
    x, y = line(np.array([0.0, 1, 2]), np.array([1.0, 1, 4]))
    np.testing.assert_allclose([x, y], [[1 - 1 / 1.5, 1 + 2 / 1.5], [1, 4]])
    for sums in (np.ones(4), np.array([4.0, 3, 2, 1])):
        assert line(sums, np.array([1.0, 2, 3, 4]))[1] == (2.5, 2.5)


def test_the_half_width_is_a_quantile_of_errors() -> None:
    errors = np.array([0.1, -0.4, 0.2, 0.3])
    # (4 + 1) · 0.6 = the third smallest.
    assert half_width(errors, 0.6, 9.0) == 0.3
    assert half_width(errors, 0.9, 9.0) == 9.0


def test_intervals_hold_what_they_promise() -> None:
    rng = np.random.default_rng(3)
    held = total = 0
    for _ in range(20):
        x = rng.normal(size=(110, 1))
        people = x[:, 0] + rng.standard_t(4, 110)
        found = Inputs(x, [None] * 110, {"score": 1}, 1, ())
        task = problem(found, Target("h", people, np.ones(110)), [f"{n:03}" for n in range(110)])
        made = fit_target(task.part(np.arange(60)), 0.8)
        _, ends = made.answer(made.weights.sums(x[60:]))
        # An interval is cut at the ends of the scale that people used.
        answers = np.clip(people[60:], *made.knots[1])
        held += int(((ends[:, 0] <= answers) & (answers <= ends[:, 1])).sum())
        total += 50
    # The interval of 1000 draws of 0.8 (three standard errors), and what 60 residuals leave open.
    assert held / total == pytest.approx(0.8, abs=3 * np.sqrt(0.8 * 0.2 / total) + 0.02)


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

"""Sums on people's scale, and intervals."""

import numpy as np
import pytest

from negsample.eval.fit.calibration import calibrate, curve, half_width


def test_a_line_is_cut_at_the_ends_of_peoples_scale() -> None:
    x, y = curve(np.array([0.0, 1, 2, 3]), np.array([1.0, 2, 3, 4]), "linear")
    np.testing.assert_allclose([x, y], [[0, 3], [1, 4]], atol=1e-12)
    # Least squares of (0, 1), (1, 1), (2, 4) has slope 1.5 through (1, 2).
    x, y = curve(np.array([0.0, 1, 2]), np.array([1.0, 1, 4]), "linear")
    np.testing.assert_allclose(x, [1 - 1 / 1.5, 1 + 2 / 1.5])
    np.testing.assert_allclose(y, [1, 4])


def test_isotonic_steps_rise_a_little() -> None:
    sums, people = np.array([0.0, 1, 2, 3]), np.array([1.0, 0.0, 2.0, 3.0])
    x, y = curve(sums, people, "isotonic")
    # (0, 1) and (1, 0) are pooled to 0.5; the line is 0.3, 1.1, 1.9, 2.7, a hundredth of which is in it; its slope is 0.8.
    np.testing.assert_allclose(x, [0 - 0.498 / 0.8, 0, 1, 2, 3, 3 + 0.003 / 0.8])
    np.testing.assert_allclose(y, [0, 0.498, 0.506, 1.999, 2.997, 3])


def test_a_long_step_keeps_its_ends() -> None:
    sums = np.array([0.0, 1, 2, 3, 4, 5])
    x, y = curve(sums, np.array([1.0, 1, 1, 5, 5, 5]), "isotonic")
    assert set(x) >= {0.0, 2.0, 3.0, 5.0}
    assert np.interp(2.0, x, y) < 1.1
    assert np.interp(3.0, x, y) > 4.9


def test_sums_that_say_nothing_get_the_mean() -> None:
    for sums in (np.ones(4), np.array([4.0, 3, 2, 1])):
        _, y = curve(sums, np.array([1.0, 2, 3, 4]), "linear")
        assert y == (2.5, 2.5)


def test_the_half_width_is_a_quantile_of_errors() -> None:
    errors = np.array([0.1, -0.4, 0.2, 0.3])
    # (4 + 1) · 0.6 = the third smallest.
    assert half_width(errors, 0.6, 9.0) == 0.3
    assert half_width(errors, 0.9, 9.0) == 9.0


@pytest.mark.parametrize("kind", ["linear", "isotonic"])
def test_the_better_scale_is_taken(kind: str) -> None:
    rng = np.random.default_rng(0)
    sums = rng.uniform(-3, 3, 300)
    people = (sums if kind == "linear" else np.where(sums > 0, 4.0, 0.0)) + 0.3 * rng.normal(size=300)
    found = calibrate(sums, people, np.array_split(np.arange(300), 5), 0.9)
    assert found.kind == kind
    assert found.half_width == pytest.approx(1.645 * 0.3, rel=0.35)


def test_intervals_hold_what_they_promise() -> None:
    rng = np.random.default_rng(3)
    held = total = 0
    for _ in range(40):
        sums, new = rng.normal(size=60), rng.normal(size=50)
        people, answer = sums + rng.standard_t(4, 60), new + rng.standard_t(4, 50)
        found = calibrate(sums, people, np.array_split(np.arange(60), 5), 0.8)
        held += int((np.abs(np.interp(new, *found.knots) - answer) <= found.half_width).sum())
        total += 50
    # The interval of 2000 draws of 0.8 (three standard errors), and what 60 residuals leave open.
    assert held / total == pytest.approx(0.8, abs=3 * np.sqrt(0.8 * 0.2 / total) + 0.02)

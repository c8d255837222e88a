"""pytest: the fixture ``negsample_quality``, and options for its limits. Nothing is loaded until a test asks for it."""

from collections.abc import Callable
from functools import partial

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--negsample-fail-under``, ``--negsample-model``, ``--negsample-each``; the first two may stand in pytest's file."""
    group = parser.getgroup("negsample", "quality of summaries (fixture negsample_quality)")
    group.addoption(
        "--negsample-fail-under",
        action="append",
        metavar="LIMIT",
        help="Least mean, as in 0.2 or support=0.05; may be repeated.",
    )
    group.addoption(
        "--negsample-model", metavar="DIR", help="A model folder or org/name; by default the ready estimator."
    )
    group.addoption("--negsample-each", action="store_true", help="No summary may be under a limit, not just the mean.")
    parser.addini("negsample_fail_under", "As --negsample-fail-under, which replaces it.", "args")
    parser.addini("negsample_model", "As --negsample-model, which replaces it.")


@pytest.fixture(scope="session")
def negsample_quality(pytestconfig: pytest.Config) -> Callable[..., None]:
    """``negsample.assert_quality`` with the model and limits of pytest's options; what a call gives goes before them."""
    from negsample.models.dataframe import assert_quality
    from negsample.scoring.tally import parse_limits

    words = pytestconfig.getoption("negsample_fail_under") or pytestconfig.getini("negsample_fail_under")
    model = pytestconfig.getoption("negsample_model") or pytestconfig.getini("negsample_model") or None
    given = {"model": model, "each": pytestconfig.getoption("negsample_each"), **parse_limits(words)}
    return partial(assert_quality, **given)

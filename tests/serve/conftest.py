"""Services that run while a test does."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture
def start() -> Iterator[Callable[..., Any]]:
    """Start services (``start(token=None, aspects=…, **limits) -> service.Service``), which end with the test."""
    pytest.importorskip("fastapi", reason="the extra [serve] is not installed: pip install 'negsample[serve]'")
    pytest.importorskip("uvicorn", reason="the extra [serve] is not installed: pip install 'negsample[serve]'")
    from service import Limits, Service

    started: list[Service] = []

    def make(token: str | None = None, aspects: tuple[str, ...] = ("support",), **limits: int) -> Service:
        started.append(Service(Limits(**limits), token, aspects))
        started[-1].wait(lambda: started[-1].server.started)
        return started[-1]

    yield make
    for service in started:
        service.stop()

"""Numbers and titles of a transfer report, the same on the page and in Markdown."""

from collections.abc import Mapping
from typing import Any

from negsample.formats import interval, number

TITLES = {"accuracy": "accuracy (%)", "pearson": "Pearson × 100"}


def percent(value: float | None, *, sign: bool = False) -> str:
    """One decimal; a dash for None."""
    return number(value, 1, sign=sign)


def interval_of(entry: Mapping[str, Any] | None, *, sign: bool = False) -> str:
    """``"97.1 to 99.0"`` of an entry's ``low`` and ``high``; ``""`` where there is none."""
    return "" if entry is None else interval(entry["low"], entry["high"], 1, sign=sign)


def size_title(size: int | None) -> str:
    """``"all training pairs"`` or ``"400 training pairs"``."""
    return "all training pairs" if size is None else f"{size:,} training pairs"


def not_run_text(entry: Mapping[str, Any]) -> str:
    """What could not be trained, and why."""
    shots = f", {entry['shots']} pairs of {entry['target']}" if "shots" in entry else ""
    return (
        f"{entry['recipe']}, {entry['head']}, {entry['source']}, {size_title(entry['size'])}{shots}: {entry['reason']}"
    )

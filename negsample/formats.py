"""Numbers as people read them: the same on the terminal, in Markdown and on the pages."""

from collections.abc import Mapping
from typing import Any


def number(value: float | None, digits: int = 3, *, sign: bool = False) -> str:
    """``value`` with ``digits`` decimals, a true minus sign and none before a 0; a dash for None."""
    return "–" if value is None else f"{value:{'+' if sign else ''}z.{digits}f}".replace("-", "−")


def interval(low: float | None, high: float | None, digits: int = 3, *, sign: bool = False) -> str:
    """``"0.971 to 0.990"``; ``""`` where there is no interval."""
    if low is None or high is None:
        return ""
    return f"{number(low, digits, sign=sign)} to {number(high, digits, sign=sign)}"


def p_text(p: float | None) -> str:
    """A p value as it is printed."""
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def figure_text(figure: Mapping[str, Any]) -> str:
    """A figure with its interval: ``"0.953 (95 % interval 0.940 to 0.970, n = 320)"``, or why there is none."""
    if figure["value"] is None:
        return f"not defined: {figure['reason']} (n = {figure['n']})"
    span = f"95 % interval {interval(figure['low'], figure['high'])}, " if figure["low"] is not None else ""
    return f"{number(figure['value'])} ({span}n = {figure['n']})"

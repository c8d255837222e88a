"""Numbers as people read them: the same on the terminal, in Markdown and on the pages."""

from collections.abc import Mapping, Sequence
from typing import Any


def number(value: float | None, digits: int = 3, *, sign: bool = False) -> str:
    """``value`` with ``digits`` decimals, a true minus sign and none before a 0; a dash for None."""
    return "–" if value is None else f"{value:{'+' if sign else ''}z.{digits}f}".replace("-", "−")


def short(value: Any) -> str:
    """Print a number by four significant digits (``"0.0345"``), other values as they are; a dash for None."""
    if value is None:
        return "–"
    return f"{value:.4g}".replace("-", "−") if isinstance(value, float) else str(value)


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
    """A figure with its interval: ``"0.953 (95 % interval 0.940 to 0.970, n = 320)"``, or why there is none.

    With an ASCII minus sign: it goes to terminals and model cards, where programs read it.
    """
    if figure["value"] is None:
        return f"not defined: {figure['reason']} (n = {figure['n']})"
    span = f"95 % interval {figure['low']:.3f} to {figure['high']:.3f}, " if figure["low"] is not None else ""
    return f"{figure['value']:.3f} ({span}n = {figure['n']})"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table whose columns line up; the first row is its head."""
    widths = [max(3, *(len(row[column]) for row in rows)) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return lines

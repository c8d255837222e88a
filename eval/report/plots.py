"""Plots as inline SVG: a few hundred bytes each, coloured by the page's style sheet, so that they follow light and dark."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape

from negsample.eval.stats.sample_size import SampleSize

# As many as there are colours in report.css.
CURVES = 6


@dataclass(frozen=True)
class Scale:
    """The range [``low``, ``high``] that a set of interval bars shares."""

    low: float
    high: float

    def at(self, value: float, width: float) -> float:
        """Where ``value`` lies on an axis of ``width``, clipped to it."""
        share = (value - self.low) / (self.high - self.low)
        return width * min(1.0, max(0.0, share))


def shared_scale(values: Sequence[float], *, zero: bool) -> Scale:
    """The narrowest scale with round ends that holds ``values`` (and 0)."""
    known = [v for v in [*values, *([0.0] if zero else [])] if np.isfinite(v)] or [0.0]
    ticks = nice_ticks(min(known), max(known), 4)
    step = ticks[1] - ticks[0]
    low, high = ticks[0], ticks[-1]
    return Scale(low - step if low > min(known) else low, high + step if high < max(known) else high)


def nice_ticks(low: float, high: float, count: int) -> list[float]:
    """About ``count`` round numbers within [``low``, ``high``]; at least two, so one may lie outside."""
    if not high > low:
        pad = abs(low) * 0.1 or 1.0
        low, high = low - pad, high + pad
    raw = (high - low) / max(1, count)
    power = 10 ** np.floor(np.log10(raw))
    step = float(next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999))
    first = int(np.ceil(low / step - 1e-9))
    last = int(np.floor(high / step + 1e-9))
    if last <= first:
        last = first + 1
    return [round(k * step, 12) for k in range(first, last + 1)]


def interval_bar(value: float | None, low: float | None, high: float | None, scale: Scale) -> Markup:
    """A value and its interval on ``scale``, with a mark at 0. The numbers stand beside it, so it is decoration."""
    width, height = 96, 14
    parts = []
    if scale.low <= 0 <= scale.high:
        zero = scale.at(0, width)
        parts.append(f'<line class="zero" x1="{zero:.1f}" y1="0" x2="{zero:.1f}" y2="{height}"/>')
    if low is not None and high is not None:
        left, right = scale.at(low, width), scale.at(high, width)
        parts.append(f'<line class="span" x1="{left:.1f}" y1="7" x2="{right:.1f}" y2="7"/>')
    if value is not None:
        parts.append(f'<circle class="dot" cx="{scale.at(value, width):.1f}" cy="7" r="3.2"/>')
    return Markup(
        f'<svg class="bar" viewBox="-4 0 {width + 8} {height}" width="{width + 8}" height="{height}" '
        f'aria-hidden="true" focusable="false">{"".join(parts)}</svg>'
    )


@dataclass(frozen=True)
class Frame:
    """Axes of a plot ``width`` × ``height`` with margins; ``x`` and ``y`` turn values into places."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    width: float = 300
    height: float = 240
    left: float = 44
    bottom: float = 38
    top: float = 8
    right: float = 10

    def x(self, value: float) -> float:
        """Place of ``value`` along the x axis."""
        low, high = self.x_range
        return self.left + (value - low) / (high - low) * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        """Place of ``value`` along the y axis."""
        low, high = self.y_range
        return self.height - self.bottom - (value - low) / (high - low) * (self.height - self.bottom - self.top)

    def draw(self, x_ticks: Sequence[tuple[float, str]], y_ticks: Sequence[float], x_label: str, y_label: str) -> str:
        """Grid lines, ticks and labels."""
        bottom, parts = self.height - self.bottom, []
        for value in y_ticks:
            at = self.y(value)
            parts.append(
                f'<line class="grid" x1="{self.left}" y1="{at:.1f}" x2="{self.width - self.right}" y2="{at:.1f}"/>'
            )
            parts.append(f'<text x="{self.left - 6}" y="{at + 3.5:.1f}" text-anchor="end">{number(value)}</text>')
        for value, label in x_ticks:
            at = self.x(value)
            parts.append(f'<line class="grid" x1="{at:.1f}" y1="{self.top}" x2="{at:.1f}" y2="{bottom}"/>')
            parts.append(f'<text x="{at:.1f}" y="{bottom + 14}" text-anchor="middle">{escape(label)}</text>')
        middle = (self.top + bottom) / 2
        centre = (self.left + self.width - self.right) / 2
        parts.append(
            f'<text class="label" x="{centre}" y="{self.height - 6}" text-anchor="middle">{escape(x_label)}</text>'
        )
        parts.append(
            f'<text class="label" x="11" y="{middle}" text-anchor="middle" transform="rotate(-90 11 {middle})">'
            f"{escape(y_label)}</text>"
        )
        return "".join(parts)


def number(value: float) -> str:
    """A short form of a tick's value, with a true minus sign."""
    text = f"{value:.6g}"
    return text.replace("-", "−")


def scatter(
    metric: np.ndarray,
    human: np.ndarray,
    means: Sequence[tuple[str, float, float]],
    *,
    x_label: str,
    y_label: str,
    description: str,
) -> Markup:
    """Summaries as faint points (``metric`` [n], ``human`` [n], no NaN), systems' means ``(name, metric, human)`` as
    discs. ``description`` is what a screen reader says.
    """
    frame = Frame(_padded(metric), _padded(human))
    x_ticks = [t for t in nice_ticks(*frame.x_range, 4) if frame.x_range[0] <= t <= frame.x_range[1]]
    y_ticks = [t for t in nice_ticks(*frame.y_range, 4) if frame.y_range[0] <= t <= frame.y_range[1]]
    parts = [frame.draw([(t, number(t)) for t in x_ticks], y_ticks, x_label, y_label)]
    # Summaries on the same place of the screen are one point.
    places = dict.fromkeys(
        (f"{frame.x(x):.0f}", f"{frame.y(y):.0f}") for x, y in zip(metric.tolist(), human.tolist(), strict=True)
    )
    parts.append(f'<path class="points" d="{"".join(f"M{x} {y}h0" for x, y in places)}"/>')
    for name, x, y in means:
        parts.append(
            f'<circle class="system" cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="4">'
            f"<title>{escape(name)}: {number(round(x, 3))}, {number(round(y, 3))}</title></circle>"
        )
    return _svg(frame, parts, description)


def _padded(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    pad = (high - low) * 0.04 or abs(low) * 0.1 or 1.0
    return low - pad, high + pad


def sampling_plot(curves: Sequence[tuple[str, Sequence[SampleSize]]], *, y_label: str, description: str) -> Markup:
    """Correlation against the number of articles on a logarithmic axis: mean and ± one standard deviation of the draws.

    At most ``CURVES`` curves of ``(name, sizes)``.
    """
    drawn = [(name, [s for s in sizes if s.mean is not None]) for name, sizes in curves]
    lines = [(name, [_spot(s) for s in sizes]) for name, sizes in drawn]
    all_sizes = sorted({s.articles for _, sizes in drawn[:CURVES] for s in sizes})
    return curve_plot(lines, _articles(all_sizes), (-1.0, 1.0), "articles drawn", y_label, description)


Spot = tuple[float, float, float, float]
"""A point of a curve: x, y, and the lower and upper end of its band."""


def curve_plot(
    curves: Sequence[tuple[str, Sequence[Spot]]],
    x_ticks: Sequence[tuple[float, str]],
    bounds: tuple[float, float],
    x_label: str,
    y_label: str,
    description: str,
) -> Markup:
    """Curves with their bands, cut at the ``bounds`` that y can't pass; the first and last tick are where x ends.

    At most ``CURVES`` curves of ``(name, spots)``, in the colours of the style sheet.
    """
    drawn = curves[:CURVES]
    edges = [end for _, spots in drawn for spot in spots for end in spot[2:]]
    low, high = max(bounds[0], min(edges)), min(bounds[1], max(edges))
    ticks = nice_ticks(low, high, 5)
    places = [spot[0] for _, spots in drawn for spot in spots]
    x_range = (min(places), max(max(places), min(places) + 0.5))
    frame = Frame(x_range, (min(low, ticks[0]), max(high, ticks[-1])), width=520, height=260)
    parts = [frame.draw(x_ticks, ticks, x_label, y_label)]
    for k, (_, spots) in enumerate(drawn):
        xs = [frame.x(spot[0]) for spot in spots]
        upper = [frame.y(min(high, spot[3])) for spot in spots]
        lower = [frame.y(max(low, spot[2])) for spot in spots]
        outline = [*zip(xs, upper, strict=True), *reversed(list(zip(xs, lower, strict=True)))]
        parts.append(f'<polygon class="band c{k}" points="{_points(outline)}"/>')
        line = [(x, frame.y(spot[1])) for x, spot in zip(xs, spots, strict=True)]
        parts.append(f'<polyline class="line c{k}" points="{_points(line)}"/>')
    return _svg(frame, parts, description)


def _spot(size: SampleSize) -> Spot:
    mean, spread = _mean(size), size.sd or 0
    return float(np.log(size.articles)), mean, mean - spread, mean + spread


def _mean(size: SampleSize) -> float:
    assert size.mean is not None
    return size.mean


def _articles(sizes: Sequence[int]) -> list[tuple[float, str]]:
    """Ticks at the powers and halves of ten among ``sizes``, and at the ends."""
    shown = [s for s in sizes if s in (1, 2, 5, 10, 20, 50, 100, 200, 500)]
    last = sizes[-1]
    # A tick too near the last would be printed over it.
    shown = [s for s in shown if s < last * 0.75 or s == last]
    return [(float(np.log(s)), str(s)) for s in dict.fromkeys([*shown, last])]


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _svg(frame: Frame, parts: Sequence[str], description: str) -> Markup:
    return Markup(
        f'<svg class="plot" viewBox="0 0 {frame.width:g} {frame.height:g}" role="img" '
        f'aria-label="{escape(description)}">{"".join(parts)}</svg>'
    )

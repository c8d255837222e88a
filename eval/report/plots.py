"""Plots by matplotlib: as a file, or as SVG inside a page, where they take the style sheet's colours in light and dark;
and a map of two sets of texts.
"""

import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup

from negsample.errors import InputError
from negsample.seeds import generator, seed_from
from negsample.terminal import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from negsample.models.encoders import Encoder

Scale = tuple[float, float]
"""The lowest and the highest value of an axis."""
Spot = tuple[float, float, float, float]
"""A point of a curve: x, y, and the lower and upper end of its band."""

# Text stays text, and the parts of an SVG are named by their content.
_ALWAYS = {"svg.hashsalt": "negsample", "svg.fonttype": "none"}
# Where the user's own names are written: a dollar sign in them is no formula.
NO_FORMULAS = {"text.parse_math": False}
_INSIDE = NO_FORMULAS | {
    "font.size": 10.5,
    "font.sans-serif": ["DejaVu Sans"],
    "axes.grid": True,
    "axes.formatter.useoffset": False,
    "grid.linewidth": 0.75,
    "path.simplify": False,
    "lines.scale_dashes": False,
    **{f"axes.spines.{side}": False for side in ("left", "right", "top", "bottom")},
    **{f"{axis}tick.{kind}.size": 0 for axis in "xy" for kind in ("major", "minor")},
}
# Colour and dashes of each curve; the style sheet's keys are the same.
_CURVES: tuple[tuple[str, Any], ...] = (
    ("tab:blue", "-"),
    ("tab:orange", (0, (7, 3))),
    ("tab:green", (0, (2, 3))),
    ("tab:purple", (0, (10, 3, 2, 3))),
    ("tab:olive", (0, (4, 4))),
    ("tab:gray", (0, (12, 4))),
)
CURVES = len(_CURVES)
_LONGEST = 36  # characters of an axis's label
# Of a map of texts: PCA's components; t-SNE's perplexity, the usual one, and from how many texts on; vectors of a side.
_COMPONENTS, _PERPLEXITY, _FEWEST, _MOST = 50, 30.0, 5, 1000


@contextmanager
def style(settings: Mapping[str, Any]) -> Iterator[None]:
    """Set matplotlib as it comes with ``settings``, whatever the user's own; figures are made and written within."""
    import matplotlib.style

    with matplotlib.style.context(["default", {**_ALWAYS, **settings}]), warnings.catch_warnings():
        # Of characters that the font it measures with does not have; the reader's browser has others.
        warnings.simplefilter("ignore")
        yield


def picture(figure: "Figure", format: str = "svg", **options: Any) -> bytes:
    """The figure as a file, undated, so that equal figures give equal bytes with one version of matplotlib."""
    stream = io.BytesIO()
    figure.savefig(stream, format=format, metadata={"Date" if format == "svg" else "Software": None}, **options)
    return stream.getvalue()


def shared_scale(values: Sequence[float | None], *, zero: bool) -> Scale:
    """The narrowest scale with round ends that holds ``values`` (and 0); None and what is not finite is passed over."""
    from matplotlib.ticker import MaxNLocator

    known = [v for v in [*values, *([0.0] if zero else [])] if v is not None and np.isfinite(v)] or [0.0]
    low, high = min(known), max(known)
    pad = 0.0 if high > low else abs(low) * 0.1 or 1.0
    ticks = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(low - pad, high + pad)
    return float(ticks[0]), float(ticks[-1])


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
    with style(_INSIDE):
        figure, axes = _axes(300, 240, x_label, y_label)
        points = np.stack([metric, human], axis=1)
        # Summaries on the same place of the screen are one point.
        spread = np.ptp(points, axis=0)
        places = np.round((points - points.min(axis=0)) / np.where(spread > 0, spread, 1) * 250)
        points = points[np.sort(np.unique(places, axis=0, return_index=True)[1])]
        # A point is a line of no length with round ends: they are all one path, which is short.
        lines = np.repeat(points, 3, axis=0)
        lines[2::3] = np.nan
        axes.plot(*lines.T, color="tab:blue", alpha=0.35, linewidth=3.4, solid_capstyle="round")
        titles = {}
        for number, (name, x, y) in enumerate(means):
            axes.plot([x, x], [y, y], color="white", linewidth=9, solid_capstyle="round")
            axes.plot([x, x], [y, y], "tab:orange", linewidth=7, solid_capstyle="round", gid=f"system {number}")
            titles[f"system {number}"] = f"{name}: {short(round(x, 3))}, {short(round(y, 3))}"
        axes.locator_params(nbins=5, steps=[1, 2, 2.5, 5, 10])
        return _inside(figure, description, titles)


def curve_plot(
    curves: Sequence[tuple[str, Sequence[Spot]]], bounds: Scale, x_label: str, y_label: str, description: str
) -> Markup:
    """At most ``CURVES`` curves of ``(name, spots)`` over counts on a logarithmic axis, with their bands, cut at the
    ``bounds`` that y can't pass. A screen reader says ``description`` and how far each goes.
    """
    from matplotlib.ticker import NullLocator

    with style(_INSIDE):
        figure, axes = _axes(420, 240, x_label, y_label)
        axes.set_xscale("log")
        axes.margins(x=0)
        for (colour, dashes), (_, spots) in zip(_CURVES, curves, strict=False):
            x, *heights = np.array(spots, dtype=np.float64).T
            y, low, high = np.clip(heights, *bounds)
            axes.fill([*x, *x[::-1]], [*low, *high[::-1]], color=colour, alpha=0.12, linewidth=0)
            axes.plot(x, y, color=colour, linestyle=dashes, linewidth=2)
        ticks = _apart(sorted({spot[0] for _, spots in curves[:CURVES] for spot in spots}))
        axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        ends = "; ".join(f"{name} {short(spots[0][1])} to {short(spots[-1][1])}" for name, spots in curves[:CURVES])
        return _inside(figure, f"{description}, from fewest to most: {ends}")


def _axes(width: float, height: float, x_label: str, y_label: str) -> tuple["Figure", Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / 72, height / 72), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(_label(x_label))
    axes.set_ylabel(_label(y_label))
    return figure, axes


def _label(text: str) -> str:
    """The text without what XML has no place for, cut where it is too long for an axis."""
    shown = "".join(c for c in text if c.isprintable())
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def _apart(places: Sequence[float]) -> list[float]:
    """Those of the sorted ``places`` whose labels do not touch on a logarithmic axis: both ends, and some between."""
    least = np.log(places[-1] / places[0]) / 8
    kept = [places[0]]
    for place in places[1:-1]:
        if np.log(place / kept[-1]) > least and np.log(places[-1] / place) > least:
            kept.append(place)
    return list(dict.fromkeys([*kept, places[-1]]))


def _inside(figure: "Figure", description: str, titles: Mapping[str, str] | None = None) -> Markup:
    """The figure as an element of a page. ``titles``: the ``gid`` of an artist → what is said when it is pointed at."""
    from matplotlib.colors import to_hex

    drawn = ElementTree.fromstring(picture(figure, transparent=True))
    colours = {to_hex(colour): f"var(--c{k})" for k, (colour, _) in enumerate(_CURVES)}
    colours |= {"#b0b0b0": "var(--rule)", "#ffffff": "var(--ground)"}
    for element in list(drawn.iter()):
        element.tag = element.tag.rpartition("}")[2]
        # A style that would hold for the whole page, and clips, which nothing here needs.
        for child in [child for child in element if child.tag.endswith("}defs")]:
            element.remove(child)
        element.attrib.pop("clip-path", None)
        if "d" in element.attrib:
            element.set("d", re.sub(r"(\.\d)\d+", r"\1", element.attrib["d"]))
        title = (titles or {}).get(element.attrib.pop("id", ""))
        if title is not None:
            ElementTree.SubElement(element, "title").text = title
        for colour, variable in colours.items():
            if colour in element.get("style", ""):
                element.set("style", element.attrib["style"].replace(colour, variable))
    root = ElementTree.Element("svg", {"class": "plot", "viewBox": drawn.attrib["viewBox"], "role": "img"})
    root.set("aria-label", description)
    root.extend(drawn.findall("g"))
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def training_curves(lines: Sequence[Mapping[str, Any]]) -> bytes:
    """Loss and, where there is one, reward over the steps of a training, as SVG: ``lines`` of ``training.jsonl``.

    Faint: each step's (mean loss of its documents, mean reward of what was drawn); marked: on the validation documents,
    after each epoch; dotted: where rewards begin, and the loss becomes another one.
    """
    from matplotlib.figure import Figure

    steps = [line for line in lines if line["kind"] == "step"]
    epochs = [line for line in lines if line["kind"] == "epoch"]
    begins = next((line for line in steps if "reward" in line), None)
    names = ["loss"] if begins is None else ["loss", "reward"]
    with style(NO_FORMULAS):
        figure = Figure(figsize=(7, 2.6 * len(names)), layout="constrained")
        panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
        for axes, name, colour in zip(panels, names, ("tab:blue", "tab:green"), strict=False):
            own = [(line["step"] + 1, line[name]) for line in steps if name in line]
            held = [(line["steps"], line[f"validation_{name}"]) for line in epochs if f"validation_{name}" in line]
            axes.plot(*np.array(own).T, color=colour, alpha=0.35, linewidth=1, label="training")
            if begins is not None and begins != steps[0]:
                axes.axvline(begins["step"] + 0.5, color="tab:gray", linestyle=":", linewidth=1)
            if held:
                axes.plot(*np.array(held).T, color=colour, marker="o", markersize=4, label="validation")
            axes.set_ylabel(name)
            axes.legend(frameon=False)
        panels[-1].set_xlabel("step")
        return picture(figure)


def map_texts(
    first: Sequence[str],
    second: Sequence[str],
    encoder: "Encoder",
    *,
    names: tuple[str, str] = ("generated", "reference"),
    format: str = "svg",
    pool: str = "mean",
    seed: int = 0,
) -> bytes:
    """A picture (``format``: ``svg`` or ``png``) of two sets of texts: their vectors by ``encoder`` (``pool`` as in the
    metric ``cosine``), laid out in the plane by `project` (Moeed et al. 2020 §2.2.2, Figure 1).

    At most 1,000 of a side are drawn, chosen at random by ``seed``; texts without a vector are left out, and counted among
    those not drawn. Equal calls give equal bytes with one version of Matplotlib. Raises InputError where no text of a side
    has a vector.
    """
    from matplotlib.figure import Figure

    from negsample.eval.metrics.cosine import text_vectors

    vector_of = text_vectors([*first, *second], encoder, pool)
    sides, labels = [], []
    for side, (name, texts) in enumerate(zip(names, (first, second), strict=True)):
        rows = [vector for text in texts if (vector := vector_of[text]) is not None]
        if not rows:
            told = f"none of the {len(texts)} {name} texts has a vector"
            raise InputError(f"{told}; give texts that {encoder.name} reads")
        if len(rows) > _MOST:
            chosen = generator(seed, "embedding map", side).choice(len(rows), size=_MOST, replace=False)
            rows = [rows[place] for place in sorted(chosen)]
        sides.append(np.array(rows, dtype=np.float64))
        labels.append(f"{name} ({len(rows)}{f' of {len(texts)}' if len(rows) < len(texts) else ''})")
    with style(NO_FORMULAS):
        figure = Figure(figsize=(6, 4.5), layout="constrained")
        axes = figure.add_subplot()
        looks = zip(labels, ("#6a3d9a", "#e6a100"), "o^", strict=True)
        for places, (label, colour, marker) in zip(project(sides[0], sides[1], seed), looks, strict=True):
            axes.scatter(
                places[:, 0], places[:, 1], s=14, c=colour, marker=marker, alpha=0.6, linewidths=0, label=label
            )
        axes.set_xticks([])
        axes.set_yticks([])
        axes.legend(frameon=False, loc="best")
        return picture(figure, format, dpi=120)


def project(first: np.ndarray, second: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Lay out finite vectors ``first`` [n, d] and ``second`` [m, d] together, in [n, 2] and [m, 2] of no unit.

    PCA to 50 dimensions, then t-SNE to two. Distances between far groups of a t-SNE map mean little; who is next to whom
    does. The perplexity is lowered to a third of the points where they are few; under five points the map is PCA's first
    two components, and where all vectors are one, a single place. Equal calls give equal maps.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    rows = np.concatenate([first, second])
    if np.ptp(rows, axis=0).max() <= 1e-9 * max(1.0, float(np.abs(rows).max())):
        return np.zeros((len(first), 2)), np.zeros((len(second), 2))
    places = PCA(n_components=min(_COMPONENTS, *rows.shape), svd_solver="full").fit_transform(rows)
    places = np.pad(places, ((0, 0), (0, max(0, 2 - places.shape[1]))))
    if len(rows) < _FEWEST:
        places = places[:, :2]
    else:
        # As small as t-SNE wants its start.
        start = (places[:, :2] / places[:, 0].std() * 1e-4).astype(np.float32)
        options = {"random_state": seed_from(seed, "t-SNE") % (1 << 32), "n_jobs": 1}
        tsne = TSNE(perplexity=min(_PERPLEXITY, (len(rows) - 1) / 3), init=start, **options)
        with warnings.catch_warnings():
            # scikit-learn warns about its own change of threads on small machines.
            warnings.simplefilter("ignore")
            places = np.asarray(tsne.fit_transform(places.astype(np.float32)), dtype=np.float64)
    return places[: len(first)], places[len(first) :]

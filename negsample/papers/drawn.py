"""The papers' figures, drawn from the records of a table."""

from collections.abc import Callable, Sequence
from typing import Any

from negsample.eval.report.plots import NO_FORMULAS, picture, style
from negsample.papers.records import Record

# The tasks' colours in Figure 2 of Moeed et al. 2020, and marks that tell them apart without.
_MARKS = {"Gen-Story": ("tab:green", "o"), "Ref-Story": ("tab:orange", "s"), "Gen-Ref": ("tab:blue", "^")}


def draw(how: str, records: Sequence[Record]) -> bytes:
    """Draw ``records`` as SVG, in one of the ways of ``DRAWN``."""
    from matplotlib.figure import Figure

    groups: dict[str, list[Record]] = {}
    title, draw_panel = DRAWN[how]
    for record in records:
        if record.value is not None and (name := title(record)) is not None:
            groups.setdefault(name, []).append(record)
    with style(NO_FORMULAS):
        figure = Figure(figsize=(6, 3.2 * max(1, len(groups))), layout="constrained")
        panels = figure.subplots(max(1, len(groups)), 1, squeeze=False)[:, 0]
        for (name, own), axes in zip(groups.items(), panels, strict=False):
            axes.set_title(name)
            draw_panel(axes, own)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(fontsize="x-small")
        return picture(figure)


def _bars(axes: Any, own: Sequence[Record]) -> None:
    """Each row's correlation as a bar with its interval."""
    spans = [(max(0.0, r.value - r.low), max(0.0, r.high - r.value)) if r.low is not None else (0, 0) for r in own]  # type: ignore[operator]
    axes.barh([record.row for record in own], [record.value for record in own], xerr=list(zip(*spans, strict=True)))
    axes.invert_yaxis()


def _curves(axes: Any, own: Sequence[Record]) -> None:
    """Mean and spread of each column over the number of articles."""
    for label in dict.fromkeys(record.column for record in own):
        line = [(int(r.row), r.value, r.about["sd"] or 0) for r in own if r.column == label]
        x, y, spread = zip(*line, strict=True)
        axes.errorbar(x, y, yerr=spread, label=label, capsize=2)
    axes.set(xlabel="articles", xscale="log")


def _first_tokens(axes: Any, own: Sequence[Record]) -> None:
    """Each part's correlation over the tokens that are read of an article."""
    cut = [(*record.row.split("@"), record.value) for record in own if "@" in record.row]
    for name in dict.fromkeys(part for part, *_ in cut):
        axes.plot(*zip(*(place for part, *place in cut if part == name), strict=True), marker="o", label=name)
    axes.set(xlabel="first tokens")


def _points(axes: Any, own: Sequence[Record]) -> None:
    """Each system's mean human score and mean similarity, with its name."""
    for record in own:
        place = record.about["people"], record.value
        axes.plot(*place, "o", color="tab:blue")
        # DUC's lead baseline is summarizer 1, the paper's b.
        baseline = record.row == "1" and record.section.startswith("duc")
        axes.annotate("b" if baseline else record.row, place, fontsize="small")
    axes.set(xlabel="people")


def _distances(axes: Any, own: Sequence[Record]) -> None:
    """People's mean and the distance of headlines and texts, a colour and a mark for each task."""
    for record in own:
        task, place = record.about["task"], (record.about["people"], record.value)
        colour, mark = _MARKS[task]
        known = task in axes.get_legend_handles_labels()[1]
        axes.plot(*place, color=colour, marker=mark, linestyle="", label="" if known else task)
        axes.annotate(record.about["dataset"], place, xytext=(4, 4), textcoords="offset points", fontsize=7)
    axes.set(xlabel="people's mean score", ylabel="Fréchet embedding distance (lower: nearer)")


def _beside_people(title: str, record: Record) -> str | None:
    return None if record.about.get("people") is None else title


# How → the title of a record's panel (None: it is not drawn), and what draws a panel.
DRAWN: dict[str, tuple[Callable[[Record], str | None], Callable[[Any, Sequence[Record]], None]]] = {
    "bars": (lambda record: record.column, _bars),
    "first": (lambda record: record.column, _first_tokens),
    "sampling": (lambda record: f"{record.section}: Pearson over systems", _curves),
    "systems": (lambda record: _beside_people(f"{record.section} · {record.column}", record), _points),
    "headline-distances": (lambda record: _beside_people("", record), _distances),
}

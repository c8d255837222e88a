"""The page of a transfer experiment: heat maps of figures and of what is lost between domains, curves by size."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from negsample.eval.report import render
from negsample.eval.report.plots import CURVES, Spot, curve_plot
from negsample.resampling import NO_INTERVAL
from negsample.terminal import interval, number

Row = Mapping[str, Any]
"""A record of ``transfer.json``: a model, the target it was tested on, and a figure or (``told``) a difference."""

# Shares, in percent, of the full colour at both ends of a heat map: text stays readable on the darkest.
_PALE, _DEEP = 4.0, 55.0
TITLES = {"accuracy": "accuracy (%)", "pearson": "Pearson × 100"}
_BOUNDS = {"accuracy": (0.0, 100.0), "pearson": (-100.0, 100.0)}


def transfer_page(table: Mapping[str, Any]) -> str:
    """Return the page of a ``transfer.json``, as HTML without script or network."""
    measured = [row for row in table["records"] if "told" in row]
    printed = [row for row in table["records"] if "told" not in row]
    groups = [_group(table, rows) for rows in _by(measured, "recipe", "head")]
    return render(
        "transfer.html.j2",
        table=table,
        groups=groups,
        printed=_by(printed, "row"),
        columns=list(dict.fromkeys(row["column"] for row in printed)),
    )


def size_title(size: int | None) -> str:
    """``"all training pairs"`` or ``"400 training pairs"``."""
    return "all training pairs" if size is None else f"{size:,} training pairs"


def _by(rows: Sequence[Row], *keys: str) -> list[list[Row]]:
    """The rows with equal values of ``keys`` together, in the order in which these first come."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(itemgetter(*keys)(row), []).append(row)
    return list(found.values())


def _group(table: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """What is shown of a recipe and head: the maps of each size, on one scale so that they can be compared; curves."""
    title = TITLES[rows[0]["figure"]]
    plain = [row for row in rows if not row["shots"]]
    values = [row["value"] for row in plain if row["told"] == "value" and row["value"] is not None] or [0.0]
    most = max((abs(row["value"]) for row in plain if row["told"] == "delta"), default=0.0)
    low, high = min(values), max(values)
    sizes = []
    for own in _by(rows, "size"):
        of = {(row["told"], row["source"], row["target"], row["shots"]): row for row in own}
        maps = [_map(table, of, "value", title, low, high)]
        if any(told == "delta" and not shots for told, _, _, shots in of):
            maps.append(_map(table, of, "delta", "Δ", -most, most))
        few = [
            (row, [of.get((told, *key, row["shots"])) for told in ("gain", "delta")])
            for row in own
            if row["shots"] and row["told"] == "value" and (key := (row["source"], row["target"]))
        ]
        sizes.append({"title": size_title(own[0]["size"]), "maps": maps, "few": few})
    outlined = any(row["seen"] for row in rows)
    about = {"recipe": rows[0]["recipe"], "head": rows[0]["head"], "figure": title, "outlined": outlined}
    return {**about, "sizes": sizes, "curves": _curves(table, [row for row in plain if row["told"] == "value"])}


def _map(
    table: Mapping[str, Any], of: Mapping[tuple[Any, ...], Row], told: str, title: str, low: float, high: float
) -> dict[str, Any]:
    """A heat map of figures or of differences from ``low`` to ``high``: a line for each source, a cell for each target."""
    lines, signed = [], told == "delta"
    for source in dict.fromkeys(source for _, source, _, shots in of if not shots):
        own = [of["value", source, target, 0] for target in table["targets"] if ("value", source, target, 0) in of]
        cells = [_cell(row, of.get((told, source, row["target"], 0)), low, high, signed) for row in own]
        lines.append({"source": source, "pairs": f"{own[-1]['train_pairs']:,}", "cells": cells})
    ends = [number(end, 1, sign=signed) for end in (low, high)]
    return {"title": title, "ends": ends, "ramp": "both" if signed else "rise", "lines": lines}


def _cell(row: Row, shown: Row | None, low: float, high: float, signed: bool) -> dict[str, Any]:
    home = "home " if row["seen"] else ""
    if shown is None or shown["value"] is None:
        told = shown.get("reason", "") if shown else ""
        return {"kind": home + "plain", "shade": 0, "value": "–", "interval": "", "told": told}
    value: float = shown["value"]
    least, most = shown.get("low"), shown.get("high")
    told = f"n = {shown['n']} of {shown['documents']} documents"
    if signed:
        told = NO_INTERVAL
        if least is not None and most is not None:
            told = "its interval holds 0: can't tell" if least <= 0 <= most else "its interval excludes 0"
        home += "loss" if value < 0 else "gain"
        shade = abs(value) / high * _DEEP if high else 0.0
    else:
        share = 0.5 if high == low else (value - low) / (high - low)
        shade = _PALE + share * (_DEEP - _PALE)
        told = shown.get("reason") or told
    return {
        "kind": home,
        "shade": f"{shade:.0f}",
        "value": number(value, 1, sign=signed),
        "interval": interval(least, most, 1, sign=signed),
        "told": told,
    }


def _curves(table: Mapping[str, Any], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """For each target: a figure by the number of training pairs, a curve a source; where there are sizes to compare."""
    found = []
    for target in table["targets"]:
        spots: dict[str, set[Spot]] = {}
        for row in rows:
            # A model that does without one domain is of interest on that one.
            if row["target"] == target and table["sources"][row["source"]] in ("", target) and row["value"] is not None:
                value = row["value"]
                spot = (row["train_pairs"], value, row.get("low", value), row.get("high", value))
                spots.setdefault(row["source"], set()).add(spot)
        curves = [(name, sorted(of)) for name, of in spots.items() if len(of) > 1]
        # The target's own curve first: it is what the others are compared with.
        curves = sorted(curves, key=lambda curve: curve[0] != target)[:CURVES]
        if curves:
            title = TITLES[rows[0]["figure"]]
            description = f"{title} on {target} by training pairs"
            plot = curve_plot(curves, _BOUNDS[rows[0]["figure"]], "training pairs", title, description)
            found.append({"target": target, "plot": plot, "names": [name for name, _ in curves]})
    return found

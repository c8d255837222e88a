"""The page of a transfer experiment: heat maps of figures and of what is lost between domains, curves by size."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from negsample.eval.report.page import render
from negsample.eval.report.plots import CURVES, Spot, curve_plot
from negsample.number_text import TITLES, interval_of, not_run_text, percent, size_title

Row = Mapping[str, Any]
"""A figure of ``transfer.json``: a model, and the target it was tested on."""

# Shares, in percent, of the full colour at both ends of a heat map: text stays readable on the darkest.
_PALE, _DEEP = 4.0, 55.0
_BOUNDS = {"accuracy": (0.0, 100.0), "pearson": (-100.0, 100.0)}


def transfer_page(table: Mapping[str, Any], command: Sequence[str]) -> str:
    """Return the page of a ``transfer.json``, as HTML without script or network."""
    return render(
        "transfer.html.j2",
        command,
        table=table,
        groups=[_group(table, rows) for rows in _by(table["cells"], "recipe", "head")],
        not_run=[not_run_text(entry) for entry in table["not_run"]],
    )


def _by(rows: Sequence[Row], *keys: str) -> list[list[Row]]:
    """The rows with equal values of ``keys`` together, in the order in which these first come."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return list(found.values())


def _group(table: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """What is shown of a recipe and head: the maps of each size, on one scale so that they can be compared; curves."""
    title = TITLES[rows[0]["figure"]]
    mapped = [row for row in rows if not row["shots"]]
    values = [row["value"] for row in mapped if row["value"] is not None]
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    most = max((abs(row["delta"]["value"]) for row in mapped if row["delta"] is not None), default=0.0)
    sizes = []
    for own in _by(rows, "size"):
        plain = [row for row in own if not row["shots"]]
        ends = (percent(low), percent(high)) if values else None
        maps = [_map(table, plain, lambda row: _value(row, low, high), title=title, ends=ends, ramp="rise")]
        if any(row["delta"] is not None for row in plain):
            ends = (percent(-most, sign=True), percent(most, sign=True))
            maps.append(_map(table, plain, lambda row: _gap(row, most), title="Δ", ends=ends, ramp="both"))
        sizes.append({"title": size_title(own[0]["size"]), "maps": maps, "few": [row for row in own if row["shots"]]})
    return {
        "recipe": rows[0]["recipe"],
        "head": rows[0]["head"],
        "figure": title,
        "outlined": any(row["seen"] for row in rows),
        "sizes": sizes,
        "curves": _curves(table, rows),
    }


def _map(
    table: Mapping[str, Any], rows: Sequence[Row], draw: Callable[[Row], dict[str, Any]], **about: Any
) -> dict[str, Any]:
    """A heat map: a line for each source, in it a cell for each target."""
    lines = []
    for own in _by(rows, "source"):
        of = {row["target"]: row for row in own}
        cells = [draw(of[target]) for target in table["targets"] if target in of]
        lines.append({"source": own[0]["source"], "pairs": f"{own[-1]['train_pairs']:,}", "cells": cells})
    return {**about, "lines": lines}


def _value(row: Row, low: float, high: float) -> dict[str, Any]:
    value = row["value"]
    share = 0.5 if high == low or value is None else (value - low) / (high - low)
    return {
        "kind": "home" if row["seen"] else "",
        "shade": 0 if value is None else f"{_PALE + share * (_DEEP - _PALE):.0f}",
        "value": percent(value),
        "interval": interval_of(row),
        "told": row.get("reason") or f"n = {row['n']} of {row['documents']} documents",
    }


def _gap(row: Row, most: float) -> dict[str, Any]:
    gap = row["delta"]
    home = "home " if row["seen"] else ""
    if gap is None:
        return {"kind": home + "plain", "shade": 0, "value": "–", "interval": "", "told": ""}
    clear = gap["low"] is not None and not gap["low"] <= 0 <= gap["high"]
    return {
        "kind": home + ("loss" if gap["value"] < 0 else "gain"),
        "shade": f"{(abs(gap['value']) / most if most else 0.0) * _DEEP:.0f}",
        "value": percent(gap["value"], sign=True),
        "interval": interval_of(gap, sign=True),
        "told": "its interval excludes 0" if clear else "its interval holds 0: can't tell",
    }


def _curves(table: Mapping[str, Any], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """For each target: a figure by the number of training pairs, a curve a source; where there are sizes to compare."""
    title = TITLES[rows[0]["figure"]]
    left_out = {source["name"]: source["left_out"] for source in table["sources"]}
    found = []
    for target in table["targets"]:
        spots: dict[str, set[Spot]] = {}
        for row in rows:
            # A model that does without one domain is of interest on that one.
            wanted = row["target"] == target and not row["shots"] and left_out[row["source"]] in ("", target)
            if wanted and row["value"] is not None and row["low"] is not None:
                spot = (row["train_pairs"], row["value"], row["low"], row["high"])
                spots.setdefault(row["source"], set()).add(spot)
        curves = [(name, sorted(of)) for name, of in spots.items() if len(of) > 1]
        # The target's own curve first: it is what the others are compared with.
        curves = sorted(curves, key=lambda curve: curve[0] != target)[:CURVES]
        if curves:
            ends = "; ".join(f"{name} {percent(of[0][1])} to {percent(of[-1][1])}" for name, of in curves)
            description = f"{title} on {target} by training pairs, from fewest to most: {ends}"
            plot = curve_plot(curves, _BOUNDS[rows[0]["figure"]], "training pairs", title, description)
            found.append({"target": target, "plot": plot, "names": [name for name, _ in curves]})
    return found

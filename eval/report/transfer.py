"""The page of a transfer experiment: heat maps of figures and of what is lost between domains, curves by size."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from negsample.eval.report import plots
from negsample.eval.report.html import render
from negsample.eval.report.transfer_text import TITLES, interval_of, not_run_text, percent, size_title

# Shares, in percent, of the full colour at both ends of a heat map: text stays readable on the darkest.
_PALE, _DEEP = 4.0, 55.0
_BOUNDS = {"accuracy": (0.0, 100.0), "pearson": (-100.0, 100.0)}


def transfer_page(table: Mapping[str, Any], command: Sequence[str]) -> str:
    """The page of a ``transfer.json``, as HTML without script or network."""
    return render(
        "transfer.html.j2",
        command,
        table=table,
        groups=_groups(table),
        not_run=[not_run_text(entry) for entry in table["not_run"]],
    )


def _groups(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A group for each recipe and head, with a matrix for each size."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in table["cells"]:
        found.setdefault((row["recipe"], row["head"]), []).append(row)
    return [
        {
            "recipe": recipe,
            "head": head,
            "figure": TITLES[rows[0]["figure"]],
            "outlined": any(row["seen"] for row in rows),
            "sizes": [_matrix(table, rows, size) for size in dict.fromkeys(row["size"] for row in rows)],
            "curves": _curves(table, rows),
        }
        for (recipe, head), rows in found.items()
    ]


def _matrix(table: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], size: int | None) -> dict[str, Any]:
    own = [row for row in rows if row["size"] == size]
    plain = [row for row in own if not row["shots"]]
    # One scale for all sizes, so that their maps can be compared.
    mapped = [row for row in rows if not row["shots"]]
    values = [row["value"] for row in mapped if row["value"] is not None]
    gaps = [abs(row["delta"]["value"]) for row in mapped if row["delta"] is not None]
    maps = [_value_map(table, plain, values, TITLES[rows[0]["figure"]])]
    if any(row["delta"] is not None for row in plain):
        maps.append(_gap_map(table, plain, max(gaps)))
    few = [_few(row) for row in own if row["shots"]]
    return {"title": size_title(size), "maps": maps, "few": few}


def _rows(table: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], draw: Any) -> list[dict[str, Any]]:
    cells = {(row["source"], row["target"]): row for row in rows}
    pairs = {row["source"]: f"{row['train_pairs']:,}" for row in rows}
    return [
        {
            "source": source,
            "pairs": pairs[source],
            "cells": [draw(cells[source, target]) for target in table["targets"] if (source, target) in cells],
        }
        for source in pairs
    ]


def _value_map(
    table: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], values: Sequence[float], title: str
) -> dict[str, Any]:
    low, high = (min(values), max(values)) if values else (0.0, 0.0)

    def draw(row: Mapping[str, Any]) -> dict[str, Any]:
        value = row["value"]
        share = 0.5 if high == low or value is None else (value - low) / (high - low)
        return {
            "kind": "home" if row["seen"] else "",
            "shade": 0 if value is None else f"{_PALE + share * (_DEEP - _PALE):.0f}",
            "value": percent(value),
            "interval": interval_of(row),
            "told": row.get("reason") or f"n = {row['n']} of {row['documents']} documents",
        }

    ends = (percent(low), percent(high)) if values else None
    return {"title": title, "ends": ends, "ramp": "rise", "pairs": True, "rows": _rows(table, rows, draw)}


def _gap_map(table: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], most: float) -> dict[str, Any]:
    def draw(row: Mapping[str, Any]) -> dict[str, Any]:
        gap = row["delta"]
        home = "home " if row["seen"] else ""
        if gap is None:
            return {"kind": home + "plain", "shade": 0, "value": "–", "interval": "", "told": ""}
        share = abs(gap["value"]) / most if most else 0.0
        kind = "loss" if gap["value"] < 0 else "gain"
        clear = gap["low"] is not None and not gap["low"] <= 0 <= gap["high"]
        return {
            "kind": home + kind,
            "shade": f"{share * _DEEP:.0f}",
            "value": percent(gap["value"], sign=True),
            "interval": interval_of(gap, sign=True),
            "told": "its interval excludes 0" if clear else "its interval holds 0: can't tell",
        }

    ends = (percent(-most, sign=True), percent(most, sign=True))
    return {"title": "Δ", "ends": ends, "ramp": "both", "pairs": False, "rows": _rows(table, rows, draw)}


def _few(row: Mapping[str, Any]) -> dict[str, Any]:
    about = {key: row[key] for key in ("source", "target", "shots")}
    differences = {}
    for name in ("gain", "delta"):
        gap = row[name]
        differences[name] = "–" if gap is None else percent(gap["value"], sign=True)
        differences[f"{name}_interval"] = interval_of(gap, sign=True)
    return {**about, "value": percent(row["value"]), "interval": interval_of(row), **differences}


def _curves(table: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each target: a figure by the number of training pairs, a curve a source; where there are sizes to compare."""
    figure = rows[0]["figure"]
    left_out = {source["name"]: source["left_out"] for source in table["sources"]}
    found = []
    for target in table["targets"]:
        lines: dict[str, set[plots.Spot]] = {}
        for row in rows:
            # A model that does without one domain is of interest on that one.
            wanted = row["target"] == target and not row["shots"] and left_out[row["source"]] in ("", target)
            if wanted and row["value"] is not None and row["low"] is not None:
                spot = (float(np.log(row["train_pairs"])), row["value"], row["low"], row["high"])
                lines.setdefault(row["source"], set()).add(spot)
        curves = [(name, sorted(spots)) for name, spots in lines.items() if len(spots) > 1]
        # The target's own curve first: it is what the others are compared with.
        curves = sorted(curves, key=lambda curve: curve[0] != target)[: plots.CURVES]
        if curves:
            found.append(
                {"target": target, "plot": _plot(figure, target, curves), "names": [name for name, _ in curves]}
            )
    return found


def _plot(figure: str, target: str, curves: Sequence[tuple[str, list[plots.Spot]]]) -> Markup:
    places = sorted({spot[0] for _, spots in curves for spot in spots})
    ticks = [(place, f"{round(np.exp(place)):,}") for place in _apart(places)]
    ends = "; ".join(f"{name} {percent(spots[0][1])} to {percent(spots[-1][1])}" for name, spots in curves)
    description = f"{TITLES[figure]} on {target} by training pairs, from fewest to most: {ends}"
    return plots.curve_plot(curves, ticks, _BOUNDS[figure], "training pairs", TITLES[figure], description)


def _apart(places: Sequence[float]) -> list[float]:
    """Those of the sorted ``places`` whose labels do not touch: both ends, and what is well apart between them."""
    least = (places[-1] - places[0]) / 8
    kept = [places[0]]
    for place in places[1:-1]:
        if place - kept[-1] > least and places[-1] - place > least:
            kept.append(place)
    return [*kept, places[-1]]

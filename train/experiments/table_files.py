"""A grid's files: ``table.json``, ``table.csv``, ``table.md``, ``run.json``, with the published table in each."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from negsample.formats import number
from negsample.io.files import atomic_json, atomic_text
from negsample.io.run_record import Stopwatch, write_run
from negsample.train.config import TrainConfig
from negsample.train.experiments.published import Published

_FIELDS = ("source", "group", "encoder", "head", "value", "low", "high", "n", "reason")


def figure_of(cell: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The figure ``name`` of a cell's ``figures.json``: value, low, high (in [0, 1] or [-1, 1]), n, reason."""
    found = cell["test"].get(name)
    if found is None:
        n = next(iter(cell["test"].values()))["n"]
        return {"value": None, "low": None, "high": None, "n": n, "reason": "no label lies between 0 and 1"}
    return dict(found)


def table_of(
    title: str,
    figure: str,
    published: Published,
    config: TrainConfig,
    *,
    cells: Sequence[Mapping[str, Any]],
    missing: Sequence[Mapping[str, str]],
    data: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """The content of ``table.json``: values in percent (or × 100), each with its n and 95 % interval.

    ``cells`` are contents of ``figures.json``, ``missing`` what could not be run (encoder, reason), ``data`` what the
    examples of each recipe were made of.
    """
    rows = []
    for cell in cells:
        found = figure_of(cell, figure)
        rows.append(
            {
                "recipe": cell["recipe"],
                "encoder": cell["encoder"],
                "head": cell["head"],
                **{key: None if found[key] is None else 100 * found[key] for key in ("value", "low", "high")},
                "n": found["n"],
                **({"reason": found["reason"]} if found["reason"] else {}),
                "epochs": len(cell["epochs"]),
                "seconds": cell["seconds"],
                "cut": cell["cut"]["test"]["cut"],
            }
        )
    return {
        "title": title,
        "figure": figure,
        "unit": "percent" if figure == "accuracy" else "Pearson × 100",
        "corpora": config.corpora(),
        "limit": config.limit,
        "seed": config.seed,
        "negatives": config.negatives,
        "cells": rows,
        "not_run": [dict(entry) for entry in missing],
        "notes": _notes(config, cells),
        "data": {
            recipe: {key: about[key] for key in ("pairs", "documents", "fingerprint", "skipped")}
            for recipe, about in data.items()
        },
        "published": published.as_json(),
    }


def _notes(config: TrainConfig, cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where the grid is not what P3 did."""
    notes = [
        "P3 took 30,000 pairs of each corpus, one negative each, split 80/10/10; here: "
        f"{', '.join(config.corpora())}, {config.negatives} negative(s) a pair, same shares."
    ]
    encoders = {cell["encoder"] for cell in cells}
    if "glove" in encoders:
        notes.append("glove: the packaged 50-d vectors; P3 took 100-d ones (glove:FILE).")
    others = sorted(encoders - {"glove", "use", "use-large", "infersent"})
    if others:
        notes.append(f"Not in P3: {', '.join(others)}.")
    own = {
        key: value
        for key, value in config.as_dict().items()
        if value != getattr(TrainConfig(), key) and key not in ("corpus", "limit", "seed", "negatives")
    }
    if own:
        notes.append("Other settings: " + ", ".join(f"{key}={value}" for key, value in own.items()) + ".")
    notes.append("P3 names neither the corpus of Table 2 nor the batch size; its learning rate is read as 0.001.")
    return notes


def _cell_text(row: Mapping[str, Any], best: float | None) -> str:
    if row["value"] is None:
        return f"not defined ({row.get('reason', '')})"
    value = f"**{row['value']:.1f}**" if row["value"] == best else f"{row['value']:.1f}"
    return value if row["low"] is None else f"{value} [{row['low']:.1f}, {row['high']:.1f}]"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table whose columns line up; the first row is its head."""
    widths = [max(3, *(len(row[column]) for row in rows)) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return lines


def markdown(table: Mapping[str, Any]) -> str:
    """The grid, the published table, what was not run, and notes; it reads well on a terminal too."""
    cells = {(row["recipe"], row["head"], row["encoder"]): row for row in table["cells"]}
    recipes, heads, encoders = (list(dict.fromkeys(key[place] for key in cells)) for place in range(3))
    body = [["recipe", "head", "n", *encoders]]
    for recipe in recipes:
        values = [row["value"] for key, row in cells.items() if key[0] == recipe and row["value"] is not None]
        best = max(values, default=None)
        for head in heads:
            found = [cells.get((recipe, head, encoder)) for encoder in encoders]
            sizes = sorted({str(row["n"]) for row in found if row is not None})
            body.append(
                [recipe, head, ", ".join(sizes), *("" if row is None else _cell_text(row, best) for row in found)]
            )
    published = table["published"]
    group = next(iter(published["rows"][0]))
    printed = [[group, "head", *published["columns"]]]
    printed += [
        [row[group], row["head"], *(number(row[name], 1) for name in published["columns"])] for row in published["rows"]
    ]
    limit = f", the first {table['limit']} pairs of each" if table["limit"] else ""
    lines = [
        f"# {table['title']}",
        "",
        f"{', '.join(table['corpora'])}{limit}; seed {table['seed']}. Test split; 95 % interval by bootstrap over documents; "
        "the best of each recipe is bold.",
        "",
        *aligned(body),
        "",
        f"## Published: {published['source']}",
        "",
        *aligned(printed),
        "",
        "## Not run",
        "",
        *(f"- {entry['encoder']}: {entry['reason']}" for entry in table["not_run"]),
        "",
        "## Notes",
        "",
        *(f"- {note}" for note in table["notes"]),
    ]
    return "\n".join(lines) + "\n"


def csv_text(table: Mapping[str, Any]) -> str:
    """One row a figure: ``source`` is measured, published or "not run"; ``encoder`` is P3's name in published rows."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, _FIELDS, lineterminator="\n", restval="")
    writer.writeheader()
    for row in table["cells"]:
        numbers = {key: "" if row[key] is None else f"{row[key]:.4f}" for key in ("value", "low", "high")}
        facts = {"group": row["recipe"], "n": row["n"], "reason": row.get("reason", "")}
        writer.writerow({"source": "measured", **facts, "encoder": row["encoder"], "head": row["head"], **numbers})
    published = table["published"]
    group = next(iter(published["rows"][0]))
    for row in published["rows"]:
        for name in published["columns"]:
            if row[name] is not None:
                facts = {"group": row[group], "encoder": name, "head": row["head"], "value": f"{row[name]:.1f}"}
                writer.writerow({"source": "published", **facts})
    for entry in table["not_run"]:
        writer.writerow({"source": "not run", **entry})
    return stream.getvalue()


def write_table(
    table: Mapping[str, Any], out: Path, watch: Stopwatch, arguments: Mapping[str, Any], facts: Mapping[str, Any]
) -> None:
    """Write the four files to the folder ``out``, each whole; ``facts`` go into ``run.json`` besides the arguments."""
    atomic_text(out / "table.csv", csv_text(table))
    atomic_text(out / "table.md", markdown(table))
    atomic_json(out / "table.json", table)
    write_run(
        out / "run.json",
        watch,
        **facts,
        config=dict(arguments),
        seed=arguments["seed"],
        data=table["data"],
        cell_seconds=sum(row["seconds"] for row in table["cells"]),
    )

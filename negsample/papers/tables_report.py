"""A table as plain values, as CSV and as Markdown, with the published table in each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from negsample.corpora.pairs import describe_part
from negsample.number_text import aligned, four_decimals, number
from negsample.papers.published import published
from negsample.train.config import TrainConfig

CSV_COLUMNS = ("source", "group", "encoder", "head", "value", "low", "high", "n", "reason")


@dataclass(frozen=True)
class TableSpec:
    """One of the tables of Bao et al. 2021: a row for each of ``recipes`` and each head; ``figure`` is what a cell holds, and
    ``published`` the number of the table.
    """

    title: str
    recipes: tuple[str, ...]
    figure: str
    published: int


TABLES = {
    "p3-table1": TableSpec("Cross pairing: accuracy (%)", ("crosspair",), "accuracy", 1),
    "p3-table2": TableSpec("Mutation: Pearson correlation × 100", ("add", "delete", "replace"), "pearson", 2),
}


def figure_of(cell: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the figure ``name`` of a cell's ``figures.json``: value, low, high (in [0, 1] or [-1, 1]), n, reason."""
    found = cell["test"].get(name)
    if found is None:
        n = next(iter(cell["test"].values()))["n"]
        return {"value": None, "low": None, "high": None, "n": n, "reason": "no label lies between 0 and 1"}
    return dict(found)


def table_of(
    name: str,
    config: TrainConfig,
    cells: Sequence[Mapping[str, Any]],
    not_run: Sequence[dict[str, str]],
    data: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the content of ``table.json``: values in percent (or × 100), each with its n and 95 % interval.

    ``cells`` are contents of ``figures.json``, ``not_run`` what could not be run (encoder, reason), ``data`` what the
    examples of each recipe were made of.
    """
    spec, rows = TABLES[name], []
    for cell in cells:
        found = figure_of(cell, spec.figure)
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
        "table": name,
        "title": spec.title,
        "figure": spec.figure,
        "unit": "percent" if spec.figure == "accuracy" else "Pearson × 100",
        "corpora": config.corpora(),
        "limit": config.limit,
        "sample": config.sample,
        "seed": config.seed,
        "negatives": config.negatives,
        "cells": rows,
        "not_run": list(not_run),
        "notes": _notes(config, cells),
        "data": {
            recipe: {key: about[key] for key in ("pairs", "documents", "fingerprint", "skipped")}
            for recipe, about in data.items()
        },
        "published": published(spec.published),
    }


def _notes(config: TrainConfig, cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return where the table is not that of Bao et al. 2021."""
    notes = [
        "Bao et al. 2021 took 30,000 pairs of each corpus, one negative each, split 80/10/10; here: "
        f"{', '.join(config.corpora())}, {config.negatives} negative(s) a pair, same shares."
    ]
    encoders = {cell["encoder"] for cell in cells}
    if "glove" in encoders:
        notes.append("glove: the packaged 50-d vectors; the paper took 100-d ones (glove:FILE).")
    if others := sorted(encoders - {"glove", "use", "use-large", "infersent"}):
        notes.append(f"Not in the paper: {', '.join(others)}.")
    told = ("corpus", "limit", "sample", "seed", "negatives")
    own = {key: value for key, value in config.as_dict().items() if key not in told}
    changed = [f"{key}={value}" for key, value in own.items() if value != getattr(TrainConfig, key)]
    if changed:
        notes.append(f"Other settings: {', '.join(changed)}.")
    notes.append(
        "The paper names neither the corpus of Table 2 nor the batch size; its learning rate is read as 0.001."
    )
    return notes


def _cell_text(row: Mapping[str, Any], best: float | None) -> str:
    if row["value"] is None:
        return f"not defined ({row.get('reason', '')})"
    value = f"**{row['value']:.1f}**" if row["value"] == best else f"{row['value']:.1f}"
    return value if row["low"] is None else f"{value} [{row['low']:.1f}, {row['high']:.1f}]"


def markdown(table: Mapping[str, Any]) -> str:
    """Return the grid, the published table, what was not run, and notes; it reads well on a terminal too."""
    cells = {(row["recipe"], row["head"], row["encoder"]): row for row in table["cells"]}
    recipes, heads, encoders = (list(dict.fromkeys(key[place] for key in cells)) for place in range(3))
    body = [["recipe", "head", "n", *encoders]]
    for recipe in recipes:
        values = [row["value"] for key, row in cells.items() if key[0] == recipe and row["value"] is not None]
        best = max(values, default=None)
        for head in heads:
            found = [cells.get((recipe, head, encoder)) for encoder in encoders]
            sizes = sorted({str(row["n"]) for row in found if row is not None})
            texts = ["" if row is None else _cell_text(row, best) for row in found]
            body.append([recipe, head, ", ".join(sizes), *texts])
    printed = table["published"]["rows"]
    beside = [list(printed[0])]
    beside += [
        ["" if x is None else number(x, 1) if isinstance(x, float) else x for x in row.values()] for row in printed
    ]
    lines = [
        f"# {table['title']}",
        "",
        f"{', '.join(table['corpora'])}{describe_part(table)}; seed {table['seed']}. Test split; 95 % interval by "
        "bootstrap over documents; the best of each recipe is bold.",
        "",
        *aligned(body),
        "",
        f"## Published: {table['published']['source']}",
        "",
        *aligned(beside),
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


def csv_rows(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each figure: ``source`` is measured, published or "not run"; encoders as they are named there."""
    rows = [
        {"source": "measured", "group": row["recipe"]}
        | {key: row.get(key) for key in ("encoder", "head", "n", "reason")}
        | {key: four_decimals(row[key]) for key in ("value", "low", "high")}
        for row in table["cells"]
    ]
    group, _, *columns = table["published"]["rows"][0]
    rows += [
        {"source": "published", "group": row[group], "encoder": name, "head": row["head"], "value": f"{row[name]:.1f}"}
        for row in table["published"]["rows"]
        for name in columns
        if row[name] is not None
    ]
    return rows + [{"source": "not run", **entry} for entry in table["not_run"]]

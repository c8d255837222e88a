"""What an experiment leaves in its folder: data, CSV and Markdown of the same figures, and what was run."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from negsample.io.files import atomic_json, atomic_text
from negsample.io.run_record import Stopwatch, write_run
from negsample.io.work_folder import waiting
from negsample.io.write import write_table


def write_outputs(
    out: Path,
    name: str,
    table: Mapping[str, Any],
    *,
    rows: Iterable[dict[str, Any]],
    columns: Sequence[str],
    text: str,
    page: str = "",
    watch: Stopwatch,
    cells: Iterable[Mapping[str, Any]],
    **facts: Any,
) -> None:
    """Write an experiment's ``NAME.json``, ``.csv`` (``rows``), ``.md``, ``.html`` (``page``, where there is one), ``run.json``.

    Each file appears whole. ``cells`` are contents of ``figures.json``; ``facts`` go into ``run.json``. What was needed
    until now (``work``) is removed. Several processes may get here together: each writes the same figures.
    """
    with waiting(out / "locks" / "report"):
        atomic_json(out / f"{name}.json", table)
        write_table(out / f"{name}.csv", rows, columns)
        atomic_text(out / f"{name}.md", text)
        if page:
            atomic_text(out / f"{name}.html", page)
        write_run(out / "run.json", watch, **facts, cell_seconds=sum(found["seconds"] for found in cells))
        shutil.rmtree(out / "work", ignore_errors=True)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table whose columns line up; the first row is its head."""
    widths = [max(3, *(len(row[column]) for row in rows)) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return lines


def four_decimals(value: float | None) -> str:
    """Return a figure as it stands in CSV; ``""`` for None."""
    return "" if value is None else f"{value:.4f}"

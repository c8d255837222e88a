"""What an experiment leaves in its folder: data, CSV and Markdown of the same figures, and what was run."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from negsample.io.files import atomic_json, atomic_text
from negsample.io.run_record import Stopwatch, write_run
from negsample.io.write import write_table


def write_outputs(
    out: Path,
    name: str,
    table: Mapping[str, Any],
    rows: Iterable[dict[str, Any]],
    columns: Sequence[str],
    text: str,
    watch: Stopwatch,
    **facts: Any,
) -> None:
    """Write ``NAME.json``, ``NAME.csv`` (``rows``), ``NAME.md`` and ``run.json`` to ``out``, each whole; forget the work."""
    atomic_json(out / f"{name}.json", table)
    write_table(out / f"{name}.csv", rows, columns)
    atomic_text(out / f"{name}.md", text)
    write_run(out / "run.json", watch, **facts)
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

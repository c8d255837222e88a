"""The figures printed in Tables 1 to 7 of Bao et al. 2021 (``published.yaml``), to stand beside one's own."""

from pathlib import Path
from typing import Any

from negsample.io.yaml_text import read_mapping

_SOURCE = (
    "Bao et al., End-to-end Semantics-based Summary Quality Assessment for Single-document Summarization "
    "(arXiv 2005.06377), Table {number}"
)


def published(number: int) -> dict[str, Any]:
    """Return printed table ``number`` as plain values: ``source``, ``columns``, and ``rows``, a mapping each.

    A row has its group, what it is within it (a head, a recipe) and a value for each column, None for "NA".
    """
    tables = read_mapping(Path(__file__).with_suffix(".yaml"), "published.yaml")
    head, *lines = (line.split() for line in tables[number].splitlines())
    values = [[None if word == "NA" else float(word) for word in line[2:]] for line in lines]
    rows = [dict(zip(head, [*line[:2], *own], strict=True)) for line, own in zip(lines, values, strict=True)]
    return {"source": _SOURCE.format(number=number), "columns": head[2:], "rows": rows}

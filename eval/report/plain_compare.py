"""A comparison of systems as plain values: what goes into compare.json and compare.csv."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from negsample.eval.compare import Comparison, Section

COMPARE_COLUMNS = (
    "metric",
    "system",
    "rank",
    "mean",
    "low",
    "high",
    "difference",
    "difference_low",
    "difference_high",
    "p",
    "p_bootstrap",
    "p_holm",
    "documents",
)


def compare_as_plain(result: Comparison) -> dict[str, Any]:
    """Everything but the texts, as JSON takes it."""
    return {
        "format": "negsample-comparison",
        "format_version": 1,
        "settings": asdict(result.settings),
        "systems": list(result.systems.names),
        "documents": len(result.systems.documents),
        "left_out": dict(result.systems.left_out),
        "sections": [_section(result, section) for section in result.sections],
    }


def _section(result: Comparison, section: Section) -> dict[str, Any]:
    names = [result.systems.documents[d] for d in section.documents]
    return {
        "metric": section.column.name,
        "kind": section.column.kind,
        "signature": section.column.signature,
        "sign_turned": section.column.turned,
        "note": section.column.note,
        "left_out": dict(section.left_out),
        "systems": [asdict(system) for system in section.systems],
        "different": {
            system: [{**asdict(d), "document": names[d.document]} for d in found]
            for system, found in section.different.items()
        },
    }


def compare_rows(result: Comparison) -> Iterator[dict[str, Any]]:
    """One row a metric and system."""
    for section in result.sections:
        for system in section.systems:
            yield {"metric": section.column.name, **{name: getattr(system, name) for name in COMPARE_COLUMNS[1:]}}

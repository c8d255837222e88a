"""A comparison of systems: its page, and the plain values of compare.json and compare.csv."""

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

from negsample.eval.agreement.compare import Section, SystemsComparison
from negsample.eval.report import about, render, texts, write_files
from negsample.eval.report.plots import shared_scale
from negsample.io.files import new_folder
from negsample.io.run_record import Stopwatch, fingerprints, write_run

CSV_COLUMNS = tuple(
    "metric system rank mean low high difference difference_low difference_high p p_bootstrap p_holm documents".split()
)


def write_comparison(result: SystemsComparison, out: str, watch: Stopwatch) -> None:
    """Write ``compare.json``, ``compare.csv``, ``report.html`` and ``run.json`` in the folder ``out``."""
    plain = comparison_json(result)
    with new_folder(out) as folder:
        contents = {
            "compare.json": plain,
            "compare.csv": (comparison_rows(result), CSV_COLUMNS),
            "report.html": partial(comparison_page, result),
        }
        write_files(folder, contents)
        write_run(
            folder / "run.json",
            watch,
            config=plain["settings"],
            seed=result.settings.seed,
            data=fingerprints(result.files),
            signatures={section.column.name: section.column.signature for section in result.sections},
        )


def comparison_json(result: SystemsComparison) -> dict[str, Any]:
    """Return everything but the texts, as JSON takes it."""
    return {
        "format": "negsample-comparison",
        "format_version": 1,
        "settings": asdict(result.settings),
        "systems": list(result.systems.names),
        "documents": len(result.systems.documents),
        "left_out": dict(result.systems.left_out),
        "sections": [
            {
                "metric": section.column.name,
                **about(section.column),
                "left_out": dict(section.left_out),
                "systems": [asdict(system) for system in section.systems],
                "different": {
                    system: [
                        {**asdict(d), "document": result.systems.documents[section.documents[d.document]]}
                        for d in found
                    ]
                    for system, found in section.different.items()
                },
            }
            for section in result.sections
        ],
    }


def comparison_rows(result: SystemsComparison) -> Iterator[dict[str, Any]]:
    """Yield one row a metric and system."""
    for section in result.sections:
        for system in section.systems:
            yield {"metric": section.column.name, **{name: getattr(system, name) for name in CSV_COLUMNS[1:]}}


def comparison_page(result: SystemsComparison) -> str:
    """Return the page of a comparison of systems, as HTML."""
    return render("compare.html.j2", result=result, sections=[_section(result, section) for section in result.sections])


def _section(result: SystemsComparison, section: Section) -> dict[str, Any]:
    systems, names = section.systems, result.systems.names
    return {
        "section": section,
        "mean": shared_scale([end for s in systems for end in (s.mean, s.low, s.high)], zero=False),
        "gap": shared_scale(
            [end for s in systems for end in (s.difference, s.difference_low, s.difference_high)], zero=True
        ),
        "different": [
            (name, [_case(result, section, names.index(name), d) for d in found])
            for name, found in section.different.items()
            if found
        ],
    }


def _case(result: SystemsComparison, section: Section, system: int, difference: Any) -> dict[str, Any]:
    rows = result.systems.rows[section.documents[difference.document]]
    return {"case": difference, "first": rows[0], "other": rows[system], **texts(rows[0])}

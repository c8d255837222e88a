"""A comparison of systems: its page, and the plain values of compare.json and compare.csv."""

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

from negsample.eval.agreement.compare import Section, SystemsComparison
from negsample.eval.report import about, render, texts, write_report
from negsample.eval.report.plots import shared_scale
from negsample.io.run_record import Stopwatch, fingerprints
from negsample.records import Judged

CSV_COLUMNS = tuple(
    "metric system rank mean low high difference difference_low difference_high p p_bootstrap p_holm documents".split()
)


def write_comparison(result: SystemsComparison, out: str, watch: Stopwatch) -> bool:
    """Write ``compare.json``, ``compare.csv``, ``report.html`` and ``run.json`` in the folder ``out``."""
    plain = comparison_json(result)
    rows = (
        {"metric": section.column.name, **asdict(system)} for section in result.sections for system in section.systems
    )
    page = partial(comparison_page, result)
    contents = {"compare.json": plain, "compare.csv": (rows, CSV_COLUMNS), "report.html": page}
    about_run = {"config": plain["settings"], "seed": result.settings.seed, "data": fingerprints(result.settings.files)}
    signatures = {section.column.name: section.column.signature for section in result.sections}
    return write_report(out, contents, watch, **about_run, signatures=signatures)


def comparison_json(result: SystemsComparison) -> dict[str, Any]:
    """Return everything but the texts, as JSON takes it."""
    return {
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
                    system: [_case(result, section, system, row)[0] for row, _ in section.different[system]]
                    for system in section.different
                },
            }
            for section in result.sections
        ],
    }


def _case(result: SystemsComparison, section: Section, system: str, row: int) -> tuple[dict[str, Any], Judged, Judged]:
    """A document on which ``system`` and the first one lie far apart: its scores, and what both wrote."""
    at, place = result.systems.names.index(system), section.documents[row]
    score, baseline = float(section.scores[row, at]), float(section.scores[row, 0])
    told = {"document": result.systems.documents[place], "baseline": baseline, "score": score}
    return {**told, "difference": score - baseline}, result.systems.rows[place][0], result.systems.rows[place][at]


def comparison_page(result: SystemsComparison) -> str:
    """Return the page of a comparison of systems, as HTML."""

    def cases(section: Section) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """For each system what it and the first wrote where they differ most."""
        for name, found in section.different.items():
            told = [_case(result, section, name, row) for row, _ in found]
            yield name, [{"case": case, "first": first, "other": own, **texts(first)} for case, first, own in told]

    sections = []
    for section in result.sections:
        means = [end for s in section.systems for end in (s.mean, s.low, s.high)]
        gaps = [end for s in section.systems for end in (s.difference, s.difference_low, s.difference_high)]
        scales = {"mean": shared_scale(means, zero=False), "gap": shared_scale(gaps, zero=True)}
        sections.append({"section": section, **scales, "different": [own for own in cases(section) if own[1]]})
    return render("compare.html.j2", result=result, sections=sections)

"""A table's files: ``table.json``, ``table.csv``, ``table.md``, ``run.json``, and a figure where the paper draws one."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from negsample.eval.report.plots import NO_FORMULAS, picture, style
from negsample.io.files import atomic_json, atomic_text, replacing
from negsample.io.run_record import Stopwatch, write_run
from negsample.io.write import write_table
from negsample.number_text import aligned
from negsample.papers.kinds import Found
from negsample.papers.measure import Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = ("source", "dataset", "human", "row", "system", "example", "articles", "level", "coefficient", "value")
CSV_COLUMNS = (*_COLUMNS, "low", "high", "p", "sd", "n", "documents", "systems", "mark", "reason")


def markdown(measured: Measured, found: Found) -> str:
    """The table with its texts, the published table, what was not run, and notes."""
    spec = measured.spec
    data = "; ".join(f"{source.name}: {len(source.rows)} summaries ({source.spec})" for source in measured.sources)
    lines = [f"# {spec.title}", "", f"{data}; seed {measured.settings.seed}.", ""]
    for section in found.sections:
        lines += [f"## {section.title}", "", *aligned([[_cell(text) for text in row] for row in section.body]), ""]
    if found.texts:
        lines += ["## Texts", "", *(f"- {name}: {' '.join(text.split())}" for name, text in found.texts), ""]
    lines += [f"## Published: {spec.paper}", "", *(aligned(spec.printed) if spec.printed else ["no figures"]), ""]
    not_run = [f"- {label}: {reason}" for label, reason in measured.not_run.items()]
    lines += ["## Not run", "", *(not_run or ["nothing: every row was run"]), ""]
    notes = [*spec.notes, *measured.notes, *found.notes]
    if measured.extra:
        notes.append(f"Not in the paper: {', '.join(measured.extra)}.")
    lines += ["## Notes", "", *(f"- {note}" for note in notes)]
    if stood := [f"{name} = {part}" for name, part in (spec.parts or {}).items() if part]:
        lines.append(f"- Stood for: {', '.join(stood)}.")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def write_paper_table(
    measured: Measured, found: Found, out: Path, text: str, watch: Stopwatch, command: list[str], **facts: Any
) -> None:
    """Write all files of the table into the folder ``out``. ``facts`` go into ``run.json``."""
    spec = measured.spec
    printed = [dict(zip(spec.printed[0], row, strict=True)) for row in spec.printed[1:]]
    plain = {
        "table": spec.name,
        "title": spec.title,
        "figures": found.records,
        "published": {"source": spec.paper, "rows": printed},
        "not_run": measured.not_run,
        "notes": [*spec.notes, *measured.notes, *found.notes],
        "parts": dict(spec.parts or {}),
        "signatures": measured.signatures,
    }
    atomic_json(out / "table.json", plain)
    rows = [{"source": "measured", **record} for record in found.records]
    for line in spec.printed[1:]:
        own = zip(spec.printed[0][1:], line[1:], strict=True)
        # The marks of significance stand in the Markdown.
        rows += [
            {"source": "published", "row": line[0], "dataset": name, "value": cell.strip("*")} for name, cell in own
        ]
    write_table(out / "table.csv", rows, CSV_COLUMNS)
    atomic_text(out / "table.md", text)
    if draw := _DRAWN.get(spec.plot or spec.kind):
        with style(NO_FORMULAS), replacing(out / "figure.svg") as handle:
            handle.write(picture(draw(found.records)))
    write_run(out / "run.json", watch, command=command, signatures=measured.signatures, **facts)


def _panels(
    records: Sequence[Mapping[str, Any]], keys: Sequence[str]
) -> tuple["Figure", list[tuple[str, list[Any], Any]]]:
    """A figure with a panel for each value of ``keys`` (those that a record has): title, records, axes."""
    from matplotlib.figure import Figure

    groups: dict[str, list[Any]] = {}
    for record in records:
        if record["value"] is not None:
            groups.setdefault(" · ".join(str(record[key]) for key in keys if key in record), []).append(record)
    figure = Figure(figsize=(6, 3.2 * max(1, len(groups))), layout="constrained")
    axes = figure.subplots(max(1, len(groups)), 1, squeeze=False)[:, 0]
    return figure, [(title, own, place) for (title, own), place in zip(groups.items(), axes, strict=False)]


def bars(records: Sequence[Mapping[str, Any]]) -> "Figure":
    """Each row's correlation as a bar with its interval."""
    figure, panels = _panels(records, ("dataset", "human", "coefficient"))
    for title, own, axes in panels:
        values = [record["value"] for record in own]
        spans = [
            [max(0, r["value"] - r["low"]), max(0, r["high"] - r["value"])] if r["low"] is not None else [0, 0]
            for r in own
        ]
        axes.barh([record["row"] for record in own], values, xerr=list(zip(*spans, strict=True)))
        axes.invert_yaxis()
        axes.set_title(title)
    return figure


def curves(records: Sequence[Mapping[str, Any]]) -> "Figure":
    """Mean and spread of each row over the number of articles."""
    figure, panels = _panels(records, ("dataset", "human"))
    for title, own, axes in panels:
        for label in dict.fromkeys(record["row"] for record in own):
            line = [record for record in own if record["row"] == label]
            x, y = [r["articles"] for r in line], [r["value"] for r in line]
            axes.errorbar(x, y, yerr=[r["sd"] or 0 for r in line], label=label, capsize=2)
        axes.set(title=title, xlabel="articles", xscale="log")
        axes.legend(fontsize="x-small")
    return figure


def first_tokens(records: Sequence[Mapping[str, Any]]) -> "Figure":
    """Each part's correlation over the tokens that are read of an article."""
    figure, panels = _panels(records, ("dataset", "human", "coefficient"))
    for title, own, axes in panels:
        cut = [(*record["row"].split("@"), record["value"]) for record in own if "@" in record["row"]]
        for name in dict.fromkeys(part for part, _, _ in cut):
            line = [(tokens, value) for part, tokens, value in cut if part == name]
            axes.plot(*zip(*line, strict=True), marker="o", label=name)
        axes.set(title=title, xlabel="first tokens")
        axes.legend(fontsize="x-small")
    return figure


def points(records: Sequence[Mapping[str, Any]]) -> "Figure":
    """A panel a metric: each system's mean human score and mean similarity, with its name."""
    people: dict[tuple[str, str], float] = {}
    for record in records:
        if record["row"].startswith("people: ") and record["value"] is not None:
            # The first human score of a data set is the one that is drawn.
            people.setdefault((record["dataset"], record["system"]), record["value"])
    rest = [r for r in records if not r["row"].startswith("people: ") and (r["dataset"], r["system"]) in people]
    figure, panels = _panels(rest, ("dataset", "row"))
    for title, own, axes in panels:
        for record in own:
            x, y = people[record["dataset"], record["system"]], record["value"]
            axes.plot([x], [y], "o", color="tab:blue")
            # DUC's lead baseline is summarizer 1, the paper's b.
            baseline = record["system"] == "1" and record["dataset"].startswith("duc")
            axes.annotate("b" if baseline else record["system"], (x, y), fontsize="small")
        axes.set(title=title, xlabel="people")
    return figure


_DRAWN: dict[str, Callable[[Sequence[Mapping[str, Any]]], "Figure"]] = {
    "bars": bars,
    "first": first_tokens,
    "sampling": curves,
    "systems": points,
}

"""``negsample explain``."""

from collections.abc import Iterable
from contextlib import nullcontext
from itertools import islice
from typing import Annotated, Any

from typer import Argument, Option

from negsample.commands import options
from negsample.errors import InputError
from negsample.terminal import say, shorten

_NAMES = ("id", "document_id", "system")
# Inputs named beside a fitted target; the JSON has all.
_ADDS = 5
# Records of a page; more make it slow to open.
_MOST_SHOWN = 1000


def explain(
    source: Annotated[str, Argument(help="Records to explain (- for standard input).", metavar="INPUT")],
    model: options.Model = None,
    output: Annotated[
        str | None, Option("--output", "-o", help="Write JSON lines here (- for standard output).", metavar="OUTPUT")
    ] = None,
    html: Annotated[str | None, Option(help="Write one page here, to open or to send.", metavar="FILE")] = None,
    limit: Annotated[int | None, Option(min=1, help="Explain only the first N records.")] = None,
    document_field: options.DocumentField = "document",
    summary_field: options.SummaryField = "summary",
    precision: options.Precision = "float32",
) -> None:
    """Why each record scores as it does: coverage, support, unsupported words (by default by the ready estimator)."""
    from negsample.commands.score import print_notes
    from negsample.io.files import atomic_text, check_outputs, format_of
    from negsample.io.read import Row, read_rows
    from negsample.io.write import open_writer
    from negsample.models import load
    from negsample.scoring.files import Settings, item_of
    from negsample.scoring.kinds import look
    from negsample.scoring.tally import Tally
    from negsample.serve.page import file_page

    if output is not None and format_of(output) != "jsonl":
        raise InputError(f"-o {output}: an explanation is nested; give a .jsonl file, or - for standard output")
    check_outputs([output, html], [source])
    rows: Iterable[Row] = islice(read_rows(source), limit)
    if html is not None:
        rows = list(islice(rows, _MOST_SHOWN + 1))
        if len(rows) > _MOST_SHOWN:
            raise InputError(f"--html: more than {_MOST_SHOWN} records; choose some with --limit")
    estimator = load(model, precision=precision)
    settings, count = Settings(document_field, summary_field), 0
    scorer, tally = estimator.scorer(), Tally()
    shown: list[dict[str, Any]] = []
    with open_writer(output) if output is not None else nullcontext() as writer:
        for count, row in enumerate(rows, start=1):
            item = item_of(row, estimator.needs, settings)
            look([row], scorer, settings, tally)
            (told,) = estimator.explain_pairs([item.document], [item.summary], [item.references])
            if html is not None:
                # A page calls a record not by where its file lies.
                names = [str(row.fields[name]) for name in _NAMES if row.fields.get(name) not in (None, "")]
                texts = {"document": item.document, "summary": item.summary}
                shown.append({"label": " · ".join(names) or f"record {count}", **texts, "explanation": told})
            if writer is not None:
                writer.write({**row.fields, "explanation": told})
            elif html is None:
                say("\n".join([row.where, *lines(told), ""]))
    if html is not None:
        atomic_text(html, file_page(estimator.signature, shown).html)
    if files := [path for path in (output, html) if path not in (None, "-")]:
        say(f"{count} records explained: {', '.join(map(str, files))}", error=output == "-")
    print_notes({source: tally}, error=output == "-", aspects=scorer.aspects)
    say(estimator.signature, error=output == "-")


def lines(told: dict[str, Any]) -> list[str]:
    """An explanation (``Estimator.explain``) as lines for the terminal."""
    aspects = "  ".join(f"{name} {'–' if value is None else f'{value:.3f}'}" for name, value in told["aspects"].items())
    out = [f"score {told['score']:.3f}  {aspects}"]
    for name, target in told.get("targets", {}).items():
        low, high = target["interval"]
        adds = ", ".join(f"{part} {value:+.2f}" for part, value in list(target["adds"].items())[:_ADDS])
        out.append(f"{name} {target['value']:.2f} (interval {low:.2f} to {high:.2f}): {adds}")
    if "reason" in told:
        return [*out, told["reason"]]
    out.append("summary: support, and the document sentence it rests on")
    for place, item in enumerate(told["summary"]):
        out.append(f"  s{place} {item['support']:.2f} ← d{item['rests_on']}  {shorten(item['sentence'], 90)}")
        if "borne_out_by" in item:
            out.append(f"       borne out by {len(item['borne_out_by'])} of {told['document'][-1]['of'] + 1} documents")
        if item["unsupported"]:
            out.append(f"       not in the document: {', '.join(item['unsupported'])}")
        if item["faults"]:
            out.append(f"       {', '.join(item['faults'])}")
    repeated = told["repetitions"]
    out += [f"  s{second} says again what s{first} says" for first, second in repeated["sentences"]]
    if repeated["phrases"]:
        out.append(f"  said more than once: {'; '.join(repeated['phrases'])}")
    out.append("document: how far covered, and weight")
    for place, item in enumerate(told["document"]):
        mark = "  ← salient, and missing from the summary" if place in told["missing"] else ""
        out.append(f"  d{place} {item['covered']:.2f} ({item['weight']:.2f})  {shorten(item['sentence'], 90)}{mark}")
    return out

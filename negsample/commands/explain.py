"""``negsample explain`` and ``serve``."""

import os
import tempfile
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
    html: Annotated[
        str | None, Option(help="Write one page here, to open or to send.", metavar="FILE", callback=options.a_file)
    ] = None,
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
    from negsample.scoring.tally import Tally, look
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
            (told,) = estimator.explain_pairs([item.document], [item.summary], [item.references], [item.domain])
            look([row], [told["score"]], scorer, settings, tally)
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
    if told["lowers"]:
        out.append(f"what lowers it most: {told['lowers']}")
    out.append("summary: support, doubt (above .80 speaks against it), and the document sentence it rests on")
    for place, item in enumerate(told["summary"]):
        doubt = "" if item["doubt"] is None else f" doubt {item['doubt']:.2f}"
        out.append(f"  s{place} {item['support']:.2f}{doubt} ← d{item['rests_on']}  {shorten(item['sentence'], 90)}")
        if "borne_out_by" in item:
            out.append(f"       borne out by {len(item['borne_out_by'])} of {told['document'][-1]['of'] + 1} documents")
        if item["unsupported"]:
            out.append(f"       not borne out by the document: {', '.join(item['unsupported'])}")
        if item["own_words"]:
            out.append(f"       its own words: {', '.join(item['own_words'])}")
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


def serve(
    model: options.Model = None,
    host: Annotated[str, Option(help="Where to listen: this machine alone, or 0.0.0.0.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="0: a free one.")] = 8000,
    token: Annotated[
        str | None, Option(help="Ask for it; better in the environment.", envvar="NEGSAMPLE_TOKEN")
    ] = None,
    cors: Annotated[
        list[str] | None, Option(help="Let pages of this origin ask; may be repeated.", metavar="ORIGIN")
    ] = None,
    max_body: Annotated[int, Option(min=1, help="MiB of a request.")] = 8,
    max_pairs: Annotated[int, Option(min=1, help="Pairs of a request.")] = 64,
    max_characters: Annotated[int, Option(min=1, help="Characters of a text.")] = 200_000,
    max_work: Annotated[int, Option(min=1, help="Millions: words of a document times words of its summary.")] = 100,
    max_queue: Annotated[int, Option(min=1, help="Pairs that may wait for their answers.")] = 1024,
) -> None:
    """A page and a service that score and explain, until Ctrl-C or SIGTERM (docs/serve.md)."""
    try:
        from negsample.serve.door import Door, Server, address, is_loopback, listen
    except ModuleNotFoundError as error:
        raise InputError(f"the package {error.name} is not installed; pip install 'negsample[serve]'") from None
    from starlette.middleware.cors import CORSMiddleware

    from negsample.models import load
    from negsample.serve import Limits
    from negsample.serve.app import make_app
    from negsample.serve.batcher import Batcher
    from negsample.serve.page import service_page, without_paths

    if max_queue < max_pairs:
        raise InputError(f"--max-queue {max_queue} holds no request of --max-pairs {max_pairs}; raise it")
    if token is not None and not token.strip():
        raise InputError("--token is blank; give one, or leave it out")
    limits = Limits(max_body << 20, max_pairs, max_characters, max_work * 10**6, max_queue)
    bound = listen(host, port)
    # Vectors of visitors' texts do not go into the user's own cache.
    with bound, tempfile.TemporaryDirectory(prefix="negsample-serve-") as folder:
        os.environ["NEGSAMPLE_CACHE"] = folder
        estimator, second = load(model), load(model)
        for one in (estimator, second):
            one.stay_in_memory()
        signature = without_paths(estimator.signature)
        batcher = Batcher(estimator, second, limits.waiting)
        page = service_page(signature, limits, estimator.aspects, token is not None)
        app = make_app(batcher, signature, limits, page, bool(estimator.aspects))
        here = is_loopback(bound.getsockname()[0])
        door = Door(app, limits, token, here)
        outer = CORSMiddleware(door, allow_origins=cors, allow_headers=["*"], allow_methods=["*"]) if cors else door
        say(f"{address(bound)}   documentation: {address(bound)}/docs   Ctrl-C ends it")
        say(signature)
        if token is None and not here:
            say("negsample: whoever reaches this address can use it; --token asks for one", error=True)
        Server(outer).run(sockets=[bound])

"""Reports: figures as JSON and tables, and a self-contained page (style sheet and plots inside, no script, no network)."""

import shlex
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape

from negsample.eval.agreement.columns import ScoreColumn
from negsample.io.files import atomic_json, atomic_text, new_folder
from negsample.io.run_record import Stopwatch, versions, write_run
from negsample.io.write import write_table
from negsample.records import Judged
from negsample.resampling import NO_INTERVAL
from negsample.terminal import interval, number, p_text, say, short

T = TypeVar("T")

# Characters of a document that are printed; the rest is counted.
_DOCUMENT = 1500


def render(template: str, **context: Any) -> str:
    """Return the page (or, of ``.md.j2``, the Markdown) that ``template`` makes of ``context``."""
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=select_autoescape(enabled_extensions=("html.j2",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, short=short, p=p_text, interval=interval)
    return environment.get_template(template).render(
        style=_read("report.css"),
        no_interval=NO_INTERVAL,
        # Where the program lies is no part of what has to be typed to run it again.
        command=shlex.join(["negsample", *sys.argv[1:]]),
        versions=versions(),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        **context,
    )


def _read(name: str) -> str:
    return (files("negsample.eval.report") / name).read_text(encoding="utf-8")


def about(column: ScoreColumn) -> dict[str, Any]:
    """What JSON says of a metric beside its name."""
    told = {"kind": column.kind, "signature": column.signature}
    return {**told, "sign_turned": column.turned, "note": column.note}


def texts(row: Judged) -> dict[str, Any]:
    """What the macro ``source`` shows of a summary's document and references."""
    document = row.documents[0]
    return {
        "row": row,
        "document": document[:_DOCUMENT],
        "more": max(0, len(document) - _DOCUMENT),
        "others": len(row.documents) - 1,
    }


def made(name: str, make: Callable[[], T]) -> T | None:
    """What ``make`` makes, a page or a picture; where it fails None, and a line on standard error that names it.

    Whatever a font, a template or a plot has to say, it is no reason to lose what was computed or trained.
    """
    try:
        return make()
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        say(f"negsample: {name} can't be made ({why}); all else is there", error=True)
        return None


def write_report(out: str, contents: Mapping[str, Any], watch: Stopwatch, **facts: Any) -> bool:
    """Make the folder ``out`` of ``contents``, as `write_files` does, and ``run.json`` with ``facts``."""
    with new_folder(out) as folder:
        whole = write_files(folder, contents)
        write_run(folder / "run.json", watch, **facts)
    return whole


def write_files(folder: Path, contents: Mapping[str, Any]) -> bool:
    """Write each of ``contents`` under its name in ``folder``: a table ``(rows, columns)``, a page as
    the function that makes it (see `made`), anything else as JSON. Returns whether every page could be made.
    """
    whole = True
    for name, content in contents.items():
        if callable(content):
            if (page := made(name, content)) is not None:
                atomic_text(folder / name, page)
            whole = whole and page is not None
        elif isinstance(content, tuple):
            write_table(folder / name, *content)
        else:
            atomic_json(folder / name, content)
    return whole

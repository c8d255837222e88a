"""``negsample tables``: what each kind of table takes, and the run of one, from its declaration to its files."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.eval.agreement.correlate import Source
from negsample.io.run_record import Stopwatch, fingerprints, work_folder
from negsample.papers import headlines, judged, stand_ins, trained
from negsample.papers.declared import Declared, declared
from negsample.papers.judged import Asked
from negsample.papers.records import DRAWN, Table, draw, write

Run = Callable[[Declared, Asked, Path, Callable[[str], None]], tuple[Table, dict[str, Any]]]
ON_PEOPLE = {**judged.KINDS, **headlines.KINDS}
# Kind → the options (fields of `Asked`) that its tables have, beside ``smoke``.
TAKES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(ON_PEOPLE, ("data", "parts", "human", "bootstrap", "seed")),
    "grid": ("words", "config", "keep_models", "seed"),
    "tac2010": ("data", "words", "parts", "rouge_alone", "bootstrap", "seed"),
}
# Options that are not called as the field of `Asked` that they fill.
OPTIONS = {"words": "KEY=VALUE", "parts": "--part"}


def run_table(name: str, asked: Asked, out: Path, say: Callable[[str], None] = print) -> Table:
    """Make the table ``name`` and write it to the folder ``out``; begun before with the same options, it goes on.

    Raises InputError for an unknown table or part, an option that this kind of table has not, and as its kind does.
    """
    spec = declared(name)
    called = {key: OPTIONS.get(key, f"--{key.replace('_', '-')}") for key in asdict(asked)}
    takes = [key for key in (*TAKES[spec.kind], "smoke") if key != "parts" or spec.parts]
    for key, value in asdict(asked).items():
        if value != getattr(Asked, key) and key not in takes:
            raise InputError(
                f"{called[key]}: {name} has no such option; it has {', '.join(called[key] for key in takes)}"
            )
    if asked.data and asked.smoke:
        raise InputError("--smoke makes its own data; leave --data out")
    spec, watch = spec.with_parts(asked.parts), Stopwatch()
    special: dict[str, Run] = {"grid": trained.run_grid, "tac2010": trained.run_tac2010}
    table, facts = special.get(spec.kind, _on_people)(spec, asked, out, say)
    write(table, out, watch, say=say, smoke=asked.smoke, **facts)
    return table


def _on_people(
    spec: Declared, asked: Asked, out: Path, say: Callable[[str], None] = print
) -> tuple[Table, dict[str, Any]]:
    """A table on what people judged, and what goes to its ``run.json``."""
    sources, how = _sources(spec, asked, say), spec.plot or spec.kind
    config = {"table": spec.name, **asdict(asked), "parts": dict(spec.parts)}
    files = [path for each in asked.data if (path := each if Path(each).exists() else each.partition(":")[2])]
    # Scores are kept for a rerun.
    with work_folder(out, config, name="table_settings.json", what="a table", alone=True, kept=["scores/*.json"]):
        table = ON_PEOPLE[spec.kind](judged.measure(spec, sources, asked, out, say))
        if how in DRAWN:
            table = replace(table, pictures={f"{spec.name}.svg": draw(how, table.records)})
    return table, {"config": config, "seed": asked.seed or 0, "data": fingerprints(files)}


def _sources(spec: Declared, asked: Asked, say: Callable[[str], None]) -> list[Source]:
    """What people judged: given, or a stand-in."""
    if spec.kind in headlines.KINDS:
        if asked.smoke:
            say("smoke run, figures mean nothing: sentences of the sample as headlines, 'people' who count words")
        given = (row for data in asked.data for row in headlines.read_headlines(data))
        if not (sources := headlines.headline_sources(stand_ins.headlines() if asked.smoke else given, spec.kind)):
            raise InputError("no headlines; give --data FILE with story, generated, reference, and people's scores")
        return sources
    if asked.data:
        return judged.judged_sources(spec, asked.data)
    if spec.kind == "examples":
        return [stand_ins.permuted_source()]
    if asked.smoke:
        return stand_ins.damaged_sources(len(spec.data), spec.human, asked.seed or 0)
    shown = " ".join(f"--data {name}" for name in spec.data)
    raise InputError(f"nothing to measure on; give {shown} (the paper's), any judgments, or --smoke")

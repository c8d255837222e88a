"""``negsample tables``: what each kind of table takes, and the run of one, from its declaration to its files."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from negsample.errors import InputError
from negsample.eval.agreement.correlate import Source
from negsample.io.read import read_rows
from negsample.io.resume import work_folder
from negsample.io.run_record import Stopwatch, fingerprints
from negsample.papers import headlines, judged, stand_ins, trained
from negsample.papers.declared import Declared, declared
from negsample.papers.drawn import DRAWN, draw
from negsample.papers.judged import Asked
from negsample.papers.records import Table, write

ON_PEOPLE = {**judged.KINDS, **headlines.KINDS}
_HEADLINES = ("data", "parts", "metrics", "bootstrap", "seed")
# Kind → the options (fields of `Asked`) that its tables have, beside ``smoke``.
TAKES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(judged.KINDS, (*_HEADLINES, "human", "without")),
    **dict.fromkeys(headlines.KINDS, _HEADLINES),
    "grid": ("words", "config", "keep_models", "seed"),
    "tac2010": ("data", "words", "parts", "rouge_alone", "bootstrap", "seed"),
}
# Options that are not called as the field of `Asked` that they fill.
OPTIONS = {"words": "KEY=VALUE", "parts": "--part", "metrics": "--metric"}


def run_table(name: str, asked: Asked, out: Path, say: Callable[[str], None] = print) -> Table:
    """Make the table ``name`` and write it to the folder ``out``; begun before with the same options, it goes on.

    Raises InputError for an unknown table or part, an option that this kind of table has not, and as its kind does.
    """
    spec = declared(name)
    lacks = {"parts" if not spec.parts else "", "metrics" if not spec.rows else ""}
    called = {key: OPTIONS.get(key, f"--{key.replace('_', '-')}") for key in asdict(asked)}
    takes = [key for key in (*TAKES[spec.kind], "smoke") if key not in lacks]
    for key, value in asdict(asked).items():
        if value != getattr(Asked, key) and key not in takes:
            raise InputError(f"{called[key]}: {name} has no such option; it has {', '.join(map(called.get, takes))}")
    if asked.data and asked.smoke:
        raise InputError("--smoke makes its own data; leave --data out")
    spec = spec.with_parts(asked.parts)
    if asked.metrics:
        spec = replace(spec, rows="".join(f"{metric.replace(' ', '')}  {metric}\n" for metric in asked.metrics))
    if spec.kind not in ON_PEOPLE:
        return (trained.run_grid if spec.kind == "grid" else trained.run_tac2010)(spec, asked, out, say)

    watch, sources, how = Stopwatch(), _sources(spec, asked, say), spec.plot or spec.kind
    config = {"table": spec.name, **asdict(asked), "parts": dict(spec.parts)}
    files = [path for each in asked.data if (path := each if Path(each).exists() else each.partition(":")[2])]
    # Scores are kept for a rerun.
    with work_folder(out, config, name="table_settings.json", what="a table", alone=True, kept=["scores/*.json"]):
        table = ON_PEOPLE[spec.kind](judged.measure(spec, sources, asked, out, say))
        if how in DRAWN:
            table = replace(table, pictures={f"{spec.name}.svg": draw(how, table.records)})
        facts = {"config": config, "seed": asked.seed or 0, "data": fingerprints(files), "smoke": asked.smoke}
        write(table, out, watch, say=say, **facts)
    return table


def _sources(spec: Declared, asked: Asked, say: Callable[[str], None]) -> list[Source]:
    """What people judged: given, or a stand-in."""
    if spec.kind in headlines.KINDS:
        if asked.smoke:
            say(
                "smoke run, figures mean nothing: sentences of the embedded sample as headlines, 'people' who count words"
            )
        rows = stand_ins.headlines() if asked.smoke else (row for path in asked.data for row in read_rows(path))
        if not (sources := headlines.headline_sources(rows, spec.kind)):
            raise InputError("no headlines; give --data FILE with story, generated, reference, and people's scores")
        return sources
    if asked.data:
        return judged.judged_sources(spec, asked.data, asked.without)
    if spec.kind == "examples":
        return [stand_ins.permuted_source()]
    if asked.smoke:
        return stand_ins.damaged_sources(len(spec.data), spec.human, asked.seed or 0)
    shown = " ".join(f"--data {name}" for name in spec.data)
    raise InputError(f"nothing to measure on; give {shown} (the paper's), any judgments, or --smoke")

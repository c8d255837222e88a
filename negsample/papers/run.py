"""``negsample tables``: what each kind of table takes, and the run of one, from its declaration to its files."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from negsample.errors import InputError
from negsample.io.resume import work_folder
from negsample.io.run_record import Stopwatch, fingerprints
from negsample.papers import grid_table, headlines, kinds, stand_ins, tac2010
from negsample.papers.declared import Declared, declared
from negsample.papers.drawn import DRAWN, draw
from negsample.papers.judged import Asked, judged_sources, measure
from negsample.papers.records import Table, write

Run = Callable[[Declared, Asked, Path, Callable[[str], None]], Table]


@dataclass(frozen=True)
class Kind:
    """``run`` makes the table and its files; ``takes``: the options (fields of `Asked`) that it has, beside ``smoke``."""

    run: Run
    takes: tuple[str, ...]


def run_table(name: str, asked: Asked, out: Path, say: Callable[[str], None] = print) -> Table:
    """Make the table ``name`` and write it to the folder ``out``; begun before with the same options, it goes on.

    Raises InputError for an unknown table or part, an option that this kind of table has not, and as its kind does.
    """
    spec = declared(name)
    kind = KINDS[spec.kind]
    lacks = {"parts" if not spec.parts else "", "metrics" if not spec.rows else ""}
    takes = {OPTIONS.get(key, f"--{key}"): key for key in (*kind.takes, "smoke") if key not in lacks}
    for key, value in asdict(asked).items():
        if value != getattr(Asked, key) and key not in takes.values():
            raise InputError(f"{OPTIONS.get(key, f'--{key}')}: {name} has no such option; it has {', '.join(takes)}")
    if asked.data and asked.smoke:
        raise InputError("--smoke makes its own data; leave --data out")
    spec = spec.with_parts(asked.parts)
    if asked.metrics:
        spec = replace(spec, rows="".join(f"{metric.replace(' ', '')}  {metric}\n" for metric in asked.metrics))
    return kind.run(spec, asked, out, say)


# Options by the field of `Asked` that they fill, where they are called otherwise.
OPTIONS = {"words": "KEY=VALUE", "parts": "--part", "metrics": "--metric", "keep_models": "--keep-models"}


def _on_judgments(spec: Declared, asked: Asked, out: Path, say: Callable[[str], None]) -> Table:
    """A table on judged summaries: all rows scored, and what the kind makes of them."""
    if asked.data:
        sources = judged_sources(spec, asked.data, asked.without)
    elif spec.kind == "examples":
        sources = [stand_ins.permuted_source()]
    elif asked.smoke:
        sources = stand_ins.damaged_sources(len(spec.data), spec.human, asked.seed or 0)
    else:
        shown = " ".join(f"--data {name}" for name in spec.data)
        raise InputError(f"nothing to measure on; give {shown} (the paper's), any judgments, or --smoke")

    def make() -> Table:
        measured = measure(spec, sources, asked, out)
        found = kinds.KINDS[spec.kind](measured)
        counts = "; ".join(f"{source.name}: {len(source.rows)} summaries ({source.spec})" for source in sources)
        about, digits = f"{counts}; seed {measured.seed}.", 2 if spec.kind in ("examples", "disagreements") else 3
        return measured.table(found.records, about=about, digits=digits, texts=tuple(found.texts), notes=found.notes)

    return _in_folder(spec, asked, out, say, make)


def _on_headlines(spec: Declared, asked: Asked, out: Path, say: Callable[[str], None]) -> Table:
    """A table on headlines of Moeed et al. 2020."""
    judged = {"headline-agreement": True, "headline-distances": None}.get(spec.kind, False)
    found = [headline for path in asked.data for headline in headlines.load_headlines(path, judged=judged)]
    if asked.smoke:
        say("smoke run, figures mean nothing: sentences of the embedded sample as headlines, 'people' who count words")
        found = stand_ins.headlines()
    elif not found:
        raise InputError("no headlines; give --data FILE with story, generated, reference, and people's scores")

    return _in_folder(spec, asked, out, say, lambda: headlines.KINDS[spec.kind](spec, found, asked, out))


def _in_folder(spec: Declared, asked: Asked, out: Path, say: Callable[[str], None], make: Callable[[], Table]) -> Table:
    """Make a table, and its figure, in its work folder, in which scores are kept for a rerun."""
    watch = Stopwatch()
    config = {"table": spec.name, **asdict(asked), "parts": dict(spec.parts)}
    files = [path for each in asked.data if (path := each if Path(each).exists() else each.partition(":")[2])]
    with work_folder(out, config, name="table_settings.json", what="a table", alone=True, kept=["scores/*.json"]):
        table, how = make(), spec.plot or spec.kind
        if how in DRAWN:
            table = replace(table, pictures={f"{spec.name}.svg": draw(how, table.records)})
        facts = {"config": config, "seed": asked.seed or 0, "data": fingerprints(files), "smoke": asked.smoke}
        write(table, out, watch, say=say, **facts)
    return table


_JUDGED = ("data", "parts", "metrics", "human", "without", "bootstrap", "seed")
_HEADLINES = ("data", "parts", "metrics", "bootstrap", "seed")
KINDS: dict[str, Kind] = {
    **dict.fromkeys(kinds.KINDS, Kind(_on_judgments, _JUDGED)),
    **dict.fromkeys(headlines.KINDS, Kind(_on_headlines, _HEADLINES)),
    "grid": Kind(grid_table.run, ("words", "config", "keep_models", "seed")),
    "tac2010": Kind(tac2010.run, ("data", "words", "parts", "models", "precision", "bootstrap", "seed")),
}

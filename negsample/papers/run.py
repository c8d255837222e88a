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
    takes = (
        {*kind.takes, "smoke"} - ({"parts"} if not spec.parts else set()) - ({"metrics"} if not spec.rows else set())
    )
    for key, value in asdict(asked).items():
        if value != getattr(Asked, key) and key not in takes:
            raise InputError(f"{OPTIONS.get(key, f'--{key}')}: {name} has no such option; it has {_options(takes)}")
    spec = spec.with_parts(asked.parts)
    if asked.metrics:
        spec = replace(spec, rows="".join(f"{metric.replace(' ', '')}  {metric}\n" for metric in asked.metrics))
    return kind.run(spec, asked, out, say)


# Options by the field of `Asked` that they fill, where they are called otherwise.
OPTIONS = {"words": "KEY=VALUE", "parts": "--part", "metrics": "--metric", "keep_models": "--keep-models"}


def _options(takes: set[str]) -> str:
    return ", ".join(OPTIONS.get(key, f"--{key}") for key in asdict(Asked()) if key in takes)


def _on_judgments(spec: Declared, asked: Asked, out: Path, say: Callable[[str], None]) -> Table:
    """A table on judged summaries: all rows scored, and what the kind makes of them."""
    if spec.kind == "examples":
        sources = [stand_ins.permuted_source()]
    elif asked.smoke:
        sources = stand_ins.damaged_sources(len(spec.data), spec.human, asked.seed or 0)
    elif asked.data:
        sources = judged_sources(spec, asked.data, asked.without)
    else:
        shown = " ".join(f"--data {name}" for name in spec.data)
        raise InputError(f"nothing to measure on; give {shown} (the paper's), any judgments, or --smoke")

    def make() -> Table:
        measured = measure(spec, sources, asked, out)
        found = kinds.KINDS[spec.kind](measured)
        notes = [*found.notes]
        notes += [f"Not in the paper: {', '.join(measured.extra)}."] if measured.extra else []
        stood = [f"{name} = {part}" for name, part in spec.parts.items() if part]
        notes += [f"Stood for: {', '.join(stood)}."] if stood else []
        how = spec.plot or spec.kind
        counts = "; ".join(f"{source.name}: {len(source.rows)} summaries ({source.spec})" for source in sources)
        return measured.table(
            found.records,
            about=f"{counts}; seed {measured.seed}.",
            digits=2 if spec.kind in ("examples", "disagreements") else 3,
            texts=tuple(found.texts),
            notes=notes,
            pictures={f"{spec.name}.svg": draw(how, found.records)} if how in DRAWN else {},
        )

    return _in_folder(spec, asked, out, say, make)


def _on_headlines(spec: Declared, asked: Asked, out: Path, say: Callable[[str], None]) -> Table:
    """A table on headlines of Moeed et al. 2020."""
    if not asked.data and not asked.smoke:
        raise InputError(
            "give --data FILE: records with story, generated, reference, and people's scores where they count"
        )
    judged = {"headline-agreement": True, "headline-distances": None}.get(spec.kind, False)
    if asked.smoke:
        say("smoke run, figures mean nothing: sentences of the embedded sample as headlines, 'people' who count words")
        found = stand_ins.headlines()
    else:
        found = [headline for path in asked.data for headline in headlines.load_headlines(path, judged=judged)]
    if not found:
        raise InputError(f"{', '.join(asked.data)}: no headlines in it")

    def make() -> Table:
        table = headlines.KINDS[spec.kind](spec, found, asked, out)
        pictures = {f"{spec.name}.svg": draw(spec.kind, table.records)} if spec.kind in DRAWN else table.pictures
        return replace(table, pictures=pictures)

    return _in_folder(spec, asked, out, say, make)


def _in_folder(spec: Declared, asked: Asked, out: Path, say: Callable[[str], None], make: Callable[[], Table]) -> Table:
    """Make a table in its work folder, in which scores are kept for a rerun."""
    watch = Stopwatch()
    if asked.data and asked.smoke:
        raise InputError("--smoke makes its own data; leave --data out")
    config = {"table": spec.name, **asdict(asked), "parts": dict(spec.parts)}
    files = [path for each in asked.data if (path := each if Path(each).exists() else each.partition(":")[2])]
    with work_folder(out, config, name="table_settings.json", what="a table", alone=True, kept=["scores/*.json"]):
        table = make()
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

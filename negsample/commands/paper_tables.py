"""``negsample tables p0-…``, ``p1-…`` and ``p2-table1``: tables of the papers on metrics, on people's judgments."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from negsample.commands import options
from negsample.errors import InputError


def _command(table: str, about: str) -> Callable[..., None]:
    """The command of one entry of ``negsample/papers/tables.yaml``; all take the same options."""

    def command(
        out: Annotated[str, typer.Option("--out", help="Folder for the table; begun before: goes on.", metavar="DIR")],
        judgments: Annotated[
            list[str] | None,
            typer.Option("--judgments", help="People's judgments: FILE or NAME:PATH; may be repeated.", metavar="FILE"),
        ] = None,
        part: Annotated[
            list[str] | None,
            typer.Option(
                "--part",
                help="What stands for an encoder or model that the paper names, such as GloVe=glove:FILE; may be repeated.",
                metavar="NAME=SPEC",
            ),
        ] = None,
        human: Annotated[
            list[str] | None,
            typer.Option("--human", help="Only this human score (default: the paper's, else all); may be repeated."),
        ] = None,
        without: Annotated[
            list[str] | None,
            typer.Option(
                "--without", help="Leave out this system, besides those that the paper does; may be repeated."
            ),
        ] = None,
        bootstrap: options.Bootstrap = 1000,
        seed: options.Seed = 0,
        smoke: options.Smoke = False,
    ) -> None:
        from negsample.io.resume import work_folder
        from negsample.io.run_record import Stopwatch, fingerprints
        from negsample.papers.definition import table_spec
        from negsample.papers.kinds import KINDS
        from negsample.papers.measure import Settings, judged_sources, measure
        from negsample.papers.stand_in import damaged_sources, permuted_source
        from negsample.papers.write import markdown, write_paper_table

        watch = Stopwatch()
        spec = table_spec(table).with_parts(part or [])
        if judgments and smoke:
            raise InputError("--smoke makes its own judgments; leave --judgments out")
        if judgments:
            sources = judged_sources(spec, judgments, without or [])
        elif spec.kind == "examples":
            sources = [permuted_source()]
        elif smoke:
            sources = damaged_sources(spec, seed)
        else:
            shown = " ".join(f"--judgments {name}" for name in spec.judgments)
            raise InputError(f"nothing to measure on; give {shown} (the paper's), any judgments, or --smoke")
        settings = Settings(tuple(human or ()), bootstrap, seed)
        arguments = {
            "table": table,
            "judgments": judgments or [],
            "parts": dict(spec.parts or {}),
            "human": human or [],
            "without": without or [],
            "bootstrap": bootstrap,
            "seed": seed,
        }
        folder = Path(out)
        with work_folder(
            folder, arguments, name="table_settings.json", what="a table", alone=True, kept=["scores/*.json"]
        ):
            measured = measure(spec, sources, settings, folder)
            found = KINDS[spec.kind](measured)
            text = markdown(measured, found)
            # Shown first: what was found is not lost where it can't be written.
            print(text, end="")
            files = [
                path for each in judgments or [] if (path := each if Path(each).exists() else each.partition(":")[2])
            ]
            write_paper_table(
                measured,
                found,
                folder,
                text,
                watch,
                ["negsample", *sys.argv[1:]],
                config=arguments,
                seed=seed,
                data=fingerprints(files),
                smoke=smoke,
            )
        print(f"\n{out}: table.json, table.csv, table.md, run.json; each metric's scores below scores/")

    command.__name__, command.__doc__ = table, about
    return command


COMMANDS = [
    _command(table, about)
    for table, about in {
        "p0-table1": "Mover's similarities of three summaries of one passage: Clark et al. 2019, Table 1.",
        "p0-table2": "Mover's similarities against people: Clark et al. 2019, Table 2.",
        "p0-table3": "Two summaries that ROUGE-L and SMS see differently: Clark et al. 2019, Table 3.",
        "p0-figure3": "Table 2 of Clark et al. 2019 as bars: their Figure 3.",
        "p1-table1": "Similarities of embeddings against people, over systems: Sun & Nenkova 2019, Table 1.",
        "p1-table2": "Sizes and coverage of the judgments: Sun & Nenkova 2019, Table 2.",
        "p1-table3": "Similarities of embeddings against people, Newsroom: Sun & Nenkova 2019, Table 3 and appendix B.",
        "p1-table4": "Average rank of ten metrics over data sets: Sun & Nenkova 2019, Table 4.",
        "p1-figure1": "Correlation when fewer articles are judged: Sun & Nenkova 2019, Figure 1.",
        "p1-figure2": "Correlation when only an article's first tokens are read: Sun & Nenkova 2019, Figure 2.",
        "p1-figure3": "People's scores against similarities, by system: Sun & Nenkova 2019, Figure 3.",
        "p2-table1": "Metrics against readability and relevance, and the learned metric: Scialom et al. 2019, Table 1, §2.4.",
    }.items()
]

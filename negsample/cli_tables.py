"""The command line's ``tables``: the papers' tables on one's own data. ``cli.py`` registers them."""

from collections.abc import Callable
from typing import Annotated

import typer

tables = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The papers' tables on your own data.")


def _grid(table: str) -> Callable[..., None]:
    """The command of a grid of encoders and heads; all of them take the same options."""

    def command(
        out: Annotated[str, typer.Option("--out", help="Folder for the table; begun before: goes on.", metavar="DIR")],
        settings: Annotated[
            list[str] | None, typer.Argument(help="Settings as for 'train', such as negatives=5.", metavar="KEY=VALUE")
        ] = None,
        config: Annotated[
            str | None,
            typer.Option("--config", help="YAML file: settings, encoders, heads.", metavar="FILE"),
        ] = None,
        corpus: Annotated[
            list[str] | None, typer.Option("--corpus", help="Name, file, folder or hub id; may be given again.")
        ] = None,
        encoders: Annotated[
            list[str] | None, typer.Option("--encoders", help="Default: all that need no download.", metavar="A,B,…")
        ] = None,
        heads: Annotated[
            str | None,
            typer.Option(
                "--heads", help="Default: fc,cnn,lstm; 'cls' adds a fine-tuned [CLS] column.", metavar="A,B,…"
            ),
        ] = None,
        limit: Annotated[
            int | None, typer.Option("--limit", min=1, help="Read only the first N pairs of each corpus.")
        ] = None,
        seed: Annotated[int | None, typer.Option("--seed", help="Decides every random choice (default 0).")] = None,
        jobs: Annotated[
            int, typer.Option("--jobs", min=0, help="Encoders worked on side by side (0: by the cores).")
        ] = 0,
        keep_models: Annotated[bool, typer.Option("--keep-models", help="Keep the model of each cell.")] = False,
        smoke: Annotated[
            bool, typer.Option("--smoke", help="The same table on a few pairs of local stand-ins, in minutes.")
        ] = False,
    ) -> None:
        from negsample.commands import tables as commands

        commands.run(
            commands.Request(
                table=table,
                out=out,
                config=config,
                corpus=corpus or [],
                settings=settings or [],
                encoders=encoders or [],
                heads=heads,
                limit=limit,
                seed=seed,
                jobs=jobs,
                keep_models=keep_models,
                smoke=smoke,
            )
        )

    return command


tables.command("p3-table1", help="Encoders x heads on cross pairing: accuracy, beside P3's Table 1.")(
    _grid("p3-table1")
)
tables.command(
    "p3-table2", help="Encoders x heads on words added, deleted, replaced: Pearson x 100, beside P3's Table 2."
)(_grid("p3-table2"))


@tables.command("p4-table3")
def p4_table3(
    out: Annotated[str, typer.Option("--out", help="Folder for the table.", metavar="DIR")],
    headlines: Annotated[
        str | None,
        typer.Option(
            "--headlines",
            help="Records with story, generated, reference (texts), gen_story, ref_story, gen_ref (people's scores) "
            "and, where there are several, dataset.",
            metavar="FILE",
        ),
    ] = None,
    metrics: Annotated[list[str] | None, typer.Option("--metric", help="Default: P4's.", metavar="NAME")] = None,
    alpha: Annotated[float, typer.Option("--alpha", help="Level before Bonferroni's correction.")] = 0.05,
) -> None:
    """Metrics against people on headlines in three tasks, Bonferroni-corrected: P4's Tables 3 and 4."""
    from negsample.commands import headlines as command

    command.run(headlines, metrics or [], out, alpha)

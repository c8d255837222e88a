"""The command line's experiments: commands that train many models. ``cli.py`` registers them."""

from typing import Annotated

import typer

Smoke = Annotated[
    bool, typer.Option("--smoke", help="The same experiment on a few pairs of local stand-ins, in minutes.")
]


def transfer(
    config: Annotated[
        str,
        typer.Option(
            "--config",
            help="YAML file: sources, targets, recipes …; or a packaged one, such as p3_table3_transfer.",
            metavar="FILE",
        ),
    ],
    out: Annotated[str, typer.Option("--out", help="Folder for the figures; gone on with.", metavar="DIR")],
    smoke: Smoke = False,
) -> None:
    """Train on each domain, test on every one: accuracy or Pearson, the drop against in-domain, a heat map."""
    from negsample.commands import transfer as command

    command.run(config, out, smoke=smoke)


def tune(
    config: Annotated[str, typer.Option("--config", help="YAML file: train, space, objective …", metavar="FILE")],
    study: Annotated[str, typer.Option("--study", help="Name of the study; workers with one name share it.")],
    storage: Annotated[
        str,
        typer.Option(
            "--storage",
            help="sqlite:///FILE (one machine), postgresql://… or mysql://… (several), journal:FILE (shared folder).",
            metavar="URL",
            envvar="NEGSAMPLE_STORAGE",
        ),
    ],
    trials: Annotated[int, typer.Option("--trials", min=1, help="Trials in all, over all workers.")],
    out: Annotated[str, typer.Option("--out", help="Folder for the results; gone on with.", metavar="DIR")],
    keep_models: Annotated[
        bool, typer.Option("--keep-models", help="Keep every trial's model, not only the best.")
    ] = False,
) -> None:
    """Search recipes, heads, encoders and settings; start it again, or on more machines, to add workers."""
    from negsample.commands import tune as command

    command.run(config, study, storage, trials, out, keep_models=keep_models)


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.command()(transfer)
    app.command()(tune)

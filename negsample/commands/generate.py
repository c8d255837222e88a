"""``negsample generate``."""

from typing import Annotated, Any

import typer

from negsample.commands import options
from negsample.errors import InputError
from negsample.terminal import say


def generate(
    out: Annotated[str, typer.Option("--out", help="Folder for the examples.", metavar="DIR")],
    values: options.Values = None,
    config: options.Config = None,
) -> None:
    """Make labelled examples: every pair, and damaged copies of its summary, by the settings of train on data."""
    from negsample.io.files import new_folder
    from negsample.io.run_record import Stopwatch, write_run
    from negsample.negatives.recipe import parse_recipe
    from negsample.train.config import read_config
    from negsample.train.data import make_examples

    if config is None and not values:
        raise InputError("nothing says what to read; give corpus=PATH or --config FILE")
    watch = Stopwatch()
    settings = read_config(config, values or [])
    with new_folder(out) as folder:
        report = make_examples(settings, parse_recipe(settings.recipe), folder)
        write_run(folder / "run.json", watch, config=settings.as_dict(), seed=settings.seed, data=report)
    print_report(report)


def print_report(report: dict[str, Any]) -> None:
    """The examples of each split by kind, and what was left out."""
    say(f"{report['pairs']} pairs, {report['documents']} documents, recipe {report['recipe']}")
    for name, split in report["splits"].items():
        kinds = ", ".join(f"{count} {kind}" for kind, count in split["negatives"].items())
        say(f"  {name:<11}{split['originals']:>7} original, {kinds}")
        for reason, count in split["refusals"].items():
            say(f"  {'':<11}{count:>7} times not possible: {reason}")
        if split["missing"]:
            say(f"  {'':<11}{split['missing']:>7} negatives missing, as no kind could be made")
    if report["duplicates"]:
        say(f"  {report['duplicates']} duplicate pairs left out")
    if report["skipped_text"]:
        say(f"  {report['skipped_text']}")

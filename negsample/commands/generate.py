"""``negsample generate``."""

from pathlib import Path
from typing import Any

from negsample.errors import InputError
from negsample.io.run_record import Stopwatch, write_run


def run(corpus: str, out: str, **settings: Any) -> None:
    """Write the examples of ``corpus`` and ``run.json`` to the folder ``out``; print how many of which kind."""
    from negsample.negatives.recipe import parse_recipe
    from negsample.train.config import make_config
    from negsample.train.job import make_examples

    watch = Stopwatch()
    config = make_config({"corpus": corpus, **settings}, "arguments")
    recipe = parse_recipe(config.recipe)
    folder = Path(out)
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{out}: is not empty; give another folder or empty it")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{out}: is a file; give a folder")
    report = make_examples(config, recipe, folder)
    options = {"corpus": corpus, **settings, "recipe": str(recipe)}
    write_run(folder / "run.json", watch, config=options, seed=config.seed, data=report)
    print_report(report)


def print_report(report: dict[str, Any]) -> None:
    """The examples of each split by kind, and what was left out."""
    print(f"{report['pairs']} pairs, {report['documents']} documents, recipe {report['recipe']}")
    for name, split in report["splits"].items():
        kinds = ", ".join(f"{count} {kind}" for kind, count in split["negatives"].items())
        print(f"  {name:<11}{split['originals']:>7} original, {kinds}")
        for reason, count in split["refusals"].items():
            print(f"  {'':<11}{count:>7} times not possible: {reason}")
        if split["missing"]:
            print(f"  {'':<11}{split['missing']:>7} negatives missing, as no kind could be made")
    if report["duplicates"]:
        print(f"  {report['duplicates']} duplicate pairs left out")
    if report["skipped_text"]:
        print(f"  {report['skipped_text']}")

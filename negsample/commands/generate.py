"""``negsample generate``."""

from typing import Annotated, Any

import typer

from negsample.commands import options


def generate(
    corpus: Annotated[str, typer.Option("--corpus", help="Name, file, folder or hub id of (document, summary) pairs.")],
    out: Annotated[str, typer.Option("--out", help="Folder for the examples.", metavar="DIR")],
    recipe: Annotated[str, typer.Option("--recipe", help="Kind of negative, or mix:FILE.")] = "crosspair",
    negatives: Annotated[int, typer.Option("--negatives", min=1, help="Negatives of each pair.")] = 1,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Read only the first N pairs.")] = None,
    sample: Annotated[
        float | None, typer.Option("--sample", help="Of these a random number, or a share below 1.")
    ] = None,
    seed: options.Seed = 0,
    vocabulary: Annotated[
        str, typer.Option("--vocabulary", help="Draw words 'uniform' or by 'frequency'.")
    ] = "uniform",
    document_field: Annotated[str | None, typer.Option("--document-field", help="Field of the document.")] = None,
    summary_field: Annotated[str | None, typer.Option("--summary-field", help="Field of the summary.")] = None,
    corpus_config: Annotated[str | None, typer.Option("--corpus-config", help="Configuration of a hub corpus.")] = None,
    on_bad: options.OnBad = "stop",
) -> None:
    """Make labelled examples: every pair, and damaged copies of its summary."""
    from negsample.io.files import new_folder
    from negsample.io.run_record import Stopwatch, write_run
    from negsample.negatives.recipe import parse_recipe
    from negsample.train.config import make_config
    from negsample.train.data import make_examples

    watch = Stopwatch()
    settings = {
        "corpus": corpus,
        "recipe": recipe,
        "negatives": negatives,
        "limit": limit,
        "sample": sample,
        "seed": seed,
        "vocabulary": vocabulary,
        "document_field": document_field,
        "summary_field": summary_field,
        "corpus_config": corpus_config,
        "on_bad": on_bad,
    }
    config = make_config(settings, "arguments")
    parsed = parse_recipe(config.recipe)
    with new_folder(out) as folder:
        report = make_examples(config, parsed, folder)
        settings["recipe"] = str(parsed)
        write_run(folder / "run.json", watch, config=settings, seed=config.seed, data=report)
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

"""The command line: reads arguments, calls one function, prints what it returned."""

import os
import sys
from typing import Annotated, Any

import typer

from negsample.errors import InputError

app = typer.Typer(
    name="negsample",
    help="Train reference-free estimators of summary quality, score with them, and measure their agreement with people.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Model = Annotated[str, typer.Option("--model", help="Model folder, as 'negsample train' writes it.", metavar="DIR")]
OnBad = Annotated[str, typer.Option("--on-bad", help="A bad record: 'stop' (exit 2) or 'skip' (counted, score null).")]
DocumentField = Annotated[str, typer.Option("--document-field", help="Name of the field that holds the document.")]
SummaryField = Annotated[str, typer.Option("--summary-field", help="Name of the field that holds the summary.")]
BatchSize = Annotated[int, typer.Option("--batch-size", min=1, help="Pairs of 512 tokens computed at a time.")]


@app.command()
def generate(
    corpus: Annotated[str, typer.Option("--corpus", help="Name, file, folder or hub id of (document, summary) pairs.")],
    out: Annotated[str, typer.Option("--out", help="Folder for the examples.", metavar="DIR")],
    recipe: Annotated[str, typer.Option("--recipe", help="Kind of negative, or mix:FILE.")] = "crosspair",
    negatives: Annotated[int, typer.Option("--negatives", min=1, help="Negatives of each pair.")] = 1,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Read only the first N pairs.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Decides every random choice.")] = 0,
    vocabulary: Annotated[str, typer.Option("--vocabulary", help="Draw words 'uniform' or by 'frequency'.")] = "uniform",
    document_field: Annotated[str | None, typer.Option("--document-field", help="Field of the document.")] = None,
    summary_field: Annotated[str | None, typer.Option("--summary-field", help="Field of the summary.")] = None,
    config: Annotated[str | None, typer.Option("--corpus-config", help="Configuration of a hub corpus.")] = None,
    on_bad: OnBad = "stop",
) -> None:
    """Make labelled examples: every pair, and damaged copies of its summary."""
    from negsample.commands import generate as command

    command.run(
        corpus,
        out,
        recipe=recipe,
        negatives=negatives,
        limit=limit,
        seed=seed,
        vocabulary=vocabulary,
        document_field=document_field,
        summary_field=summary_field,
        corpus_config=config,
        on_bad=on_bad,
    )


@app.command()
def train(
    out: Annotated[str, typer.Option("--out", help="Folder for the model.", metavar="DIR")],
    values: Annotated[list[str] | None, typer.Argument(help="Settings that win over the file.", metavar="KEY=VALUE")] = None,
    config: Annotated[str | None, typer.Option("--config", help="YAML file with settings.", metavar="FILE")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out, or begin it.")] = False,
) -> None:
    """Train an estimator; --out becomes a model folder. Several processes: accelerate launch -m negsample.train …"""
    from negsample.commands import train as command

    command.run(config, values or [], out, resume)


@app.command()
def evaluate(
    model: Model,
    examples: Annotated[str, typer.Option("--examples", help="Labelled examples, as 'generate' writes them.", metavar="FILE")],
    json: Annotated[str | None, typer.Option("--json", help="Write the figures here too.", metavar="FILE")] = None,
    batch_size: BatchSize = 32,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the bootstrap.")] = 0,
) -> None:
    """Accuracy and AUC (0/1 labels) or Pearson, Spearman and MSE (graded labels), with intervals."""
    from negsample.commands import evaluate as command

    command.run(model, examples, json, batch_size, seed)


@app.command()
def score(
    model: Model,
    inputs: Annotated[
        list[str] | None, typer.Argument(help="Records to score (- for standard input); after -t: further systems.", metavar="INPUT")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Where the scored records go (- for standard output).", metavar="OUTPUT")
    ] = None,
    source: Annotated[str | None, typer.Option("--source", "-s", help="Text file, a document a line.", metavar="FILE")] = None,
    targets: Annotated[
        list[str] | None, typer.Option("--target", "-t", help="Text file, a summary a line; more may follow.", metavar="FILE")
    ] = None,
    document_field: DocumentField = "document",
    summary_field: SummaryField = "summary",
    batch_size: BatchSize = 32,
    on_bad: OnBad = "stop",
) -> None:
    """Score records (JSONL, CSV, TSV, Parquet) or line-aligned text files."""
    from negsample.commands import score as command

    command.run(
        model,
        inputs or [],
        output,
        source,
        targets or [],
        document_field=document_field,
        summary_field=summary_field,
        batch_size=batch_size,
        on_bad=on_bad,
    )


@app.command()
def info(
    path: Annotated[str | None, typer.Argument(help="Model folder, run folder or file; nothing: this installation.", metavar="DIR|FILE")] = None,
) -> None:
    """What a model, a run, a corpus or a file of examples is; without a path: versions, and the embedding caches."""
    from negsample.commands import info as command

    command.run(path)


@app.command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete the cached embeddings.")] = False,
    name: Annotated[str | None, typer.Argument(help="Only this encoder's cache.", metavar="NAME")] = None,
) -> None:
    """Show, or clear, the cached embeddings."""
    from negsample.commands import info as command

    command.run_cache(name, clear)


@app.command()
def demo(
    out: Annotated[str, typer.Option("--out", help="Folder for the model and examples.", metavar="DIR")] = "runs/demo",
) -> None:
    """The whole road on the embedded sample: negatives, training, test figures, scores of unseen pairs."""
    from negsample.commands import demo as command

    command.run(out)


def _fail(message: str, code: int = 2) -> None:
    line = " ".join(message.split())
    print(f"negsample: {line}", file=sys.stderr)
    raise SystemExit(code)


def main(arguments: list[str] | None = None) -> None:
    """Entry point. Exit codes: 0 done, 2 wrong input (one line on standard error), 130 interrupted."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    try:
        result: Any = app(arguments, standalone_mode=False)
    except InputError as error:
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", 130)
    except typer.Exit as error:
        raise SystemExit(error.exit_code) from None
    except Exception as error:
        # Typer's own complaints about arguments; which classes they are differs between its versions.
        if not hasattr(error, "format_message"):
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error)
            raise SystemExit(0) from None
        _fail(f"{error.format_message()} See 'negsample --help'.")
    else:
        raise SystemExit(result if isinstance(result, int) else 0)


if __name__ == "__main__":
    main()

"""The command line: reads arguments, calls one function, prints what it returned."""

import contextlib
import os
import signal
import sys
from typing import Annotated, Any

import typer

import negsample
from negsample import cli_experiments
from negsample.cli_tables import tables
from negsample.errors import InputError

app = typer.Typer(
    name="negsample",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"negsample {negsample.__version__}")
        raise typer.Exit


@app.callback()
def negsample_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Train reference-free estimators of summary quality, score with them, and measure their agreement with people."""


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
    vocabulary: Annotated[
        str, typer.Option("--vocabulary", help="Draw words 'uniform' or by 'frequency'.")
    ] = "uniform",
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
    values: Annotated[
        list[str] | None, typer.Argument(help="Settings that win over the file.", metavar="KEY=VALUE")
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", help="YAML file with settings, or a packaged name.", metavar="FILE")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out, or begin it.")] = False,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="The same configuration on a few pairs of local stand-ins, in minutes.")
    ] = False,
) -> None:
    """Train an estimator; --out becomes a model folder. Several processes: accelerate launch -m negsample.train …"""
    from negsample.commands import train as command

    command.run(config, values or [], out, resume, smoke)


@app.command()
def evaluate(
    model: Model,
    examples: Annotated[
        str, typer.Option("--examples", help="Labelled examples, as 'generate' writes them.", metavar="FILE")
    ],
    json: Annotated[str | None, typer.Option("--json", help="Write the figures here too.", metavar="FILE")] = None,
    batch_size: BatchSize = 32,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the bootstrap.")] = 0,
) -> None:
    """Accuracy and AUC (0/1 labels) or Pearson, Spearman and MSE (graded labels), with intervals."""
    from negsample.commands import evaluate as command

    command.run(model, examples, json, batch_size, seed)


@app.command()
def score(
    context: typer.Context,
    model: Annotated[str | None, typer.Option("--model", help="Model folder.", metavar="DIR")] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="A metric in place of a model.", metavar="NAME[:option=value]")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(help="Records to score (- for standard input); after -t: further systems.", metavar="INPUT"),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Where the scored records go (- for standard output).", metavar="OUTPUT"),
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", "-s", help="Text file, a document a line.", metavar="FILE")
    ] = None,
    targets: Annotated[
        list[str] | None,
        typer.Option("--target", "-t", help="Text file, a summary a line; more may follow.", metavar="FILE"),
    ] = None,
    references: Annotated[
        list[str] | None, typer.Option("--reference", "-r", help="Text file, a reference a line.", metavar="FILE")
    ] = None,
    document_field: DocumentField = "document",
    summary_field: SummaryField = "summary",
    aspects: Annotated[bool, typer.Option("--aspects", help="Add the aspects to each record (head align).")] = False,
    batch_size: BatchSize = 32,
    on_bad: OnBad = "stop",
) -> None:
    """Score records (JSONL, CSV, TSV, Parquet) or line-aligned text files, by a model or a metric."""
    from negsample.commands import score as command

    command.run(
        model,
        metric,
        inputs or [],
        output,
        source,
        targets or [],
        references or [],
        document_field=document_field,
        summary_field=summary_field,
        batch_size=batch_size,
        on_bad=on_bad,
        aspects=aspects,
        crew=context.obj,
    )


@app.command()
def corpus(
    generated: Annotated[str, typer.Argument(help="Text file, a text a line, or records.", metavar="GENERATED")],
    reference: Annotated[str, typer.Argument(help="The texts to compare with.", metavar="REFERENCE")],
    metric: Annotated[str, typer.Option("--metric", help="A corpus metric, such as fed.", metavar="NAME")] = "fed",
    field: Annotated[
        str, typer.Option("--field", help="Field that holds the text, where records are given.")
    ] = "summary",
    json: Annotated[str | None, typer.Option("--json", help="Write the figures here too.", metavar="FILE")] = None,
    map_file: Annotated[
        str | None, typer.Option("--map", help="Draw both corpora (PCA, then t-SNE).", metavar="FILE.svg|png")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="Encoder of the map (default use-multilingual).", metavar="NAME")
    ] = None,
) -> None:
    """One corpus of texts against another: the Fréchet distance of their embeddings, and a map of both."""
    from negsample.commands import corpus as command

    command.run(metric, generated, reference, field=field, json=json, map_file=map_file, encoder=encoder)


@app.command()
def explain(
    model: Model,
    source: Annotated[str, typer.Argument(help="Records to explain (- for standard input).", metavar="INPUT")],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Write JSON lines here (- for standard output).", metavar="OUTPUT"),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Explain only the first N records.")] = None,
    document_field: DocumentField = "document",
    summary_field: SummaryField = "summary",
) -> None:
    """Show why each record scores as it does: coverage, support, unsupported words, repetitions (head align)."""
    from negsample.commands import explain as command

    command.run(model, source, output, limit, document_field, summary_field)


@app.command()
def correlate(
    judgments: Annotated[
        list[str],
        typer.Option(
            "--judgments",
            help="People's judgments: FILE, or tac2010:DIR, summeval:FILE, …; may be repeated.",
            metavar="FILE",
        ),
    ],
    out: Annotated[str, typer.Option("--out", help="Folder for figures, scores and report.html.", metavar="DIR")],
    models: Annotated[
        list[str] | None, typer.Option("--model", help="Model folder; may be repeated.", metavar="DIR")
    ] = None,
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", help="NAME[:option=value,…]; may be repeated.", metavar="NAME")
    ] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            "--scores", help="Other scores: document_id, system, score; may be repeated.", metavar="NAME=FILE"
        ),
    ] = None,
    human: Annotated[list[str] | None, typer.Option("--human", help="Only this human score; may be repeated.")] = None,
    half: Annotated[
        str | None, typer.Option("--half", help="Only judgments of this half.", metavar="tune|report")
    ] = None,
    level: Annotated[str, typer.Option("--level", help="Levels, separated by commas.")] = "pooled,summary,system",
    bootstrap: Annotated[int, typer.Option("--bootstrap", min=0, help="Resamples; 0: no intervals.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the resampling.")] = 0,
) -> None:
    """Agreement of models and metrics with people, beside trivial baselines: figures, intervals, tests, a page."""
    from negsample.commands import correlate as command

    command.run(out, judgments, models or [], metrics or [], scores or [], human or [], half, level, bootstrap, seed)


@app.command()
def compare(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(help="Tables of records with 'system'; after -t: further systems.", metavar="INPUT"),
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option("--model", help="Model folder; may be repeated.", metavar="DIR")
    ] = None,
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", help="NAME[:option=value,…]; may be repeated.", metavar="NAME")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", "-s", help="Text file, a document a line.", metavar="FILE")
    ] = None,
    targets: Annotated[
        list[str] | None,
        typer.Option("--target", "-t", help="Text file, a summary a line; more may follow.", metavar="FILE"),
    ] = None,
    references: Annotated[
        list[str] | None, typer.Option("--reference", "-r", help="Text file, a reference a line.", metavar="FILE")
    ] = None,
    out: Annotated[str | None, typer.Option("--out", help="Folder for figures and report.html.", metavar="DIR")] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="System to compare with: the first by default.")
    ] = None,
    on_bad: Annotated[
        str, typer.Option("--on-bad", help="Missing summaries: 'stop' (exit 2) or 'skip' (counted).")
    ] = "stop",
    bootstrap: Annotated[int, typer.Option("--bootstrap", min=0, help="Resamples; 0: no intervals.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the resampling.")] = 0,
) -> None:
    """Which of several systems is better: means, differences to the first, tests, ranks."""
    from negsample.commands import compare as command

    command.run(
        models or [],
        metrics or [],
        inputs or [],
        source,
        targets or [],
        references or [],
        out,
        baseline,
        on_bad,
        bootstrap,
        seed,
    )


@app.command()
def info(
    path: Annotated[
        str | None,
        typer.Argument(help="Model folder, run folder or file; nothing: this installation.", metavar="DIR|FILE"),
    ] = None,
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


app.add_typer(tables, name="tables")
cli_experiments.register(app)

_FULL = ("No space left", "File too large", "quota exceeded", "PytorchStreamWriter failed")


def _fail(message: str, code: int = 2) -> None:
    line = " ".join(message.split())
    print(f"negsample: {line}", file=sys.stderr)
    raise SystemExit(code)


def _reader_gone() -> None:
    """End without a word where the reader of standard output (head, less) has seen enough.

    The exit code is 141, the shell's own for a command that a closed pipe has ended: not 0, since what was still to be
    done (``train … | head``) is not done.
    """
    # The interpreter flushes standard output again when it ends; that goes nowhere instead of complaining.
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    raise SystemExit(141)


def main(arguments: list[str] | None = None, crew: Any = None) -> None:
    """Entry point. Exit codes: 0 done, 2 wrong input (one line on standard error), 130 interrupted,
    141 nobody reads standard output any more.

    ``crew`` are the processes that share the work, where the command is one of several (``negsample.score``).
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    # Ended politely, a command takes its temporary files with it.
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        result: Any = app(arguments, standalone_mode=False, obj=crew)
        if result == 130:  # what Typer makes of an interrupt
            raise KeyboardInterrupt
        # What is still held back is written here, where it is seen that nobody reads it any more.
        if sys.stdout is not None:
            sys.stdout.flush()
    except InputError as error:
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", 130)
    except typer.Exit as error:
        raise SystemExit(error.exit_code) from None
    except (BrokenPipeError, SystemExit) as error:
        # Typer makes a silent exit 1 of a broken pipe; one that breaks at the last flush comes as it is.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        _reader_gone()
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror or error}; check the disk and the permissions")
    except Exception as error:
        # safetensors and torch have their own words for a disk that is full.
        if any(sign in str(error) for sign in _FULL):
            _fail(
                "the disk is full, or a file may not grow; make room, and go on with --resume where the command has it"
            )
        # Typer's own complaints about arguments; which classes they are differs between its versions.
        if not hasattr(error, "format_message"):
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            with contextlib.suppress(BrokenPipeError):
                print(error)
            raise SystemExit(0) from None
        _fail(f"{error.format_message()} See 'negsample --help'.")
    else:
        raise SystemExit(result if isinstance(result, int) else 0)


if __name__ == "__main__":
    main()

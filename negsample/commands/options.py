"""Options that several commands have, one type each; a command's own stand in its signature."""

from typing import Annotated

import typer

# --- what scores
Model = Annotated[
    str | None, typer.Option("--model", help="Model folder, or org/name[@revision] on the hub.", metavar="MODEL")
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="Model folder or org/name[@revision] on the hub; may be repeated.", metavar="MODEL"),
]
Metrics = Annotated[
    list[str] | None, typer.Option("--metric", help="NAME or NAME(option=value, …); may be repeated.", metavar="NAME")
]
BatchSize = Annotated[int, typer.Option("--batch-size", min=1, help="Pairs of 512 tokens computed at a time.")]
Precision = Annotated[
    str, typer.Option("--precision", help="What a model computes in: float32, or bf16 where the processor has it.")
]

# --- line-aligned text files
Source = Annotated[str | None, typer.Option("--source", "-s", help="Text file, a document a line.", metavar="FILE")]
Targets = Annotated[
    list[str] | None,
    typer.Option("--target", "-t", help="Text file, a summary a line; more may follow.", metavar="FILE"),
]
References = Annotated[
    list[str] | None, typer.Option("--reference", "-r", help="Text file, a reference a line.", metavar="FILE")
]

# --- records
DocumentField = Annotated[str, typer.Option("--document-field", help="Name of the field that holds the document.")]
OutputField = Annotated[
    str, typer.Option("--output-field", help="Field of the score; what goes with it is called after it.")
]
SummaryField = Annotated[str, typer.Option("--summary-field", help="Name of the field that holds the summary.")]
OnBad = Annotated[str, typer.Option("--on-bad", help="A bad record: 'stop' (exit 2) or 'skip' (counted, score null).")]

# --- figures and trainings
Json = Annotated[str | None, typer.Option("--json", help="Write the figures here too.", metavar="FILE")]
Bootstrap = Annotated[int, typer.Option("--bootstrap", min=0, help="Resamples; 0: no intervals.")]
Seed = Annotated[int, typer.Option("--seed", help="Decides every random choice.")]
Values = Annotated[list[str] | None, typer.Argument(help="Settings that win over the file.", metavar="KEY=VALUE")]
Config = Annotated[
    str | None, typer.Option("--config", help="YAML file with settings, or a packaged name.", metavar="FILE")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --out, or begin it.")]
Smoke = Annotated[bool, typer.Option("--smoke", help="The same on a few pairs of local stand-ins, in minutes.")]


def chosen_models(models: list[str] | None, *others: list[str] | None) -> tuple[str, ...]:
    """The models named, or the ready one where nothing else (``others``: metrics, given scores) is."""
    return tuple(models or ([] if any(others) else ["ready"]))

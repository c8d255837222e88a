"""Options that several commands have, one type each; a command's own stand in its signature."""

from typing import Annotated

from typer import Argument, CallbackParam, Exit, Option

from negsample.errors import InputError


def a_file(parameter: CallbackParam, value: str | None) -> str | None:
    """``value`` of an option that takes no standard output. Raises InputError for ``-``."""
    if value == "-":
        raise InputError(f"{parameter.opts[0]} -: can't go to standard output; name a file")
    return value


# --- what scores
Model = Annotated[str | None, Option(help="Model folder, or org/name[@revision] on the hub.", metavar="MODEL")]
Models = Annotated[
    list[str] | None,
    Option("--model", help="Model folder or org/name[@revision] on the hub; may be repeated.", metavar="MODEL"),
]
Metric = Annotated[str | None, Option(help="A metric in place of a model.", metavar="NAME[(option=value)]")]
Metrics = Annotated[
    list[str] | None, Option("--metric", help="NAME or NAME(option=value, …); may be repeated.", metavar="NAME")
]
BatchSize = Annotated[int, Option(min=1, help="Pairs of 512 tokens computed at a time.")]
Precision = Annotated[str, Option(help="What a model computes in: float32, or bf16 where the processor has it.")]

# --- line-aligned text files
Source = Annotated[str | None, Option("--source", "-s", help="Text file, a document a line.", metavar="FILE")]
Targets = Annotated[
    list[str] | None, Option("--target", "-t", help="Text file, a summary a line; more may follow.", metavar="FILE")
]
References = Annotated[
    list[str] | None, Option("--reference", "-r", help="Text file, a reference a line.", metavar="FILE")
]

# --- records
DocumentField = Annotated[str, Option(help="Name of the field that holds the document.")]
OutputField = Annotated[str, Option(help="Field of the score; what goes with it is called after it.")]
SummaryField = Annotated[str, Option(help="Name of the field that holds the summary.")]
OnBad = Annotated[str, Option(help="A bad record: 'stop' (exit 2) or 'skip' (counted, score null).")]
ScoresColumns = Annotated[
    str | None, Option(help="Fields of a judgments FILE that hold a human score each.", metavar="A,B,…")
]

# --- figures and trainings
Json = Annotated[str | None, Option(help="Write the figures here too.", metavar="FILE", callback=a_file)]
Bootstrap = Annotated[int, Option(min=0, help="Resamples, at most 100,000; 0: no intervals.")]
Seed = Annotated[int, Option(help="Decides every random choice.")]
Values = Annotated[list[str] | None, Argument(help="Settings that win over the file.", metavar="KEY=VALUE")]
Config = Annotated[str | None, Option(help="YAML file with settings, or a packaged name.", metavar="FILE")]
Resume = Annotated[bool, Option("--resume", help="Go on with the run in --out, or begin it.")]
Smoke = Annotated[bool, Option("--smoke", help="The same on a few pairs of local stand-ins, in minutes.")]


def chosen_models(models: list[str] | None, *others: list[str] | None) -> tuple[str, ...]:
    """The models named, or the ready one where nothing else (``others``: metrics, given scores) is."""
    return tuple(models or ([] if any(others) else ["ready"]))


def names(text: str | None) -> tuple[str, ...]:
    """The names in ``text``, which commas part, each once."""
    return tuple(dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip()))


def check_texts(source: str | None, targets: list[str] | None, references: list[str] | None) -> None:
    """Raise InputError where the options of line-aligned text files don't go together."""
    if (source is None) != (not targets):
        raise InputError("-s and -t go together: -s DOCUMENTS.txt -t ONE.txt OTHER.txt …")
    if source is None and references:
        raise InputError("-r goes with -s and -t; a table of records has its own 'references'")


def check_given(config: str | None, values: list[str] | None) -> None:
    """Raise InputError where neither a file nor a word says what to work on."""
    if config is None and not values:
        raise InputError("nothing says what to read; give corpus=PATH or --config FILE")


def check_whole(whole: bool) -> None:
    """End with code 2 where a page could not be made, of which a line has told."""
    if not whole:
        raise Exit(2)

"""``negsample compare``, ``estimate`` and ``corpus``: systems, and texts, against each other."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from negsample.commands import options
from negsample.errors import InputError
from negsample.terminal import interval, number, p_text, say, say_table, short

if TYPE_CHECKING:
    from negsample.eval.agreement.compare import SystemsComparison

# Documents named for each system; the page and compare.json have more.
_SHOWN = 3


def compare(
    inputs: Annotated[
        list[str] | None, Argument(help="Tables of records with 'system'; after -t: further systems.", metavar="INPUT")
    ] = None,
    models: options.Models = None,
    metrics: options.Metrics = None,
    source: options.Source = None,
    targets: options.Targets = None,
    references: options.References = None,
    out: Annotated[str | None, Option(help="Folder for figures and report.html.", metavar="DIR")] = None,
    baseline: Annotated[str | None, Option(help="System to compare with: the first by default.")] = None,
    on_bad: Annotated[str, Option(help="Missing summaries: 'stop' (exit 2) or 'skip' (counted).")] = "stop",
    precision: options.Precision = "float32",
    bootstrap: options.Bootstrap = 1000,
    seed: options.Seed = 0,
) -> None:
    """Which of several systems is better, by the ready estimator or others: means, differences to the first, tests, ranks."""
    from negsample.eval.agreement.compare import Settings
    from negsample.eval.agreement.compare import compare as compare_systems
    from negsample.eval.report.compare import write_comparison
    from negsample.io.files import check_new
    from negsample.io.run_record import Stopwatch

    watch = Stopwatch()
    options.check_texts(source, targets, references)
    if source is None and not inputs:
        raise InputError("nothing to compare; give -s DOCUMENTS.txt -t BASELINE.txt OTHER.txt …, or a table of records")
    if out is not None:
        check_new(out)
    settings = Settings(
        models=options.chosen_models(models, metrics),
        metrics=tuple(metrics or ()),
        source=source,
        targets=(*(targets or ()), *(inputs or ())) if source is not None else (),
        references=tuple(references or ()),
        inputs=tuple(inputs or ()) if source is None else (),
        baseline=baseline,
        on_bad=on_bad,
        precision=precision,
        bootstrap=bootstrap,
        seed=seed,
    )
    result = compare_systems(settings)
    try:
        print_comparison(result)
    finally:  # neither where it can't be shown nor where it can't be written is lost what was found
        if out is not None:
            options.check_whole(write_comparison(result, out, watch))
    if out is not None:
        say(f"\nreport: {out}/report.html   figures: {out}/compare.csv, compare.json")


def print_comparison(result: "SystemsComparison") -> None:
    """A table for each model and metric, best system first, with the documents that differ most."""
    from negsample.resampling import NO_INTERVAL

    head = ("rank", "system", "mean", "95 % interval", "difference", "95 % interval", "p", "p (Holm)", "n")
    for section in result.sections:
        rows = [
            (
                str(s.rank),
                s.system,
                number(s.mean, 4),
                interval(s.low, s.high, 4) or "–",
                number(s.difference, 4) if s.difference is not None else "(first)",
                interval(s.difference_low, s.difference_high, 4) or "–",
                p_text(s.p),
                p_text(s.p_holm),
                str(s.documents),
            )
            for s in sorted(section.systems, key=lambda s: (s.rank, -s.mean))
        ]
        turned = " (sign turned: lower is better)" if section.column.turned else ""
        say_table(head, rows, title=section.column.name + turned, texts=("system",))
        if any(s.low is None or s.difference_low is None for s in section.systems if s.difference is not None):
            say(f"  –: {NO_INTERVAL if result.settings.bootstrap else 'no bootstrap'}")
        for system, found in section.different.items():
            places = [(section.documents[row], gap) for row, gap in found[:_SHOWN]]
            shown = [f"{result.systems.documents[place]} ({number(gap)})" for place, gap in places]
            if shown:
                say(f"  {system} differs most on: {', '.join(shown)}")
        for reason, count in section.left_out.items():
            say(f"  left out: {count} × {reason}")
        say(f"  {section.column.signature}\n")
    for reason, count in result.systems.left_out.items():
        say(f"left out: {count} × {reason}")


def estimate(
    inputs: Annotated[
        list[str], Argument(help="Tables of summaries with 'system', some judged ('scores').", metavar="INPUT")
    ],
    models: options.Models = None,
    metrics: options.Metrics = None,
    by: Annotated[str, Option(help="The score, aspect or metric to go by; the first by default.", metavar="NAME")] = "",
    human: Annotated[list[str] | None, Option(help="Only this human score; may be repeated.")] = None,
    baseline: Annotated[str | None, Option(help="System to compare with: the first by default.")] = None,
    choose: Annotated[int, Option(min=0, help="Choose N documents to have judged next.", metavar="N")] = 0,
    confidence: Annotated[float, Option(help="Of the intervals.")] = 0.9,
    scores_columns: options.ScoresColumns = None,
    json: options.Json = None,
    precision: options.Precision = "float32",
    seed: options.Seed = 0,
) -> None:
    """What people would say of each system, from a few judged summaries and the scores of all: means, differences, intervals."""
    from negsample.eval.agreement.estimate import estimate as estimate_systems
    from negsample.io.files import atomic_json, check_outputs

    check_outputs([json], inputs)
    result = estimate_systems(
        inputs,
        models=options.chosen_models(models, metrics),
        metrics=metrics or (),
        by=by,
        human=list(dict.fromkeys(human or ())),
        baseline=baseline,
        columns=options.names(scores_columns),
        confidence=confidence,
        count=choose,
        precision=precision,
        seed=seed,
    )
    if json is not None:
        about = {"signature": result.column.signature, "by": result.column.name, "confidence": confidence, "seed": seed}
        estimates = [asdict(each) for each in result.estimates]
        atomic_json(json, {**about, "estimates": estimates, "chosen": result.chosen, "notes": result.notes})
    share = f"{100 * confidence:g} %"
    head = ("system", "judged", "scored", "judged alone", share, "with the score", share, "weight", "saved")
    for name in dict.fromkeys(each.human for each in result.estimates):
        own = [each for each in result.estimates if each.human == name]
        rows = [
            (
                each.system if each.other is None else f"{each.system} − {each.other}",
                str(each.judged),
                str(each.scored),
                number(each.plain),
                interval(each.plain_low, each.plain_high) or "–",
                number(each.value),
                interval(each.low, each.high) or "–",
                short(each.weight),
                number(each.saved, 1),
            )
            for each in own
        ]
        say_table(head, rows, title=f"{name}, people's mean, by {result.column.name}", texts=("system",))
        for reason in dict.fromkeys(each.reason for each in own if each.reason):
            named = [row[0] for row, each in zip(rows, own, strict=True) if each.reason == reason]
            say(f"  {', '.join(named)}: {reason}")
        say()
    for note in result.notes:
        say(note)
    if result.chosen:
        say(f"to have judged next, all systems: {', '.join(result.chosen)}")


def corpus(
    generated: Annotated[str, Argument(help="Text file, a text a line, or records.", metavar="GENERATED")],
    reference: Annotated[str, Argument(help="The texts to compare with.", metavar="REFERENCE")],
    metric: Annotated[str, Option(help="A corpus metric, such as fed.", metavar="NAME")] = "fed",
    field: Annotated[str, Option(help="Field that holds the text, where records are given.")] = "summary",
    json: options.Json = None,
    map_file: Annotated[
        str | None, Option("--map", help="Draw both corpora (PCA, then t-SNE).", metavar="FILE.svg|png")
    ] = None,
    encoder: Annotated[str | None, Option(help="Of the map (default use-multilingual).", metavar="NAME")] = None,
) -> None:
    """One corpus of texts against another: the Fréchet distance of their embeddings, and a map of both."""
    from negsample.eval.metrics.corpus import corpus_metric
    from negsample.io.files import atomic_json, check_outputs, replacing
    from negsample.models.encoders import make_encoder

    if map_file is None and encoder is not None:
        raise InputError(
            f"--encoder {encoder}: is for the map; give --map FILE too, or --metric NAME(encoder=…) instead"
        )
    if map_file is not None and Path(map_file).suffix not in (".svg", ".png"):
        raise InputError(f"--map {map_file}: give a name that ends in .svg or .png")
    check_outputs([json, map_file], [generated, reference])
    drawn_by = make_encoder(encoder or "use-multilingual") if map_file is not None else None
    first, second = read_texts(generated, field), read_texts(reference, field)
    found = corpus_metric(metric, first, second)
    try:
        direction = "higher" if found["higher_is_better"] else "lower"
        say(f"{found['metric']}: {found['value']:.6f} ({direction} is better)")
        say(f"{found['generated']} texts against {found['reference']}")
        for reason, count in found["missing"].items():
            say(f"{count} texts left out: {reason}")
        say(found["signature"])
    finally:  # neither where it can't be shown nor where it can't be written is lost what was found
        if json is not None:
            atomic_json(json, found)
    if map_file is not None and drawn_by is not None:
        from negsample.eval.report.plots import map_texts

        drawn = map_texts(first, second, drawn_by, names=(generated, reference), format=Path(map_file).suffix[1:])
        with replacing(map_file) as stream:
            stream.write(drawn)


def read_texts(path: str, field: str) -> list[str]:
    """The texts of a file: ``field`` of each record of a table, or each line of a text file. Raises InputError."""
    from negsample.io.files import has_known_ending
    from negsample.io.lines import open_text
    from negsample.io.read import is_sample, is_saved, read_rows, text_field

    if has_known_ending(path) or is_saved(path) or is_sample(path):
        return [text_field(row, field) for row in read_rows(path)]
    return list(open_text(path))

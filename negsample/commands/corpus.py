"""``negsample corpus``."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from negsample.commands import options
from negsample.errors import InputError
from negsample.terminal import say

MAP_ENCODER = "use-multilingual"


def corpus(
    generated: Annotated[str, Argument(help="Text file, a text a line, or records.", metavar="GENERATED")],
    reference: Annotated[str, Argument(help="The texts to compare with.", metavar="REFERENCE")],
    metric: Annotated[str, Option(help="A corpus metric, such as fed.", metavar="NAME")] = "fed",
    field: Annotated[str, Option(help="Field that holds the text, where records are given.")] = "summary",
    json: options.Json = None,
    map_file: Annotated[
        str | None, Option("--map", help="Draw both corpora (PCA, then t-SNE).", metavar="FILE.svg|png")
    ] = None,
    encoder: Annotated[
        str | None, Option(help="Encoder of the map (default use-multilingual).", metavar="NAME")
    ] = None,
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
    drawn_by = make_encoder(encoder or MAP_ENCODER) if map_file is not None else None
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

"""``negsample publish``."""

from pathlib import Path
from typing import Annotated

import typer

from negsample.terminal import say


def publish(
    folder: Annotated[str, typer.Argument(help="Model folder, as 'negsample train' writes it.", metavar="DIR")],
    name: Annotated[str, typer.Argument(help="Its name on the Hugging Face hub.", metavar="ORG/NAME")],
    public: Annotated[bool, typer.Option("--public", help="Everybody may see it; else it is private.")] = False,
    languages: Annotated[
        list[str] | None,
        typer.Option("--language", help="Language of its texts for the model card, as in en; may be repeated."),
    ] = None,
) -> None:
    """Upload an estimator and its model card to the Hugging Face hub; --model ORG/NAME then loads it anywhere."""
    from negsample.models.hub import publish as upload

    say(f"published: {upload(Path(folder), name, public=public, languages=languages or ())}")

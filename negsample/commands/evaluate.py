"""``negsample evaluate``."""

from typing import Annotated

import typer

from negsample.commands import options
from negsample.commands.train import print_figures
from negsample.terminal import say


def evaluate(
    model: options.Model,
    examples: Annotated[
        str, typer.Option("--examples", help="Labelled examples, as 'generate' writes them.", metavar="FILE")
    ],
    json: options.Json = None,
    precision: options.Precision = "float32",
    batch_size: options.BatchSize = 32,
    seed: options.Seed = 0,
) -> None:
    """Accuracy and AUC (0/1 labels) or Pearson, Spearman and MSE (graded labels), with intervals."""
    from negsample.io.files import atomic_json, check_outputs
    from negsample.models import load
    from negsample.models.evaluation import evaluate as evaluate_model

    check_outputs([json], [examples])
    found = evaluate_model(load(model, precision=precision), examples, batch_size=batch_size, seed=seed)
    try:
        print_figures(found)
        say(found["signature"])
    finally:  # neither where it can't be shown nor where it can't be written is lost what was found
        if json is not None:
            atomic_json(json, found)

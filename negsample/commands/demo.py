"""``negsample demo``: the whole road on the embedded sample."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from negsample.commands.train import generate, print_figures
from negsample.terminal import say, say_table, shorten

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator

# Held-out pairs that are shown.
_SHOWN = 6


def demo(out: Annotated[str, Option(help="Folder for the model and examples.", metavar="DIR")] = "runs/demo") -> None:
    """The whole road on the embedded sample: negatives, training, test figures, scores of unseen pairs."""
    from negsample.eval.examples import evaluate
    from negsample.io.files import atomic_json, check_new
    from negsample.models import load
    from negsample.train.config import read_config
    from negsample.train.job import train

    check_new(out)
    folder, config = Path(out), read_config("sample")
    examples = str(folder / "examples" / "test.jsonl.gz")
    say("1. damaged summaries")
    generate(str(folder / "examples"), config="sample")
    say("2. training")
    train(config, folder / "model")
    say("3. held-out documents")
    estimator = load(folder / "model")
    found = evaluate(estimator, examples, seed=config.seed)
    atomic_json(folder / "figures.json", found)
    print_figures(found)
    say("4. scores of unseen pairs")
    show(estimator, examples)
    say(f"\nmodel: {folder / 'model'}   signature: {estimator.signature}")


def show(estimator: "Estimator", examples: str) -> None:
    """A table of unseen documents, each with its own summary and with a damaged or foreign one."""
    from negsample.io.read import read_examples

    chosen = [example for _, example in zip(range(_SHOWN), read_examples(examples), strict=False)]
    scores = estimator.score([e.document for e in chosen], [e.summary for e in chosen])
    rows = [
        (shorten(e.document, 60), shorten(e.summary, 60), e.kind, f"{e.label:.2f}", f"{score:.3f}")
        for e, score in zip(chosen, scores, strict=True)
    ]
    texts = ("document", "summary", "made by")
    say_table((*texts, "label", "score"), rows, texts=texts, width=110)

"""``negsample demo``: the whole road on the embedded sample."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from negsample.commands.generate import generate
from negsample.commands.train import print_figures
from negsample.errors import InputError
from negsample.terminal import say, say_table

if TYPE_CHECKING:
    from negsample.models.estimator import Estimator

# Held-out pairs that are shown.
_SHOWN = 6


def demo(
    out: Annotated[str, typer.Option("--out", help="Folder for the model and examples.", metavar="DIR")] = "runs/demo",
) -> None:
    """The whole road on the embedded sample: negatives, training, test figures, scores of unseen pairs."""
    from negsample.io.files import atomic_json
    from negsample.models.estimator import Estimator
    from negsample.models.evaluation import evaluate
    from negsample.train.config import read_config
    from negsample.train.job import train

    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{out}: exists already; remove it, or give another folder with --out")
    config = read_config("sample")
    say("1. damaged summaries")
    generate(str(folder / "examples"), config="sample")
    say("2. training")
    train(config, folder / "model")
    say("3. held-out documents")
    estimator = Estimator.load(folder / "model")
    found = evaluate(estimator, str(folder / "examples" / "test.jsonl.gz"), seed=config.seed)
    atomic_json(folder / "figures.json", found)
    print_figures(found)
    say("4. scores of unseen pairs")
    show(estimator, str(folder / "examples" / "test.jsonl.gz"))
    say(f"\nmodel: {folder / 'model'}   signature: {estimator.signature}")


def show(estimator: "Estimator", examples: str) -> None:
    """A table of unseen documents, each with its own summary and with a damaged or foreign one."""
    from negsample.io.read import read_examples

    chosen = [example for _, example in zip(range(_SHOWN), read_examples(examples), strict=False)]
    scores = estimator.score([e.document for e in chosen], [e.summary for e in chosen])
    rows = [
        (_short(e.document), _short(e.summary), e.kind, f"{e.label:.2f}", f"{score:.3f}")
        for e, score in zip(chosen, scores, strict=True)
    ]
    texts = ("document", "summary", "made by")
    say_table((*texts, "label", "score"), rows, texts=texts, width=110)


def _short(text: str, most: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"

"""``negsample train``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from negsample.commands import options
from negsample.errors import InputError
from negsample.terminal import say

if TYPE_CHECKING:
    from negsample.train.config import TrainConfig

# What is trained where nobody says what: the packaged configuration that agrees best with people (docs/recipes.md).
DEFAULT = "align"
# Where the pairs come from that nobody named.
SAMPLE = "sample"
# Settings that say what is to be trained.
_METHOD = ("head", "recipe", "encoder", "loss")
_SHOWN = ("head", "encoder", "recipe")


def train(
    out: Annotated[str, typer.Option("--out", help="Folder for the model.", metavar="DIR")],
    values: options.Values = None,
    config: options.Config = None,
    resume: options.Resume = False,
    smoke: options.Smoke = False,
) -> None:
    """Train an estimator; --out becomes a model folder. Several processes: accelerate launch -m negsample train …"""
    from negsample.papers.stand_ins import small_training
    from negsample.train.config import read_config
    from negsample.train.job import train as train_model

    values = values or []
    if config is None and not values:
        raise InputError("nothing says what to train on; give --config FILE or corpus=PATH")
    if config is None and not names_method(values):
        config = DEFAULT
        say(f"no {', '.join(_METHOD[:-1])} or {_METHOD[-1]} is given: packaged configuration {DEFAULT!r}")
    settings = read_config(config, values)
    notes = notes_on(settings, config, values, smoke)
    if smoke:
        settings = small_training(settings)
    found = train_model(settings, Path(out), resume=resume, smoke=smoke, notes=notes)
    if found is None:
        say(f"{out}: the run is finished already")
    elif found:
        print_figures(found)
        say(f"model: {out}")


def names_method(words: Sequence[str]) -> bool:
    """Whether one of the ``key=value`` words says what is to be trained, and not only on what."""
    return any(word.partition("=")[0].strip() in _METHOD for word in words)


def notes_on(settings: "TrainConfig", config: str | None, words: Sequence[str], smoke: bool = False) -> list[str]:
    """Say what is trained, and on what, where neither the words nor a file of the user's do: a line each.

    A packaged configuration is no word of the user's on the corpus, but is one on the method. Raises InputError where a
    file of the user's own and the words name no corpus, unless this is a ``smoke`` run.
    """
    from negsample.io.read import SAMPLE_PATH
    from negsample.settings import FOLDER, find_config, read_file, read_words

    named = named_on_corpus = set(read_words(words))
    if config is not None:
        path = find_config(config)
        if not path.is_file():
            return []  # a pipe, which can't be read again
        named = named | set(read_file(path))
        if path.parent != FOLDER:
            named_on_corpus = named
            if "corpus" not in named and not smoke:
                raise InputError(f"{config}: names no corpus; add a line corpus: PATH, or corpus=PATH to the command")
    notes = []
    if settings.corpora() == [SAMPLE] and "corpus" not in named_on_corpus:
        pairs = len(SAMPLE_PATH.read_bytes().splitlines())
        notes.append(f"corpus: {SAMPLE} (embedded, {pairs} pairs); give corpus=PATH for your own")
    if missing := [key for key in _SHOWN if key not in named]:
        recipe = settings.recipe if isinstance(settings.recipe, str) else f"of {len(settings.recipe)} kinds"
        method = f"head {settings.head}, encoder {settings.resolved().encoder}, recipe {recipe}"
        notes.append(f"{method} ({', '.join(missing)} by default)")
    return notes


def print_figures(found: dict[str, Any]) -> None:
    """Test figures with their intervals, means by kind, and what was cut."""
    from negsample.number_text import figure_text

    for name, figure in found["test"].items():
        say(f"test {name}: {figure_text(figure)}")
    for kind, row in found["by_kind"].items():
        say(f"  {kind:<18}n {row['n']:>6}  mean label {row['label']:.3f}  mean score {row['score']:.3f}")
    if found.get("judge"):
        shares = ", ".join(f"{name} {share:.3f}" for name, share in found["judge"].items())
        say(f"judge, held-out stretches: share of damaged copies ranked below their original: {shares}")
    if found.get("ranking"):
        print_ranking(found["ranking"])
    if found.get("skipped"):
        say(f"  {found['skipped']}")
    cut = {name: split for name, split in found.get("cut", {}).items() if split["cut"]}
    for name, split in cut.items():
        say(f"  {split['cut']} of {split['pairs']} pairs of {name} are longer than the model reads and were cut")


def print_ranking(rows: list[dict[str, Any]]) -> None:
    """What training bought, by kind of negative: share of copies ranked below their original, beside no training."""
    say("test, share of damaged copies ranked below their original:")
    say(f"  {'kind':<18}{'by':<11}{'n':>6} {'untrained':>10} {'trained':>8}  gain (95 % interval)")
    for row in rows:
        interval = f" ({row['low']:+.3f} to {row['high']:+.3f})" if row["low"] is not None else ""
        say(
            f"  {row['kind']:<18}{row['output']:<11}{row['n']:>6} {row['untrained']:>10.3f} {row['trained']:>8.3f}  "
            f"{row['gain']:+.3f}{interval}"
        )

"""``negsample reinforce``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from negsample.commands import options
from negsample.errors import InputError
from negsample.terminal import say

if TYPE_CHECKING:
    from negsample.train.reinforce.config import ReinforceConfig

_TEST = "test"
_CURVE = "training.svg"


def reinforce(
    out: Annotated[str, typer.Option("--out", help="Folder for the summarizer.", metavar="DIR")],
    values: options.Values = None,
    config: options.Config = None,
    resume: options.Resume = False,
    smoke: options.Smoke = False,
) -> None:
    """Train a summarizer by a score as reward; --out becomes a folder for 'generate-summaries'."""
    from accelerate import PartialState

    from negsample.eval.agreement.columns import make_scorers
    from negsample.rewards import Reward
    from negsample.train.reinforce.config import read_reinforce_config
    from negsample.train.reinforce.job import reinforce as train_by_reward

    if config is None and not values:
        raise InputError("nothing says what to train on; give --config FILE or corpus=PATH")
    settings = read_reinforce_config(config, values or []).resolved()
    if smoke:
        from negsample.papers.stand_ins import small_reinforce

        settings = small_reinforce(settings)
    unsupervised = settings.unsupervised_share if settings.unsupervised is not None else 0.0
    made = Reward(
        settings.reward,
        length="band" if settings.band else settings.length,
        band=settings.band,
        undefined="lowest",
        unsupervised=unsupervised,
    )
    if made.needs_references and not settings.references:
        raise InputError(f"reward={settings.reward} compares with references, and references=false; name another")
    oracle = Reward(settings.oracle)
    make_scorers((), settings.metrics, baselines=False)  # what the table names wrong is told before hours of training
    found = train_by_reward(settings, made, oracle.score, Path(out), resume=resume, smoke=smoke)
    if not PartialState().is_main_process:
        return
    if found is None:
        say(f"{out}: the run is finished already")
    if not (Path(out) / _TEST).exists():
        _draw(Path(out))
        _test(settings, out)
    say(f"summarizer: {out}   test: {out}/{_TEST}/report.html, {out}/samples.md, {out}/{_CURVE}")


def _draw(out: Path) -> None:
    """The curve of losses and rewards, from the training's own log."""
    from negsample.eval.report.page import made
    from negsample.eval.report.plots import training_curves
    from negsample.io.files import replacing
    from negsample.io.read import read_rows

    lines = [row.fields for row in read_rows(out / "training.jsonl")]
    if drawn := made(_CURVE, lambda: training_curves(lines)):
        with replacing(out / _CURVE) as stream:
            stream.write(drawn)


def _test(settings: "ReinforceConfig", out: str) -> None:
    """The table: every system × every metric, with intervals and paired tests against the weights before the reward."""
    from negsample.commands.compare import print_comparison
    from negsample.eval.agreement.compare import Settings, compare
    from negsample.eval.report.compare import write_comparison
    from negsample.io.run_record import Stopwatch

    watch = Stopwatch()
    summaries = f"{out}/summaries.jsonl"
    asked = Settings(metrics=tuple(settings.metrics), inputs=(summaries,), on_bad="skip", seed=settings.seed)
    result = compare(asked)
    print_comparison(result)
    write_comparison(result, f"{out}/{_TEST}", watch)

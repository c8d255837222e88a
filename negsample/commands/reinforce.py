"""``negsample reinforce``."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from negsample.commands import options
from negsample.errors import InputError
from negsample.terminal import say

if TYPE_CHECKING:
    from negsample.train.reinforce.config import ReinforceConfig

_CURVE = "training.svg"


def reinforce(
    out: Annotated[str, Option(help="Folder for the summarizer.", metavar="DIR")],
    values: options.Values = None,
    config: options.Config = None,
    resume: options.Resume = False,
    smoke: options.Smoke = False,
) -> None:
    """Train a summarizer by a score as reward; --out becomes a folder for 'generate-summaries'."""
    from accelerate import PartialState

    from negsample.eval.agreement.columns import make_scorers
    from negsample.eval.report import made
    from negsample.eval.report.plots import training_curves
    from negsample.io.files import replacing
    from negsample.io.read import read_rows
    from negsample.rewards import Reward
    from negsample.settings import read_settings
    from negsample.train.job import told_after
    from negsample.train.reinforce import reinforce as train_by_reward
    from negsample.train.reinforce.config import ReinforceConfig

    options.check_given(config, values)
    settings = read_settings(ReinforceConfig, config, values or [], "reinforce").resolved()
    if smoke:
        from negsample.papers.stand_ins import small_reinforce

        settings = small_reinforce(settings)
    reward = Reward(
        settings.reward,
        length="band" if settings.band else settings.length,
        band=settings.band,
        undefined="lowest",
        unsupervised=settings.unsupervised_share if settings.unsupervised is not None else 0.0,
    )
    if reward.needs_references and not settings.references:
        raise InputError(f"reward={settings.reward} compares with references, and references=false; name another")
    make_scorers((), settings.metrics, baselines=False)  # what the table names wrong is told before hours of training
    folder, test = Path(out), Path(out) / "test"
    found = train_by_reward(settings, reward, Reward(settings.oracle).score, folder, resume=resume, smoke=smoke)
    if not PartialState().is_main_process:
        return
    if found is None:
        say(f"{out}: the run is finished already")
    wanted = [folder / _CURVE, test / "report.html"]
    if not all(path.exists() for path in wanted):
        with told_after(folder, str(test)):
            lines = [row.fields for row in read_rows(folder / "training.jsonl")]
            if drawn := made(_CURVE, lambda: training_curves(lines)):
                with replacing(folder / _CURVE) as stream:
                    stream.write(drawn)
            _test(settings, f"{out}/summaries.jsonl", test)
    say(f"summarizer: {out}   test: {test}/report.html, {out}/samples.md, {out}/{_CURVE}")
    options.check_whole(all(path.exists() for path in wanted))


def _test(settings: "ReinforceConfig", summaries: str, out: Path) -> None:
    """The table: every system × every metric, with intervals and paired tests against the weights before the reward."""
    from negsample.commands.compare import print_comparison
    from negsample.eval.agreement.compare import Settings, compare
    from negsample.eval.report.compare import write_comparison
    from negsample.io.run_record import Stopwatch

    watch = Stopwatch()
    shutil.rmtree(out, ignore_errors=True)  # what a call that failed has left of it
    asked = Settings(metrics=tuple(settings.metrics), inputs=(summaries,), on_bad="skip", seed=settings.seed)
    result = compare(asked)
    try:
        print_comparison(result)
    finally:  # it is written where it can't be shown, too
        write_comparison(result, str(out), watch)

"""``negsample tune``."""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from negsample.commands import options
from negsample.errors import InputError
from negsample.terminal import say

if TYPE_CHECKING:
    from negsample.train.search import Measure
    from negsample.train.search.settings import Search


def tune(
    config: Annotated[str, Option(help="YAML file: train, space, objective …", metavar="FILE")],
    study: Annotated[str, Option(help="Name of the study; workers with one name share it.")],
    storage: Annotated[
        str,
        Option(
            help="sqlite:///FILE (one machine), postgresql+psycopg://… (several), journal:FILE (shared folder).",
            metavar="URL",
            envvar="NEGSAMPLE_STORAGE",
        ),
    ],
    trials: Annotated[int, Option(min=1, help="Trials in all, over all workers.")],
    out: Annotated[str, Option(help="Folder for the results; gone on with.", metavar="DIR")],
    keep_models: Annotated[bool, Option("--keep-models", help="Keep every trial's model, not only the best.")] = False,
) -> None:
    """Search recipes, heads, encoders and settings; start it again, or on more machines, to add workers."""
    import torch

    from negsample.eval.report import write_files
    from negsample.eval.report.tune import tune_page
    from negsample.io.run_record import Stopwatch, write_run
    from negsample.train.search import tune as run_trials
    from negsample.train.search.settings import read_search
    from negsample.train.search.study import hide, safe_url, study_as_plain

    watch = Stopwatch()
    # The files keep the command line, and it may hold a password.
    sys.argv[1:] = [hide(word, storage) for word in sys.argv[1:]]
    search = read_search(config)
    _find_corpora(search)
    measure, data = _measure(search)
    for note in search.notes():
        say(f"note: {note}", error=True)
    say(f"study {study}: {trials} trials, {search.title()}")
    found = run_trials(
        search,
        study,
        storage,
        trials,
        Path(out),
        measure=measure,
        keep_models=keep_models,
        say=say,
    )
    plain = study_as_plain(search, study, found)
    whole = write_files(Path(out), {"report.html": lambda: tune_page(plain, found)})
    write_run(
        Path(out) / "run.json",
        watch,
        device="cuda" if torch.cuda.is_available() else "cpu",
        config=plain["search"],
        seed=search.seed,
        storage=safe_url(storage),
        data=data,
        states=plain["states"],
        best=plain["best"],
    )
    _print_result(plain, out)
    options.check_whole(whole)


def _find_corpora(search: "Search") -> None:
    """InputError where no trial could read its corpora; those that differ between trials are left to them."""
    from negsample.settings import field_types, make_settings
    from negsample.train.config import Reading
    from negsample.train.data import find_corpora

    keys = field_types(Reading)
    if not search.searched.fields() & (set(keys) - {"limit", "sample", "seed"}):
        find_corpora(make_settings(Reading, {key: search.train[key] for key in keys if key in search.train}, "train"))


def _measure(search: "Search") -> tuple["Measure | None", dict[str, str]]:
    """What a trained model is worth where that is agreement with people, and fingerprints of the judgments."""
    if search.agreement is None:
        return None, {}
    from negsample.eval.judgments import parted
    from negsample.eval.tuning import agreement_of, load_tune_halves
    from negsample.io.run_record import fingerprints

    asked = search.agreement
    halves = load_tune_halves(asked.files())
    measure = partial(agreement_of, halves=halves, level=asked.level, coefficient=asked.coefficient)
    return measure, fingerprints(parted(spec)[1] for spec in asked.judgments)


def _print_result(plain: Mapping[str, Any], out: str) -> None:
    """Print counts by state, why trials failed, and the best; raise InputError where no trial was completed."""
    states = ", ".join(f"{count} {state}" for state, count in plain["states"].items())
    say(f"{len(plain['trials'])} trials: {states}; {plain['interrupted_attempts']} interrupted and run again")
    for reason, count in plain["failures"].items():
        say(f"  {count} × failed: {reason}")
    best = plain["best"]
    if best is None:
        raise InputError(f"{out}: no trial was completed, so there is no best one; trials.csv says why")
    say(f"best: trial {best['trial']}, {best['value']:.4f}")
    for name, value in best["parameters"].items():
        say(f"  {name}: {value}")
    say(f"{out}: best.yaml (negsample train --config {out}/best.yaml --out DIR), trials.csv, study.json, report.html")

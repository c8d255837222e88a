"""The files of a search: ``best.yaml`` for ``negsample train``, ``trials.csv``, ``study.json``."""

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from negsample.io.files import atomic_json, atomic_text
from negsample.train.search.settings import Search
from negsample.train.search.trials import WORKER, Slot, best_of

_FIGURES = ("validation_loss", "accuracy", "pearson")


def write_results(out: Path, search: Search, study: str, slots: Sequence[Slot]) -> None:
    """Write ``trials.csv``, ``study.json`` and, once a trial is completed, ``best.yaml``."""
    plain = study_as_plain(search, study, slots)
    atomic_text(out / "trials.csv", trials_csv(plain["trials"]))
    atomic_json(out / "study.json", plain)
    best = best_of(slots, search.maximised)
    if best is not None:
        atomic_text(out / "best.yaml", best_yaml(search, study, slots, best))


def trials_csv(trials: Sequence[Mapping[str, Any]]) -> str:
    """Return a line for each of ``trials`` as ``study.json`` has them; a parameter may be called as another column."""
    names = list(dict.fromkeys(name for trial in trials for name in trial["parameters"]))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["trial", "state", "value", *_FIGURES, "epochs", "seconds", "attempts", *names, "reason"])
    for trial in trials:
        figures = [trial["validation"].get(name) for name in _FIGURES]
        counts = [len(trial["validation_losses"]) or None, trial["seconds"], len(trial["attempts"])]
        parameters = [trial["parameters"].get(name) for name in names]
        writer.writerow(
            [trial["trial"], trial["state"], trial["value"], *figures, *counts, *parameters, trial["reason"]]
        )
    return out.getvalue()


def best_yaml(search: Search, study: str, slots: Sequence[Slot], best: Slot) -> str:
    """Return the best settings as YAML, with what they are the best of."""
    import yaml
    from optuna.trial import FixedTrial

    finished = sum(slot.finished for slot in slots)
    title = " ".join(f"study {study}, trial {best.number}, best of {finished} by {search.title()}".split())
    settings = search.space.draw(FixedTrial(best.last.params), search.train)
    return f"# {title}: {best.last.value!r}\n{yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)}"


def study_as_plain(search: Search, study: str, slots: Sequence[Slot]) -> dict[str, Any]:
    """Return the content of ``study.json``: the search, counts by state, why trials failed, every trial, the best."""
    best = best_of(slots, search.maximised)
    # Where a high value is best, losses are reported to the pruner with a minus sign.
    sign = -1 if search.maximised else 1
    return {
        "study": study,
        "objective": search.title(),
        "direction": "maximise" if search.maximised else "minimise",
        "search": dict(search.given),
        "sampler": {"name": search.sampler[0], **search.sampler[1]},
        "pruner": {"name": search.pruner[0], **search.pruner[1]},
        "notes": list(search.notes),
        "states": dict(Counter(slot.state for slot in slots)),
        "failures": dict(Counter(slot.reason for slot in slots if slot.state == "failed")),
        "interrupted_attempts": sum(len(slot.attempts) - 1 for slot in slots),
        "best": None if best is None else _plain(best, sign),
        "trials": [_plain(slot, sign) for slot in slots],
    }


def _plain(slot: Slot, sign: int) -> dict[str, Any]:
    last = slot.last
    return {
        "trial": slot.number,
        "state": slot.state,
        "value": last.value if slot.state == "complete" else None,
        "parameters": dict(last.params),
        "validation": last.user_attrs.get("figures", {}),
        "validation_losses": [sign * value for _, value in sorted(last.intermediate_values.items())],
        "attempts": [attempt.number for attempt in slot.attempts],
        "worker": last.user_attrs.get(WORKER, {}),
        "seconds": last.user_attrs.get("seconds"),
        "reason": slot.reason or None,
    }

"""The files of a search: ``best.yaml`` for ``negsample train``, ``trials.csv``, ``study.json``."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from negsample.io.files import atomic_json, atomic_text
from negsample.train.search.settings import Search
from negsample.train.search.trials import INTERRUPTED, SILENT, Slot

_FIGURES = ("validation_loss", "accuracy", "pearson")


def model_folder(out: Path, slot: Slot) -> Path:
    """Where a slot's model is trained: ``out/trials/N``.

    A worker that was taken for dead may still write to its folder, so the attempt after it has another one.
    """
    silent = [n for n, attempt in enumerate(slot.attempts[:-1], 1) if attempt.user_attrs.get(INTERRUPTED) == SILENT]
    return out / "trials" / (f"{slot.number}-{silent[-1]}" if silent else str(slot.number))


def best_of(slots: Sequence[Slot], maximised: bool) -> Slot | None:
    """The completed slot with the best value, the earliest of equal ones; None where none was completed."""
    done = [slot for slot in slots if slot.state == "complete"]
    sign = -1 if maximised else 1
    return min(done, key=lambda slot: (sign * float(slot.last.value or 0.0), slot.number), default=None)


class _Recorded:
    """Gives a space the parameters of a finished trial, as a trial under way gives those that are drawn."""

    def __init__(self, params: dict[str, Any]) -> None:
        self._params = params

    def suggest_categorical(self, name: str, choices: Any) -> Any:
        return self._params[name]

    def suggest_int(self, name: str, low: int, high: int, **options: Any) -> Any:
        return self._params[name]

    def suggest_float(self, name: str, low: float, high: float, **options: Any) -> Any:
        return self._params[name]


def settings_of(slot: Slot, search: Search) -> dict[str, Any]:
    """The settings that a slot was trained with, as ``negsample train`` takes them.

    Raises KeyError where the attempt ended before all were drawn.
    """
    return search.space.draw(_Recorded(slot.last.params), search.train)  # type: ignore[arg-type]


def write_tables(out: Path, search: Search, study: str, slots: Sequence[Slot]) -> None:
    """Write ``trials.csv``, ``study.json`` and, once a trial is completed, ``best.yaml``."""
    atomic_text(out / "trials.csv", trials_csv(search, slots))
    atomic_json(out / "study.json", study_as_plain(search, study, slots))
    best = best_of(slots, search.maximised)
    if best is not None:
        atomic_text(out / "best.yaml", best_yaml(search, study, slots, best))


def best_yaml(search: Search, study: str, slots: Sequence[Slot], best: Slot) -> str:
    """The best settings as YAML, with what they are the best of."""
    import yaml

    finished = sum(slot.finished for slot in slots)
    title = " ".join(f"study {study}, trial {best.number}, best of {finished} by {search.title()}".split())
    settings = yaml.safe_dump(settings_of(best, search), sort_keys=False, allow_unicode=True)
    return f"# {title}: {best.last.value!r}\n{settings}"


def parameters_of(slots: Sequence[Slot]) -> list[str]:
    """The names of all parameters that a trial has, in the order of their first appearance."""
    return list(dict.fromkeys(name for slot in slots for name in slot.last.params))


def trials_csv(search: Search, slots: Sequence[Slot]) -> str:
    """A line for each trial: number, state, value, figures on validation, parameters, why it failed."""
    names = parameters_of(slots)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["trial", "state", "value", *_FIGURES, "epochs", "seconds", "attempts", *names, "reason"])
    for slot in slots:
        last = slot.last
        figures = last.user_attrs.get("figures", {})
        seconds = last.user_attrs.get("seconds")
        writer.writerow(
            [
                slot.number,
                slot.state,
                last.value if slot.state == "complete" else "",
                *(figures.get(name, "") for name in _FIGURES),
                len(last.intermediate_values) or "",
                "" if seconds is None else seconds,
                len(slot.attempts),
                *(last.params.get(name, "") for name in names),
                slot.reason,
            ]
        )
    return out.getvalue()


def study_as_plain(search: Search, study: str, slots: Sequence[Slot]) -> dict[str, Any]:
    """The content of ``study.json``: the search, counts by state, why trials failed, every trial, the best one."""
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
    worker = last.user_attrs.get("worker", {})
    return {
        "trial": slot.number,
        "state": slot.state,
        "value": last.value if slot.state == "complete" else None,
        "parameters": dict(last.params),
        "validation": last.user_attrs.get("figures", {}),
        "validation_losses": [sign * value for _, value in sorted(last.intermediate_values.items())],
        "attempts": [attempt.number for attempt in slot.attempts],
        "worker": {key: worker[key] for key in ("name", "host", "process") if key in worker},
        "seconds": last.user_attrs.get("seconds"),
        "reason": slot.reason or None,
    }

"""A gate for quality: scores must not fall under given limits; for CI and for tests."""

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from negsample.errors import InputError
from negsample.registry import suggestion
from negsample.scoring.scorer import Columns

# Records that a message names.
_NAMED = 10


def parse_limits(words: Iterable[str], aspects: Sequence[str] = ()) -> dict[str, float]:
    """``["support=0.4", "0.5"]`` as ``{"support": 0.4, "score": 0.5}``.

    Raises InputError for a name that is neither ``score`` nor of ``aspects``, one given twice, and a limit of ``score``
    outside [0, 1] where the scorer has aspects (a metric's scale is its own: any finite number).
    """
    limits: dict[str, float] = {}
    for word in words:
        name, equals, value = word.rpartition("=")
        name = name if equals else "score"
        if value in aspects:
            raise InputError(f"--fail-under {word}: write {value}={name}")
        check_name(name, aspects)
        if name in limits:
            raise InputError(f"--fail-under gives {name} twice; give it once")
        try:
            limits[name] = float(value)
        except ValueError:
            limits[name] = math.nan
        if not math.isfinite(limits[name]):
            raise InputError(f"--fail-under {word}: give a number, as in 0.5 or support=0.4")
        if name == "score" and aspects and not 0 <= limits[name] <= 1:
            raise InputError(f"--fail-under {word}: a score lies between 0 and 1; give a limit there")
    return limits


def check_name(name: str, aspects: Sequence[str]) -> None:
    """Raise InputError where ``name`` is neither ``score`` nor one of ``aspects``."""
    if name not in ("score", *aspects):
        raise InputError(f"nothing is called {name!r} here; {suggestion(name, ['score', *aspects])}")


@dataclass
class _Seen:
    """The values of one system under one limit: their sum and number, those below or missing, and the lowest."""

    total: float = 0.0
    count: int = 0
    below: int = 0
    missing: int = 0
    # (−value, order, where): the heap's first is the highest of the lowest, which goes first.
    worst: list[tuple[float, int, str]] = field(default_factory=list)


class Gate:
    """Takes columns as they come and says which systems fall under ``limits`` (name → least value) on average.

    With ``each`` no record may. A value that is missing is under every limit, and is no part of a mean.
    """

    def __init__(self, limits: Mapping[str, float], each: bool = False) -> None:
        self.limits = dict(limits)
        self.each = each
        self._seen: dict[tuple[str, str], _Seen] = defaultdict(_Seen)

    def add(self, where: Sequence[str], columns: Columns, systems: Sequence[str] = ()) -> None:
        """Take in the ``columns`` of the records called ``where`` [n], written by ``systems`` [n]."""
        named = columns.named()
        for name, limit in self.limits.items():
            values = named[name].tolist()
            for record, value, system in zip(where, values, systems or [""] * len(values), strict=True):
                seen = self._seen[system, name]
                missing = math.isnan(value)
                seen.missing += missing
                seen.below += missing or value < limit
                seen.count += not missing
                seen.total += 0.0 if missing else value
                entry = (math.inf if missing else -value, -(seen.count + seen.missing), record)
                (heapq.heappush if len(seen.worst) < _NAMED else heapq.heappushpop)(seen.worst, entry)

    def failures(self) -> list[str]:
        """A line for each system and limit that is not held, with the ten lowest records; [] where all is well."""
        told = (self._failure(system, name, seen) for (system, name), seen in self._seen.items())
        return [line for line in told if line]

    def _failure(self, system: str, name: str, seen: _Seen) -> str:
        limit = self.limits[name]
        mean = seen.total / seen.count if seen.count else None
        if not (seen.below if self.each else mean is None or mean < limit):
            return ""
        lowest = sorted(seen.worst, reverse=True)
        if self.each:
            told = f"{seen.below} of {seen.count + seen.missing} records have {name} under {limit:g}"
            lowest = [entry for entry in lowest if -entry[0] < limit]
        else:
            told = f"mean {name} {'is missing' if mean is None else f'{mean:.4f}'}, under {limit:g}"
        missing = f" ({seen.missing} have none)" if seen.missing else ""
        named = ", ".join(f"{where} ({'none' if value == math.inf else f'{-value:.4f}'})" for value, _, where in lowest)
        return f"{f'{system}: ' if system else ''}{told}{missing}; lowest: {named}"

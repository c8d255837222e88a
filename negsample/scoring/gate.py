"""A gate for quality: scores must not fall under given limits; for CI and for tests."""

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from negsample.errors import InputError
from negsample.registry import suggestion
from negsample.scoring.outcomes import Outcome

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
    """Takes outcomes as they come and says which systems fall under ``limits`` (name → least value) on average.

    With ``each`` no record may. A value that is missing is under every limit, and is no part of a mean.
    """

    def __init__(self, limits: Mapping[str, float], each: bool = False) -> None:
        self.limits = dict(limits)
        self.each = each
        self._seen: dict[tuple[str, str], _Seen] = defaultdict(_Seen)
        self._order = 0

    def add(self, where: str, outcome: Outcome, system: str = "") -> None:
        """Take in the outcome of the record ``where``, written by ``system``."""
        values = {"score": outcome.score, **(outcome.aspects or {})}
        self._order += 1
        for name, limit in self.limits.items():
            seen, value = self._seen[system, name], values.get(name)
            seen.missing += value is None
            seen.below += value is None or value < limit
            if value is not None:
                seen.total += value
                seen.count += 1
            entry = (math.inf if value is None else -value, -self._order, where)
            (heapq.heappush if len(seen.worst) < _NAMED else heapq.heappushpop)(seen.worst, entry)

    def failures(self) -> list[str]:
        """A line for each system and limit that is not held, with the ten lowest records; [] where all is well."""
        return [
            line
            for (system, name), seen in self._seen.items()
            if (line := self._failure(f"{system}: " if system else "", name, seen))
        ]

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
        return f"{system}{told}{missing}; lowest: {named}"

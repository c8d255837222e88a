"""A gate for quality: scores must not fall under given limits; for the command, and for tests (``assert_quality``)."""

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Real

from negsample.errors import InputError
from negsample.registry import suggestion
from negsample.scoring.scorer import Columns, Scorer

# Records that a message names.
_NAMED = 10


def parse_limits(words: Iterable[str]) -> dict[str, float]:
    """``["support=0.4", "0.5"]`` as ``{"support": 0.4, "score": 0.5}``. Raises InputError for anything else."""
    limits: dict[str, float] = {}
    for word in words:
        name, equals, value = word.rpartition("=")
        name = name if equals else "score"
        if name in limits:
            raise InputError(f"--fail-under gives {name} twice; give it once")
        with suppress(ValueError):
            limits[name] = float(value)
        if name not in limits:
            raise InputError(f"--fail-under {word}: give a number, as in 0.5 or support=0.4")
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
    """Takes columns of ``scorer`` and says which systems fall under ``limits`` (name → least value) on average.

    With ``each`` no record may. A value that is missing is under every limit, and is no part of a mean. Raises InputError
    without a limit, and for one of what the scorer does not say, not finite, or outside [0, 1] where its values lie there.
    """

    def __init__(self, limits: Mapping[str, float], scorer: Scorer, each: bool = False) -> None:
        if not limits:
            raise InputError("no limit is given; give one, as in score=0.5")
        for name, limit in limits.items():
            check_name(name, scorer.aspects)
            if not isinstance(limit, Real) or not math.isfinite(limit):
                raise InputError(f"the limit {name}={limit} is not a finite number; give one, as in {name}=0.5")
            if name in scorer.shares and not 0 <= limit <= 1:
                raise InputError(f"the limit {name}={limit:g} is outside [0, 1], where {name} lies; give one within")
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
        """A line for each system and limit that is not held, with the ten lowest records; [] where all is well.

        Raises InputError where nothing was measured.
        """
        if not self._seen:
            raise InputError("no pair was measured, so that no limit is held; give at least one")
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

"""The one interface of all pair metrics: an ``Item`` goes in, a number or a reason comes out."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from negsample import __version__
from negsample.errors import InputError
from negsample.records import Judged
from negsample.registry import suggestion


@dataclass(frozen=True, slots=True)
class Item:
    """One record to score. ``document`` may be ``""`` for a metric that reads references only."""

    document: str
    summary: str
    references: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scores:
    """What a metric gave for n records.

    ``values``: float64 [n], NaN where the metric is undefined; ``reasons``: for each record why it is
    missing, else None.
    """

    values: np.ndarray
    reasons: list[str | None]


@dataclass(frozen=True)
class Metric:
    """A pair metric.

    ``name`` is canonical: options that differ from their defaults, in a fixed order (``rouge1:value=recall``).
    ``signature`` has every option and the version, enough for another person to get the same number.
    ``needs`` names what every record must have: a subset of ``{"document", "references"}``; a metric that takes
    whichever is there needs neither. ``score`` maps n items to ``Scores`` of n; an item's score does not depend
    on the others or on their order.
    """

    name: str
    signature: str
    higher_is_better: bool
    needs: frozenset[str]
    score: Callable[[Sequence[Item]], Scores] = field(repr=False)


def collect(results: Iterable[float | str]) -> Scores:
    """Make ``Scores`` of one result a record: a finite number, or a text that says why there is none."""
    found = list(results)
    reasons = [
        result if isinstance(result, str) else None if np.isfinite(result) else "the value is not finite"
        for result in found
    ]
    values = [np.nan if reason is not None else result for result, reason in zip(found, reasons, strict=True)]
    return Scores(np.array(values, dtype=np.float64), reasons)


def pair_metric(
    name: str,
    factory: Callable[..., Metric],
    options: Mapping[str, object],
    needs: Iterable[str],
    score: Callable[[Sequence[Item]], Scores],
    *,
    higher_is_better: bool = True,
    more: str = "",
) -> Metric:
    """Make the metric ``name`` with ``options``, whose defaults are those of ``factory``.

    ``more`` is the end of the signature: what beside the options the number depends on.
    """
    canonical, signature = describe(name, options, defaults_of(factory))
    return Metric(canonical, signature + more, higher_is_better, frozenset(needs), score)


def defaults_of(factory: Callable[..., object]) -> dict[str, object]:
    """Return the default of each parameter of ``factory``."""
    return {name: parameter.default for name, parameter in inspect.signature(factory).parameters.items()}


def describe(name: str, options: Mapping[str, object], defaults: Mapping[str, object]) -> tuple[str, str]:
    """Return canonical name and signature of a metric with ``options``; truth values are written ``true``/``false``."""
    texts = {key: _text(value) for key, value in options.items()}
    changed = [f"{key}={quote(value)}" for key, value in texts.items() if value != _text(defaults[key])]
    parts = [f"metric:{name}", *(f"{key}:{value}" for key, value in texts.items()), f"version:{__version__}"]
    return name + (":" + ",".join(changed) if changed else ""), "|".join(parts)


def quote(value: str) -> str:
    """Write the value as it stands in a metric's specification: in parentheses where it has a comma of its own."""
    return f"({value})" if "," in value else value


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def choice(option: str, value: str, allowed: Sequence[str]) -> str:
    """Return ``value`` where it is one of ``allowed``; else InputError with the nearest."""
    if value not in allowed:
        raise InputError(f"option {option}={value}: {suggestion(str(value), list(allowed))}")
    return value


def flag(option: str, value: bool | str) -> bool:
    """Read a truth value given as bool or as ``true``/``false``."""
    if isinstance(value, bool):
        return value
    return choice(option, str(value).lower(), ("true", "false")) == "true"


def number(option: str, value: int | str, low: int, high: int) -> int:
    """Read a whole number in [low, high] given as int or as text; else InputError."""
    try:
        result = int(value)
    except ValueError:
        raise InputError(f"option {option}={value}: give a whole number from {low} to {high}") from None
    if not low <= result <= high:
        raise InputError(f"option {option}={value}: give a whole number from {low} to {high}")
    return result


def split_outside(text: str, separator: str) -> list[str] | None:
    """Split ``text`` at each ``separator`` outside parentheses; None where a parenthesis has no partner."""
    pieces, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return None
        if letter == separator and depth == 0:
            pieces.append(text[start:place])
            start = place + 1
    return None if depth else [*pieces, text[start:]]


def unquote(value: str) -> str:
    """Take off the parentheses around ``value``, if they are one pair: not those of ``(a)+(b)``."""
    inside = value[1:-1]
    alone = value.startswith("(") and value.endswith(")") and split_outside(inside, ",") is not None
    return inside if alone else value


def score_judged(metric: Metric, rows: Sequence[Judged]) -> Scores:
    """Score judged summaries, [n]; for a row with several documents the score is the mean over them.

    A metric that does not read the document is computed once a row.
    """
    items: list[Item] = []
    counts = []
    for row in rows:
        reads_document = "document" in metric.needs or not row.references
        documents = row.documents if reads_document else row.documents[:1]
        items += [Item(document, row.summary, row.references) for document in documents]
        counts.append(len(documents))
    return mean_over_documents(metric.score(items), counts)


def mean_over_documents(every: Scores, counts: Sequence[int]) -> Scores:
    """Average scores of (document, summary) pairs over the documents of each row, ``counts`` [n] of them.

    ``every`` has the pairs of the first row, then those of the second, and so on. A mean is missing where a score is
    missing for one of the documents.
    """
    results: list[float | str] = []
    start = 0
    for count in counts:
        part = slice(start, start + count)
        start += count
        reason = next((reason for reason in every.reasons[part] if reason is not None), None)
        results.append(reason if reason is not None else float(every.values[part].mean()))
    return collect(results)

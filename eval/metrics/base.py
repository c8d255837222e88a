"""What all metrics share: how one is made and described, how its options are read, means over documents."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from negsample import __version__
from negsample.errors import InputError
from negsample.records import Judged
from negsample.registry import suggestion
from negsample.scoring.scorer import Columns, Item, Scorer, collect
from negsample.spec import defaults_of, plain, write


def pair_metric(
    name: str,
    factory: Callable[..., Scorer],
    options: Mapping[str, object],
    needs: Iterable[str],
    score: Callable[[Sequence[Item]], Columns],
    *,
    higher_is_better: bool = True,
    more: str = "",
) -> Scorer:
    """Make the metric ``name`` with ``options``, whose defaults are those of ``factory``.

    ``more`` is the end of the signature: what beside the options the number depends on.
    """
    canonical, signature = describe(name, options, defaults_of(factory))
    return Scorer(canonical, signature + more, higher_is_better, frozenset(needs), score)


def describe(name: str, options: Mapping[str, object], defaults: Mapping[str, object]) -> tuple[str, str]:
    """Return canonical name and signature of a metric with ``options``."""
    parts = [f"metric:{name}", *(f"{key}:{plain(value)}" for key, value in options.items()), f"version:{__version__}"]
    return write(name, options, defaults), "|".join(parts)


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


def score_judged(metric: Scorer, rows: Sequence[Judged]) -> Columns:
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


def mean_over_documents(every: Columns, counts: Sequence[int]) -> Columns:
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
        results.append(reason if reason is not None else float(every.scores[part].mean()))
    return collect(results)

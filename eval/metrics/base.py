"""What all metrics share: how a function becomes one, what a summary is compared with, means over documents."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from negsample import __version__
from negsample.errors import InputError
from negsample.records import Judged
from negsample.registry import suggestion
from negsample.scoring.scorer import Columns, Item, Scorer, collect
from negsample.spec import plain, write

Results = Iterable[float | str]
"""One result an item: a number, or a text that says why there is none."""
Score = Callable[[Sequence[Item]], Results | Columns]
Against = Literal["auto", "references", "document"]
Several = Literal["max", "mean"]


def metric(
    name: str,
    *,
    needs: Iterable[str] | Callable[[Mapping[str, Any]], Iterable[str]] = (),
    higher_is_better: bool = True,
) -> Callable[[Callable[..., Score | tuple[Score, str]]], Callable[..., Scorer]]:
    """Make of a function the factory of the metric ``name``: called with options it gives a ``Scorer``.

    The function's keyword parameters are the options, all with defaults; those annotated as ``Literal`` are checked here.
    Name and signature tell them in their order, but for ``device``. It returns what scores items, and may return the end of
    the signature too: what else the number depends on. ``needs``: as of `Scorer`, or a function of the options; an option
    ``against`` decides by itself.
    """

    def decorated(function: Callable[..., Score | tuple[Score, str]]) -> Callable[..., Scorer]:
        parameters = inspect.signature(function, eval_str=True).parameters

        @functools.wraps(function)
        def make(**given: Any) -> Scorer:
            options = {key: parameter.default for key, parameter in parameters.items()} | given
            for key, parameter in parameters.items():
                if get_origin(parameter.annotation) is Literal:
                    choice(key, options[key], get_args(parameter.annotation))
            made = function(**options)
            score, more = made if isinstance(made, tuple) else (made, "")
            told = {key: value for key, value in options.items() if key != "device"}
            wanted = needs(options) if callable(needs) else needs
            if "against" in options:
                wanted = () if options["against"] == "auto" else (options["against"],)

            def columns(items: Sequence[Item]) -> Columns:
                found = score(items)
                return found if isinstance(found, Columns) else collect(found)

            canonical = write(name, told, {key: parameter.default for key, parameter in parameters.items()})
            return Scorer(canonical, signature_of(name, told) + more, higher_is_better, frozenset(wanted), columns)

        return make

    return decorated


def signature_of(name: str, options: Mapping[str, object]) -> str:
    """Return the signature of a metric with ``options``."""
    told = (f"{key}:{plain(value)}" for key, value in options.items())
    return "|".join([f"metric:{name}", *told, f"version:{__version__}"])


def choice(option: str, value: str, allowed: Sequence[str]) -> str:
    """Return ``value`` where it is one of ``allowed``; else InputError with the nearest."""
    if value not in allowed:
        raise InputError(f"option {option}={value}: {suggestion(str(value), list(allowed))}")
    return value


def number(option: str, value: int, low: int, high: int) -> int:
    """Return ``value`` where it is in [low, high]; else InputError."""
    if not low <= value <= high:
        raise InputError(f"option {option}={value}: give a whole number from {low} to {high}")
    return value


def targets_of(item: Item, against: str) -> tuple[str, ...]:
    """Pick what to compare ``item``'s summary with: its references, its document, or (``auto``) the references where
    there are any, else the document. Empty where references are asked for and there are none."""
    if against == "document" or (against == "auto" and not item.references):
        return (item.document,)
    return item.references


def compare_with_targets(
    item: Item,
    against: str,
    references: str,
    problem: Callable[[str], str | None],
    similarity: Callable[[str, str], float | str],
) -> float | str:
    """Return the similarity of a summary with its targets, or the reason why there is none.

    ``problem(text)`` says what keeps a text from being compared (``"has no …"``), None where nothing does;
    ``similarity(summary, target)`` gives a number or a reason. A target that can't be compared is passed over where
    another can. ``references``: ``max`` or ``mean`` over the targets that are left.
    """
    targets = targets_of(item, against)
    if not targets:
        return "no reference"
    if reason := problem(item.summary):
        return f"the summary {reason}"
    reasons = {target: problem(target) for target in targets}
    usable = [target for target in targets if not reasons[target]]
    if not usable:
        return f"the {'reference' if targets is item.references else 'document'} {reasons[targets[0]]}"
    values = []
    for target in usable:
        value = similarity(item.summary, target)
        if isinstance(value, str):
            return value
        values.append(value)
    return max(values) if references == "max" else sum(values) / len(values)


def score_judged(scorer: Scorer, rows: Sequence[Judged]) -> Columns:
    """Score judged summaries, [n]; for a row with several documents the score is the mean over them.

    A metric that does not read the document is computed once a row. A mean is missing where a score is missing for one of
    the documents.
    """
    items: list[Item] = []
    counts = []
    for row in rows:
        reads_document = "document" in scorer.needs or not row.references
        documents = row.documents if reads_document else row.documents[:1]
        items += [Item(document, row.summary, row.references) for document in documents]
        counts.append(len(documents))
    return mean_over_documents(scorer.score(items), counts)


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

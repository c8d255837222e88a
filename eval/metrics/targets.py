"""What a summary is compared with: the document or the references, and what several references come to."""

from collections.abc import Callable

from negsample.eval.metrics.base import choice
from negsample.scoring.scorer import Item

AGAINST = ("auto", "references", "document")
SEVERAL = ("max", "mean")


def target_options(against: str, references: str) -> dict[str, str]:
    """Return both options; InputError for a value that is not known."""
    return {"against": choice("against", against, AGAINST), "references": choice("references", references, SEVERAL)}


def targets_of(item: Item, against: str) -> tuple[str, ...]:
    """Pick what to compare ``item``'s summary with: its references, its document, or (``auto``) the references where
    there are any, else the document. Empty where references are asked for and there are none."""
    if against == "document" or (against == "auto" and not item.references):
        return (item.document,)
    return item.references


def needs_of(against: str) -> frozenset[str]:
    """Return what a record must have for ``against``; ``auto`` takes what is there."""
    return frozenset() if against == "auto" else frozenset({against})


def compare_with_targets(
    item: Item,
    against: str,
    references: str,
    problem: Callable[[str], str | None],
    similarity: Callable[..., float | str],
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
    reasons = [reason for target in targets if (reason := problem(target))]
    usable = [target for target in targets if not problem(target)]
    if not usable:
        return f"the {'reference' if targets is item.references else 'document'} {reasons[0]}"
    results = [similarity(item.summary, target) for target in usable]
    for result in results:
        if isinstance(result, str):
            return result
    values = [float(result) for result in results]
    return max(values) if references == "max" else sum(values) / len(values)

"""The examples of one pair: its original, and the negatives that a recipe makes of it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from negsample.errors import InputError
from negsample.negatives import NEGATIVES
from negsample.negatives.context import CannotDamage, Context, Damaged
from negsample.negatives.index import padded, summary_digest
from negsample.negatives.recipe import Recipe
from negsample.records import Example, Pair
from negsample.seeds import generator

# How often a kind is tried again where it gave a good summary of the document, or a negative made already.
_TRIES = 8


@dataclass(slots=True)
class Tally:
    """Counts of what was made and what was not; the fields are those of ``generate.SplitReport``."""

    negatives: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    missing: int = 0
    repeated: int = 0


def examples_of(
    pair: Pair,
    document_id: str,
    position: int,
    context: Context,
    recipe: Recipe,
    negatives: int,
    seed: int,
    tally: Tally,
) -> Iterator[Example]:
    """The original of ``pair`` and up to ``negatives`` negatives; counts them in ``tally``.

    ``position`` is the pair's position in ``context.index``. Each negative is drawn by a generator of its own, made
    from seed, document, summary and its number, so that nothing else has a say in it. Ids are ``"<pair id>/original"``
    and ``"<pair id>/<kind>-<number>"``.
    """
    index = context.index
    yield Example(f"{pair.id}/original", document_id, pair.document, pair.summary, 1.0, "original", {})
    document = index.document[position]
    goods = {padded(digest) for digest in index.summary[index.first[document] : index.first[document + 1]].tolist()}
    seen: set[bytes] = set()
    key, summary = padded(index.key[position]), padded(index.summary[position])
    for draw in range(1, negatives + 1):
        rng = generator(seed, "negative", key, summary, draw)
        made = _damage(pair, context, recipe, rng, goods, seen, tally)
        if made is None:
            tally.missing += 1
            continue
        kind, damaged = made
        tally.negatives[kind] += 1
        yield Example(
            f"{pair.id}/{kind}-{draw}", document_id, pair.document, damaged.summary, damaged.label, kind, damaged.change
        )


def _damage(
    pair: Pair,
    context: Context,
    recipe: Recipe,
    rng: np.random.Generator,
    goods: set[bytes],
    seen: set[bytes],
    tally: Tally,
) -> tuple[str, Damaged] | None:
    """One negative and its kind, or None where no kind can make one.

    It is never one of the document's own summaries (``goods``), and one that was ``seen`` only where nothing else came.
    """
    for kind in recipe.order(rng):
        repeated = None
        try:
            for _ in range(_TRIES):
                damaged = _checked(kind, NEGATIVES.get(kind)(pair, context, rng))
                text = summary_digest(damaged.summary)
                if text in goods:
                    continue
                if text not in seen:
                    seen.add(text)
                    return kind, damaged
                repeated = damaged
        except CannotDamage as refusal:
            tally.refusals[f"{kind}: {refusal.reason}"] += 1
            continue
        if repeated is not None:
            tally.repeated += 1
            return kind, repeated
        tally.refusals[f"{kind}: equals a summary of the document"] += 1
    return None


def _checked(kind: str, damaged: Any) -> Damaged:
    """``damaged``, after a check that a kind from another package keeps to the contract."""
    if not isinstance(damaged, Damaged) or not damaged.summary.strip() or not (0 <= damaged.label <= 1):
        raise InputError(f"negative {kind!r} gave {damaged!r:.200}; it must give a text and a label from 0 to 1")
    return damaged

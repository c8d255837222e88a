"""The examples of one pair: its original, and the negatives that a recipe makes of it."""

from collections import Counter
from collections.abc import Iterator
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


class ExampleMaker:
    """Makes the examples of a split's pairs: of each its original and up to ``negatives`` negatives.

    It counts, as fields of ``generate.SplitReport``, the ``negatives`` it made, its ``refusals``, those ``missing`` and
    those ``repeated``.
    """

    def __init__(self, context: Context, recipe: Recipe, count: int, seed: int) -> None:
        self.context, self.recipe, self.count, self.seed = context, recipe, count, seed
        self.negatives: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.missing = 0
        self.repeated = 0

    def examples(self, pair: Pair, document_id: str, position: int) -> Iterator[Example]:
        """Make the examples of ``pair``, which stands at ``position`` in the context's index.

        Each negative is drawn by a generator of its own, made from seed, document, summary and its number, so that
        nothing else has a say in it. Ids are ``"<pair id>/original"`` and ``"<pair id>/<kind>-<number>"``.
        """
        index = self.context.index
        yield Example(f"{pair.id}/original", document_id, pair.document, pair.summary, 1.0, "original", {})
        document = index.document[position]
        goods = {padded(digest) for digest in index.summary[index.first[document] : index.first[document + 1]].tolist()}
        seen: set[bytes] = set()
        key, summary = padded(index.key[position]), padded(index.summary[position])
        for draw in range(1, self.count + 1):
            made = self._damage(pair, generator(self.seed, "negative", key, summary, draw), goods, seen)
            if made is None:
                self.missing += 1
                continue
            kind, damaged = made
            self.negatives[kind] += 1
            name = f"{pair.id}/{kind}-{draw}"
            yield Example(name, document_id, pair.document, damaged.summary, damaged.label, kind, damaged.change)

    def _damage(
        self, pair: Pair, rng: np.random.Generator, goods: set[bytes], seen: set[bytes]
    ) -> tuple[str, Damaged] | None:
        """Make one negative; its kind and what it is, or None where no kind can make one.

        It is never one of the document's own summaries (``goods``), and one that was ``seen`` only where nothing else
        came.
        """
        for kind in self.recipe.order(rng):
            repeated = None
            try:
                for _ in range(_TRIES):
                    damaged = _checked(kind, NEGATIVES.get(kind)(pair, self.context, rng))
                    text = summary_digest(damaged.summary)
                    if text in goods:
                        continue
                    if text not in seen:
                        seen.add(text)
                        return kind, damaged
                    repeated = damaged
            except CannotDamage as refusal:
                self.refusals[f"{kind}: {refusal.reason}"] += 1
                continue
            if repeated is not None:
                self.repeated += 1
                return kind, repeated
            self.refusals[f"{kind}: equals a summary of the document"] += 1
        return None


def _checked(kind: str, damaged: Any) -> Damaged:
    """``damaged``, after a check that a kind from another package keeps to the contract."""
    if not isinstance(damaged, Damaged) or not damaged.summary.strip() or not (0 <= damaged.label <= 1):
        raise InputError(f"negative {kind!r} gave {damaged!r:.200}; it must give a text and a label from 0 to 1")
    return damaged

"""Names and numbers exchanged for others of the same kind from another document: fluent, and about something else."""

import re

import numpy as np

from negsample.negatives import mentions
from negsample.negatives.context import Context, Damaged
from negsample.negatives.kinds.entity import exchange_mentions, in_summary
from negsample.negatives.mentions import Mention
from negsample.negatives.parse import stems
from negsample.records import Pair

_DRAWS = 8
_SHAPES = tuple(
    re.compile(shape)
    for shape in (r"^\d{4}$", r"day\b", r"(day|week|month|year|decade|hour|minute)s\b", r"\d", r"^[A-Z]{2,}", r"^[A-Z]")
)


def make(pair: Pair, context: Context, rng: np.random.Generator, most: int | None = None) -> Damaged:
    """As ``entity``, from sentences of other summaries of the split, of which eight are drawn at most.

    No word of the fresh name or number begins as one of the document does. Label as for ``entity``. Raises CannotDamage
    where the summary has no mention, or the sentences drawn none to exchange it for.
    """
    by_model = mentions.has_model()
    wanted = {_class(mention) for group in in_summary(pair.summary, by_model) for mention in group}
    known = stems(pair.document)
    pool: dict[tuple[str, int], list[str]] = {}
    for _ in range(_DRAWS if wanted else 0):
        other = context.other_sentence(pair, rng)
        for group in in_summary(other.text, by_model):
            for mention in group:
                if _class(mention) in wanted and not stems(mention.text) & known:
                    pool.setdefault(_class(mention), []).append(mention.text)
        if pool:
            break

    def others(mention: Mention) -> list[str]:
        return pool.get(_class(mention), [])

    return exchange_mentions(pair, rng, most, others, "no other name or number of the same kind in the split")


def _class(mention: Mention) -> tuple[str, int]:
    """The kind of ``mention`` and its shape: years, days, spans of time, acronyms, … are exchanged among themselves."""
    shapes = (place for place, shape in enumerate(_SHAPES) if shape.search(mention.text))
    return mention.kind, next(shapes, -1)

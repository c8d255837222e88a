"""Damaged summaries: each kind of negative is one function in ``kinds``, and one line here; which aspect it damages.

A kind is called as ``make(pair, context, rng) -> Damaged`` and raises ``CannotDamage`` where the pair does not allow it
(``negsample.negatives.context`` has these types). Its labels are shares of the summary that were left alone and are
learned by mean squared error; a kind whose labels are 0 or 1 sets the attribute ``graded = False`` on the function.
"""

from collections.abc import Mapping
from types import MappingProxyType

from negsample.registry import Registry

NEGATIVES = Registry(
    "negative",
    {
        "crosspair": "negsample.negatives.kinds.crosspair:make",
        "add": "negsample.negatives.kinds.word_mutation:add",
        "delete": "negsample.negatives.kinds.word_mutation:delete",
        "replace": "negsample.negatives.kinds.word_mutation:replace",
        "sentence-delete": "negsample.negatives.kinds.sentence_mutation:delete",
        "sentence-replace": "negsample.negatives.kinds.sentence_mutation:replace",
        "swap": "negsample.negatives.kinds.order:swap",
        "repeat": "negsample.negatives.kinds.repeat:make",
        "intrude": "negsample.negatives.kinds.intrude:make",
        "entity": "negsample.negatives.kinds.entity:make",
        "negate": "negsample.negatives.kinds.negate:make",
        "truncate": "negsample.negatives.kinds.truncate:make",
        "shuffle": "negsample.negatives.kinds.order:shuffle",
        "drop": "negsample.negatives.kinds.form:drop",
        "double": "negsample.negatives.kinds.form:double",
        "glue": "negsample.negatives.kinds.form:glue",
    },
)

ASPECTS = ("coverage", "support", "coherence", "form")
"""In the order in which they are shown: content that is there, backed by the document, put in order, well formed."""

ASPECT_OF: Mapping[str, str] = MappingProxyType(
    {
        # What was worth saying is gone; what is left is as true and as well put as before.
        "delete": "coverage",
        "sentence-delete": "coverage",
        # The end is lost and all that it said. It breaks one sentence as well: see ALSO_DAMAGES.
        "truncate": "coverage",
        # The intruder is a sentence of the document, hence fully supported: a support judge taught with it would learn
        # to punish support. What is lost is the content that it stands in place of.
        "intrude": "coverage",
        # What the summary says now is not what the document says.
        "crosspair": "support",
        "replace": "support",
        "sentence-replace": "support",
        "entity": "support",
        "negate": "support",
        # Each sentence is good alone, but not where it stands.
        "swap": "coherence",
        "repeat": "coherence",
        # The words are those of the summary, and mostly all of them, but they no longer make sentences.
        "shuffle": "form",
        "drop": "form",
        "double": "form",
        "glue": "form",
        # Random words put in break sentences whatever they mean.
        "add": "form",
    }
)
"""Kind of negative → the one aspect it damages most. Kinds from other packages are not in it."""

ALSO_DAMAGES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # A random word deleted or replaced breaks its sentence.
        "delete": ("form",),
        "replace": ("form", "coverage"),
        "truncate": ("form",),
        # The words put in have no support in the document.
        "add": ("support",),
        "crosspair": ("coverage",),
        # A foreign sentence takes the place of content, and has nothing to do with its neighbours.
        "sentence-replace": ("coverage", "coherence"),
        "intrude": ("coherence",),
        # The sentence that the copy stands in place of is lost.
        "repeat": ("coverage",),
        "glue": ("coverage",),
    }
)
"""Kind of negative → what else it damages, for whoever trains an aspect on more than its own kinds."""


def kinds_for(aspect: str) -> tuple[str, ...]:
    """The kinds that damage ``aspect`` (one of ``ASPECTS``), most or also, sorted."""
    return tuple(sorted(k for k, main in ASPECT_OF.items() if aspect == main or aspect in ALSO_DAMAGES.get(k, ())))

"""Damaged summaries: each kind of negative is one function in ``kinds``, and one line here; which aspect it damages.

A kind is called as ``make(pair, context, rng) -> Damaged`` and raises ``CannotDamage`` where the pair does not allow it
(``negsample.negatives.context`` has these types). Its labels are shares of the summary that were left alone and are
learned by mean squared error; a kind whose labels are 0 or 1 sets the attribute ``graded = False`` on the function.
"""

from collections.abc import Mapping
from types import MappingProxyType

from negsample.registry import Registry

ASPECTS = ("coverage", "support", "coherence", "form")
"""In the order in which they are shown: content that is there, backed by the document, put in order, well formed."""

# Each kind: where it is made, the one aspect that it damages most, and what else it damages.
_KINDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    # What was worth saying is gone; what is left is as true as before. Random words deleted break their sentence as well,
    # and so does the cut.
    "delete": ("word_mutation:delete", "coverage", ("form",)),
    "sentence-delete": ("sentence_mutation:delete", "coverage", ()),
    "truncate": ("truncate:make", "coverage", ("form",)),
    # The intruder is a sentence of the document, hence fully supported: a support judge taught with it would learn to punish
    # support. What is lost is the content that it stands in place of.
    "intrude": ("intrude:make", "coverage", ("coherence",)),
    # What the summary says now is not what the document says; a foreign text stands in place of content.
    "crosspair": ("crosspair:make", "support", ("coverage",)),
    "replace": ("word_mutation:replace", "support", ("form", "coverage")),
    "sentence-replace": ("sentence_mutation:replace", "support", ("coverage", "coherence")),
    "entity": ("entity:make", "support", ()),
    "negate": ("negate:make", "support", ()),
    "foreign": ("foreign:make", "support", ()),
    "number": ("number:make", "support", ()),
    "antonym": ("antonym:make", "support", ()),
    "roles": ("roles:make", "support", ()),
    "speaker": ("speaker:make", "support", ()),
    "word": ("word:make", "support", ()),
    "detail": ("detail:make", "support", ()),
    "join": ("join:make", "support", ()),
    # Each sentence is good alone, but not where it stands; the one that a copy stands in place of is lost.
    "swap": ("order:swap", "coherence", ()),
    "repeat": ("repeat:make", "coherence", ("coverage",)),
    # The words are those of the summary, and mostly all of them, but they no longer make sentences.
    "shuffle": ("order:shuffle", "form", ()),
    "drop": ("form:drop", "form", ()),
    "double": ("form:double", "form", ()),
    "glue": ("form:glue", "form", ("coverage",)),
    # Random words put in break sentences whatever they mean, and have no support in the document.
    "add": ("word_mutation:add", "form", ("support",)),
}
ENGLISH = frozenset("negate antonym detail join roles word".split())
"""The kinds that lean on lists of English words, or on a parser of English: they refuse a document that is not in it."""
NEGATIVES = Registry("negative", {kind: f"negsample.negatives.kinds.{at}" for kind, (at, *_) in _KINDS.items()})
ASPECT_OF: Mapping[str, str] = MappingProxyType({kind: aspect for kind, (_, aspect, _) in _KINDS.items()})
"""Kind of negative → the one aspect it damages most. Kinds from other packages are not in it."""


def kinds_for(aspect: str) -> tuple[str, ...]:
    """The kinds that damage ``aspect`` (one of ``ASPECTS``), most or also, sorted."""
    return tuple(sorted(kind for kind, (_, most, also) in _KINDS.items() if aspect in (most, *also)))

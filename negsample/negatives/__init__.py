"""Damaged summaries: each kind of negative is one function in ``kinds``, and one line here.

A kind is called as ``make(pair, context, rng) -> Damaged`` and raises ``CannotDamage`` where the pair does not allow it
(``negsample.negatives.context`` has these types). Its labels are shares of the summary that were left alone and are
learned by mean squared error; a kind whose labels are 0 or 1 sets the attribute ``graded = False`` on the function.
"""

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
